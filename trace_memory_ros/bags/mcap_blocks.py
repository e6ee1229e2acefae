"""Where an mcap file's messages lie: its chunks, and runs of messages outside of any, few bytes a piece."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trace_memory_ros.bags.mcap_records import Span

SEGMENT_BITS = 16
"""A channel is `segment << 16 | id`: where several mcap files lie behind one another each counts its ids anew."""


class Block(NamedTuple):
    """A chunk, or a run of messages outside of any: its bytes, and log times and channels of its messages.

    seen: that is what its content says, and not what records beside it say.
    """

    offset: int
    length: int
    start_ns: int
    end_ns: int
    messages: int
    chunk: bool
    segment: int
    seen: bool
    channels: frozenset[int]


_Kind = tuple[bool, int, bool, frozenset[int]]


class Blocks:
    """A table of blocks: some 50 bytes each, since a file may have a million.

    seen, told: messages by channel in blocks whose content was looked at, and in others.
    """

    def __init__(self) -> None:
        self._places, self._times, self._kinds = array("q"), array("Q"), array("I")
        self._known: dict[_Kind, int] = {}
        self._by_number: list[_Kind] = []
        self.seen: Counter[int] = Counter()
        self.told: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._kinds)

    def __getitem__(self, index: int) -> Block:
        chunk, segment, seen, channels = self._by_number[self._kinds[index]]
        offset, length, messages = self._places[3 * index : 3 * index + 3]
        start_ns, end_ns = self._times[2 * index : 2 * index + 2]
        return Block(offset, length, start_ns, end_ns, messages, chunk, segment, seen, channels)

    def add(self, offset: int, length: int, chunk: bool, segment: int) -> int:
        """Append a block of which nothing is known yet; returns its number."""
        self._places.extend((offset, length, 0))
        self._times.extend((0, 0))
        self._kinds.append(self._kind(chunk, segment, False, frozenset()))
        return len(self) - 1

    def put(self, index: int, span: Span, seen: bool) -> None:
        """Say what a block holds, once by what others tell and once by what was seen."""
        chunk, segment, *_ = self._by_number[self._kinds[index]]
        counts = {segment << SEGMENT_BITS | number: count for number, count in span.counts.items()}
        self._kinds[index] = self._kind(chunk, segment, seen, frozenset(counts))
        self._places[3 * index + 2] = sum(counts.values())
        self._times[2 * index], self._times[2 * index + 1] = span.start_ns, span.end_ns
        (self.seen if seen else self.told).update(counts)

    def unseen(self) -> list[int]:
        """Numbers of the blocks whose content was not looked at."""
        unseen = {kind for (_, _, seen, _), kind in self._known.items() if not seen}
        return [index for index, kind in enumerate(self._kinds) if kind in unseen]

    def times_ns(self) -> tuple[int, int] | None:
        """Earliest and latest log time; None without messages."""
        full = self._messages() > 0
        if not full.any():
            return None
        times = np.frombuffer(self._times, np.uint64).reshape(-1, 2)[full]
        return int(times[:, 0].min()), int(times[:, 1].max())

    def in_order(self, channels: Collection[int], begin_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
        """Numbers of the blocks that hold messages of these channels in `[begin_ns, end_ns)`, by their earliest.

        With each comes the time at which the next begins.
        """
        if not len(self):
            return
        kinds = [kind for (_, _, _, held), kind in self._known.items() if not held.isdisjoint(channels)]
        chosen = np.isin(np.frombuffer(self._kinds, np.uint32), kinds) & (self._messages() > 0)
        times = np.frombuffer(self._times, np.uint64).reshape(-1, 2)
        if begin_ns > 0:
            chosen &= times[:, 1] >= np.uint64(min(begin_ns, 2**64 - 1))
        if end_ns < 2**64:
            chosen &= times[:, 0] < np.uint64(max(end_ns, 0))
        (numbers,) = np.nonzero(chosen)
        offsets = np.frombuffer(self._places, np.int64)[::3][numbers]
        ordered = numbers[np.lexsort((offsets, times[numbers, 0]))]
        starts = times[ordered, 0]
        last = 2**64
        for (index, _), (_, next_ns) in pairwise([*zip(ordered.tolist(), starts.tolist(), strict=True), (0, last)]):
            yield index, next_ns

    def _messages(self) -> np.ndarray:
        return np.frombuffer(self._places, np.int64)[2::3]

    def _kind(self, *kind: *_Kind) -> int:
        number = self._known.setdefault(kind, len(self._known))
        if number == len(self._by_number):
            self._by_number.append(kind)
        return number
