"""`trace-memory sweep`: each row is a training in a folder, what is done is not done again, and one table tells."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml
from html_pages import parsed, words
from learning.tiny_bags import config_file, recording, write_bags

from trace_memory_ros.cli.main import main
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning import sweep
from trace_memory_ros.learning.sweep import SweepConfig
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.measure.summary import read_summary, write_summary

PATIENCE_S = 120.0
SMALL = {"recipe.steps": 1, "policy.chunk": 4, "bags.cross_validation": False, "recipe.batch_pairs": 1}


def file(folder: Path, **values: object) -> Path:
    path = folder / "memories.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    return path


def test_rows_are_trainings_and_one_that_failed_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_bags(tmp_path / "bags", 4, recording())
    config_file(tmp_path, recording())
    given = file(
        tmp_path, source=["bags"], memories=["none", "nothing_like_it"], seeds=[0], set=SMALL,
        train=["--config", "observation.yaml", "--device", "cpu"], recipes={"slow": {"recipe.learning_rate": 1e-5}},
    )  # fmt: skip
    assert main(["sweep", str(given), "--out", "found", "--workers", "2"]) == 1
    assert "nothing_like_it" in capsys.readouterr().out
    rows = {row["memory"]: row for row in read_summary(tmp_path / "found").figures["rows"]}
    assert rows["none"]["seeds"] == 1 and rows["none"]["held_out"]["count"] > 0 and rows["none"]["failed"] == {}
    assert rows["nothing_like_it"]["seeds"] == 0
    assert "nothing_like_it" in rows["nothing_like_it"]["failed"]["0"]
    (run,) = (tmp_path / "found" / "runs").glob("none-slow-0-*/run.yaml")
    assert yaml.safe_load(run.read_text())["recipe"]["learning_rate"] == 1e-5
    page = (tmp_path / "found" / "sweep.html").read_text(encoding="utf-8")
    parsed(page)
    assert "What failed" in words(page)
    assert (tmp_path / "found" / "sweep.md").read_text().count("\n") == 4
    done = (run.parent / "summary.json").stat().st_mtime_ns
    given = file(tmp_path, **{**yaml.safe_load(given.read_text()), "memories": ["none"]})
    assert main(["sweep", str(given), "--out", "found"]) == 0
    assert (run.parent / "summary.json").stat().st_mtime_ns == done


def test_trainings_stop_with_their_sweep(tmp_path: Path) -> None:
    """As where a service or a scheduler ends it: nobody presses Ctrl-C in the trainings' terminal."""
    write_bags(tmp_path / "bags", 4, recording())
    config_file(tmp_path, recording())
    given = file(
        tmp_path, source=["bags"], memories=["none"], seeds=[0], set={**SMALL, "recipe.steps": 10**6},
        train=["--config", "observation.yaml", "--device", "cpu"],
    )  # fmt: skip
    command = [sys.executable, "-m", "trace_memory_ros.cli.main", "sweep", str(given), "--out", "found"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        runs = tmp_path / "found" / "runs"
        wait_for(lambda: any(log.stat().st_size for log in runs.glob("*/progress.jsonl")))
        started.terminate()
        assert started.wait(PATIENCE_S)
    wait_for(lambda: any("stopped at step" in log.read_text(encoding="utf-8") for log in runs.glob("*.log")))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_table_pools_decisions_and_is_as_unsure_as_its_seeds(tmp_path: Path) -> None:
    config = SweepConfig(("bags",), memories=("gru",), seeds=(0, 1, 2))
    for run, right in zip(config.runs(), (20, 20, 10), strict=True):
        found = Accuracy.of(right, 20).to_dict()
        # Of the last, which was stopped, the time is that of what was left.
        spent = {"training_minutes": 0.1, "resumed": True} if right == 10 else {"training_minutes": 2.0}
        figures = {"held_out_branch_accuracy": found, **spent, "held_out_chunk_error": None}
        (tmp_path / run.name).mkdir()
        write_summary(tmp_path / run.name, "trace-memory train", figures)
    (row,) = sweep.table(config, tmp_path, {})
    held = row["held_out"]
    assert (held["right"], held["count"], held["by_seed"]) == (50, 60, [1.0, 1.0, 0.5])
    # Three seeds of which one failed say less than sixty decisions would.
    assert held["ci95"] == [pytest.approx(0.116, abs=0.01), 1.0]
    assert row["validation"] is None and row["minutes"] == 2.0
    assert "0.83 (50/60, 0.12 to 1.00)" in sweep.markdown([row])
    json.dumps(row)
    few = {**row, "held_out": {**held, "right": 9, "count": 12, "of_a_seed": 12}}
    assert sweep.cells(few)[3] == "9/12 right, too few to tell"


def test_what_learned_from_other_recordings_is_not_compared(tmp_path: Path) -> None:
    """Of bags that came later, or of another observation.yaml; a run's folder is named by its words alone."""
    config = SweepConfig(("bags",), memories=("gru", "lru"), seeds=(0, 1))
    old, *rest = config.runs()
    for run, learned_from in ((old, "fewer bags"), *((run, "all bags") for run in rest)):
        (tmp_path / run.name).mkdir()
        figures = {"held_out_branch_accuracy": Accuracy.of(20, 20).to_dict(), sweep.LEARNED_FROM: learned_from}
        write_summary(tmp_path / run.name, "trace-memory train", figures)
    found = sweep.outdated(config, tmp_path)
    assert list(found) == [old.name] and str(tmp_path / old.name) in found[old.name]
    gru, lru = sweep.table(config, tmp_path, found)
    assert gru["seeds"] == 1 and gru["held_out"]["count"] == 20 and list(gru["failed"]) == ["0"]
    assert lru["seeds"] == 2 and lru["failed"] == {}


def test_seeds_judge_the_same_decisions_and_folds_count_where_none_are_held_out(tmp_path: Path) -> None:
    config = SweepConfig(("bags",), memories=("gru", "lru", "none"), seeds=(0, 1, 2))
    unequal = Accuracy({(0,): (36, 36), (1,): (0, 4)})
    told = {
        "gru": {"held_out_branch_accuracy": Accuracy.of(8, 8).to_dict()},
        "lru": {"held_out_branch_accuracy": None, "cross_validation": {"accuracy": Accuracy.of(24, 24).to_dict()}},
        "none": {"held_out_branch_accuracy": unequal.to_dict()},
    }
    for run in config.runs():
        (tmp_path / run.name).mkdir()
        write_summary(tmp_path / run.name, "trace-memory train", told[run.memory])
    eight, folded, kinds = (row["held_out"] for row in sweep.table(config, tmp_path, {}))
    assert sweep._accuracy_text(eight) == "24/24 right, too few to tell"
    assert folded["count"] == 72 and folded["ci95"] == list(Accuracy.of(24, 24).interval)
    assert kinds["value"] == 0.5 and kinds["ci95"] == list(unequal.interval)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"memories": ["none"]}, "source is empty: give at least one"),
        ({"source": ["b"], "seeds": []}, "seeds is empty"),
        ({"source": ["b"], "recipe": {}}, "unknown key 'recipe'"),
        ({"source": ["b"], "recipes": {"fast": 3}}, "recipes.fast = 3"),
        ({"source": "bags"}, "not a list"),
        ({"source": ["b"], "seeds": [0, 1, 0]}, "seeds has 0 twice"),
        ({"source": ["b"], "memories": ["gru", "gru"]}, "memories has gru twice"),
        ({"source": ["b"], "recipes": {"other": {"memory.name": "lru"}}}, "memory.name, which is each run's own"),
        ({"source": ["b"], "set": {"memory": {"name": "lru"}}}, "give it under memories"),
        ({"source": ["b"], "set": {"seed": 3}}, "set or recipes.usual has seed.*: give it under seeds"),
        ({"source": ["b"], "train": ["--seed=3"]}, "train has --seed=3.*: give it under seeds"),
        ({"source": ["b"], "train": ["--memory", "lru"]}, "train has --memory"),
    ],
)
def test_a_file_that_is_wrong_is_named(tmp_path: Path, values: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        SweepConfig.load(file(tmp_path, **values))


def test_other_words_are_another_folder() -> None:
    one = SweepConfig(("bags",), seeds=(0,)).runs()[0]
    other = SweepConfig(("bags",), seeds=(0,), set={"recipe.steps": 3}).runs()[0]
    assert one.name != other.name and other.words[-2:] == ("--set", "recipe.steps=3")
    runs = SweepConfig(("b",), memories=("gru", "lru"), seeds=(1, 2)).runs()
    assert [(run.seed, run.memory) for run in runs] == [(1, "gru"), (1, "lru"), (2, "gru"), (2, "lru")]


@pytest.mark.parametrize("joined", [False, True])
def test_other_values_in_a_recipes_file_are_another_folder(tmp_path: Path, joined: bool) -> None:
    recipe = tmp_path / "mine.yaml"
    names = []
    for steps in (3, 3, 4):
        recipe.write_text(f"recipe: {{steps: {steps}}}", encoding="utf-8")
        words = (f"--recipe={recipe}",) if joined else ("--recipe", str(recipe))
        names.append(SweepConfig(("bags",), seeds=(0,), train=words).runs()[0].name)
    assert names[0] == names[1] != names[2]
    assert SweepConfig(("bags",), train=("--recipe", "none.yaml")).runs()


def test_runs_of_recipes_with_a_dot_have_logs_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = SweepConfig(("b",), memories=("none",), seeds=(0,), recipes={"noise0.5": {}, "noise0.1": {}})

    def ended(command: list[str], **_: object) -> CompletedProcess[str]:
        return CompletedProcess(command, 1)

    monkeypatch.setattr(sweep.subprocess, "run", ended)
    for run in config.runs():
        sweep.carry_out(sweep.Job(run, tmp_path / "runs" / run.name, tmp_path))
    assert {file.name for file in (tmp_path / "runs").glob("*.log")} == {f"{run.name}.log" for run in config.runs()}
