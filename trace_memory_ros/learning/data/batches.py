"""Whole-episode scans: the writes of an update clock and the reads at which the loss is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.learning.data.dataset import Episode, EpisodeSet, Statistics
from trace_memory_ros.learning.data.delay import Delay, lengthened, travelled
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.path_signatures import PathSignatures
from trace_memory_ros.learning.data.unexplained import Shows
from trace_memory_ros.learning.decisions.references import RelativeReferences
from trace_memory_ros.learning.features.cache import FeatureCache
from trace_memory_ros.learning.features.views import PLAIN
from trace_memory_ros.observation.frames import stacked
from trace_memory_ros.observation.images import shrunk
from trace_memory_ros.runtime.clock import UpdateClock
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.base import Features

FUTURE_CHUNKS = (1, 2, 4)
"""How many chunks after a read the pictures to come are seen; an episode's last stands for those after its end."""
FUTURE_PX = 16


class Evidence(NamedTuple):
    """What the memory sees. thumbnails `(..., C, 3, p, p)` in 0..1, or kept features of them, state `(..., 17)`, xi and
    delta `(..., S)`.
    """

    thumbnails: Tensor | Features
    state: Tensor
    xi: Tensor
    delta: Tensor


def _floats(images: Tensor) -> Tensor:
    """Images `(..., P, P, 3)` uint8 as `(..., 3, P, P)` float32 in 0..1; what is that already stays as it is."""
    if images.dtype != torch.uint8:
        return images
    return images.movedim(-1, -3).contiguous().float().div_(255.0)


class EpisodeBatch(NamedTuple):
    """B episodes with T padded writes and R reads each.

    mask `(B, T)` bool; last_write `(B, R)` step of the scan after which each read comes; images `(B, R, C, 3, P, P)` in
    0..1; raw_state `(B, R, 17)` SI units; actions `(B, R, H, A)` in action units; valid `(B, R, H)` bool. early
    `(B, T)` bool: writes before the first decision, all where there is none. seconds `(B,)`: from an episode's first
    tick to its last, as it was demonstrated. order `(B, T')` the write of each step of the scan, -1 after the last;
    None where the steps are the writes. future `(B, R, K, C, 16, 16, 3)` small pictures in 0..1 of what is seen
    `FUTURE_CHUNKS` chunks later; None where nobody asks. answers `(B, R, J)` what is right at the decision that a read
    lies near and at those after it, -1 near none and after the last; None where nobody asks.
    """

    writes: Evidence
    mask: Tensor
    reads: Evidence
    last_write: Tensor
    images: Tensor
    raw_state: Tensor
    actions: Tensor
    valid: Tensor
    early: Tensor
    seconds: Tensor
    order: Tensor | None = None
    future: Tensor | None = None
    answers: Tensor | None = None

    def to(self, device: torch.device) -> EpisodeBatch:
        """The batch on a device; from pinned memory without waiting for it."""
        return self.each(lambda part: part.to(device, non_blocking=part.is_pinned()))

    def pinned(self) -> EpisodeBatch:
        """The batch in memory that a GPU copies from by itself."""
        return self.each(Tensor.pin_memory)

    def each(self, change: Callable[[Tensor], Tensor]) -> EpisodeBatch:
        """Change every tensor."""
        writes, mask, reads, *rest, order, future, answers = self
        seen, now = (Evidence(on_seen(change, part.thumbnails), *map(change, part[1:])) for part in (writes, reads))
        asked = (None if part is None else change(part) for part in (order, future, answers))
        return EpisodeBatch(seen, change(mask), now, *map(change, rest), *asked)

    def floats(self) -> EpisodeBatch:
        """The batch with images as the networks take them, on the device where they are."""
        writes, reads = (
            part._replace(thumbnails=on_seen(_floats, part.thumbnails)) for part in (self.writes, self.reads)
        )
        future = None if self.future is None else self.future.float().div_(255.0)
        return self._replace(writes=writes, reads=reads, images=_floats(self.images), future=future)

    @property
    def steps(self) -> Tensor:
        """`(B, T')` bool: which steps of the scan write."""
        return self.mask if self.order is None else self.order >= 0

    @property
    def ticks(self) -> int:
        """How often the memory is written or read."""
        return int(self.steps.sum()) + self.last_write.numel()


class Wanted(NamedTuple):
    """What a batch holds beside evidence and actions.

    pictures: the policy's images at the reads; zero cameras without, as the memory-first phase wants it. future:
    pictures of what is seen after each read. reach: the answers at reads up to so many ticks after a decision, and of
    the `coming` ones from there; 0 without. raw: images as they are stored, a quarter of the bytes; see `floats`.
    """

    pictures: bool = True
    future: bool = False
    reach: int = 0
    coming: int = 1
    raw: bool = False


