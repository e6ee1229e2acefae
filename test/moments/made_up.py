"""Made-up episodes: a common way, then one of several, in three joints; pictures of ten numbers."""

from dataclasses import replace

import numpy as np

from trace_memory_ros.moments.recorded import Recorded

PERIOD_MS = 100
COMMON, PAUSE, LEG = 30, 6, 16
LEAST_STATE, LEAST_ACTION = np.full(3, 0.05), np.full(3, 0.02)
AWAY = np.array([[0.0, 1.0, 0.2], [0.0, -1.0, 0.2], [0.0, 0.0, 1.2]])


def episode(seed: int, answer: int, shows: bool = False) -> tuple[Recorded, int]:
    """A common way with a pause, then a leg away by the answer; the tick at which it begins.

    shows: the picture always shows the answer.
    """
    rng = np.random.default_rng(seed)
    length = COMMON + int(rng.integers(-4, 5))
    along = np.linspace(0, 1, length)[:, None]
    aims = [np.concatenate([2 * along, np.sin(3 * along), 0 * along], axis=1)]
    aims.append(np.repeat(aims[0][-1:], PAUSE + int(rng.integers(0, 4)), axis=0))
    begin = sum(map(len, aims))
    aims.append(aims[0][-1] + np.linspace(0, 2, 2 * LEG)[1:, None] * AWAY[answer])
    aim = np.concatenate(aims) + 0.02 * rng.normal(size=3)
    ticks = len(aim)
    state = np.roll(aim, 1, axis=0) + 0.005 * rng.normal(size=aim.shape)
    state[0] = aim[0]
    pictures = rng.normal(size=10) + 0.1 * rng.normal(size=(ticks, 10))
    pictures[:, :2] += state[:, :2]
    if shows:
        pictures[:, 9] = 5.0 * answer
    recorded = Recorded(
        str(seed), PERIOD_MS, pictures.astype(np.float32), state, aim.astype(np.float32), np.ones(ticks, dtype=bool)
    )
    return recorded, begin


def cut(recorded: Recorded, ticks: slice) -> Recorded:
    """A stretch of an episode."""
    parts = {name: getattr(recorded, name)[ticks] for name in ("pictures", "state", "actions", "usable")}
    return replace(recorded, **parts)
