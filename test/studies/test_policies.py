"""The comparison of policy families: what is planned, kept, tabulated and refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from studies.engine import option_parser, show
from studies.grid import Run, Store
from studies.policies import plan as plans
from studies.policies import study as bench
from studies.policies.table import figures_of, progress_of, tables

WEIGHTS = Path(__file__).parents[2] / "weights"


def _plan(tmp_path: Path, **changes: Any) -> plans.PoliciesPlan:
    return plans.PoliciesPlan(
        **{
            "tasks": ("colour",),
            "policies": ("act",),
            "memories": plans.MEMORIES,
            "seeds": (0, 1),
            "pairs": 2,
            "recipes": plans.RECIPES,
            "inference_steps": (1, 5),
            "step_pairs": 2,
            "out_dir": tmp_path,
            "bases": WEIGHTS,
            "demos": tmp_path,
        }
        | changes
    )


def _episodes(progress: list[float], success: list[bool]) -> dict[str, Any]:
    return {
        "episodes": [
            {"success": s, "progress": p, "writes": 30, "elapsed_s": 24.0}
            for p, s in zip(progress, success, strict=True)
        ]
    }


def test_seeds_share_no_scene_and_both_families_see_the_same(tmp_path: Path) -> None:
    plan = _plan(tmp_path, policies=plans.POLICIES)
    runs = plan.runs()
    assert len(runs) == len(set(map(str, runs))) == 8
    scenes = [{s.seed for s in plan.scenarios("colour", seed)} for seed in (0, 1)]
    assert not scenes[0] & scenes[1]
    assert not {s.seed for s in plan.step_scenarios("colour")} & (scenes[0] | scenes[1])
    assert [s.cue for s in plan.scenarios("colour", 0)] == [0, 1, 0, 1]


def test_both_families_start_from_the_same_trained_memory(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    files = {plan.memory_file(Run("colour", plans.row_of(policy, "trace"), 0)) for policy in plans.POLICIES}
    assert len(files) == 1
    assert plan.memory_file(Run("colour", "act trace", 1)) not in files


def test_another_recipe_is_another_folder(tmp_path: Path) -> None:
    plan, run = _plan(tmp_path), Run("colour", "act trace", 0)
    other = replace(plan, recipes={"act": {"colour": replace(plan.recipe(run), steps=7)}})
    assert plan.run_folder(run) != other.run_folder(run)
    assert plan.memory_file(run) == other.memory_file(run)


def test_progress_weighs_tasks_alike_and_its_interval_knows_seeds() -> None:
    even = [_episodes([0.5] * 4, [True] * 4)] * 2
    uneven = [_episodes([1.0] * 2, [True] * 2), _episodes([0.0] * 2, [False] * 2)]
    alone = progress_of([uneven])
    assert (alone["mean"], alone["se"]) == (50.0, 0.0)
    assert alone["ci95"] == [0.0, 100.0]
    both = progress_of([even, uneven])
    assert both["mean"] == 50.0
    assert both["ci95"] == [25.0, 75.0]
    assert both["episodes"] == 12


def test_what_is_kept_is_tabulated_and_what_failed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan(tmp_path)
    monkeypatch.setattr("studies.policies.table.chunk_times_ms", lambda *_: {None: {"median": 1.5}})
    for seed, progress in ((0, [1.0, 0.5]), (1, [1.0, 1.0])):
        store = Store(plan.run_folder(Run("colour", "act none", seed)))
        trained = {"held_out_branch_accuracy": {"value": 0.5}, "parameters": {}, "adapter_parameters": 1, "execute": 1}
        store.write("training", {}, trained)
        store.write("closed_loop", {}, _episodes(progress, [True, False]))
    Store(plan.run_folder(Run("colour", "act trace", 0))).fail("it broke")
    figures = figures_of(plan)
    cell = figures["tasks"]["colour"]["act none"]
    assert cell["progress"]["mean"] == pytest.approx(87.5)
    assert cell["branch_success"]["success"] == 0.5
    assert figures["average"]["act trace"] == {}
    assert figures["tasks"]["colour"]["act trace"]["failed"] == {"0": "it broke"}
    assert figures["missing"] == ["colour act trace"]
    assert figures["paper_average_progress"] == {"act none": 25.5, "act trace": 69.23}
    console = Console(record=True, width=120)
    show(tables(figures), console)
    text = console.export_text()
    assert "87.5 ±" in text and "1.5" in text


def test_inference_steps_are_tabulated_with_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bases = tmp_path / "bases"
    bases.mkdir()
    (bases / "colour_none_diffusion").symlink_to(WEIGHTS / "colour_trace_diffusion")
    plan = _plan(tmp_path, policies=("diffusion",), bases=bases)
    monkeypatch.setattr("studies.policies.table.chunk_times_ms", lambda *_: {5: {"median": 4.25}})
    Store(plan.run_folder(plan.stepped("colour"))).write("steps_5", {}, _episodes([1.0, 0.5], [True, False]))
    figures = figures_of(plan)
    assert figures["inference_steps"]["colour"]["5"]["progress"] == 75.0
    console = Console(record=True, width=120)
    show(tables(figures), console)
    assert "4.2" in console.export_text()


def test_a_missing_base_names_the_command_that_trains_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"colour_none is not in .*train colour --memory none --policy act --out"):
        bench.check_bases(_plan(tmp_path, bases=tmp_path))


def test_a_base_of_another_family_is_refused(tmp_path: Path) -> None:
    (tmp_path / "colour_none_diffusion").symlink_to(WEIGHTS / "colour_none")
    with pytest.raises(ValueError, match=r"family 'act', not 'diffusion'; train it"):
        bench.check_bases(_plan(tmp_path, bases=tmp_path, policies=("diffusion",)))


def test_counts_below_one_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        option_parser("policies", bench).parse_args(["--seeds", "0"])
    assert "--seeds: '0': must be a whole number of at least 1" in capsys.readouterr().err
