"""MIKASA-Robo-VLA, a world that others wrote: our trainer and our tick on its tasks, from pixels, in closed loop."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

from rich.table import Table

from studies import options
from studies.grid import Figures, Run, parts
from studies.mikasa.client import MikasaWorld, recordings_there
from studies.mikasa.names import COUNTED, EPISODES, FIRST_SEED, IN_TURN, STEP_BY_STEP, TASKS, asked_of
from studies.mikasa.plan import EXPERT, PLAYED, MikasaPlan, carry_out, chosen, summary_of
from studies.mikasa.rows import RECIPE, ROWS, SIGHTS, clock_of, plain, suited
from studies.tables import proportion, table
from studies.worlds.environment import FOLDER, Unavailable
from trace_memory_ros.learning.engine.hardware import Hardware
from trace_memory_ros.measure.accuracy import LEAST

DEMONSTRATIONS = 250
QUICK_STEPS, QUICK_WARM_UP = (50, 20), 5
QUICK_TASKS, QUICK_ROWS, QUICK_DEMONSTRATIONS, QUICK_EPISODES = ("RememberColor3",), ("none", "gru"), 12, 2
TOLD = (
    "memory_first",
    "held_out_branch_accuracy",
    "training_episodes",
    "validation_episodes",
    "held_out_episodes",
    "parameters",
    "joint_cpu_s",
    "hardware",
    "state_bytes",
    "model_id",
)
"""Of each training."""
COLUMNS = (
    "row",
    "success",
    "at the end",
    "hand at the right one",
    "decisions, memory alone",
    "with the policy",
    "steps",
)
"""Decisions of held-out demonstrations; where the hand is at an episode's end."""
PUBLISHED = {
    "RememberColor3": {"ELMUR": 0.89, "RATE": 0.65, "Diffusion Policy": 0.32},
    "RememberColor5": {"ELMUR": 0.19, "RATE": 0.13, "Diffusion Policy": 0.10},
    "RememberColor9": {"ELMUR": 0.23, "RATE": 0.09, "Diffusion Policy": 0.17},
}
"""Success as ELMUR's authors report it, of the older tasks of the same names: another simulator, other teachers, more
demonstrations, larger models. Beside ours for orientation, not to be compared."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, rows, sizes, and where MIKASA's own Python packages and the recordings go."""
    options.add_names(parser, "--tasks", TASKS, "tasks")
    options.add_names(parser, "--rows", ROWS, "rows beside the expert")
    parser.add_argument("--eyes", choices=SIGHTS, default="tokens", help="what all rows see with (default: tokens)")
    parser.set_defaults(tasks=QUICK_TASKS)
    options.add_counts(
        parser,
        demonstrations=(
            DEMONSTRATIONS,
            "successful demonstrations, of which a sixth is held out and a tenth validates",
        ),
        episodes=(EPISODES, f"canonical episodes played, from seed {FIRST_SEED}"),
        seeds=(1, "training seeds"),
        memory_steps=(RECIPE.memory_first.stage_steps, "steps of the memory's own phase"),
        steps=(RECIPE.steps, "steps of memory and policy together"),
    )
    options.add_device(parser)
    parser.add_argument("--report", action="store_true", help="train and play nothing, tabulate what is there")
    parser.add_argument(
        "--packages", type=Path, default=FOLDER / "mikasa", help="environment of the world's packages, made if missing"
    )
    parser.add_argument(
        "--recordings", type=Path, default=options.DEMOS / "mikasa", help="recorded demonstrations, a file a seed"
    )


def run(
    out_dir: Path,
    quick: bool,
    tasks: tuple[str, ...],
    rows: tuple[str, ...],
    eyes: str,
    demonstrations: int,
    episodes: int,
    seeds: int,
    memory_steps: int,
    steps: int,
    device: str,
    report: bool,
    packages: Path,
    recordings: Path,
) -> Figures:
    """Record, train and play what is missing; what is kept is not done again.

    quick: one task, two rows, a dozen demonstrations, two episodes.
    """
    sight = SIGHTS[eyes]
    counts = (memory_steps, steps) if not quick else QUICK_STEPS
    first = replace(sight.recipe.memory_first, stage_steps=counts[0])
    recipe = replace(sight.recipe, memory_first=first, steps=counts[1])
    hardware = Hardware.chosen(device, "float32")
    plan = MikasaPlan(out_dir, recordings, tasks, rows, seeds, demonstrations, episodes, sight, recipe, hardware)
    if quick:
        sizes = QUICK_TASKS, QUICK_ROWS, 1, QUICK_DEMONSTRATIONS, QUICK_EPISODES, sight
        plan = MikasaPlan(out_dir, recordings, *sizes, replace(recipe, warm_up_steps=QUICK_WARM_UP), hardware)
    if not report:
        try:
            with MikasaWorld(packages) as world:
                carry_out(plan, world)
        except Unavailable as error:
            return {"skipped": str(error)}
    return figures_of(plan)


def figures_of(plan: MikasaPlan) -> Figures:
    """What is there of the plan."""
    return {
        "demonstrations": plan.demonstrations,
        "episodes": plan.episodes,
        "first_canonical_seed": FIRST_SEED,
        "decision_ticks": "annotated: the first tick at which the benchmark shows the choices, and those after a touch",
        "labelled": "single-task imitation",
        "tasks": {task: _task(plan, task) for task in plan.tasks},
        "failed": {f"{run}": why for run in plan.runs() if (why := plan.store(run).failure)},
        "rows": {row: plain(row, plan.sight, plan.tasks[0]) for row in plan.rows},
        "clocks": {task: clock_of(task).to_dict() for task in plan.tasks},
        "memory_reach": plan.sight.memory_reach,
        "recipe": plan.recipe.to_dict(),
        "recipes_step_by_step": {
            task: suited(plan.recipe, task).to_dict() for task in plan.tasks if task in STEP_BY_STEP
        },
        "published": {task: PUBLISHED[task] for task in plan.tasks if task in PUBLISHED},
    }


