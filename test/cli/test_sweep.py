"""`trace-memory sweep`: each row is a training in a folder, what is done is not done again, and one table tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from html_pages import parsed, words
from learning.tiny_bags import config_file, recording, write_bags

from trace_memory_ros.cli.main import main
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning import sweep
from trace_memory_ros.learning.sweep import SweepConfig
from trace_memory_ros.measure.summary import read_summary, write_summary

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


def test_a_table_pools_decisions_and_is_as_unsure_as_its_seeds(tmp_path: Path) -> None:
    config = SweepConfig(("bags",), memories=("gru",), seeds=(0, 1, 2))
    for run, right in zip(config.runs(), (20, 20, 10), strict=True):
        found = {
            "value": right / 20,
            "right": right,
            "count": 20,
            "ci95": [0, 1],
            "claimed": True,
            "labels": "annotated",
        }
        figures = {"held_out_branch_accuracy": found, "training_minutes": 2.0, "held_out_chunk_error": None}
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
    few = {**row, "held_out": {**held, "right": 9, "count": 12}}
    assert sweep.cells(few)[3] == "9/12 right, too few to tell"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"memories": ["gru"]}, "source"),
        ({"source": ["b"], "seeds": []}, "seeds is empty"),
        ({"source": ["b"], "recipe": {}}, "unknown key 'recipe'"),
        ({"source": ["b"], "recipes": {"fast": 3}}, "recipes.fast = 3"),
        ({"source": "bags"}, "not a list"),
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
