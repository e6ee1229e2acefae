"""The programs of docs/examples do what their pages say, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fixtures import tiny_checkpoint
from learning.tiny_bags import TICKS, config_file, recording, write_bag

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def said(name: str, *arguments: Path) -> list[str]:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_trace_learns_in_a_strangers_training_loop() -> None:
    (line,) = said("trace_in_a_training_loop.py")
    words = line.split()
    assert words[1:3] == ["of", "500"]
    assert int(words[0]) > 475


def test_a_bag_is_replayed_tick_by_tick(tmp_path: Path) -> None:
    write_bag(tmp_path / "bag", 0, 0, recording())
    tiny_checkpoint(tmp_path / "model", observation=recording().observation)
    lines = said("replay_a_bag.py", tmp_path / "bag", tmp_path / "model", config_file(tmp_path, recording()))
    assert len(lines) == TICKS + 1
    assert all(line.split()[1] == "OK" for line in lines[:-1])
    assert lines[-1].startswith(f"{TICKS} ticks, ")
