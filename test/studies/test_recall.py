"""`trace-memory bench recall`: a task is a module dropped into a folder, and leaves its own summary."""

import argparse
from pathlib import Path
from typing import Any

import pytest

from studies.recall import study as recall
from trace_memory_ros.measure.summary import read_summary


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of tasks in the place of the package's own."""
    source = "def run(out_dir, quick, seeds):\n    return {'quick': quick, 'seeds': seeds}\n"
    (tmp_path / "echo_back.py").write_text(source)
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    monkeypatch.setattr(recall, "_FOLDER", tmp_path)
    monkeypatch.setattr(recall.recall_tasks, "__path__", [str(tmp_path)])
    return tmp_path


def parse(*words: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser(exit_on_error=False)
    recall.add_options(parser)
    return vars(parser.parse_args(words))


def test_a_task_is_a_module_with_a_run(folder: Path) -> None:
    assert recall.task_names() == ("echo_back",)
    assert parse()["task"] == ("echo_back",)


def test_each_task_leaves_its_summary(folder: Path, tmp_path: Path) -> None:
    figures = recall.run(tmp_path / "out", True, **parse("--task", "echo-back", "--seeds", "2"))
    assert figures == {"echo_back": {"quick": True, "seeds": 2}}
    summary = read_summary(tmp_path / "out" / "echo_back")
    assert summary.figures == figures["echo_back"]
    assert summary.command == "trace-memory bench recall --task echo_back --seeds 2 --quick"


@pytest.mark.parametrize("words", [("--task", "helper"), ("--seeds", "0"), ("--seeds", "many")])
def test_what_cannot_run_is_refused(folder: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(argparse.ArgumentError):
        parse(*words)
