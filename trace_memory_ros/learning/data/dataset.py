"""Demonstrations in memory, with their signatures and the train split's statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.path_signatures import PathSignatures, signatures
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.frames import Cameras, resized
from trace_memory_ros.observation.periods import ticks_in
from trace_memory_ros.runtime.clock import PathLength, UpdateClock, ticks_apart
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.signature.normalise import RunningMoments, Standardiser, signature_standardiser

APART_RAD = 0.1
APART_MS = 400
STANDING_RAD = 1e-4
AFTER_PAUSE_MS = 300
START_MS = 6_000
"""What counts as the start of an episode: until the part is picked."""
STANDING = 0.005
"""Share of an action's spread; moving less in `STANDING_MS` is standing."""
STANDING_MS = 100
"""Measured over this time, or a tick where that is longer: fast ticks hold commands that come more slowly."""
APART = 0.2
"""Share of an action's spread by which the actions of unlike answers must differ to count as divergent."""
FEW = 3
HELD_BYTES = 2**31
"""Thumbnails of a split, or signatures, that are more than this stay in files, or are computed when they are needed."""


@dataclass(frozen=True)
class Episode:
    """A demonstration with what the memory sees of its images, standardised state `(T, d_s)`, its path `(T, d_p)` and
    the raw signature `(T, S)` of that.

    apart: ticks just after episodes of unlike answers begin to act differently, other than at the branch; may be empty.
    pauses: ticks at which the expert stands, and the first ones after; may be empty. period_ms: between two ticks.
    """

    demo: Demonstration
    apart: NDArray[np.int64]
    pauses: NDArray[np.int64]
    thumbnails: Cameras
    state: NDArray[np.float32]
    path: NDArray[np.float32]
    xi: NDArray[np.float64] | PathSignatures
    period_ms: int
    _travelled: dict[float, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def readable(self) -> NDArray[np.int64]:
        """Ticks at which there is something to see and something to do."""
        return self.demo.readable

    def write_mask(self, clock: UpdateClock) -> NDArray[np.bool_]:
        """Ticks `(T,)` that `clock` writes at; it stands still while ticks are unusable, as it does live."""
        usable = self.demo.usable_mask
        mask = np.zeros(len(usable), dtype=bool)
        if isinstance(clock.rule, PathLength):
            mask[np.flatnonzero(usable)[ticks_apart(self._counted_path(clock, usable), clock.rule.threshold)]] = True
        else:
            mask[usable] = clock.write_mask(self.path[usable], self.demo.stamps_ns[usable])
        return mask

    def _counted_path(self, clock: UpdateClock, usable: NDArray[np.bool_]) -> NDArray[np.float64]:
        deadband = clock.rule.deadband
        if deadband not in self._travelled:
            self._travelled[deadband] = clock.travelled(self.path[usable])
        return self._travelled[deadband]


@dataclass(frozen=True)
class StatePath:
    """How an episode's states, `period_ms` apart, become the path that clocks and signatures see.

    depth: 0 for no signature. rows: channels of the path; None for all. kept: whether the signatures of all ticks are
    held in memory, or those that are asked for computed each time.
    """

    state: Standardiser
    depth: int
    window: PathWindow | None
    period_ms: int
    rows: Sequence[int] | None = None
    kept: bool = True

    def episode(
        self, demo: Demonstration, thumbnails: Cameras, apart: NDArray[np.int64], pauses: NDArray[np.int64]
    ) -> Episode:
        """A demonstration with its path, and images of the memory's size."""
        normal = self.state.apply(demo.state)
        path = normal if self.rows is None else normal[:, list(self.rows)]
        xi = signatures(path, self.depth, self.window) if self.kept else PathSignatures(path, self.depth, self.window)
        return Episode(demo, apart, pauses, thumbnails, normal, path, xi, self.period_ms)


class EpisodeSet(Protocol):
    """Episodes that batches are drawn of."""

    @property
    def episodes(self) -> list[Episode]: ...

    @property
    def pairs(self) -> int:
        """Half the number of episodes; scenes, where there are twins."""
        ...

    def draw(self, rng: np.random.Generator, pairs: int) -> list[int]:
        """Indices of about `2 * pairs` episodes, answers balanced."""
        ...


@dataclass(frozen=True)
class Statistics:
    """Train-split statistics; `state` is fitted after the mask, `delta` over increments between writes.

    xi and delta are None where no signature is used (depth 0).
    """

    state: Standardiser
    xi: Standardiser | None
    delta: Standardiser | None
    action_mean: NDArray[np.float32]
    action_std: NDArray[np.float32]

    def normalise_actions(self, actions: Tensor) -> Tensor:
        """Actions `(..., A)` in standard deviations from the train split's mean."""
        mean, std = (torch.from_numpy(part).to(actions.device) for part in (self.action_mean, self.action_std))
        return (actions - mean) / std


def increments(xi: NDArray[np.float64] | PathSignatures, writes: NDArray[np.int64]) -> NDArray[np.float64]:
    """delta at each write tick: the signature's change since the write before; zero at the first."""
    at_writes = xi[writes]
    return np.diff(at_writes, axis=0, prepend=at_writes[:1])


class TrainingSet:
    """Counterfactual twins, `twins` of each scene: episodes `twins * i + cue` of scene i, a pair where cues are two.

    path: how they were made, where that is known. Raises ValueError where episodes are not whole scenes.
    """

    def __init__(self, episodes: list[Episode], twins: int = 2, path: StatePath | None = None) -> None:
        if twins < 2 or not episodes or len(episodes) % twins:
            raise ValueError(f"{len(episodes)} episodes: scenes of {twins} twins need a positive multiple of that")
        self.episodes, self.twins, self.path = episodes, twins, path

    @property
    def pairs(self) -> int:
        return len(self.episodes) // self.twins

    def draw(self, rng: np.random.Generator, pairs: int) -> list[int]:
        """All twins of random scenes, about as many episodes as `pairs` pairs have, of one scene at least."""
        scenes = max(1, round(2 * pairs / self.twins))
        chosen = rng.choice(self.pairs, min(scenes, self.pairs), replace=False)
        return [int(i) for scene in chosen for i in self.scene(scene)]

    def scene(self, number: int) -> range:
        """The twins of a scene."""
        return range(self.twins * number, self.twins * (number + 1))

    def scenes(self, numbers: Sequence[int]) -> TrainingSet:
        """These scenes alone."""
        return TrainingSet([self.episodes[i] for number in numbers for i in self.scene(number)], self.twins, self.path)

    def with_more(self, episodes: Sequence[Episode]) -> TrainingSet:
        """These scenes, and those of further episodes after them."""
        return TrainingSet([*self.episodes, *episodes], self.twins, self.path)

    @classmethod
    def build(cls, scenes: Iterable[tuple[Demonstration, ...]], path: StatePath, thumbnail_px: int) -> TrainingSet:
        """Standardise the states of the twins of each scene, stream their signatures and shrink their images, once.

        Raises ValueError for none, or for scenes of unlike numbers of twins.
        """
        episodes, held = [], list(scenes)
        sizes = {len(twins) for twins in held}
        if len(sizes) != 1:
            raise ValueError(f"scenes of {sorted(sizes)} counterfactual twins: all must have as many, and one at least")
        small = iter(thumbnails([demo for twins in held for demo in twins], thumbnail_px))
        for twins in held:
            apart = _twins_diverge(twins, path.period_ms)
            for demo in twins:
                episodes.append(path.episode(demo, next(small), apart, pauses(demo, STANDING_RAD, path.period_ms)))
        return cls(episodes, sizes.pop(), path)


class UnpairedSet:
    """Episodes of which no two need be alike. path: how they were made, where that is known.

    Raises ValueError for none.
    """

    def __init__(self, episodes: Sequence[Episode], path: StatePath | None = None) -> None:
        if not episodes:
            raise ValueError("no episodes: record some, or see what is wrong with the bags listed")
        self.episodes, self.path = list(episodes), path
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, episode in enumerate(self.episodes):
            groups.setdefault(episode.demo.answers, []).append(index)
        self._groups = [groups[answers] for answers in sorted(groups)]

    @classmethod
    def build(
        cls,
        demos: Sequence[Demonstration],
        path: StatePath,
        thumbnail_px: int,
        spread: NDArray[np.float32],
        apart: NDArray[np.int64],
    ) -> UnpairedSet:
        """Standardise the states of `demos`, stream their signatures and shrink their images, once.

        spread `(A,)`: of the training split's actions. apart: where its answers part, see `answers_diverge`.
        """
        return cls(
            [
                path.episode(
                    demo,
                    small,
                    apart[apart < demo.ticks] if demo.answers else apart[:0],
                    pauses(demo, STANDING * spread, path.period_ms),
                )
                for demo, small in zip(demos, thumbnails(demos, thumbnail_px), strict=True)
            ],
            path,
        )

    twins = 1

    def with_more(self, episodes: Sequence[Episode]) -> UnpairedSet:
        """These episodes and others."""
        return UnpairedSet([*self.episodes, *episodes], self.path)

    @property
    def pairs(self) -> int:
        return max(1, len(self.episodes) // 2)

    def draw(self, rng: np.random.Generator, pairs: int) -> list[int]:
        """Up to `2 * pairs` random episodes, as many of each sequence of answers, also where some are rare."""
        count = min(2 * pairs, len(self.episodes))
        chosen: list[int] = []
        for place, group in enumerate(rng.permutation(len(self._groups))):
            members = self._groups[group]
            share = (count + place) // len(self._groups)
            chosen += rng.choice(members, share, replace=share > len(members)).tolist()
        return chosen

    def up_to(self, decisions: int) -> list[Episode]:
        """The episodes with so many decisions at most, and one at least."""
        return [episode for episode in self.episodes if 1 <= len(episode.demo.decision_ticks) <= decisions]

    def some(self, count: int) -> list[int]:
        """The first `count` episodes, one of each sequence of answers in turn."""
        longest = max(len(group) for group in self._groups)
        turns = (group[turn] for turn in range(longest) for group in self._groups if turn < len(group))
        return list(islice(turns, count))


def thumbnails(demos: Sequence[Demonstration], px: int) -> list[Cameras]:
    """What the memory sees of each demonstration, in memory where that is less than `HELD_BYTES` in all."""
    small = [resized(demo.images, px) for demo in demos]
    if sum(frames.nbytes for cameras in small for frames in cameras.values()) > HELD_BYTES:
        return list(small)
    return [{name: frames.loaded() for name, frames in cameras.items()} for cameras in small]


def held_in_memory(demos: Iterable[Demonstration], numbers: int) -> bool:
    """Whether signatures of so many numbers at every tick of `demos` are less than `HELD_BYTES`."""
    return sum(demo.ticks for demo in demos) * numbers * 8 <= HELD_BYTES


def _twins_diverge(twins: Sequence[Demonstration], period_ms: int) -> NDArray[np.int64]:
    before = min(demo.decision_ticks[0] for demo in twins)
    apart = np.ptp(np.stack([demo.actions[:before] for demo in twins]), axis=0)
    return after_onset(apart.max(axis=1) > APART_RAD, period_ms)


def after_onset(differs: NDArray[np.bool_], period_ms: int) -> NDArray[np.int64]:
    """The ticks of the first `APART_MS` from where `differs` `(T,)` first holds; none where it never does.

    Later, the robot's own motion shows which episode it is, and the cameras need not be looked at.
    """
    onset = np.flatnonzero(differs)[:1, None]
    return np.unique(np.minimum(onset + np.arange(ticks_in(APART_MS, period_ms)), len(differs) - 1))


def answers_diverge(demos: Sequence[Demonstration], spread: NDArray[np.float32], period_ms: int) -> NDArray[np.int64]:
    """The ticks, early in an episode, at which those of unlike answers begin to act differently; often none."""
    groups: dict[tuple[int, ...], list[NDArray[np.float32]]] = {}
    reach = min([ticks_in(START_MS, period_ms), *(demo.decision_ticks[0] for demo in demos if demo.decision_ticks)])
    for demo in demos:
        start = demo.actions[:reach]
        if demo.answers and len(start) == reach and np.isfinite(start).all():
            groups.setdefault(demo.answers, []).append(start)
    enough = [np.stack(group) for group in groups.values() if len(group) >= FEW]
    return (
        after_onset(divergent_ticks(enough, APART * spread), period_ms)
        if len(enough) > 1 and reach
        else np.zeros(0, dtype=np.int64)
    )


def divergent_ticks(groups: Sequence[NDArray[np.float32]], least: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Ticks `(T,)` at which groups of actions `(N, T, A)`, aligned at the start, differ for certain.

    That is by more than `least` `(A,)` and twice their spread, in some action.
    """
    means = [group.mean(axis=0) for group in groups]
    spread = np.sqrt(sum(group.var(axis=0) for group in groups) / len(groups))
    apart = np.ptp(np.stack(means), axis=0)
    return np.asarray((apart > np.maximum(least, 2.0 * spread)).any(axis=1))


def pauses(demo: Demonstration, standing: float | NDArray[np.float32], period_ms: int) -> NDArray[np.int64]:
    """Ticks at which no action `(A,)` has moved by `standing` in `STANDING_MS`, and the first ones after."""
    over = ticks_in(STANDING_MS, period_ms)
    moved = np.abs(demo.actions[over:] - demo.actions[:-over])
    ticks = np.flatnonzero((moved < standing * (over * period_ms / STANDING_MS)).all(axis=1)) + over
    after = np.arange(ticks_in(AFTER_PAUSE_MS, period_ms) + 1)
    return np.unique(np.minimum(ticks[:, None] + after, demo.ticks - 1))


def state_mask(config: ObservationConfig) -> NDArray[np.bool_]:
    """Which state channels `(d_s,)` are used: all, but those that are always 0."""
    return ~np.array(config.masked)


def fit_state(demos: Iterable[Demonstration], mask: NDArray[np.bool_], least: NDArray[np.float64]) -> Standardiser:
    """Train-split statistics of the robot state; `mask` `(d_s,)` is False on channels to zero (TRACE table 9).

    least `(d_s,)`: see `spread.least_spread`.
    """
    moments = RunningMoments(mask.size)
    for demo in demos:
        moments.add(demo.usable_state)
    fitted = moments.standardiser(mask)
    return replace(fitted, std=np.maximum(fitted.std, least))


def action_spread(demos: Sequence[Demonstration], least: NDArray[np.float64]) -> NDArray[np.float32]:
    """Standard deviation `(A,)` of the recorded actions, none smaller than `least` `(A,)`."""
    return np.maximum(known_actions(demos).std(axis=0), least).astype(np.float32)


def fit_statistics(
    training: EpisodeSet, state: Standardiser, clock: UpdateClock, depth: int, least: NDArray[np.float64]
) -> Statistics:
    """Signature and action statistics of the train split at the final update clock; `least` as of `action_spread`.

    depth: of the signatures, 0 for none.
    """
    dim, width = training.episodes[0].path.shape[1], training.episodes[0].xi.shape[1]
    xi, delta = RunningMoments(max(width, 1)), RunningMoments(max(width, 1))
    for episode in training.episodes if depth else ():
        xi.add(np.asarray(episode.xi))
        delta.add(increments(episode.xi, np.flatnonzero(episode.write_mask(clock))))
    demos = [episode.demo for episode in training.episodes]
    return Statistics(
        state,
        signature_standardiser(xi, dim, depth) if depth else None,
        signature_standardiser(delta, dim, depth) if depth else None,
        known_actions(demos).mean(axis=0),
        action_spread(demos, least),
    )


def known_actions(demos: Sequence[Demonstration]) -> NDArray[np.float32]:
    """All actions `(N, A)` that were recorded."""
    return np.concatenate([demo.actions[np.isfinite(demo.actions).all(axis=1)] for demo in demos])
