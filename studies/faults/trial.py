"""One row of the matrix: what is done, what is expected, and what was seen of it from outside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from studies.faults.bench import MEMORY_STATUS, POLICY_STATUS, Bench, BenchFailed
from studies.faults.judge import COLUMNS, CRASH, GREEN, MOTION, PROMISE, judged
from studies.faults.setting import Setting
from studies.faults.watch import OK, Condition
from trace_memory_ros.nodes.processes import NodeProcess

PATIENCE_S = 25.0
HEALTHY_S = 60.0
CAUGHT_UP_S = 2.0
STEADY = 6
"""Good conditions in a row, and commands, that make a robot healthy."""


@dataclass(frozen=True)
class Row:
    """A fault. expected: in words. run: does it, and looks.

    bench: nodes of its own; None for those that rows share. networks: runs in a process between two network namespaces.
    link: what is to join these, the bench's `link` then. lacks: why it cannot be run on this machine, empty where it
    can.
    """

    name: str
    theme: str
    fault: str
    expected: str
    run: Callable[[Trial], None]
    bench: Setting | None = None
    networks: bool = False
    link: Callable[[], AbstractContextManager[Any]] = nullcontext
    lacks: Callable[[], str] = str


class Trial:
    """A row under way. found: by column, what must not be; seen: what was, in words."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.robot, self.watch = bench, bench.robot, bench.watch
        self.found: dict[str, list[str]] = {column: [] for column in COLUMNS}
        self.seen: list[str] = []
        self.before: Condition | None = None

    def healthy(self) -> None:
        """Begin an episode, enable commands and wait until all is well. Raises BenchFailed."""
        self.robot.calm()
        for service in ("memory_node/reset", "policy_node/reset", "policy_node/enable"):
            self.bench.client.trigger(service)
        self.watch.clear()
        if not self.bench.play_until(self.well, HEALTHY_S):
            raise BenchFailed(f"not well within {HEALTHY_S:g} s: {self.story()}")
        self.watch.clear()
        self.bench.play_until(lambda: len(self.watch.arm) >= 3 and self._good(3), PATIENCE_S)
        self.before = self.watch.newest

    def well(self) -> bool:
        """Whether conditions are good, commands come and every status is green."""
        names = [*(f"{MEMORY_STATUS}{part}" for part in self.bench.parts), POLICY_STATUS]
        green = all(name in self.watch.health and self.watch.health[name].level == OK for name in names)
        return green and self._good(STEADY) and len(self.watch.arm) >= STEADY

    def expect(self, column: str, what: str, condition: Callable[[], bool], timeout_s: float = PATIENCE_S) -> bool:
        """Be the robot until `condition()`; otherwise note in `column` that `what` was not seen."""
        if self.bench.play_until(condition, timeout_s):
            self.seen.append(what)
            return True
        self.found[column].append(f"not within {timeout_s:g} s: {what}; {self.story()}")
        return False

    def check(self, column: str, what: str, holds: bool) -> None:
        """Note in `column` that `what` does not hold, or that it was seen."""
        if holds:
            self.seen.append(what)
        else:
            self.found[column].append(f"not so: {what}; {self.story()}")

    def named(self, part: str, level: int, *words: str) -> None:
        """A status of memory_node, or of `policy`, has to say so."""
        name = POLICY_STATUS if part == "policy" else f"{MEMORY_STATUS}{part and f': {part}'}"
        levels = ("OK", "WARN", "ERROR")
        what = f"{name} is {levels[level]}" + (f", naming {' '.join(words)!r}" if words else "")
        self.expect(GREEN, what, lambda: self.watch.says(name, level, words))

    def conditions_become(self, status: str, count: int = 8) -> None:
        """So many conditions in a row must be of a status."""
        what = f"{count} conditions in a row are {status}"
        self.expect(GREEN, what, lambda: self.watch.statuses(count) == [status] * count)

    def conditions_cease(self) -> None:
        """No condition for a second."""
        self._ceases(GREEN, "no more conditions", lambda: len(self.watch.conditions))

    def commands_cease(self) -> None:
        """No command for a second; a command that is held for a while may come before."""
        self._ceases(MOTION, "commands cease", lambda: len(self.watch.arm) + len(self.watch.jaw))

    def commands_go_on(self, count: int = 8) -> None:
        """So many more commands must come."""
        given = len(self.watch.arm)
        self.expect(PROMISE, f"{count} more commands come", lambda: len(self.watch.arm) >= given + count)

    def recovers(self, same_memory: bool = True) -> None:
        """The robot is calm again: all must be well, and the memory the one of before unless it may not be."""
        self.robot.calm()
        given = len(self.watch.arm)
        self.expect(
            PROMISE, "all is well again", lambda: self.well() and len(self.watch.arm) >= given + STEADY, HEALTHY_S
        )
        if same_memory and self.before is not None and self.watch.newest is not None:
            after = self.watch.newest
            same = (after.instance, after.episode) == (self.before.instance, self.before.episode)
            self.check(PROMISE, "the memory is the one of before", same and after.tick > self.before.tick)

    def begins_anew(self) -> None:
        """A person resets both and enables: all must be well with a new episode."""
        for service in ("memory_node/reset", "policy_node/reset", "policy_node/enable"):
            self.bench.client.trigger(service)
        self.recovers(same_memory=False)

    def stands_still(self, what: str) -> None:
        """No command for a second, from now on."""
        given = len(self.watch.arm) + len(self.watch.jaw)
        self.bench.play(1.0)
        self.check(MOTION, what, len(self.watch.arm) + len(self.watch.jaw) == given)

    def ends(self, key: str, code: int, patience_s: float = 20.0) -> None:
        """A node that was told to end must do so in order."""
        process = self.bench.processes.pop(key)
        self.expect(CRASH, f"{key} ends with exit code {code}", lambda: process.returncode == code, patience_s)
        process.stop()

    def finish(self) -> dict[str, list[str]]:
        """All columns, with what may never be; first of all the conditions of what was commanded have to be heard."""
        self.bench.play_until(self.watch.caught_up, CAUGHT_UP_S)
        for column, faults in judged(self.watch).items():
            self.found[column] += faults
        self.found[CRASH] += self.bench.dead()
        for process in self.bench.processes.values():
            self.found[CRASH] += _tracebacks(process)
        return self.found

    def story(self) -> str:
        """What is known now."""
        newest, bad = self.watch.newest, self.watch.bad()
        tick = f"tick {newest.tick} {newest.status} {newest.reason}" if newest else "no condition"
        heard = f"{len(self.watch.conditions)} conditions, {len(self.watch.arm)} commands"
        return f"{heard}, {tick}; {'; '.join(bad) if bad else 'all green'}"[:900]

    def _good(self, count: int) -> bool:
        return self.watch.statuses(count) == ["OK"] * count

    def _ceases(self, column: str, what: str, count: Callable[[], int]) -> None:
        def still() -> bool:
            before = count()
            self.bench.play(1.0)
            return count() == before

        self.expect(column, what, still)


def _tracebacks(process: NodeProcess) -> Sequence[str]:
    log = process.log
    at = log.find("Traceback")
    return [] if at < 0 else [f"{process.spec.node_name} logged {log[at : at + 500]}"]
