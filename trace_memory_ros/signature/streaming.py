"""The signature of a path that is still being walked: one control tick in constant time and memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .kernel import NOT_FINITE, OK, BufferPlan, update_kernel, walk_kernel
from .layout import signature_size

Array = NDArray[np.float64]


def warm_up(dim: int, depth: int) -> None:
    """Compile the update for these sizes (about 1 s where no cache is found), so that no control tick pays for it."""
    update_kernel(dim, depth)


def walk(states: Array, wanted: NDArray[np.int64], depth: int) -> Array:
    """Signatures `(n, S)` of a path `(T, dim)` after the ticks `wanted` `(n,)`, which rise; bits as of updates in turn.

    Raises ValueError where a state is not finite.
    """
    plan = BufferPlan(states.shape[1], depth)
    buffer, where = plan.allocate(), plan.positions()
    buffer[plan.last : plan.last + plan.dim] = np.nan
    out = np.empty((len(wanted), where.size))
    code = walk_kernel(plan.dim, depth)(buffer, np.ascontiguousarray(states), wanted, where, out)
    if code != OK:
        bad = np.flatnonzero(~np.isfinite(states).all(axis=1))[:1].tolist()
        raise ValueError(f"the path has non-finite values, first at tick {bad}: drop these samples or mask channels")
    return out


class StreamingSignature:
    """Signature up to `depth` of the states seen since `reset`, basepoint at the first; float64, scalar term left out.

    Source: TRACE (003) section 4.1, appendix A.5; Chen's identity with the segment exponential fused in.
    Raises ValueError for `dim < 1` or `depth` outside 1..4.
    """

    def __init__(self, dim: int, depth: int) -> None:
        self.dim = dim
        self.depth = depth
        self.size = signature_size(dim, depth)
        plan = BufferPlan(dim, depth)
        self._buffer, self._where = plan.allocate(), plan.positions()
        self._last = self._buffer[plan.last : plan.last + dim]
        self._kernel = update_kernel(dim, depth)
        self.reset()

    def reset(self) -> None:
        """Forget the path: the next state becomes the basepoint."""
        self._buffer[:] = 0.0
        self._last[:] = np.nan

    @property
    def started(self) -> bool:
        """Whether a basepoint has been seen since `reset`."""
        return not np.isnan(self._last[0])

    def update(self, state: ArrayLike) -> None:
        """Append `state` `(dim,)` to the path; a contiguous float64 array is taken without a copy.

        Raises ValueError, and leaves the signature as it was, when the width is wrong or a channel is not finite.
        """
        try:
            code = self._kernel(self._buffer, state)  # type: ignore[arg-type]
        except TypeError:
            code = self._update_converted(state)
        if code != OK:
            raise ValueError(self._refusal(code, np.asarray(state)))

    def _update_converted(self, state: ArrayLike) -> int:
        converted = np.array(state, dtype=np.float64)
        if converted.ndim != 1:
            raise ValueError(f"state of shape {converted.shape}: expected ({self.dim},)")
        return self._kernel(self._buffer, converted)

    def _refusal(self, code: int, state: Array) -> str:
        if code == NOT_FINITE:
            channels = np.flatnonzero(~np.isfinite(state.astype(np.float64))).tolist()
            return f"state has non-finite values in channels {channels}: drop the sample or mask these channels"
        return f"state of shape {state.shape}: this signature was built for ({self.dim},)"

    def value(self) -> Array:
        """A copy of the signature `(S,)` in canonical order; zeros until a second, different state."""
        return self._buffer.take(self._where)

    def snapshot(self) -> dict[str, Array]:
        """What `restore` needs: `signature` `(S,)` in canonical order; `last_state` `(dim,)`, NaN before a start."""
        return {"signature": self.value(), "last_state": self._last.copy()}

    def restore(self, snapshot: Mapping[str, ArrayLike]) -> None:
        """Continue, bit for bit, where `snapshot` was taken; ValueError if it belongs to other sizes or was damaged."""
        shapes = {"signature": (self.size,), "last_state": (self.dim,)}
        arrays = {}
        for name, shape in shapes.items():
            if name not in snapshot:
                raise ValueError(f"signature snapshot has no '{name}', only {sorted(snapshot)}")
            arrays[name] = np.asarray(snapshot[name], dtype=np.float64)
            if arrays[name].shape != shape:
                raise ValueError(
                    f"signature snapshot: '{name}' has shape {arrays[name].shape}, expected {shape} "
                    f"for dim {self.dim}, depth {self.depth}"
                )
        last = arrays["last_state"]
        if not (np.isfinite(arrays["signature"]).all() and (np.isfinite(last).all() or np.isnan(last).all())):
            raise ValueError("signature snapshot holds non-finite values: take it again or reset the episode")
        self._buffer[self._where] = arrays["signature"]
        self._last[:] = last
