"""A process that is given broken things one by one, and started anew when it hangs or dies."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from tempfile import TemporaryDirectory
from typing import TypeVar

Self = TypeVar("Self", bound="FuzzProcess")


class FuzzProcess:
    """Runs `serve(pipe, seed, folder)`, which sends a word when it is ready. A context manager.

    pipe: to it. deadline_s: how long an answer may take. start_s: how long until it is ready.
    """

    pipe: Connection

    def __init__(
        self, serve: Callable[[Connection, int, str], None], seed: int, deadline_s: float, start_s: float
    ) -> None:
        self._serve, self._seed, self._start_s = serve, seed, start_s
        self._deadline_s = deadline_s
        self._context = multiprocessing.get_context("spawn")
        # Of this process, which outlives the one that is served by it.
        self._folder = TemporaryDirectory(prefix="fuzz-")

    def __enter__(self: Self) -> Self:
        self._start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._stop()
        self._folder.cleanup()

    def restart(self) -> None:
        """End it, whatever it does, and begin another. Raises RuntimeError where that does not start in time."""
        self._stop()
        self._start()

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        given = (other, self._seed, self._folder.name)
        self._process = self._context.Process(target=self._serve, args=given, daemon=True)
        self._process.start()
        other.close()
        if not self._pipe.poll(self._start_s):
            raise RuntimeError(f"a process of the fuzzing did not start within {self._start_s:g} s")
        self._pipe.recv()

    def _stop(self) -> None:
        self._pipe.close()
        self._process.kill()
        self._process.join()
