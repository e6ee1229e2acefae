"""`bench detail`: which rows there are, how each is kept, and one of them from episode to figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from studies.detail.plan import (
    BESIDE,
    EYES,
    MEMORIES,
    ONE_SEED,
    RECIPE,
    TASKS,
    DetailPlan,
    observation_of,
    parts_of,
    quick_plan,
    row_of,
    rows,
)
from studies.detail.study import figures_of, run, tables
from studies.detail.training import measure
from studies.grid import Run, Store
from trace_memory_ros.measure.statistics import wilson_interval

SMALL = row_of(BESIDE[0], "gru")


def plan_in(folder: Path, **changes: object) -> DetailPlan:
    made = DetailPlan(
        tasks=TASKS,
        rows=rows(),
        seeds=(0, 1, 2),
        pairs=2,
        out_dir=folder / "out",
        demos=folder / "demos",
        features=folder / "features",
        recipe=RECIPE,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_must_be_shown_is_trained_first_and_what_is_dear_once(tmp_path: Path) -> None:
    runs = plan_in(tmp_path).runs()
    assert len(set(runs)) == len(runs)
    first = runs[: len(BESIDE) * len(TASKS) * 3]
    assert {run.row for run in first} == {row_of(label, MEMORIES[0]) for label in BESIDE}
    assert parts_of(runs[0].row)[0].label == BESIDE[1]
    dear = [run for run in runs if parts_of(run.row)[0].label in ONE_SEED]
    assert {(run.task, run.seed) for run in dear} == {(TASKS[0], 0)}
    assert quick_plan(plan_in(tmp_path)).rows == tuple(row_of(label, "gru") for label in BESIDE)
    for eyes in EYES.values():
        assert observation_of(eyes).thumbnail_px == eyes.px


def test_rows_are_chosen_by_memory_and_eyes(tmp_path: Path) -> None:
    found = run(
        tmp_path, quick=False, task=TASKS[:1], memory=("gru",), eyes=("small_16", "tokens_96_noise"), report=True
    )
    assert [parts_of(row)[0].name for row in found["tasks"][TASKS[0]]] == ["small_16", "tokens_96_noise"]


def test_figures_count_decisions_over_seeds(tmp_path: Path) -> None:
    plan = plan_in(tmp_path, rows=(SMALL,), tasks=TASKS[:1])
    for seed, right in enumerate((3, 4)):
        run = Run(TASKS[0], SMALL, seed)
        part = {"right": right, "decisions": 4, "training_branch_accuracy": 1.0, "steps": 50, "cpu_s": 1.0}
        Store(plan.run_folder(run)).write("decisions", {}, part)
    figures = figures_of(plan)
    cell = figures["tasks"][TASKS[0]][SMALL]
    assert (cell["runs"], cell["right"], cell["decisions"]) == (2, 7, 8)
    # Four decisions, which both seeds were asked.
    assert cell["ci95"] == pytest.approx(list(wilson_interval(3.5, 4)))
    console = Console(width=200, record=True, file=(tmp_path / "out.txt").open("w"))
    for found in tables(figures):
        console.print(found)
    assert "0.88" in console.export_text() and "7/8" in (tmp_path / "out.txt").read_text()


@pytest.mark.timeout(300)
def test_a_row_from_episodes_to_a_figure(tmp_path: Path) -> None:
    short = replace(
        RECIPE.memory_first, stage_steps=2, check_steps=1, clock_factors=(2.0,), delay_factors=(), check_pairs=1
    )
    recipe = replace(RECIPE, pairs=1, validation_pairs=1, memory_first=short)
    plan = plan_in(tmp_path, recipe=recipe, pairs=1)
    run = Run(TASKS[1], SMALL, 0)
    store = Store(plan.run_folder(run))
    assert "of 2 right after 2 steps" in measure(plan, run, store)
    found = store.read("decisions")
    assert found is not None
    assert (found["decisions"], found["images_computed"]) == (2, 0)
    # Kept: nothing is rendered or trained again.
    (plan.demos / TASKS[1]).rename(tmp_path / "moved")
    assert measure(plan, run, store)
