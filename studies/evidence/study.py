"""Do memories follow the ordered history? TRACE's tables 3 and 12 and cue attribution, on bags of the arm tasks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies import options
from studies.evidence.cues import attribution_cpu_s, cue_figures, cues_hidden_ns
from studies.evidence.reversal import reversal_figures
from studies.grid import say
from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED
from trace_memory_ros.arm.recorder import arm_recording, record_bags, scenarios_of
from trace_memory_ros.evidence.figures import figures_of
from trace_memory_ros.evidence.fleet import FleetPlan, evaluate_bags
from trace_memory_ros.evidence.history.transforms import NEGATIVE_CONTROL
from trace_memory_ros.evidence.results import Evaluation
from trace_memory_ros.measure.fleet import executor

TASKS = ("origin", "colour")
ROWS = ("trace", "trace+window", "gru")
PAIRS = 12
TIMED = 6
WEIGHTS = Path("weights")
MODULES = Path("out/bench-memory-modules/runs")
KEEPS_AT_LEAST, REVERSED_AT_MOST = 85.0, 50.0
DIAGNOSTICS = ("route_similarity", "branch_consistency")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Bags, checkpoints, workers."""
    options.add_counts(parser, pairs=(PAIRS, "scenes a task, a bag per cue"))
    options.add_names(parser, "--rows", ROWS, "rows")
    options.add_workers(parser)
    parser.add_argument("--modules", type=Path, default=MODULES, help="runs of bench memory-modules, for trace+window")


def run(
    out_dir: Path,
    quick: bool,
    pairs: int = PAIRS,
    rows: tuple[str, ...] = ROWS,
    workers: int = 1,
    modules: Path = MODULES,
) -> dict[str, Any]:
    """Record held-out demonstrations as bags, evaluate every memory on them, and say which targets are met."""
    pairs = 2 if quick else pairs
    seeds = range(FIRST_EVALUATION_SEED, FIRST_EVALUATION_SEED + pairs)
    bags = {}
    for task in TASKS:
        done = record_bags(scenarios_of(task, seeds), out_dir / "bags" / task, workers=workers)
        bags[task] = sorted(done)
        say(f"{task}: {len(bags[task])} bags")
    hidden_ns = {str(bag): cues_hidden_ns(bag) for some in bags.values() for bag in some}
    found = {}
    for row, checkpoints in rows_of(modules, rows).items():
        plans = {task: FleetPlan(path, arm_recording(), out_dir / "cache") for task, path in checkpoints.items()}
        evaluations = {}
        for task, plan in plans.items():
            evaluations[task] = _evaluate(bags[task], plan, workers)
            _keep(out_dir / "evaluations" / f"{row}-{task}.json", evaluations[task])
            say(f"{row} {task}: {len(evaluations[task].episodes)} episodes")
        found[row] = row_figures(evaluations, hidden_ns)
        for task, plan in plans.items():
            figures = found[row]["tasks"][task]
            figures["attribution_cpu_s"] = attribution_cpu_s(plan, bags[task][:TIMED])
            if evaluations[task].model.uses_signature:
                figures["reversal"] = reversal_figures(plan, bags[task])
    return {"seeds": list(seeds), "episodes_per_task": 2 * pairs, "rows": found, "targets": targets(found)}


def rows_of(modules: Path, names: Sequence[str] = ROWS) -> dict[str, dict[str, Path]]:
    """Checkpoint of each task by row; a windowed one that was not trained here is left out.

    Raises ValueError where several were trained, by different recipes.
    """
    windowed = {task: sorted(modules.glob(f"{task}-trace+window-0-*/config.yaml")) for task in TASKS}
    if "trace+window" in names and (several := [found for found in windowed.values() if len(found) > 1]):
        folders = ", ".join(str(config.parent) for config in several[0])
        raise ValueError(
            f"trace+window was trained by several recipes: {folders}; remove all but one, or name --modules"
        )
    rows = {}
    for name in names:
        if name != "trace+window":
            rows[name] = {task: WEIGHTS / f"{task}_{name}" for task in TASKS}
        elif all(windowed.values()):
            rows[name] = {task: found[0].parent for task, found in windowed.items()}
    return rows


def row_figures(evaluations: Mapping[str, Evaluation], hidden_ns: Mapping[str, int]) -> dict[str, Any]:
    """Figures of each task and of both in balance; what was evaluated; where attribution points."""
    everything = [episode for evaluation in evaluations.values() for episode in evaluation.episodes]
    return {
        "models": {task: evaluation.model.model_id for task, evaluation in evaluations.items()},
        "path_feeds": next(iter(evaluations.values())).model.path_feeds,
        "failed": [vars(fault) for evaluation in evaluations.values() for fault in evaluation.failed],
        "tasks": {
            task: {**evaluation.figures, "cue": cue_figures(evaluation, hidden_ns)}
            for task, evaluation in evaluations.items()
        },
        "all": figures_of(everything),
    }


def targets(rows: Mapping[str, Any]) -> dict[str, Any]:
    """Of each row that follows signatures: what order-preserving transforms keep, what reversal leaves on `origin`."""
    found = {}
    for name, row in rows.items():
        if "signatures" not in row["path_feeds"]:
            continue
        for diagnostic in DIAGNOSTICS:
            kept = row["all"]["order_preserving"][diagnostic]
            back = row["tasks"]["origin"]["transforms"][NEGATIVE_CONTROL][diagnostic]
            found[f"{name}: {diagnostic}"] = {
                "order_preserving": kept["mean"],
                "order_preserving_met": kept["mean"] >= KEEPS_AT_LEAST,
                "reversed_on_origin": back["mean"],
                "reversed_met": back["mean"] <= REVERSED_AT_MOST,
            }
    return found


def _evaluate(bags: Sequence[Path], plan: FleetPlan, workers: int) -> Evaluation:
    """Evidence of all `bags`. Raises RuntimeError naming the first that failed: these bags were just recorded."""
    evaluation = evaluate_bags(bags, plan, executor(workers))
    if evaluation.failed:
        raise RuntimeError(f"{len(evaluation.failed)} bags could not be evaluated, first {evaluation.failed[0]}")
    return evaluation


def _keep(path: Path, evaluation: Evaluation) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(evaluation.to_dict(), allow_nan=False), encoding="utf-8")
