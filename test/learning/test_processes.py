"""Two processes with a share of each batch go the same way as one with the whole; the first alone tells and writes."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from learning.in_processes import ALONE_FILE, COURSES, learn_first, train
from safetensors.torch import load_file

from trace_memory_ros.learning.engine.processes import ALONE, Group

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def start(rank: int, port: int, folder: Path, work: str = "train") -> subprocess.Popen[str]:
    """A process as torchrun would start it, to do what `in_processes.py` calls so."""
    told = {"WORLD_SIZE": "2", "RANK": str(rank), "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1"}
    paths = os.pathsep.join([str(ROOT), str(ROOT / "test"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **told, "MASTER_PORT": str(port), "PYTHONPATH": paths}
    command = [sys.executable, str(Path(__file__).with_name("in_processes.py")), work, str(folder)]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    one, two = (tmp_path_factory.mktemp(name) for name in ("one", "two"))
    port = free_port()
    processes = [start(rank, port, two) for rank in range(2)]
    train(one)
    for process in processes:
        _, said = process.communicate(timeout=150)
        assert process.returncode == 0, said
    return one, two


@pytest.mark.parametrize("memory", COURSES)
def test_two_processes_have_the_losses_and_gradients_of_one(memory: str, folders: tuple[Path, Path]) -> None:
    one, two = (json.loads((folder / f"{memory}.json").read_text()) for folder in folders)
    # Signatures of the whole path, which `trace` has here, forbid longer delays.
    assert len(one) == len(two) == 9
    for alone, together in zip(one, two, strict=True):
        assert together == pytest.approx(alone, rel=1e-5, abs=1e-7)
    ours, theirs = (load_file(folder / f"{memory}.safetensors") for folder in folders)
    assert ours.keys() == theirs.keys()
    moments = [name for name in ours if name.endswith("exp_avg")]
    assert moments
    for name in moments:
        torch.testing.assert_close(theirs[name], ours[name], rtol=1e-3, atol=1e-6)
    scales = [name for name in ours if ".surprise." in name]
    assert bool(scales) == (memory in ("aura", "gru+gate"))
    for name in scales:
        torch.testing.assert_close(theirs[name], ours[name], rtol=1e-4, atol=1e-6)


def test_what_the_first_process_learns_alone_asks_nobody_and_is_waited_for(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    two.mkdir()
    port = free_port()
    processes = [start(rank, port, two, "learn_first") for rank in range(2)]
    try:
        learn_first(one)
        for process in processes:
            _, said = process.communicate(timeout=100)
            assert process.returncode == 0, said
    finally:
        for process in processes:
            process.kill()
    ours, theirs = (load_file(folder / ALONE_FILE) for folder in (one, two))
    for name, value in ours.items():
        torch.testing.assert_close(theirs[name], value, rtol=1e-4, atol=1e-6)


def test_a_batch_is_shared_without_rest() -> None:
    for count in (2, 5, 7):
        parts = [list(range(count))[Group(rank, 2).rows(count)] for rank in range(2)]
        assert [*parts[0], *parts[1]] == list(range(count)) and abs(len(parts[0]) - len(parts[1])) <= 1
    with pytest.raises(ValueError, match=r"a batch of 1 episodes for 2 processes: raise recipe.batch_pairs"):
        Group(0, 2).rows(1)
    assert ALONE.rows(1) == slice(0, 1)
