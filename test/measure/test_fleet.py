"""Many jobs: the same results whoever does them, cached ones are not done again, a failed or killed one is alone."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fleet_jobs import work

from trace_memory_ros.measure import fleet
from trace_memory_ros.measure.fleet import ResultCache, Step, executor, key_of, run_cached

Execute = Callable[[], fleet.Executor]


def _ray() -> fleet.Executor:
    pytest.importorskip("ray", reason="Ray is an optional extra: pip install 'trace_memory_ros[ray]'")
    return executor(ray_address="local")


EXECUTORS = [
    pytest.param(lambda: executor(1), id="1-worker"),
    pytest.param(lambda: executor(2), id="2-workers"),
    pytest.param(_ray, id="ray"),
]


def here(work: Callable[[Any], Any], jobs: Sequence[Any], report: Callable[[Any], None], /) -> list[Any]:
    """An executor that needs no process."""
    for job in jobs:
        report(work(job))
    return []


@pytest.mark.parametrize("execute", EXECUTORS)
def test_failed_and_killed_jobs_are_named_and_the_others_done(execute: Execute, tmp_path: Path) -> None:
    jobs = {name: name for name in ("a", "bad-b", "kill-c", "d", "e", "f")}
    cache, steps = ResultCache(tmp_path / "cached"), []
    failed = run_cached(partial(work, tmp_path / "log"), jobs, cache, execute(), steps.append)
    assert list(failed) == ["bad-b", "kill-c"]
    assert failed["bad-b"] == "bad-b: chunk 3 is corrupt: record it again"
    assert "the process that did it died" in failed["kill-c"]
    assert {key: cache.read(key) for key in jobs} == {
        key: None if key in failed else key.upper().encode() for key in jobs
    }
    assert sorted((step.job, step.how) for step in steps) == sorted(
        (name, "failed" if name in failed else "done") for name in jobs
    )


@pytest.mark.parametrize("execute", EXECUTORS)
def test_a_run_goes_on_where_it_was_interrupted(execute: Execute, tmp_path: Path) -> None:
    jobs = {name: name for name in ("a", "b", "c")}
    cache, log = ResultCache(tmp_path / "cached"), tmp_path / "log"

    class Interrupted(BaseException):
        pass

    def interrupt(step: Step[str]) -> None:
        raise Interrupted

    with pytest.raises(Interrupted):
        run_cached(partial(work, log), {"a": "a"}, cache, here, interrupt)
    steps: list[Step[str]] = []
    assert run_cached(partial(work, log), jobs, cache, execute(), steps.append) == {}
    assert [cache.read(key) for key in jobs] == [b"A", b"B", b"C"]
    assert (steps[0].job, steps[0].how) == ("a", "cached")
    assert sorted(log.read_text(encoding="utf-8").split()) == ["a", "b", "c"]


def test_a_damaged_result_is_made_again(tmp_path: Path) -> None:
    cache = ResultCache(tmp_path)
    cache.write("key", b"result")
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert cache.read("key") is None
    run_cached(str.encode, {"key": "new result"}, cache, here)
    assert cache.read("key") == b"new result"


def test_a_key_changes_with_every_part() -> None:
    parts = {"bag": "ab", "config": {"names": ["x", "y"], "period_ms": 100}, "model_id": "cd"}
    keys = [
        key_of(**parts),
        key_of(**{**parts, "bag": "ac"}),
        key_of(**{**parts, "config": {"names": ["y", "x"], "period_ms": 100}}),
        key_of(**{**parts, "model_id": "ce"}),
    ]
    assert len(set(keys)) == len(keys)
    assert key_of(**dict(reversed(parts.items()))) == keys[0]


def test_requests_that_make_no_sense_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="workers = 0"):
        executor(0)
    with pytest.raises(ValueError, match="give one"):
        executor(2, "local")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'trace_memory_ros\[ray\]'"):
        executor(ray_address="local")
