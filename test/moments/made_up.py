"""Made-up episodes: a common way, then one of several, in three joints; pictures of ten numbers."""

from dataclasses import replace

import numpy as np

from trace_memory_ros.moments.recorded import Recorded

PERIOD_MS = 100
COMMON, PAUSE, LEG = 30, 6, 16
LEAST_STATE, LEAST_ACTION = np.full(3, 0.05), np.full(3, 0.02)
AWAY = np.array([[0.0, 1.0, 0.2], [0.0, -1.0, 0.2], [0.0, 0.0, 1.2]])


def episode(seed: int, answers: tuple[int, ...], shows: bool = False) -> tuple[Recorded, list[int]]:
    """A common way with a pause, then for each answer a leg away and back; the ticks at which the legs begin.

    shows: the picture always shows the answer that is next.
    """
    rng = np.random.default_rng(seed)
    length = COMMON + int(rng.integers(-4, 5))
    along = np.linspace(0, 1, length)[:, None]
    aims = [np.concatenate([2 * along, np.sin(3 * along), 0 * along], axis=1)]
    aims.append(np.repeat(aims[0][-1:], PAUSE + int(rng.integers(0, 4)), axis=0))
    begins = []
    for answer in answers:
        begins.append(sum(map(len, aims)))
        out = aims[0][-1] + np.linspace(0, 1, LEG)[1:, None] * AWAY[answer]
        aims += [out, out[::-1], np.repeat(aims[0][-1:], PAUSE, axis=0)]
    aim = np.concatenate(aims) + 0.02 * rng.normal(size=3)
    ticks = len(aim)
    state = np.roll(aim, 1, axis=0) + 0.005 * rng.normal(size=aim.shape)
    state[0] = aim[0]
    pictures = rng.normal(size=10) + 0.1 * rng.normal(size=(ticks, 10))
    pictures[:, :2] += state[:, :2]
    nexts = (
        [min(np.searchsorted(begins, tick, side="left"), len(answers) - 1) for tick in range(ticks)] if answers else []
    )
    if shows:
        pictures[:, 9] = [5.0 * answers[number] for number in nexts]
    recorded = Recorded(
        str(seed), PERIOD_MS, pictures.astype(np.float32), state, aim.astype(np.float32), np.ones(ticks, dtype=bool)
    )
    return recorded, begins


def cut(recorded: Recorded, ticks: slice) -> Recorded:
    """A stretch of an episode."""
    parts = {name: getattr(recorded, name)[ticks] for name in ("pictures", "state", "actions", "usable")}
    return replace(recorded, **parts)
