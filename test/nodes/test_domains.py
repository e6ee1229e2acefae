"""Domain ids are exclusive between processes, and free again when their holder is gone."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from trace_memory_ros.nodes import domains
from trace_memory_ros.nodes.domains import DOMAINS, DomainClaim

HOLD = """
import sys
from trace_memory_ros.nodes import domains
domains.DOMAINS = [int(word) for word in sys.argv[1].split(",")]
claims = [domains.DomainClaim() for _ in range(int(sys.argv[2]))]
print(*(claim.id for claim in claims), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def private_locks(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locks in a folder of the test, here and in the processes it starts."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(domains.tempfile, "tempdir", None)


def holder(choice: list[int], count: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", HOLD, ",".join(map(str, choice)), str(count)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> list[int]:
    assert process.stdout is not None
    return [int(word) for word in process.stdout.readline().split()]


def test_two_processes_share_no_id() -> None:
    choice = [4, 5, 6, 7]
    with holder(choice, 2) as one, holder(choice, 2) as other:
        taken = [*said(one), *said(other)]
        one.kill()
        other.kill()
    assert sorted(taken) == choice


def test_an_id_is_free_again_when_its_holder_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "DOMAINS", [9])
    with holder([9], 1) as process:
        assert said(process) == [9]
        with pytest.raises(ValueError, match="all 1 ROS domain ids are taken"):
            DomainClaim()
        process.kill()
        process.wait()
        with DomainClaim() as domain:
            assert domain == 9


def test_a_released_id_can_be_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "DOMAINS", [9])
    first = DomainClaim()
    first.release()
    first.release()
    assert DomainClaim().id == 9


def test_another_user_can_ask_for_a_lock_whatever_the_umask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(domains, "DOMAINS", [9])
    before = os.umask(0o077)
    try:
        with DomainClaim():
            (lock,) = (tmp_path / "trace_memory_ros_domains").iterdir()
            assert stat.S_IMODE(lock.stat().st_mode) == 0o644
    finally:
        os.umask(before)


def test_this_run_holds_the_id_that_its_nodes_use() -> None:
    assert int(os.environ["ROS_DOMAIN_ID"]) in DOMAINS
    with DomainClaim() as other:
        assert other in DOMAINS


def test_a_started_process_does_not_keep_the_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domains, "DOMAINS", [9])
    claim = DomainClaim()
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        claim.release()
        assert DomainClaim().id == 9
        child.kill()