PICTURES, NO_PICTURES = Wanted(), Wanted(pictures=False)


class Signed(NamedTuple):
    """Signatures at writes `(T, S)` and reads `(R, S)`, and the increments of these since the write before."""

    writes: NDArray[np.float64]
    reads: NDArray[np.float64]
    increments: NDArray[np.float64]


@dataclass(frozen=True)
class BatchBuilder:
    """Assembles batches from a set, the train split's statistics, the final update clock and the chunk length.

    references: what branch decisions are judged by where episodes have no counterfactual twins; None where they have.
    features: what is given in place of the memory's images where its backbone is frozen.
    image_px: side of the policy's images; None for the cameras' own. shows: what a coarse clock must not pass over in
    episodes that do not say it themselves. delay: how often the memory is written before the first decision, in times
    of what was demonstrated; for batches that are drawn the most. whole_depth: of addresses that are signatures of the
    whole path, which going through a part of it again changes; 0 where they are none. moved `(A,)`: state channel that
    each action moves, -1 for none.
    """

    data: EpisodeSet
    statistics: Statistics
    clock: UpdateClock
    chunk: int
    references: RelativeReferences | None = None
    features: FeatureCache | None = None
    image_px: int | None = None
    shows: Shows | None = None
    delay: float = 1.0
    whole_depth: int = 0
    moved: tuple[int, ...] = ()

    def delayed(self, factor: float) -> BatchBuilder:
        """The same at up to `factor` times the demonstrated delay."""
        return replace(self, delay=factor)

    def build(
        self,
        indices: list[int],
        factors: list[float],
        reads: list[NDArray[np.int64]],
        wanted: Wanted = PICTURES,
        longest: tuple[int, int] | None = None,
        views: Sequence[int] = (),
        delays: Sequence[Delay] = (),
    ) -> EpisodeBatch:
        """The episodes `indices`, each with its own clock factor and read ticks (equally many for all).

        longest: writes and steps to pad to, where the episodes are part of a batch. views: of kept features, one per
        episode; the images as they are where none are given. delays: one per episode; all as long as `delay` says
        where none are given.
        """
        episodes = [self.data.episodes[i] for i in indices]
        due = [self._due(episode, factor) for episode, factor in zip(episodes, factors, strict=True)]
        taken = self._orders(episodes, due, delays)
        last = [_newest(w, o, r) for w, o, r in zip(due, taken, reads, strict=True)]
        signed = [self._signatures(*of) for of in zip(episodes, due, taken, reads, last, strict=True)]
        writes, orders = self._scanned(due, taken)
        longest = longest or _longest(writes, orders)
        views = views or [PLAIN] * len(episodes)
        parts = [self._parts(*of) for of in zip(episodes, writes, reads, signed, views, strict=True)]
        write_parts, read_parts = [_padded(written, longest[0]) for written, _ in parts], [read for _, read in parts]
        seen = [(e.demo, r) for e, r in zip(episodes, reads, strict=True)]
        targets = [self._targets(e, r) for e, r in zip(episodes, reads, strict=True)]
        batch = EpisodeBatch(
            _stack(write_parts),
            torch.from_numpy(np.stack([np.arange(longest[0]) < len(w) for w in writes])),
            _stack(read_parts),
            torch.from_numpy(np.stack(last)),
            torch.stack([self._pictures(demo, r) if wanted.pictures else _no_pictures(r) for demo, r in seen]),
            torch.from_numpy(np.stack([demo.state[r] for demo, r in seen]).astype(np.float32)),
            torch.stack([t[0] for t in targets]),
            torch.stack([t[1] for t in targets]),
            torch.from_numpy(np.stack([_early(e.demo, w, longest[0]) for e, w in zip(episodes, writes, strict=True)])),
            torch.tensor([np.ptp(episode.demo.stamps_ns) / 1e9 for episode in episodes], dtype=torch.float32),
            self._order(writes, orders, longest),
            torch.stack([self._future(e, r) for e, r in zip(episodes, reads, strict=True)]) if wanted.future else None,
            torch.stack([_answers(demo, r, wanted) for demo, r in seen]) if wanted.reach else None,
        )
        return batch if wanted.raw else batch.floats()

    def longest(self, indices: list[int], factors: list[float], delays: Sequence[Delay]) -> tuple[int, int]:
        """Writes, and steps of the scan, of those of the episodes that have most."""
        episodes = [self.data.episodes[i] for i in indices]
        writes = [self._due(episode, factor) for episode, factor in zip(episodes, factors, strict=True)]
        return _longest(*self._scanned(writes, self._orders(episodes, writes, delays)))

    def within(self, reach: int | None) -> bool:
        """Whether a memory of that `Memory.reach` may tell how an episode began, of the median one after its delay."""
        if reach is None or self.delay <= 1.0:
            return True
        return bool(np.median([self.longest([i], [1.0], ())[1] for i in range(len(self.data.episodes))]) <= reach)

    def _scanned(
        self, writes: Sequence[NDArray[np.int64]], orders: Sequence[NDArray[np.int64]]
    ) -> tuple[Sequence[NDArray[np.int64]], Sequence[NDArray[np.int64]]]:
        """Ticks of the writes and their order; all of them one after another where each has an address of its own."""
        if not self.whole_depth:
            return writes, orders
        return [w[o] for w, o in zip(writes, orders, strict=True)], [np.arange(len(o)) for o in orders]

    def _orders(
        self, episodes: Sequence[Episode], writes: Sequence[NDArray[np.int64]], delays: Sequence[Delay]
    ) -> list[NDArray[np.int64]]:
        """Of each episode, the index of the write of each step."""
        delays = delays or [Delay(self.delay)] * len(episodes)
        return [
            np.arange(len(w))
            if delay.factor <= 1.0
            else lengthened(w, self.brief(episode), min(episode.demo.decision_ticks, default=None), delay)
            for episode, w, delay in zip(episodes, writes, delays, strict=True)
        ]

    def _due(self, episode: Episode, factor: float) -> NDArray[np.int64]:
        """Ticks of the writes: of a clock `factor` times as coarse, but as fine as the final one in a brief show."""
        due = episode.write_mask(UpdateClock(self.clock.rule.scaled(factor)))
        brief = self.brief(episode) if factor > 1.0 else None
        return np.flatnonzero(due if brief is None else due | (episode.write_mask(self.clock) & brief))

    def brief(self, episode: Episode) -> NDArray[np.bool_] | None:
        """Ticks `(T,)` of what is shown too briefly for a coarse clock; None where nobody knows."""
        told = episode.demo.shown
        return told if told is not None or self.shows is None else self.shows.of(episode.demo)

    def _signatures(
        self,
        episode: Episode,
        writes: NDArray[np.int64],
        order: NDArray[np.int64],
        reads: NDArray[np.int64],
        last: NDArray[np.int64],
    ) -> Signed:
        """Both from one walk of the path, which is a longer one where writes come again."""
        xi, steps, reads_at = episode.xi, writes, reads
        if self.whole_depth and len(order) > len(writes):
            way = travelled(writes, order, reads, last)
            xi, steps, reads_at = PathSignatures(episode.path[way.ticks], self.whole_depth), way.steps, way.reads
        ticks = np.union1d(steps, reads_at)
        signatures = xi[ticks]
        at_steps, at_reads = (signatures[np.searchsorted(ticks, some)] for some in (steps, reads_at))
        # A tick that writes reads with the increment of that same write, so its base is the write before.
        base = np.maximum(np.searchsorted(steps, reads_at, side="left") - 1, 0)
        return Signed(at_steps, at_reads, at_reads - at_steps[base])

    def _parts(
        self, episode: Episode, writes: NDArray[np.int64], reads: NDArray[np.int64], signed: Signed, view: int
    ) -> tuple[Evidence, Evidence]:
        """Evidence at the writes, and at the reads."""
        first = np.diff(signed.writes, axis=0, prepend=signed.writes[:1])
        return (
            self._evidence(episode, writes, signed.writes, first, view),
            self._evidence(episode, reads, signed.reads, signed.increments, view),
        )

    def _order(
        self, writes: Sequence[NDArray[np.int64]], orders: Sequence[NDArray[np.int64]], longest: tuple[int, int]
    ) -> Tensor | None:
        """`EpisodeBatch.order`."""
        if longest[0] == longest[1] and all(len(w) == len(o) for w, o in zip(writes, orders, strict=True)):
            return None
        ended = [np.pad(order, (0, longest[1] - len(order)), constant_values=-1) for order in orders]
        return torch.from_numpy(np.stack(ended))

    def _evidence(
        self,
        episode: Episode,
        ticks: NDArray[np.int64],
        xi: NDArray[np.float64],
        delta: NDArray[np.float64],
        view: int,
    ) -> Evidence:
        statistics, images, kept = self.statistics, episode.thumbnails, self.features
        return Evidence(
            torch.from_numpy(stacked(images, ticks)) if kept is None else kept.features(images, ticks, view),
            torch.from_numpy(episode.state[ticks]),
            _standardised(statistics.xi, xi),
            _standardised(statistics.delta, delta),
        )

    def _pictures(self, demo: Demonstration, ticks: NDArray[np.int64]) -> Tensor:
        px = self.image_px
        if px is None or all(frames.px == px for frames in demo.images.values()):
            return torch.from_numpy(stacked(demo.images, ticks))
        return torch.from_numpy(np.stack([shrunk(frames[ticks], px) for frames in demo.images.values()], axis=-4))

    def small_pictures(self, episode: Episode, ticks: NDArray[np.int64]) -> NDArray[np.uint8]:
        """What all cameras see at ticks `(...)`: `(..., C, 16, 16, 3)`, or smaller where the memory sees less."""
        seen = stacked(episode.thumbnails, ticks)
        return seen if seen.shape[-2] <= FUTURE_PX else shrunk(seen, FUTURE_PX)

    def _future(self, episode: Episode, reads: NDArray[np.int64]) -> Tensor:
        later = reads[:, None] + self.chunk * np.array(FUTURE_CHUNKS)
        return torch.from_numpy(self.small_pictures(episode, np.minimum(later, episode.demo.ticks - 1)))

    def _targets(self, episode: Episode, reads: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        ticks = reads[:, None] + np.arange(self.chunk)
        actions = episode.demo.actions[np.minimum(ticks, episode.demo.ticks - 1)]
        known = np.isfinite(actions)
        valid = (ticks < episode.demo.ticks) & known.all(axis=-1)
        return torch.from_numpy(np.where(known, actions, np.float32(0.0))), torch.from_numpy(valid)


class Data(NamedTuple):
    """Batches of the three splits, by the training split's statistics.

    validation: what a training looks at as it goes and attempts are chosen by. held_out: what is reported, looked at
    once, when nothing is chosen any more. Either is None where all episodes are trained on.
    """

    training: BatchBuilder
    validation: BatchBuilder | None
    held_out: BatchBuilder | None


def _answers(demo: Demonstration, reads: NDArray[np.int64], wanted: Wanted) -> Tensor:
    """What is right at the last decision up to `reach` ticks before each read `(R,)`, -1 after none, and at those that
    follow it `(R, coming)`.
    """
    found = np.full((len(reads), wanted.coming), -1, dtype=np.int64)
    rest = np.array([*demo.answers, *[-1] * wanted.coming])
    for index, tick in enumerate(demo.decision_ticks):
        found[(reads >= tick) & (reads < tick + wanted.reach)] = rest[index : index + wanted.coming]
    return torch.from_numpy(found)


def _early(demo: Demonstration, writes: NDArray[np.int64], longest: int) -> NDArray[np.bool_]:
    """Which of the writes, padded to `longest`, come before the first decision."""
    early = np.zeros(longest, dtype=bool)
    early[: len(writes)] = writes < min(demo.decision_ticks, default=demo.ticks)
    return early


def _longest(writes: Sequence[NDArray[np.int64]], orders: Sequence[NDArray[np.int64]]) -> tuple[int, int]:
    return max(map(len, writes)), max(map(len, orders))


def _newest(writes: NDArray[np.int64], order: NDArray[np.int64], reads: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last step of the newest write at or before each read; -1 where there is none."""
    newest = np.searchsorted(writes, reads, side="right") - 1
    steps = np.zeros(len(writes), dtype=np.int64)
    np.maximum.at(steps, order, np.arange(len(order)))
    return np.where(newest < 0, newest, steps[newest])


def _no_pictures(ticks: NDArray[np.int64]) -> Tensor:
    return torch.zeros(len(ticks), 0, 1, 1, 3, dtype=torch.uint8)


def _padded(evidence: Evidence, longest: int) -> Evidence:
    """Zeros after the last of the writes, up to `longest`."""
    pad = longest - len(evidence.state)

    def padded(part: Tensor) -> Tensor:
        return torch.nn.functional.pad(part, [0, 0] * (part.ndim - 1) + [0, pad])

    return Evidence(on_seen(padded, evidence.thumbnails), *map(padded, evidence[1:]))


def _standardised(by: Standardiser | None, values: NDArray[np.float64]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32) if by is None else by.apply(values))


def _stack(parts: list[Evidence]) -> Evidence:
    seen, *rest = zip(*parts, strict=True)
    found = Features(*map(torch.stack, zip(*seen, strict=True))) if isinstance(seen[0], Features) else torch.stack(seen)
    return Evidence(found, *map(torch.stack, rest))


def on_seen(change: Callable[[Tensor], Tensor], seen: Tensor | Features) -> Tensor | Features:
    """Images, or both parts of features, changed."""
    return Features(*map(change, seen)) if isinstance(seen, Features) else change(seen)
