"""One decoded episode of a bag: every tick's observation and action label, as arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.branches import Branch
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.observation.frames import Cameras
from trace_memory_ros.observation.types import Observation

NO_STAMP = -1


@dataclass(frozen=True, eq=False)
class BagEpisode:
    """T ticks of one episode.

    stamps_ns `(T,)` int64. images: frames by camera, black where it has a
    fault. state `(T, d_s)` float64,
    SI units, NaN where it is unknown. usable `(T,)` bool: rows of other ticks are no data. faults: tick -> stream ->
    what is wrong. input_stamps_ns `(T, S)` int64 of `streams`, -1 where none is held. actions `(T, A)` float32 of
    `action_names`, NaN where there is no command; None where none are recorded. counters: stream -> what was received,
    refused, late. notes: what is wrong with the bag or this episode. unfinished: ticks left out at the ragged end,
    where the streams end one after the other.
    """

    name: str
    bag: str
    span: EpisodeSpan
    streams: tuple[str, ...]
    stamps_ns: NDArray[np.int64]
    images: Cameras
    state: NDArray[np.float64]
    usable: NDArray[np.bool_]
    faults: Mapping[int, Mapping[str, str]]
    input_stamps_ns: NDArray[np.int64]
    actions: NDArray[np.float32] | None
    action_names: tuple[str, ...]
    branches: tuple[Branch, ...]
    counters: Mapping[str, Mapping[str, int]]
    notes: tuple[BagFault, ...] = field(default=())
    unfinished: int = 0

    @property
    def cameras(self) -> tuple[str, ...]:
        """Their names, in configured order."""
        return tuple(self.images)

    @property
    def ticks(self) -> int:
        """T."""
        return len(self.stamps_ns)

    def fault_text(self, tick: int) -> str:
        """What is wrong at a tick; empty for a usable one."""
        return "; ".join(self.faults.get(tick, {}).values())

    def observation(self, tick: int) -> Observation:
        """The very observation that was decoded at `tick`, but for when it arrived."""
        faults = dict(self.faults.get(tick, {}))
        state = self.state[tick]
        return Observation(
            tick=tick,
            stamp_ns=int(self.stamps_ns[tick]),
            images={name: frames[tick] for name, frames in self.images.items() if name not in faults},
            state=None if np.isnan(state).any() else state,
            input_stamps_ns={
                name: int(stamp)
                for name, stamp in zip(self.streams, self.input_stamps_ns[tick], strict=True)
                if stamp != NO_STAMP
            },
            faults=faults,
        )


def unique_names(episodes: Sequence[tuple[Path, str]]) -> list[str]:
    """Episodes' names; those that several bags share get as many of their bags' folders as tell them apart."""
    found = [name for _, name in episodes]
    for depth in range(1, max((len(bag.parts) for bag, _ in episodes), default=0)):
        shared = {name for name, count in Counter(found).items() if count > 1}
        if not shared:
            break
        found = [
            "/".join((*bag.parts[-1 - depth : -1], name)) if old in shared else old
            for old, (bag, name) in zip(found, episodes, strict=True)
        ]
    return found
