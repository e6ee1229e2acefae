"""Nodes as processes: one that dies in machine code while it starts is started once more, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from trace_memory_ros.nodes.processes import READY, NodeFailed, NodeProcess, NodeSpec

CRASHING = """
import ctypes, pathlib, time
seen = pathlib.Path(__file__).with_name("starts")
starts = int(seen.read_text()) if seen.exists() else 0
seen.write_text(str(starts + 1))
if starts < {crashes}:
    ctypes.string_at(0)
print({ready!r}, flush=True)
time.sleep(60)
"""


def _node(folder: Path, crashes: int) -> NodeProcess:
    package = folder / "shaky"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "node.py").write_text(CRASHING.format(crashes=crashes, ready=READY))
    return NodeProcess(NodeSpec("node", package="shaky"), folder / "logs", {"PYTHONPATH": str(folder)})


def test_a_node_that_crashes_while_it_starts_is_started_once_more(tmp_path: Path) -> None:
    node = _node(tmp_path, crashes=1)
    try:
        with pytest.warns(RuntimeWarning, match=r"started again: /node ended with exit code -11"):
            node.wait_ready(30)
        assert "Segmentation fault" in node.log
        assert node.running
    finally:
        node.stop()


def test_a_node_that_goes_on_crashing_is_refused_with_where_it_was(tmp_path: Path) -> None:
    node = _node(tmp_path, crashes=9)
    with (
        pytest.warns(RuntimeWarning, match=r"started again"),
        pytest.raises(NodeFailed, match=r"exit code -11(.|\n)*Segmentation fault(.|\n)*string_at"),
    ):
        node.wait_ready(30)
    assert (tmp_path / "shaky" / "starts").read_text() == "2"


def test_a_node_that_ends_by_itself_is_not_started_again(tmp_path: Path) -> None:
    node = NodeProcess(NodeSpec("absent", package="trace_memory_ros.nodes"), tmp_path)
    with pytest.raises(NodeFailed, match=r"exit code 1(.|\n)*No module named trace_memory_ros.nodes.absent"):
        node.wait_ready(30)
