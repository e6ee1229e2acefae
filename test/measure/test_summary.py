"""What a measuring command writes is what a reader gets back, and a bad file is refused by name."""

import getpass
import json
import platform
from pathlib import Path

import numpy as np
import pytest
import torch

from trace_memory_ros.measure.summary import SummaryError, read_summary, write_summary


def test_round_trip_of_nested_figures(tmp_path: Path) -> None:
    figures = {
        "tasks": {"origin": {"trace": {"branch_success": 1.0, "ci95": [0.9, 1.0], "episodes": 20}}},
        "none": None,
    }
    path = write_summary(tmp_path / "new" / "folder", "trace-memory demo", figures)
    summary = read_summary(path)
    assert summary == read_summary(path.parent)
    assert summary.schema == 1
    assert summary.command == "trace-memory demo"
    assert summary.figures == figures
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["summary.json"]


def test_numpy_and_torch_values_become_plain(tmp_path: Path) -> None:
    figures = {"a": np.float32(0.5), "b": np.arange(3), "c": torch.tensor(2.0), "d": (np.int64(1), np.bool_(True))}
    assert read_summary(write_summary(tmp_path, "c", figures)).figures == {
        "a": 0.5,
        "b": [0, 1, 2],
        "c": 2.0,
        "d": [1, True],
    }


def test_machine_names_no_host_and_no_user_path(tmp_path: Path) -> None:
    text = write_summary(tmp_path, "c", {}).read_text(encoding="utf-8")
    machine = read_summary(tmp_path).machine
    assert machine["cores"] >= 1
    assert machine["memory_gib"] > 0
    assert machine["python"] == platform.python_version()
    assert set(machine) == {"cpu", "cores", "memory_gib", "system", "python", "torch"}
    assert platform.node() not in machine.values()
    assert str(Path.home()) not in text
    assert f"/{getpass.getuser()}/" not in text


@pytest.mark.parametrize(
    ("figures", "named"),
    [
        ({"a": {"b": float("nan")}}, r"figures\.a\.b is nan"),
        ({"a": [1.0, float("inf")]}, r"figures\.a\[1\] is inf"),
        ({"a": {3: 1}}, r"figures\.a has the key 3"),
        ({"a": object()}, r"figures\.a is a object"),
    ],
)
def test_figures_that_json_cannot_hold_are_refused_by_path(tmp_path: Path, figures: dict, named: str) -> None:
    with pytest.raises(SummaryError, match=named):
        write_summary(tmp_path, "c", figures)
    assert not (tmp_path / "summary.json").exists()


def test_reading_names_the_file_and_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(SummaryError, match="does not exist"):
        read_summary(tmp_path)
    file = tmp_path / "summary.json"
    file.write_text("{")
    with pytest.raises(SummaryError, match="cannot be read as JSON"):
        read_summary(file)
    good = json.loads(write_summary(tmp_path, "c", {}).read_text())
    file.write_text(json.dumps(good | {"schema": 2}))
    with pytest.raises(SummaryError, match="schema 2, this version reads 1"):
        read_summary(file)
    file.write_text(json.dumps(good | {"figures": []}))
    with pytest.raises(SummaryError, match="`figures` is \\[\\], expected dict"):
        read_summary(file)
