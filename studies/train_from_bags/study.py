"""Training from bags alone: what 150 and 75 bags per arm task reach on held-out episodes and in closed loop."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

from studies import options
from studies.grid import Figures, Store, say
from studies.tables import table, with_interval
from trace_memory_ros.arm.closed_loop import figures_of, held_out_scenarios, run_episodes
from trace_memory_ros.arm.recorder import arm_recording, record_bags, scenarios_of
from trace_memory_ros.arm.sizes import ARM_DIMS, MATCHED
from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.bags.data import BagData
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.training import Prepared, prepare, read_bags
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import TrainingSet
from trace_memory_ros.learning.decisions.branch_accuracy import ChunkModel, decisions_right, label_verdicts
from trace_memory_ros.learning.engine.optimise import descend, draw_batch
from trace_memory_ros.learning.fit import fit, new_agent, plain_accuracy
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.measure.accuracy import TWINS, Accuracy
from trace_memory_ros.runtime.checkpoint import load

SCHEMA = 2
TASKS = ("origin", "colour")
DEPTH = 2
CHECKS, CHECK_EVERY = 16, 5


@dataclass(frozen=True)
class Training:
    """How a row is trained.

    bags: of which a sixth is held out. adopts: starts from the shipped policy, else from scratch.
    """

    name: str
    task: str
    bags: int
    adopts: bool
    steps: int


_ROWS = (
    Training("origin 150", "origin", 150, True, 200),
    Training("colour 150", "colour", 150, True, 200),
    Training("origin 75", "origin", 75, True, 200),
    Training("colour 75", "colour", 75, True, 200),
    Training("origin 150 from scratch", "origin", 150, False, 800),
)
ROWS = {row.name: row for row in _ROWS}


@dataclass(frozen=True)
class BagsPlan:
    """What a call is decided by: sizes and places."""

    seeds: int
    closed_loop: int
    memory_first: MemoryFirst
    bags: Path
    weights: Path
    out_dir: Path

    def settings(self, row: Training) -> Figures:
        """What a row's figures depend on."""
        recipe = Recipe(memory_first=self.memory_first).to_dict()
        return {"schema": SCHEMA, "row": str(row), "seeds": self.seeds, "episodes": self.closed_loop, "recipe": recipe}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Rows, folders, workers."""
    options.add_names(parser, "--rows", ROWS, "rows")
    parser.add_argument("--bags", type=Path, default=Path("out/bags"), help="where bags are recorded (out/bags)")
    parser.add_argument("--weights", type=Path, default=Path("weights"), help="folder of the shipped checkpoints")
    options.add_workers(parser)


def run(out_dir: Path, quick: bool, rows: tuple[str, ...], bags: Path, weights: Path, workers: int) -> Figures:
    """Record bags that are not there, train each row on them alone, and judge it; kept rows are not done again."""
    chosen = [ROWS[name] for name in rows]
    chosen = [replace(row, steps=3) for row in chosen[:1]] if quick else chosen
    plan = BagsPlan(75, 20, MemoryFirst(), bags, weights, out_dir)
    if quick:
        plan = replace(plan, seeds=6, closed_loop=2, memory_first=MemoryFirst((4.0, 1.0), stage_steps=25))
    store = Store(out_dir / "rows")
    figures: Figures = {}
    for task in dict.fromkeys(row.task for row in chosen):
        _record(plan, task, workers)
        figures[f"measure {task}"] = store.get(
            f"measure-{task}", plan.settings(_measured(task)), partial(compare_measures, plan, task)
        )
    for row in chosen:
        part = row.name.replace(" ", "-")
        figures[row.name] = store.get(part, plan.settings(row), partial(measure, plan, row))
        say(f"{row.name}: {_line(figures[row.name])}")
    return {
        "bags_per_task": 2 * plan.seeds,
        "signature_depth": DEPTH,
        "split": "by scene: no counterfactual twin of a training episode is held out; training is told of no twins",
        "rows": {row.name: figures[row.name] for row in chosen},
        "branch measure against twins": {
            task: figures[f"measure {task}"] for task in dict.fromkeys(row.task for row in chosen)
        },
    }


def measure(plan: BagsPlan, row: Training) -> Figures:
    """Train a row, save its checkpoint, drive with it."""
    prepared = _prepared(plan, row)
    start = load(plan.weights / f"{row.task}_trace") if row.adopts else None
    fitted = fit(prepared.design, prepared.data, prepared.recipe, 0, start=start)
    agent, memory, last = fitted.agent, fitted.memory, fitted.last
    assert memory is not None
    by_twins = _by_twins(agent, prepared.held_out)
    figures: Figures = {
        "training_episodes": len(prepared.training.data.episodes),
        "held_out_episodes": len(prepared.held_out.data.episodes),
        "memory_first": {
            "steps": memory.step,
            "validation_branch_accuracy": plain_accuracy(memory.validation_branch_accuracy),
            "cpu_s": fitted.memory_cpu_s,
        },
        "joint_steps": row.steps,
        "policy": f"from weights/{row.task}_trace" if row.adopts else "from scratch",
        "train_branch_accuracy": plain_accuracy(last.train_branch_accuracy),
        "held_out_branch_accuracy": plain_accuracy(fitted.held_out.accuracy),
        "held_out_branch_accuracy_by_twins": Accuracy.of(int(by_twins.sum()), len(by_twins), TWINS).to_dict(),
        "held_out_chunk_error": fitted.held_out.chunk_error,
        "clock": prepared.design.clock.to_dict(),
        "writes_per_episode": prepared.writes,
        "training_cpu_s": fitted.memory_cpu_s + fitted.joint_cpu_s,
    }
    folder = plan.out_dir / "checkpoints" / row.name.replace(" ", "_")
    figures["model_id"] = fitted.save(folder, row.task, figures)
    scenarios = held_out_scenarios(row.task, plan.closed_loop)
    figures["closed_loop"] = figures_of(run_episodes(folder, row.task, scenarios))
    return figures


def compare_measures(plan: BagsPlan, task: str) -> Figures:
    """Judge a memory by both measures while it learns: by what other episodes did, and by the counterfactual twin.

    agreement: share of held-out decisions that both judge alike. Only this comparison looks for twins.
    """
    prepared = _prepared(plan, _measured(task))
    model = AuxiliaryHead(new_agent(prepared.design, prepared.data, 0))
    first = prepared.recipe.memory_first
    optimiser = torch.optim.AdamW(model.parameters(), lr=first.learning_rate)
    factor, held = first.clock_factors[0], prepared.held_out
    rows = []
    for step in range(1, CHECKS * CHECK_EVERY + 1):
        rng = np.random.default_rng([1, step])
        batch = draw_batch(
            prepared.training, prepared.recipe, rng, factor, first.batch_pairs, first.reads, first.shares, False
        )
        descend(model, optimiser, batch, prepared.recipe, step)
        if step % CHECK_EVERY == 0:
            model.eval()
            twins, labels = _by_twins(model, held, factor), _by_labels(model, held, factor)
            model.train()
            rows.append([step, float(np.mean(twins)), float(np.mean(labels)), float(np.mean(twins == labels))])
    return {"columns": ["step", "by twins", "by labels", "agreement"], "clock_factor": factor, "checks": rows}


def _by_twins(model: ChunkModel, builder: BatchBuilder, factor: float = 1.0) -> np.ndarray:
    """Verdicts by the counterfactual twin's chunk, `(episodes,)` 0 or 1, in the order of scene and answer."""
    ordered = replace(builder, data=_in_pairs(builder))
    pairs = range(ordered.data.pairs)
    return torch.cat([decisions_right(model, ordered, pair, factor).flatten() for pair in pairs]).numpy()


