"""The frame of the studies: what is kept is not done again, a failure stays with its run, and every study fits."""

import ast
import os
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from grid_jobs import OnePlan, leave, square, words
from rich.console import Console

import studies
from studies import engine
from studies.grid import HERE, Store, do, measure_all, parts
from studies.tables import bootstrapped, proportion, student, table, two_level
from trace_memory_ros.measure.summary import read_summary

FOLDER = Path(studies.__file__).parent


def plan(tmp_path: Path) -> OnePlan:
    return OnePlan(tasks=("origin",), rows=("a", "b c"), seeds=(0, 1), pairs=1, out_dir=tmp_path, demos=tmp_path)


def test_a_part_is_measured_once_for_its_settings(tmp_path: Path) -> None:
    store, calls = Store(tmp_path), []

    def measure() -> dict[str, Any]:
        calls.append(1)
        return {"success": len(calls)}

    assert store.get("part", {"episodes": (1, 2)}, measure) == {"success": 1}
    assert store.get("part", {"episodes": (1, 2)}, measure) == {"success": 1}
    assert store.get("part", {"episodes": (1, 3)}, measure) == {"success": 2}
    (tmp_path / "part.json").write_text("{", encoding="utf-8")
    assert store.read("part") is None


def test_a_run_that_takes_its_process_down_is_lost_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = plan(tmp_path)
    do(partial(leave, "origin b c seed 1"), found.runs(), found.run_folder, workers=2)
    assert "origin b c seed 1: FAILED, the process that did it died" in capsys.readouterr().out
    assert found.failures("origin", "b c") == {"1": "the process that did it died"}
    assert found.failures("origin", "a") == {}
    done = [part for row in found.rows for part in parts(found.stores("origin", row), "part")]
    assert [part["seed"] for part in done] == [0, 1, 0]
    assert os.getpid() not in {part["process"] for part in done}
    do(partial(leave, "none"), found.runs(), found.run_folder, HERE)
    assert found.failures("origin", "b c") == {}
    assert parts(found.stores("origin", "b c"), "part")[1]["process"] == os.getpid()


def test_a_failure_keeps_its_reason_and_the_next_call_tries_again(tmp_path: Path) -> None:
    jobs = {"two": 2, "minus one": -1, "three": 3}
    with pytest.raises(RuntimeError, match=r"1 of 3 measurements failed, first minus one: -1 has no square here"):
        measure_all(square, jobs, tmp_path, HERE, words)
    kept = measure_all(square, {"two": 2, "three": 3}, tmp_path, HERE, words)
    assert {name: figures["square"] for name, figures in kept.items()} == {"two": 4, "three": 9}
    assert {figures["process"] for figures in kept.values()} == {os.getpid()}
    assert measure_all(square, {"two": 5}, tmp_path, HERE, words)["two"]["square"] == 25
    assert measure_all(square, {"minus one": 1}, tmp_path, HERE, words, lambda job: "same")["minus one"]["square"] == 1


def test_runs_of_a_seed_come_together_and_have_folders_of_their_own(tmp_path: Path) -> None:
    found = plan(tmp_path)
    assert [str(run) for run in found.runs()][:2] == ["origin a seed 0", "origin b c seed 0"]
    assert len({found.run_folder(run) for run in found.runs()}) == 4
    assert found.run_folder(found.runs()[1]).name.startswith("origin-b-c-0-")


def test_one_seed_has_no_interval() -> None:
    assert student([0.5]) == {"mean": 0.5, "ci95": None, "seeds": [0.5]}
    assert student([0.4, 0.6])["ci95"][0] < 0.4
    assert bootstrapped([0.5], "per_seed") == {"mean": 0.5, "ci95": [0.5, 0.5], "per_seed": [0.5]}


def test_what_several_trainings_decided_alike_is_no_surer() -> None:
    once, thrice = proportion([1] * 18 + [0] * 6), proportion(([1] * 18 + [0] * 6) * 3, 3)
    assert (thrice["right"], thrice["count"], thrice["share"]) == (54, 72, 0.75)
    assert thrice["ci95"] == pytest.approx(once["ci95"])
    scores = [1.0] * 30 + [0.0] * 10
    assert two_level([scores] * 3, alike=True) == two_level([scores], alike=True) == two_level([scores])
    assert two_level([scores] * 3).low > two_level([scores]).low
    # Trainings that differ are as unsure as they were.
    assert two_level([[1.0] * 40, [0.0] * 40], alike=True) == (0.0, 1.0)


def test_nested_figures_flatten_to_dotted_names() -> None:
    assert list(engine.flatten({"a": {"b": 1, "c": {"d": 2}}, "e": []})) == [("a.b", 1), ("a.c.d", 2), ("e", [])]


def test_tables_and_lines_are_shown() -> None:
    console = Console(record=True, width=80)
    engine.show([table("squares", ("number", "square"), [(3, 9)]), "and a line"], console)
    text = console.export_text()
    assert all(part in text for part in ("squares", "number", "9", "and a line"))


SHARED = {"worlds"}
"""Folders that are no study: what several of them are made of."""


def test_folders_are_studies_or_shared_by_some() -> None:
    without = {f.parent.name for f in FOLDER.glob("*/__init__.py") if not (f.parent / "study.py").exists()}
    assert without == SHARED
    for name in SHARED:
        users = {f.parent.name for f in FOLDER.glob("*/*.py") if f"from studies.{name}" in f.read_text()} - {name}
        assert len(users) > 1, name


@pytest.mark.parametrize("folder", sorted(f.parent for f in FOLDER.glob("*/study.py")), ids=lambda f: f.name)
def test_every_study_says_what_it_asks_and_can_be_run(folder: Path) -> None:
    tree = ast.parse((folder / "study.py").read_text(encoding="utf-8"))
    assert (ast.get_docstring(tree) or "").partition("\n")[0].endswith((".", "?"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    taken = [argument.arg for argument in functions["run"].args.args]
    assert taken[:2] == ["out_dir", "quick"]
    assert len(taken) == 2 or "add_options" in functions


COMMITTED = {
    "lerobot": "lerobot",
    "lerobot_thumbnails": "lerobot",
    "memory_modules": "memory_modules",
    "memory_sequence": "memory_sequence",
    "parity": "parity",
    "parity_memories": "parity",
    "policies": "policies",
    "recall_mqar": "recall.tasks.mqar",
    "recall_noisy_long_recall": "recall.tasks.noisy_long_recall",
    "recall_sparse_recall": "recall.tasks.sparse_recall",
    "recall_tmaze": "recall.tasks.tmaze",
    "replay": "replay",
    "signature": "signature",
    "train_from_bags": "train_from_bags",
}
"""Summaries in docs/results of studies with tables of their own."""


@pytest.mark.parametrize("name", COMMITTED)
def test_committed_figures_can_be_tabulated_and_drawn(name: str, tmp_path: Path) -> None:
    place = COMMITTED[name]
    study = import_module(f"studies.{place}" if "." in place else f"studies.{place}.study")
    summary = read_summary(FOLDER.parent / "docs" / "results" / f"{name}.json")
    console = Console(record=True, width=200)
    engine.show(study.tables(summary.figures), console)
    assert len(console.export_text().splitlines()) > 4
    for path in study.plots(summary.figures, tmp_path) if hasattr(study, "plots") else ():
        assert path.stat().st_size > 1_000
