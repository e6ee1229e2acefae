"""A world's process, asked from ours."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from studies.worlds.environment import Unavailable
from studies.worlds.protocol import Interface

ROOT = Path(__file__).resolve().parents[2]
Floats = NDArray[np.float32]
CLOSE_S = 10


class Lessons(NamedTuple):
    """What a teacher was shown and did: observations `(N, T, W)`, actions `(N, T, A)`, mask `(N, T)`.

    executed `(N, T, A)`: what was carried out, the actions unless they were disturbed.
    """

    observations: Floats
    actions: Floats
    mask: NDArray[np.bool_]
    executed: Floats

    def of(self, episodes: slice) -> Lessons:
        """Some of the episodes."""
        shown, taught, mask, done = self
        return Lessons(shown[episodes], taught[episodes], mask[episodes], done[episodes])


class Outcome(NamedTuple):
    """What a step of several episodes gave, a row an episode."""

    observations: Floats
    rewards: NDArray[np.float64]
    done: NDArray[np.bool_]
    successes: NDArray[np.bool_]


class World:
    """The world of the module `name` under its own Python; a context manager, which ends the process.

    variables: of its environment, beside ours.
    Raises `Unavailable` where the process does not start or ends, RuntimeError with the world's own words where it
    refuses a request.
    """

    def __init__(self, python: Path, name: str, variables: Mapping[str, str] | None = None) -> None:
        self.name, self._python = name, python.absolute()
        # Links are kept: their place tells Python of its environment.
        command = [str(self._python), "-m", "studies.worlds.server", name]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PYTHONWARNINGS": "ignore",
                "OMP_NUM_THREADS": "1",
                **(variables or {}),
            },
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        # Closing flushes; a request that a process which has ended never read breaks the pipe again.
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def describe(self, task: str) -> Interface:
        """What a task shows and takes."""
        found = self._ask("describe", task=task)
        lists: dict[str, Any] = {name: tuple(part) for name, part in found.items() if isinstance(part, list)}
        return Interface(**{**found, **lists})

    def teach(self, task: str, seeds: Sequence[int], steps: int, disturbed: float = 0.0) -> Lessons:
        """The first `steps` steps of the teacher's episodes. disturbed: chance of another action, or its error."""
        with tempfile.TemporaryDirectory() as folder:
            file = str(Path(folder) / "lessons.npz")
            self._ask("teach", task=task, seeds=list(seeds), steps=steps, disturbed=disturbed, file=file)
            with np.load(file) as kept:
                mask = np.arange(kept["lengths"].max()) < kept["lengths"][:, None]
                shown, taught, done = (_padded(kept[name], mask) for name in ("observations", "actions", "executed"))
                return Lessons(shown, taught, mask, done)

    def judge(self, task: str, seeds: Sequence[int]) -> dict[str, list[float]]:
        """`returns`, `successes` and `steps` of the teacher's whole episodes."""
        return self._ask("judge", task=task, seeds=list(seeds))

    def begin(self, task: str, seeds: Sequence[int]) -> Floats:
        """Start an episode per seed, side by side; their first observations `(N, W)`."""
        return np.asarray(self._ask("begin", task=task, seeds=list(seeds))["observations"], np.float32)

    def act(self, actions: NDArray[Any]) -> Outcome:
        """Act `(N, A)` in the episodes that were begun; those that have ended give zeros."""
        told = self._ask("act", actions=actions.tolist())
        return Outcome(
            np.asarray(told["observations"], np.float32),
            np.asarray(told["rewards"], np.float64),
            np.asarray(told["done"], np.bool_),
            np.asarray(told["successes"], np.bool_),
        )

    def _ask(self, what: str, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **request}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(CLOSE_S)
            raise Unavailable(
                f"the process of {self.name} ended with {self._process.poll()} when it was asked to {what}: run "
                f"`{self._python} -m studies.worlds.server {self.name}` and see what it says"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.name} could not {what} {request.get('task', '')}: {answer['error']}")
        return answer


def _padded(rows: Floats, mask: NDArray[np.bool_]) -> Floats:
    """Rows of all episodes, one after the other, as `(N, T, W)`; zero on padding."""
    found = np.zeros((*mask.shape, rows.shape[1]), np.float32)
    found[mask] = rows
    return found
