"""Made-up episodes: a common way, then one of several, once or again and again; pictures of ten numbers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.recorded import Recorded

PERIOD_MS = 100
COMMON, PAUSE, LEG = 30, 6, 16
JOINTS = 4
LEAST_STATE, LEAST_ACTION = np.full(JOINTS, 0.05), np.full(JOINTS, 0.02)
FORTH = np.array([1.5, 0.0, 0.0])


def away(ways: int) -> NDArray[np.float64]:
    """Directions `(ways, 3)` all round the common way."""
    turned = 0.3 + 2 * np.pi * np.arange(ways) / ways
    return np.stack([0 * turned, np.cos(turned), np.sin(turned)], axis=1)


def episode(
    seed: int, answers: Sequence[int], ways: int = 2, back: bool = False, shows: bool = False
) -> tuple[Recorded, list[int]]:
    """A common way with a pause, then for each answer a leg away; the ticks at which the legs begin.

    From a leg's end it goes on to the next place, from the last no further, or `back` to where it began while a fourth
    joint turns on and on.
    shows: the picture always shows the first answer.
    """
    rng = np.random.default_rng(seed)
    place = np.array([2.0, 0.3, 0.0])
    aims, begins = [*_to(np.zeros(3), place, rng)], []
    for answer in answers:
        begins.append(sum(map(len, aims)))
        far = 1.0 if back or len(begins) < len(answers) else 2.0
        out = place + np.linspace(0, far, round(LEG * far))[1:, None] * away(ways)[answer]
        aims.append(out)
        if back:
            aims += [out[::-1], _still(place, rng)]
        elif len(begins) < len(answers):
            place = place + FORTH
            aims += _to(out[-1], place, rng, COMMON * 2 // 3)
    turned = 0.02 * back * np.arange(sum(map(len, aims)))[:, None]
    aim = np.concatenate([np.concatenate(aims), turned], axis=1) + 0.02 * rng.normal(size=JOINTS)
    ticks = len(aim)
    state = np.roll(aim, 1, axis=0) + 0.005 * rng.normal(size=aim.shape)
    state[0] = aim[0]
    pictures = rng.normal(size=10) + 0.1 * rng.normal(size=(ticks, 10))
    pictures[:, :2] += state[:, :2]
    if shows:
        pictures[:, 9] = 5.0 * answers[0]
    recorded = Recorded(
        str(seed), PERIOD_MS, pictures.astype(np.float32), state, aim.astype(np.float32), np.ones(ticks, dtype=bool)
    )
    return recorded, begins


def wandering(seed: int) -> Recorded:
    """A smooth way through the same places, more or less far to each side: nothing is chosen."""
    rng = np.random.default_rng(seed)
    along = np.linspace(0, 1, 50 + int(rng.integers(-6, 7)))[:, None]
    waves = np.sin(np.pi * along * np.arange(1, JOINTS + 1))
    aim = 2 * along + waves * (1 + 0.3 * rng.normal(size=JOINTS)) + 0.3 * rng.normal(size=JOINTS) * along
    state = aim + 0.005 * rng.normal(size=aim.shape)
    pictures = 0.3 * rng.normal(size=10) + 0.1 * rng.normal(size=(len(aim), 10))
    pictures[:, :2] += state[:, :2]
    return Recorded(
        str(seed), PERIOD_MS, pictures.astype(np.float32), state, aim.astype(np.float32), np.ones(len(aim), dtype=bool)
    )


def cut(recorded: Recorded, ticks: slice) -> Recorded:
    """A stretch of an episode."""
    parts = {name: getattr(recorded, name)[ticks] for name in ("pictures", "state", "actions", "usable")}
    return replace(recorded, **parts)


def _to(
    begin: NDArray[np.float64], end: NDArray[np.float64], rng: np.random.Generator, ticks: int = COMMON
) -> list[NDArray[np.float64]]:
    """An arch to a place, and a pause there."""
    along = np.linspace(0, 1, ticks + int(rng.integers(-4, 5)))[:, None]
    return [begin + along * (end - begin) + 0.3 * np.sin(np.pi * along) * np.array([0, 0, 1]), _still(end, rng)]


def _still(place: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.repeat(place[None], PAUSE + int(rng.integers(0, 4)), axis=0)