def _task(plan: MikasaPlan, task: str) -> Figures:
    files = recordings_there(plan.recordings, task, plan.demonstrations)
    rows = {row: _row(plan, task, row) for row in (EXPERT, *plan.rows)}
    taken = [chosen(plan, task, seed) for seed in range(plan.seeds)]
    return {
        "recordings": summary_of(files),
        "rows": {row: found for row, found in rows.items() if found},
        "taken_by_auto": [name for name in taken if name],
    }


def _row(plan: MikasaPlan, task: str, row: str) -> Figures | None:
    """Successes over all seeds' canonical episodes, and what the trainings found; None where nothing was played."""
    stores = [plan.store(Run(task, row, seed)) for seed in range(1 if row == EXPERT else plan.seeds)]
    by_seed = [parts(stores, f"episode_{seed}", PLAYED) for seed in plan.canonical_seeds()]
    played = [one for episodes in by_seed for one in episodes]
    if not played:
        return None
    # Every training plays the same episodes.
    times = len(played) / sum(map(bool, by_seed))
    found: Figures = {
        "success": proportion([one["success"] for one in played], times),
        "success_at_end": proportion([one["success_at_end"] for one in played], times),
        "steps": sum(one["steps"] for one in played) / len(played),
    }
    trained = parts(stores, "training")
    if trained:
        found["runs"] = len(trained)
        found |= {name: [one[name] for one in trained] for name in TOLD}
        if task in IN_TURN:
            found |= _in_turn(played, times, trained, asked_of(task))
        elif task not in COUNTED:
            found |= _at_right(played, times)
        found["writes"] = sum(one["writes"] for one in played) / len(played)
    return found


def _at_right(played: list[Figures], times: float) -> Figures:
    """Where the hand ended. times: how often each episode was played."""
    beside_m = [one["beside_m"] for one in played if one["at_right"]]
    return {
        "at_right": proportion([one["at_right"] for one in played], times),
        "beside_m": median(beside_m) if beside_m else None,
    }


def _in_turn(played: list[Figures], times: float, trained: list[Figures], asked: int) -> Figures:
    """In how many episodes at least so many things were touched rightly before a wrong one, for each number; and which
    held-out decisions the memory's own phase names rightly, the last of them the button.
    """
    named = [one for training in trained for one in training["memory_first"]["named"] or ()]
    return {
        "touched": {str(n): proportion([one["touched"] >= n for one in played], times) for n in range(1, asked + 1)},
        "named": [proportion(decision, len(trained)) for decision in zip(*named, strict=True)],
    }


def tables(figures: Figures) -> Iterator[Table | str]:
    """A table per task, a row a memory; what others report beside it."""
    if reason := figures.get("skipped"):
        yield f"skipped: {reason}"
        return
    for task, found in figures["tasks"].items():
        made = found["recordings"]
        yield table(
            f"{task}: canonical episodes solved; single-task imitation of {figures['demonstrations']} demonstrations "
            f"(recorded {made['recorded']}, failed {made['failed']})",
            COLUMNS,
            [[row, *_cells(one)] for row, one in found["rows"].items()],
        )
        if task in IN_TURN:
            yield from _told_in_turn(task, {row: one for row, one in found["rows"].items() if "touched" in one})
        if found["taken_by_auto"]:
            yield f"{task}: auto would take {', '.join(found['taken_by_auto'])}"
        if others := figures["published"].get(task):
            told = ", ".join(f"{name} {value:.2f}" for name, value in others.items())
            yield f"another regime, the older task of that name as ELMUR's authors report it: {told}"
    yield from (f"{name}: {why}" for name, why in figures["failed"].items())


def _told_in_turn(task: str, rows: Figures) -> Iterator[str]:
    """How many were touched rightly, and which held-out decisions are named rightly."""
    for n in range(1, asked_of(task) + 1):
        shares = (f"{row} {_told(one['touched'][str(n)])}" for row, one in rows.items())
        yield f"{task}: {n} touched rightly: {', '.join(shares)}"
    named = {row: [f"{one['right']}/{one['count']}" for one in found["named"]] for row, found in rows.items()}
    decisions = (f"{row} {', '.join(each)}" for row, each in named.items())
    yield f"{task}: held-out decisions named, memory alone: {'; '.join(decisions)}"


def _cells(found: Figures) -> list[str]:
    alone = [one and one["held_out"] for one in found.get("memory_first", [])]
    whole = found.get("held_out_branch_accuracy", [])
    shares = [_told(found.get(name)) for name in ("success", "success_at_end", "at_right")]
    return [*shares, _accuracies(alone), _accuracies(whole), f"{found['steps']:.1f}"]


def _told(share: Figures | None) -> str:
    if share is None:
        return ""
    low, high = share["ci95"]
    few = "" if share["count"] >= LEAST else ", too few to tell"
    return f"{share['right']}/{share['count']} ({low:.2f} to {high:.2f}{few})"


def _accuracies(found: list[Figures | None]) -> str:
    return ", ".join(f"{one['right']}/{one['count']}" for one in found if one)
