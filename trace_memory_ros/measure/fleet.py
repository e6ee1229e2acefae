"""Many jobs, usually one a bag: done by whatever executes them, each result cached on disk as soon as it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from trace_memory_ros.files import atomic
from trace_memory_ros.measure.workers import Lost, do_all, reason_of

Job = TypeVar("Job")
Result = TypeVar("Result")
_DIGEST_BYTES = 32


class Executor(Protocol):
    """Does every job somewhere, hands each result to `report` as it comes, returns the lost jobs with the reason.

    `work` and the jobs travel to other processes or machines: `work` is a function of a module, or a partial of one.
    """

    def __call__(
        self, work: Callable[[Job], Result], jobs: Sequence[Job], report: Callable[[Result], None], /
    ) -> Lost[Job]: ...


@dataclass(frozen=True)
class Step(Generic[Job]):
    """A job that came to its end. how: `cached` from an earlier run, `done` now, or `failed` for `reason`."""

    job: Job
    how: str
    reason: str = ""


class ResultCache:
    """Results in a folder, one file a key, written in one move; a damaged file counts as missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, key: str) -> bytes | None:
        """What was cached under `key`, or None."""
        try:
            data = self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        digest, result = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        return result if hashlib.sha256(result).digest() == digest else None

    def write(self, key: str, result: bytes) -> None:
        """Keep `result` under `key`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic.write(self._path(key), hashlib.sha256(result).digest() + result)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.result"


def key_of(**parts: Any) -> str:
    """Names a result by all that it depends on (bag content, config, model_id, ...): hex sha256 of JSON values."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, allow_nan=False).encode()).hexdigest()


def executor(workers: int | None = None, ray_address: str | None = None, gpus: float = 0.0) -> Executor:
    """Worker processes of this machine (default: one), or the Ray cluster at `ray_address`, `gpus` for each task there.

    Raises ValueError for both at once or fewer than one worker, ImportError where Ray is asked for and missing.
    """
    if ray_address is not None:
        if workers is not None:
            raise ValueError(f"workers = {workers} and Ray at {ray_address!r}: the cluster has its own, give one")
        from trace_memory_ros.measure.ray_executor import RayExecutor

        return RayExecutor(ray_address, gpus)
    count = 1 if workers is None else workers
    if count < 1:
        raise ValueError(f"workers = {count}: at least one must do the work")

    def local(work: Callable[[Job], Result], jobs: Sequence[Job], report: Callable[[Result], None], /) -> Lost[Job]:
        return do_all(work, jobs, count, report)

    return local


def run_cached(
    work: Callable[[Job], bytes],
    jobs: Mapping[str, Job],
    cache: ResultCache,
    execute: Executor,
    report: Callable[[Step[Job]], None] = lambda step: None,
) -> dict[str, str]:
    """Do the jobs, by key, whose results are not cached; each result is, as it comes. An interrupted run goes on.

    Returns why the others failed, by key; a failed job is tried again by the next run. Every executor gives the same
    bytes, because only bytes leave a job.
    """
    open_jobs = []
    for key, job in jobs.items():
        if cache.read(key) is None:
            open_jobs.append((key, job))
        else:
            report(Step(job, "cached"))
    failed: dict[str, str] = {}

    def keep(outcome: tuple[str, bytes | None, str]) -> None:
        key, result, reason = outcome
        if result is None:
            failed[key] = reason
            report(Step(jobs[key], "failed", reason))
        else:
            cache.write(key, result)
            report(Step(jobs[key], "done"))

    if open_jobs:
        for (key, _), reason in execute(partial(_carry_out, work), open_jobs, keep):
            keep((key, None, reason))
    return {key: failed[key] for key in jobs if key in failed}


def _carry_out(work: Callable[[Job], bytes], job: tuple[str, Job]) -> tuple[str, bytes | None, str]:
    """Key and result, or the reason why there is none; a fault of one bag is told at once and ends nothing."""
    key, what = job
    try:
        return key, work(what), ""
    except Exception as error:
        return key, None, reason_of(error)
