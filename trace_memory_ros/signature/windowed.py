"""The signature of the newest part of a path: constant time and memory, however long the episode.

Level n of a whole path's signature grows like t^n at worst, so that a long episode leaves the training statistics
behind. The path is cut into stretches; the window is the newest closed ones and the one still being walked. Chen's
identity multiplies them, so nothing is subtracted and nothing drifts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .naive import chen_product, flatten, unflatten
from .streaming import StreamingSignature

Array = NDArray[np.float64]


class WindowedSignature:
    """Signature up to `depth` of the newest `stretches` closed stretches and the open one; float64, no scalar term.

    Basepoint: the state at which the oldest of them began. Raises ValueError for fewer than 1 stretch and as
    `StreamingSignature` does.
    """

    def __init__(self, dim: int, depth: int, stretches: int) -> None:
        if stretches < 1:
            raise ValueError(f"signature window of {stretches} stretches: it needs at least 1")
        self.dim = dim
        self.depth = depth
        self.stretches = stretches
        self._window = StreamingSignature(dim, depth)
        self._open = StreamingSignature(dim, depth)
        self.size = self._window.size
        self._closed: deque[Array] = deque(maxlen=stretches)

    @property
    def started(self) -> bool:
        """Whether a basepoint has been seen since `reset`."""
        return self._open.started

    def reset(self) -> None:
        """Forget the path: the next state becomes the basepoint."""
        self._window.reset()
        self._open.reset()
        self._closed.clear()

    def update(self, state: ArrayLike) -> None:
        """Append `state` `(dim,)` to the open stretch. Raises ValueError as `StreamingSignature.update`."""
        self._window.update(state)
        self._open.update(state)

    def close_stretch(self) -> None:
        """End the open stretch at the newest state, where the next begins; the oldest leaves a full window.

        Does nothing before the first state.
        """
        if not self.started:
            return
        here = self._open.snapshot()
        self._closed.append(here["signature"])
        nothing = np.zeros(self.size)
        self._open.restore({"signature": nothing, "last_state": here["last_state"]})
        self._window.restore({"signature": self._product(), "last_state": here["last_state"]})

    def value(self) -> Array:
        """A copy of the signature `(S,)` in canonical order."""
        return self._window.value()

    def snapshot(self) -> dict[str, Array]:
        """What `restore` needs: `signature`, `open_stretch` `(S,)`; `last_state` `(dim,)`; `closed` `(stretches, S)`
        from oldest to newest, and `closed_count` `(1,)` of them."""
        closed = np.zeros((self.stretches, self.size))
        closed[: len(self._closed)] = np.reshape(list(self._closed), (-1, self.size))
        count = np.array([len(self._closed)], dtype=np.float64)
        return {
            **self._window.snapshot(),
            "open_stretch": self._open.value(),
            "closed": closed,
            "closed_count": count,
        }

    def restore(self, snapshot: Mapping[str, ArrayLike]) -> None:
        """Continue, bit for bit, where `snapshot` was taken; ValueError if it belongs to other sizes or was damaged."""
        missing = {"open_stretch", "closed", "closed_count"} - set(snapshot)
        if missing:
            raise ValueError(f"signature snapshot has no {sorted(missing)}: it was not taken of a window")
        closed, count = np.asarray(snapshot["closed"], dtype=np.float64), np.asarray(snapshot["closed_count"]).item()
        if closed.shape != (self.stretches, self.size) or count not in range(self.stretches + 1):
            raise ValueError(
                f"signature snapshot: 'closed' has shape {closed.shape} with {count} in use, expected "
                f"({self.stretches}, {self.size})"
            )
        if not np.isfinite(closed).all():
            raise ValueError("signature snapshot holds non-finite values: take it again or reset the episode")
        self._window.restore(snapshot)
        self._open.restore({"signature": snapshot["open_stretch"], "last_state": snapshot["last_state"]})
        self._closed = deque((row.copy() for row in closed[: int(count)]), maxlen=self.stretches)

    def _product(self) -> Array:
        levels = (unflatten(stretch, self.dim, self.depth) for stretch in self._closed)
        return flatten(reduce(chen_product, levels))
