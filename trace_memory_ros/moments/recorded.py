"""What is looked at of an episode, and how its presents and its ways on become numbers that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.periods import ticks_in

Floats = NDArray[np.float32]

RADII = (0.5, 1.0, 1.5)
"""Standard deviations of action: where a way on is looked at, as far from where it began."""
MOTION_MS, MOTION = 300, 2.0
"""Presents are compared by how the state changed over this time too, so many times as it did: who comes back the way he
went is not where he was."""
HORIZON_MS = 6_000
"""How long a robot may take, standing or moving, to come that far."""
COMPONENTS = 24
"""Principal components of the pictures that presents are compared by."""
WAY_COMPONENTS = 12
BINS = 30
"""Parts of an episode's length, for what episodes have in common."""
_SAMPLED = 4_000
_SPARE, _ITERATIONS = 8, 6


@dataclass(frozen=True)
class Recorded:
    """An episode of T ticks, `period_ms` apart.

    pictures `(T, F)`: what the cameras show, pixels as uint8 or a backbone's numbers. state `(T, d_s)`, actions
    `(T, A)`: NaN where there is none. usable `(T,)` bool: ticks that have all of them. Raises ValueError where none
    has.
    """

    name: str
    period_ms: int
    pictures: NDArray[Any]
    state: NDArray[np.float64]
    actions: Floats
    usable: NDArray[np.bool_]

    def __post_init__(self) -> None:
        if not (self.usable & np.isfinite(self.actions).all(axis=1)).any():
            raise ValueError(f"{self.name}: no tick has a whole observation and an action; leave the episode out")

    @property
    def ticks(self) -> int:
        """T."""
        return len(self.state)

    @property
    def readable(self) -> NDArray[np.bool_]:
        """Ticks `(T,)` with something to see and something to do."""
        return np.asarray(self.usable & np.isfinite(self.actions).all(axis=1))

    def seen(self, ticks: slice | int = slice(None)) -> Floats:
        """Pictures of some ticks `(..., F)`; pixels from 0 to 1."""
        rows = self.pictures[ticks]
        return np.asarray(rows / np.float32(255) if rows.dtype == np.uint8 else rows, np.float32)

    def whole_state(self) -> NDArray[np.float64]:
        """States `(T, d_s)`, over ticks that have none in a straight line: what moved meanwhile did not jump."""
        known = np.flatnonzero(self.usable)
        ticks = np.arange(self.ticks)
        return np.stack([np.interp(ticks, known, column[known]) for column in self.state.T], axis=1)

    def held_actions(self) -> Floats:
        """Actions `(T, A)`, each held until the next; the first one before it."""
        known = np.isfinite(self.actions).all(axis=1)
        at = np.maximum.accumulate(np.where(known, np.arange(self.ticks), 0))
        return self.actions[np.where(np.arange(self.ticks) < known.argmax(), known.argmax(), at)]


