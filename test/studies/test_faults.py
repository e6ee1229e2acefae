"""The fault matrix: its judge can find what it looks for, its rows are apart, and a short one is met live.

Others are among the tests of the nodes (`test_live_commands.py`, `test_memory_node.py`).
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies.faults import running
from studies.faults.bench import Bench
from studies.faults.judge import motion_faults, tick_faults, zero_faults
from studies.faults.models import made_up_checkpoint
from studies.faults.robot import HEADERS_ONLY, OBSERVATION, pose
from studies.faults.running import MET, MISSED, ROWS, Runner
from studies.faults.setting import Setting
from studies.faults.study import QUICK
from studies.faults.watch import Command, Condition
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

MS = 1_000_000
BEGIN = 1_000_000_000_000_000_000


def condition(k: int, status: str = "OK", **changes: object) -> Condition:
    stamp = BEGIN + 100 * k * MS
    made = Condition(stamp, stamp, k, 1, 7, status, "", False, 0, "m", False, ())
    return replace(made, **changes)  # type: ignore[arg-type]


def command(k: int, age_ms: int = 30, off: float = 0.02, stamp_k: int | None = None) -> Command:
    stamp = BEGIN + 100 * (k if stamp_k is None else stamp_k) * MS
    sent = BEGIN + 100 * k * MS + age_ms * MS
    return Command(sent, sent, stamp, pose(stamp) + off)


GOOD = [condition(k) for k in range(10)]


def test_good_commands_are_not_blamed() -> None:
    assert motion_faults([command(k) for k in range(10)], GOOD) == []
    last = command(3)
    held = [replace(last, stamp_ns=last.stamp_ns + j * MS, sent_ns=last.sent_ns + j * MS) for j in (100, 200, 500)]
    stale = [*GOOD[:4], *(condition(k, "STALE") for k in range(4, 10))]
    assert motion_faults([*(command(k) for k in range(4)), *held], stale) == []


def test_wrong_and_stale_motions_are_found() -> None:
    for wrong, words in (
        ([command(3, age_ms=551)], "551 ms after its tick"),
        ([command(3, age_ms=-600)], "-600 ms after its tick"),
        ([command(3), command(3, age_ms=40)], "two commands of one tick"),
        ([command(4), command(5, stamp_k=3)], "an earlier tick"),
        ([command(3, off=0.6)], "rad from where the joints were"),
        ([replace(command(3), values=command(3).values[::-1])], "rad from where the joints were"),
        ([replace(command(3), values=np.full(6, np.nan))], "not finite"),
        ([replace(command(3), stamp_ns=command(3).stamp_ns + 7 * MS)], "no condition was of"),
    ):
        assert any(words in fault for fault in motion_faults(wrong, GOOD)), words
    stale = [*GOOD[:2], *(condition(k, "STALE") for k in range(2, 10))]
    first = command(1)
    late = replace(first, stamp_ns=first.stamp_ns + 600 * MS, sent_ns=first.sent_ns + 600 * MS)
    assert "600 ms after the last good condition" in motion_faults([first, late], stale)[0]


def test_silent_zeros_and_lost_ticks_are_found() -> None:
    assert zero_faults(GOOD, [command(1)]) == []
    assert zero_faults([condition(1, empty=True)], [])
    assert zero_faults([condition(1, missing=("eye",))], [])
    assert zero_faults([], [replace(command(1), values=np.zeros(6))])
    assert tick_faults(GOOD) == []
    assert tick_faults([condition(1), condition(4, gap_ticks=2)]) == []
    assert tick_faults([condition(1), condition(1, instance=8)]) == []
    assert tick_faults([condition(1), condition(4)])
    assert tick_faults([condition(1), condition(1)])


def test_rows_are_many_apart_and_say_what_they_expect() -> None:
    assert len(ROWS) >= 35
    assert set(QUICK) <= set(ROWS)
    assert len({row.fault for row in ROWS.values()}) == len(ROWS)
    assert all(row.expected and row.theme for row in ROWS.values())


def test_the_made_up_robot_has_a_checkpoint_at_once(tmp_path: object) -> None:
    for name, config, headers in (("all", OBSERVATION, False), ("headers", HEADERS_ONLY, True)):
        folder = made_up_checkpoint(tmp_path / name, headers_only=headers)  # type: ignore[operator]
        assert MemoryRuntime.from_checkpoint(folder).config.observation.streams == config.streams


@pytest.mark.timeout(400)
def test_a_row_between_networks_that_never_ends_is_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows after it are run all the same. Namespaces need root: it runs here."""
    monkeypatch.setattr(running, "networks", nullcontext)
    monkeypatch.setattr(running, "inside", lambda *_: ["sh", "-c", "echo stuck; exec sleep 60"])
    monkeypatch.setattr(running, "ALONE_S", 1.0)
    found = running.run_elsewhere(ROWS["network_cut"], tmp_path / "row")
    assert (found["verdict"], found["columns"]["crash"]) == (
        MISSED,
        ["the row's own process did not end within 1 s: stuck\n"],
    )
    monkeypatch.setattr(running, "inside", lambda *_: ["sh", "-c", "echo broken; exit 3"])
    found = running.run_elsewhere(ROWS["network_cut"], tmp_path / "row")
    assert found["columns"]["crash"] == ["the row's own process failed: broken\n"]


def test_a_misbehaved_policy_is_installed_where_no_python_path_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    with DomainClaim() as domain:
        for name, value in private_environment(domain).items():
            monkeypatch.setenv(name, value)
        with Bench(tmp_path, domain, {}, Setting(misbehaved={"seconds": 0.0, "value": 1.0, "after": 1})) as bench:
            assert bench.environment["PYTHONPATH"] == str(tmp_path / "installed")


def test_a_short_row_is_met_by_nodes_that_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in private_environment(0).items():  # which the runner changes
        monkeypatch.setenv(name, os.environ.get(name, value))
    with Runner(tmp_path) as runner:
        figures = runner.run(ROWS["joints_lost"])
    assert figures["verdict"] == MET, figures["columns"]
