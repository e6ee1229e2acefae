"""What longer histories do to a memory of fixed size: measured segments driven once more before the branch.

Source: TRACE (003) appendix A.7 and table 12. The recorded history is continued with segments of recorded ones,
contents and states, until it has the asked length; then comes the branch tick, as recorded. Segments are taken from the
later half of a history, where a cue that the branch depends on is taken to be gone: a segment that shows the cue again
would help the memory, not try it. A straight line joins a segment to where the arm stood; a write may fall due there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.evidence.history.transforms import Path, TransformStrength, curve, identity, pace_times

LATER = 0.5
"""Where in a history its later part begins, as a share of its ticks."""
DISTRACTOR = (0.7, 0.8)
"""The part of a history that is repeated as a distractor, as shares of its ticks."""


class History(NamedTuple):
    """Contents `(T, d_e)` and states `(T, d_s)` in SI units up to and with the branch tick, which is the last."""

    contents: Tensor
    states: NDArray[np.float64]

    def part(self, begin: float, end: float) -> History:
        """Ticks from `begin` to `end`, shares of the ticks before the branch; at least two of them if there are."""
        before = len(self.states) - 1
        first = min(int(begin * before), max(before - 2, 0))
        last = max(min(int(end * before), before), min(first + 2, before))
        return History(self.contents[first:last], self.states[first:last])


@dataclass(frozen=True)
class Extension:
    """A row of table 12: how long the history becomes, and what is added to it."""

    name: str
    factor: float
    source: str
    segments: Callable[[History, History | None, np.random.Generator], Iterator[History]]
    needs_donor: bool = False


def extensions(period_ms: int, strength: TransformStrength | None = None) -> tuple[Extension, ...]:
    """The rows of table 12 after the first, which is the recorded history itself, for ticks `period_ms` apart."""
    by = strength or TransformStrength()

    def own(history: History, donor: History | None, rng: np.random.Generator) -> Iterator[History]:
        while True:
            yield repaced(history.part(LATER, 1.0), by, period_ms, rng)

    def distractor(history: History, donor: History | None, rng: np.random.Generator) -> Iterator[History]:
        while True:
            yield history.part(*DISTRACTOR)

    def shared(history: History, donor: History | None, rng: np.random.Generator) -> Iterator[History]:
        assert donor is not None
        while True:
            yield donor.part(LATER, 1.0)

    again = "the later half of the recorded history again, its pace jittered"
    return (
        Extension("extended_1.25", 1.25, again, own),
        Extension("extended_1.5", 1.5, again, own),
        Extension("extended_2", 2.0, again, own),
        Extension("distractor_1.5", 1.5, "a tenth of the recorded history, over and over", distractor),
        Extension("shared_route_2", 2.0, "the later half of another episode's history", shared, needs_donor=True),
    )


def repaced(segment: History, strength: TransformStrength, period_ms: int, rng: np.random.Generator) -> History:
    """The segment at a wandering pace: states between the recorded ones, contents of the nearest recorded tick."""
    times = pace_times(len(segment.states) - 1, strength, period_ms, rng)
    nearest = np.rint(times).astype(np.int64)
    return History(segment.contents[nearest], curve(segment.states, times))


def extended(
    history: History, extension: Extension, donor: History | None, rng: np.random.Generator
) -> tuple[Tensor, Path]:
    """Contents `(T', d_e)` and path of the history continued to `extension.factor` times its ticks before the branch.

    The first segment is cut short at its beginning, so that all of them end as they did. Raises ValueError for a
    history of fewer than 4 ticks before its branch, and for a donor that is needed and not there.
    """
    before = len(history.states) - 1
    if before < 4 or (extension.needs_donor and (donor is None or len(donor.states) < 5)):
        raise ValueError(f"{extension.name}: needs at least 4 ticks before the branch, of the donor too")
    missing = round((extension.factor - 1) * before)
    added: list[History] = []
    for segment in extension.segments(history, donor, rng):
        start = max(len(segment.states) - missing, 0)
        added.insert(0, History(segment.contents[start:], segment.states[start:]))
        missing -= len(added[0].states)
        if missing <= 0:
            break
    contents = [history.contents[:-1], *(a.contents for a in added)]
    states = [history.states[:-1], *(a.states for a in added)]
    contents.append(history.contents[-1:])
    states.append(history.states[-1:])
    return torch.cat(contents), identity(np.concatenate(states))
