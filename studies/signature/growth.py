"""How far the signature of a long episode leaves the statistics of short ones."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.signature.layout import level_slices
from trace_memory_ros.signature.normalise import RunningMoments
from trace_memory_ros.signature.streaming import StreamingSignature

Array = NDArray[np.float64]

TRAINING_TICKS = 200
TICKS = (200, 600, 2000, 6000, 20000)
TICKS_PER_MOVE = 20
EPISODES = 24
LONG_EPISODES = 4


def wander(ticks: int, dim: int, rng: np.random.Generator) -> Array:
    """An arm that moves smoothly between random poses, `(ticks, dim)`, unit spread, never far from home."""
    poses = rng.normal(size=(ticks // TICKS_PER_MOVE + 2, dim))
    move, phase = np.divmod(np.arange(ticks) / TICKS_PER_MOVE, 1.0)
    blend = (3 * phase**2 - 2 * phase**3)[:, None]
    start = move.astype(int)
    return poses[start] * (1 - blend) + poses[start + 1] * blend


def growth(dim: int, depth: int, seed: int = 0) -> dict[str, Any]:
    """RMS of each level and share of clipped coefficients after so many ticks, means over a few episodes.

    The standardiser is fitted on all ticks of other episodes of `TRAINING_TICKS`.
    """
    rng = np.random.default_rng(seed)
    moments = RunningMoments(StreamingSignature(dim, depth).size)
    for _ in range(EPISODES):
        moments.add(_prefixes(wander(TRAINING_TICKS, dim, rng), depth, range(1, TRAINING_TICKS + 1)))
    standardiser = moments.standardiser()
    long = np.stack([_prefixes(wander(TICKS[-1], dim, rng), depth, TICKS) for _ in range(LONG_EPISODES)])
    slices = level_slices(dim, depth)
    return {
        "training_ticks": TRAINING_TICKS,
        "ticks": list(TICKS),
        "level_rms": [[float(np.sqrt(np.square(long[:, t, s]).mean())) for s in slices] for t in range(len(TICKS))],
        "clipped_share": [standardiser.clipped_share(long[:, t]) for t in range(len(TICKS))],
    }


def _prefixes(path: Array, depth: int, ticks: range | tuple[int, ...]) -> Array:
    """Signatures `(len(ticks), S)` after so many states of `path`."""
    stream, kept, wanted = StreamingSignature(path.shape[1], depth), [], set(ticks)
    for count, state in enumerate(path, start=1):
        stream.update(state)
        if count in wanted:
            kept.append(stream.value())
    return np.stack(kept)
