"""Signatures of what was seen: symbols have no trajectory, so the path is that of the observations and of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.signature.layout import signature_size

Array = NDArray[np.float64]
DEPTH = 2
CHANNELS = 6
"""Of the path at most, besides time: wider observations are mapped to as many by a fixed random matrix."""
TICKS = 64
"""Ticks in which time moves by 1, as far as a one-hot observation does by appearing."""


class ObservationPath:
    """Signatures of depth 2 of the observations of several episodes, each with time as its last channel.

    window: of the newest so many ticks alone, None for the whole episode. By Chen's identity the signature from tick a
    to b is that of the prefix b less that of a and the product of what both moved.
    Source of the time channel: Chevyrev and Kormilitzin, "A primer on the signature method", 2016, section 2.
    """

    def __init__(self, observation: int, episodes: int, window: int | None = None) -> None:
        if window is not None and window < 1:
            raise ValueError(f"ObservationPath.window = {window}: must be at least 1 tick, or None")
        self.channels = min(observation, CHANNELS)
        self.window = window
        mixed = np.random.default_rng(0).standard_normal((observation, self.channels)) / np.sqrt(self.channels)
        self._map = np.eye(observation) if observation <= CHANNELS else mixed
        width = self.channels + 1
        self._ticks = 0
        self._start: Array | None = None
        # At the last write.
        self._last = np.zeros((episodes, signature_size(width, DEPTH)))
        # Where a window may begin: the path from its start and level 2 of the prefixes, oldest tick first.
        self._points = np.zeros((episodes, 0, width))
        self._areas = np.zeros((episodes, 0, width, width))

    @property
    def size(self) -> int:
        """Length S of a signature."""
        return self._last.shape[1]

    def advance(self, observations: NDArray[np.float32], due: NDArray[np.bool_] | None = None) -> tuple[Array, Array]:
        """Go on through `observations` `(B, T, W)`: signatures `(B, T, S)`, and their increments since the last write.

        due: ticks `(B, T)` that write, all of them where none are given.
        """
        held, count = self._points.shape[1], observations.shape[1]
        points = np.concatenate([self._points, self._walked(observations)], axis=1)
        areas = self._prefixes(points)
        now = held + np.arange(count)
        ago = np.zeros_like(now) if self.window is None else np.maximum(now - self.window, 0)
        xi = _between(points, areas, ago, now)
        newest = np.broadcast_to(np.arange(1, count + 1), xi.shape[:2]) * (True if due is None else due)
        newest = np.maximum.accumulate(np.pad(newest, ((0, 0), (1, 0))), axis=1)
        written = np.concatenate([self._last[:, None], xi], axis=1)[np.arange(len(xi))[:, None], newest]
        before, self._last, self._ticks = written[:, :-1], written[:, -1].copy(), self._ticks + count
        kept = slice(-self.window, None) if self.window is not None else [0, -1] if held + count > 1 else [0]
        self._points, self._areas = points[:, kept], areas[:, kept]
        return xi, xi - before

    def _walked(self, observations: NDArray[np.float32]) -> Array:
        """The path of new observations from its start `(B, T, d)`."""
        ticks = self._ticks + np.arange(observations.shape[1])
        time = np.broadcast_to(ticks[None, :, None] / TICKS, (*observations.shape[:2], 1))
        points = np.concatenate([observations.astype(np.float64) @ self._map, time], axis=-1)
        if self._start is None:
            self._start = points[:, :1].copy()
        return points - self._start

    def _prefixes(self, points: Array) -> Array:
        """Level 2 of the whole path up to each of `points` `(B, K, d)`, those kept from before among them."""
        held = self._areas.shape[1]
        known = self._areas if held else np.zeros((len(points), 1, *self._areas.shape[2:]))
        since = points[:, max(held, 1) - 1 :]
        steps = np.diff(since, axis=1)
        added = (since[:, :-1] + steps / 2)[..., :, None] * steps[..., None, :]
        return np.concatenate([known, known[:, -1:] + added.cumsum(axis=1)], axis=1)


def _between(points: Array, areas: Array, ago: NDArray[np.intp], now: NDArray[np.intp]) -> Array:
    """Signatures from ticks `ago` to ticks `now`."""
    first = points[:, now] - points[:, ago]
    second = areas[:, now] - areas[:, ago] - points[:, ago][..., :, None] * first[..., None, :]
    return np.concatenate([first, second.reshape(*second.shape[:2], -1)], axis=-1)