def _by_labels(model: ChunkModel, builder: BatchBuilder, factor: float) -> np.ndarray:
    """Verdicts by the training episodes' chunks, in the same order."""
    assert builder.references is not None
    ordered = replace(builder, data=_in_pairs(builder))
    indices = range(len(ordered.data.episodes))
    verdicts = [label_verdicts(model, ordered, builder.references, [i], factor) for i in indices]
    return np.array([float(right) for found in verdicts for _, _, right in found])


def _in_pairs(builder: BatchBuilder) -> TrainingSet:
    def place(index: int) -> tuple[str, tuple[int, ...]]:
        demo = builder.data.episodes[index].demo
        return demo.scene, demo.answers

    order = sorted(range(len(builder.data.episodes)), key=place)
    return TrainingSet([builder.data.episodes[i] for i in order])


def _record(plan: BagsPlan, task: str, workers: int) -> None:
    for _ in record_bags(scenarios_of(task, range(plan.seeds)), plan.bags / task, workers=workers):
        pass


@lru_cache(maxsize=1)
def _data(folder: Path, task: str, seeds: int) -> BagData:
    bags = list(record_bags(scenarios_of(task, range(seeds)), folder / task))
    data, failed = read_bags(bags, arm_recording(), folder / "cache")
    if failed:
        raise ValueError(f"{failed[0]}: delete the bag, it is recorded again")
    return data


def _prepared(plan: BagsPlan, row: Training) -> Prepared:
    """A row's data. With fewer bags the same are held out, and training episodes are drawn without regard to twins."""
    data = _data(plan.bags, row.task, plan.seeds)
    recipe = Recipe(steps=row.steps, memory_first=plan.memory_first)
    share = row.bags / 150
    episodes = None if share == 1 else round(share * len(data.episodes) * 5 / 6)
    return prepare(
        data,
        arm_recording(),
        BagOptions(depth=DEPTH, memory_options=MATCHED["trace"], slots=ARM_DIMS.slots),
        recipe,
        episodes=episodes,
    )


def _measured(task: str) -> Training:
    return Training("measure", task, 150, True, 1)


def tables(figures: Figures) -> Iterator[Table]:
    """Held-out decisions and closed loop, by row."""
    columns = ("row", "train", "held out", "by twins", "chunk error", "closed loop", "progress", "CPU s")
    yield table("trained from bags alone", columns, ((name, *_cells(row)) for name, row in figures["rows"].items()))


def _cells(row: Figures) -> Iterator[str]:
    for name in ("train_branch_accuracy", "held_out_branch_accuracy", "held_out_branch_accuracy_by_twins"):
        yield with_interval(row[name], "value")
    yield f"{row['held_out_chunk_error']:.3f}"
    yield with_interval(row["closed_loop"], "branch_success")
    yield f"{row['closed_loop']['progress']:.2f}"
    yield f"{row['training_cpu_s']:.0f}"


def _line(figures: Figures) -> str:
    closed = figures["closed_loop"]
    return (
        f"held-out branch accuracy {with_interval(figures['held_out_branch_accuracy'], 'value')}, chunk error "
        f"{figures['held_out_chunk_error']:.3f}; closed loop {closed['branch_success']:.2f} of {closed['episodes']}, "
        f"progress {closed['progress']:.2f}"
    )
