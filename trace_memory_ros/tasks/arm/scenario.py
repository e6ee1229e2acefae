"""What one episode looks like: everything random comes from the seed, nothing of it from the cue."""

from __future__ import annotations

import colorsys
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.tasks.arm.model import DISTRACTOR_SHAPES
from trace_memory_ros.tasks.arm.names import JOINT_NAMES, TASK_NAMES

FloatArray = NDArray[np.float64]

STATIONS = 3
EXTRA_PAUSE_STATION = 1
BASE_TIMEOUT_S = 45.0
NOISE_KEEP = 0.5


@dataclass(frozen=True)
class Scenario:
    """One episode's parameters; `(seed, cue=0)` and `(seed, cue=1)` are a counterfactual pair.

    cue: 0 left, 1 right; equals the correct branch. extra_pause_s: added to the red lamp at the second station, long
    after the cue is gone. noise_std_rad: executed-action noise for demonstrations; None draws it from the seed. Raises
    ValueError for a value outside its range.
    """

    task: str
    seed: int
    cue: int
    extra_pause_s: float = 0.0
    noise_std_rad: float | None = None

    def __post_init__(self) -> None:
        if self.task not in TASK_NAMES:
            raise ValueError(f"Scenario.task is {self.task!r}: choose one of {', '.join(TASK_NAMES)}")
        if self.cue not in (0, 1):
            raise ValueError(f"Scenario.cue is {self.cue!r}: use 0 (left) or 1 (right)")
        if self.seed < 0:
            raise ValueError(f"Scenario.seed is {self.seed}: use a number >= 0")
        if not (np.isfinite(self.extra_pause_s) and self.extra_pause_s >= 0):
            raise ValueError(f"Scenario.extra_pause_s is {self.extra_pause_s}: use seconds >= 0")
        if self.noise_std_rad is not None and not 0 <= self.noise_std_rad <= 0.1:
            raise ValueError(f"Scenario.noise_std_rad is {self.noise_std_rad}: use radians in 0..0.1")

    @property
    def timeout_s(self) -> float:
        """Simulated seconds after which an unfinished episode ends."""
        return BASE_TIMEOUT_S + self.extra_pause_s

    def counterfactual(self) -> Scenario:
        """The same episode with the other cue."""
        return replace(self, cue=1 - self.cue)

    def draws(self) -> Draws:
        """Everything random of this episode, from task and seed alone."""
        return draw(self.task, self.seed)

    def action_noise(self, ticks: int) -> FloatArray:
        """Noise `(ticks, 14)` rad to add to executed joint targets while labels stay clean (DART)."""
        std = self.draws().noise_std_rad if self.noise_std_rad is None else self.noise_std_rad
        rng = _generator(self.task, self.seed, "noise")
        white = rng.standard_normal((ticks, len(JOINT_NAMES)))
        for tick in range(1, ticks):
            white[tick] = NOISE_KEEP * white[tick - 1] + np.sqrt(1 - NOISE_KEEP**2) * white[tick]
        return std * white


@dataclass(frozen=True)
class Distractor:
    """A static object: table position and half sizes in metres, colour 0..1."""

    xy: tuple[float, float]
    size: tuple[float, float, float]
    rgba: tuple[float, float, float, float]


@dataclass(frozen=True)
class Draws:
    """Random quantities of an episode; pauses are seconds of red lamp (0: stays green), offsets metres and radians."""

    cue_off_s: float
    speed: float
    station_pause_s: tuple[float, ...]
    branch_pause_s: float
    part_offset: FloatArray
    part_yaw: float
    start_offset: FloatArray
    waypoint_seed: int
    noise_std_rad: float
    distractors: tuple[Distractor, ...]
    light_direction: FloatArray
    light_diffuse: FloatArray
    light_ambient: FloatArray


def draw(task: str, seed: int) -> Draws:
    """Draw an episode's random quantities."""
    rng = _generator(task, seed, "episode")
    pauses = rng.uniform(0.3, 1.5, STATIONS)
    green = rng.random(STATIONS) < 0.5
    green[EXTRA_PAUSE_STATION] = False
    pauses[green] = 0.0
    # A pause as short as the others teaches a policy to stop, not to stay.
    if rng.random() < 0.3:
        pauses[EXTRA_PAUSE_STATION] = rng.uniform(1.5, 4.5)
    return Draws(
        cue_off_s=float(rng.uniform(2.0, 2.8)),
        speed=float(rng.uniform(0.9, 1.07)),
        station_pause_s=tuple(float(p) for p in pauses),
        branch_pause_s=float(rng.uniform(1.2, 1.8)),
        part_offset=rng.uniform(-0.015, 0.015, 2),
        part_yaw=float(rng.uniform(-0.4, 0.4)),
        start_offset=rng.uniform(-0.025, 0.025, len(JOINT_NAMES)),
        waypoint_seed=int(rng.integers(2**31)),
        noise_std_rad=float(rng.uniform(0.01, 0.03)),
        distractors=_draw_distractors(rng),
        light_direction=np.array([*rng.uniform(-0.5, 0.5, 2), -1.0]),
        light_diffuse=rng.uniform(0.2, 0.4) * rng.uniform(0.9, 1.0, 3),
        light_ambient=rng.uniform(0.34, 0.46) * rng.uniform(0.95, 1.0, 3),
    )


def _draw_distractors(rng: np.random.Generator) -> tuple[Distractor, ...]:
    """One object per slot along the table's left edge, its far left corner and its right edge, in muted colours."""
    slots = ((0.30, 0.57), (0.55, 0.57), (0.80, 0.55), (1.0, 0.35), (1.02, 0.55), (0.66, -0.58))
    objects = []
    for shape, (x, y) in zip(DISTRACTOR_SHAPES, slots, strict=True):
        hue = rng.choice([0.08, 0.47, 0.52, 0.20]) + rng.uniform(-0.02, 0.02)
        rgb = colorsys.hsv_to_rgb(hue, rng.uniform(0.2, 0.45), rng.uniform(0.35, 0.7))
        half = rng.uniform(0.022, 0.04, 3)
        if shape == "sphere":
            half[:] = half[0]
        if shape == "cylinder":
            half[2] = half[1]
        xy = (x + rng.uniform(-0.06, 0.06), y + rng.uniform(-0.02, 0.02))
        objects.append(Distractor(xy, (half[0], half[1], half[2]), (*rgb, 1.0)))
    return tuple(objects)


def _generator(task: str, seed: int, purpose: str) -> np.random.Generator:
    purposes = ("episode", "noise")
    return np.random.default_rng([seed, TASK_NAMES.index(task), purposes.index(purpose)])