@dataclass(frozen=True)
class Space:
    """How presents and ways on are measured: fitted to episodes once, then the same for any other.

    Pictures are compared along the axes in which they change within episodes; each counts as far as episodes share it,
    together at most as much as the state: light and clutter, which stay what they are, count little. A way on is where
    the actions stand when they first are `RADII` away from where they began: the same whatever the pace, so that a
    pause is no branch.
    """

    axes: Floats
    state_mean: NDArray[np.float64]
    state_weights: NDArray[np.float64]
    action_scale: Floats
    way_mean: Floats
    way_axes: Floats

    @classmethod
    def fit(
        cls, episodes: Sequence[Recorded], least_state: NDArray[np.float64], least_action: NDArray[np.float64]
    ) -> Space:
        """least_state `(d_s,)`, least_action `(A,)`: what a channel is divided by at least. Raises ValueError where no
        action ever changes."""
        actions = np.concatenate([episode.actions[episode.readable] for episode in episodes])
        if float(np.ptp(actions, axis=0).max()) == 0.0:
            raise ValueError("no action ever changes in any episode: check the command topics under `actions`")
        stride = max(1, sum(episode.ticks for episode in episodes) // _SAMPLED)
        pictures = np.concatenate([_centred(episode)[::stride] for episode in episodes])
        axes = _axes(pictures, COMPONENTS)
        state = np.concatenate([episode.state[episode.usable] for episode in episodes])
        spread = state.std(axis=0)
        scale = np.where(spread > 0, np.maximum(spread, least_state), np.inf)
        size = float(np.sqrt(((spread / scale) ** 2).sum())) or 1.0
        seen = float(np.sqrt(((pictures @ axes) ** 2).sum(axis=1).mean())) or 1.0
        plain = cls(axes / seen, state.mean(axis=0), 1.0 / (scale * size), np.ones(0, np.float32), *[axes[:0]] * 2)
        axes = plain.axes * _shared([(episode.seen() @ plain.axes, episode.usable) for episode in episodes])
        action_scale = np.maximum(actions.std(axis=0), least_action).astype(np.float32)
        ways = np.concatenate([ways_on(episode, action_scale)[0][::stride] for episode in episodes])
        mean = ways.mean(axis=0)
        return cls(axes, plain.state_mean, plain.state_weights, action_scale, mean, _axes(ways - mean, WAY_COMPONENTS))

    def presents(self, episode: Recorded) -> Floats:
        """What each tick looks like, `(T, d)`."""
        state = (episode.whole_state() - self.state_mean) * self.state_weights
        before = np.maximum(np.arange(episode.ticks) - ticks_in(MOTION_MS, episode.period_ms), 0)
        parts = [episode.seen() @ self.axes, state, MOTION * (state - state[before])]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def actions(self, episode: Recorded) -> Floats:
        """Actions `(T, A)` in their standard deviations, each held until the next."""
        return np.asarray(episode.held_actions() / self.action_scale)

    def ways(self, episode: Recorded) -> tuple[Floats, NDArray[np.bool_]]:
        """How it goes on from each tick, `(T, k)`, in standard deviations of action, and where that is known."""
        found, known = ways_on(episode, self.action_scale)
        return np.asarray((found - self.way_mean) @ self.way_axes), known


def ways_on(episode: Recorded, scale: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Where the actions first are each of `RADII` away from those of every tick, relative to them, `(T, 3 A)`.

    Divided by `scale` `(A,)`, and weighed so that all radii together count once. Beside them, ticks `(T,)` from which
    it is known: not those after which the episode ends before anything is done.
    """
    actions = episode.held_actions() / scale
    horizon = ticks_in(HORIZON_MS, episode.period_ms)
    rows = np.minimum(np.arange(episode.ticks)[:, None] + np.arange(horizon + 1), episode.ticks - 1)
    found = np.empty((episode.ticks, len(RADII), actions.shape[1]), np.float32)
    known = np.arange(episode.ticks) + horizon < episode.ticks
    for start in range(0, episode.ticks, 512):
        part = slice(start, start + 512)
        relative = actions[rows[part]] - actions[part, None]
        away = np.sqrt((relative**2).sum(axis=-1))
        known[part] |= (away >= RADII[0]).any(axis=1)
        for place, radius in enumerate(RADII):
            left = away >= radius
            first = np.where(left.any(axis=1), left.argmax(axis=1), horizon)
            found[part, place] = relative[np.arange(len(relative)), first]
    return found.reshape(episode.ticks, -1) / np.sqrt(len(RADII), dtype=np.float32), known


def _centred(episode: Recorded) -> Floats:
    seen = episode.seen()[episode.usable]
    return seen - seen.mean(axis=0)


def _shared(parts: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> Floats:
    """Share of each number's variance `(d,)` that episodes have in common at the same share of their length.

    parts: numbers `(T, d)` and usable ticks `(T,)` of each episode.
    What changes in every episode in another way, such as noise or somebody passing, says not how far a task is.
    """
    bins = np.concatenate([(np.arange(len(usable)) * BINS // len(usable))[usable] for _, usable in parts])
    rows = np.concatenate([seen[usable] for seen, usable in parts])
    count = np.bincount(bins, minlength=BINS)
    means = np.stack([np.bincount(bins, column, BINS) / np.maximum(count, 1) for column in rows.T], axis=1)
    between = (count[:, None] * (means - rows.mean(axis=0)) ** 2).sum(axis=0) / len(rows)
    chance = BINS / (len(parts) * BINS)
    share = between / np.maximum(rows.var(axis=0), 1e-12)
    return np.asarray(np.clip((share - chance) / (1.0 - chance), 0.0, 1.0), np.float32)


def _axes(rows: Floats, most: int) -> Floats:
    """The first principal axes `(F, n)` of centred rows `(N, F)`, by subspace iteration from a fixed start."""
    count = min(most, *rows.shape)
    start = np.random.default_rng(0).normal(size=(rows.shape[1], min(count + _SPARE, rows.shape[1])))
    basis = np.linalg.qr(start.astype(np.float32))[0]
    for _ in range(_ITERATIONS):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    values, vectors = np.linalg.eigh((rows @ basis).T @ (rows @ basis))
    kept = values.argsort()[::-1][:count]
    return np.asarray(basis @ vectors[:, kept[values[kept] > 1e-6 * max(values.max(), 1e-12)]], np.float32)
