"""What one episode looks like: everything random comes from the seed, nothing of it from the cue."""

from __future__ import annotations

import colorsys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from trace_memory_ros.arm.sim import events
from trace_memory_ros.arm.sim.fixtures import DISTRACTOR_SHAPES
from trace_memory_ros.arm.sim.names import JOINT_NAMES, TASK_NAMES
from trace_memory_ros.arm.sim.seeding import FloatArray, generator
from trace_memory_ros.arm.sim.tasks.table import task_of

BASE_TIMEOUT_S = 45.0
LAP_TIMEOUT_S = 30.0
MAX_LAPS = 32
NOISE_KEEP = 0.5


@dataclass(frozen=True)
class Scenario:
    """One episode's parameters; scenarios that differ in nothing but the cue are counterfactual twins.

    cue: which of the task's `choices`; where there is one decision, its answer. extra_pause_s: added to the red lamp at
    the second station (first lap), long after the cue is gone. noise_std_rad: executed-action noise for demonstrations;
    None draws it from the seed. laps: times round the shared segment before the branch. decoys: cue-like events after
    the cue. cues: all cues in order, `cue` first; only `sequence` has more than one. overwrite: new cues, shown at the
    second station, that replace `cues` (`sequence`). cue_stays: the panel of `colour` stays lit to the end, nothing has
    to be remembered. swaps: how often two of the `cups` change places, 0 to 4; None for 1 to 4 by seed. Raises
    ValueError for a value outside its range.
    """

    task: str
    seed: int
    cue: int
    extra_pause_s: float = 0.0
    noise_std_rad: float | None = None
    laps: int = 1
    decoys: int = 0
    cues: tuple[int, ...] = ()
    overwrite: tuple[int, ...] | None = None
    cue_stays: bool = False
    swaps: int | None = None

    def __post_init__(self) -> None:
        if self.task not in TASK_NAMES:
            raise ValueError(f"Scenario.task is {self.task!r}: choose one of {', '.join(TASK_NAMES)}")
        choices = task_of(self.task).choices
        if self.cue not in range(choices):
            raise ValueError(f"Scenario.cue is {self.cue!r}: use 0 to {choices - 1} for task {self.task!r}")
        if self.seed < 0:
            raise ValueError(f"Scenario.seed is {self.seed}: use a number >= 0")
        if not (np.isfinite(self.extra_pause_s) and self.extra_pause_s >= 0):
            raise ValueError(f"Scenario.extra_pause_s is {self.extra_pause_s}: use seconds >= 0")
        if self.noise_std_rad is not None and not 0 <= self.noise_std_rad <= 0.1:
            raise ValueError(f"Scenario.noise_std_rad is {self.noise_std_rad}: use radians in 0..0.1")
        if not (isinstance(self.laps, int) and 1 <= self.laps <= MAX_LAPS):
            raise ValueError(f"Scenario.laps is {self.laps!r}: use a whole number in 1..{MAX_LAPS}")
        most = events.DECOYS_PER_LAP * self.laps
        if not (isinstance(self.decoys, int) and 0 <= self.decoys <= most):
            raise ValueError(f"Scenario.decoys is {self.decoys!r}: use a whole number in 0..{most}, or more laps")
        if self.cue_stays and self.task != "colour":
            raise ValueError(f"Scenario.cue_stays: only task 'colour' has a panel that can stay lit, not {self.task!r}")
        if self.swaps is not None and (self.task != "cups" or self.swaps not in range(events.MOST_SWAPS + 1)):
            raise ValueError(f"Scenario.swaps is {self.swaps!r}: use 0 to {events.MOST_SWAPS}, for task 'cups' alone")
        self._check_cues()

    def _check_cues(self) -> None:
        cues = tuple(self.cues) or (self.cue,)
        object.__setattr__(self, "cues", cues)
        choices = task_of(self.task).choices
        if not set(cues) <= set(range(choices)) or len(cues) > events.MAX_CUES:
            raise ValueError(f"Scenario.cues is {cues}: use 1 to {events.MAX_CUES} cues, each 0 to {choices - 1}")
        if cues[0] != self.cue:
            raise ValueError(f"Scenario.cues is {cues} but cue is {self.cue}: the first of cues must equal cue")
        if self.task != "sequence" and len(cues) > 1:
            raise ValueError(f"Scenario.cues is {cues}: task {self.task!r} has one cue, only 'sequence' has more")
        if self.overwrite is None:
            return
        object.__setattr__(self, "overwrite", tuple(self.overwrite))
        if self.task != "sequence":
            raise ValueError(f"Scenario.overwrite is {self.overwrite}: only task 'sequence' has it, not {self.task!r}")
        if not set(self.overwrite) <= {0, 1} or len(self.overwrite) != len(cues):
            raise ValueError(f"Scenario.overwrite is {self.overwrite}: use {len(cues)} of 0 and 1, as many as cues")

    @property
    def answers(self) -> tuple[int, ...]:
        """What is right at each decision, in order."""
        return task_of(self.task).answers(self)

    @property
    def timeout_s(self) -> float:
        """Simulated seconds after which an unfinished episode ends."""
        extra_s = task_of(self.task).extra_s(self)
        return BASE_TIMEOUT_S + self.extra_pause_s + LAP_TIMEOUT_S * (self.laps - 1) + extra_s

    def twins(self) -> tuple[Scenario, ...]:
        """The same episode with each cue in turn, its own among them."""
        task = task_of(self.task)
        return tuple(task.with_cue(self, cue) for cue in range(task.choices))

    def counterfactual(self) -> Scenario:
        """The same episode with the next cue, the other way where there are two."""
        twins = self.twins()
        return twins[(self.cue + 1) % len(twins)]

    def draws(self) -> Draws:
        """Everything random of this episode, from task and seed alone."""
        return draw(self.task, self.seed)

    def pauses_s(self) -> FloatArray:
        """Seconds of red lamp `(laps, stations)`; 0: stays green."""
        pauses = np.concatenate([[self.draws().station_pause_s], events.later_pauses(self.task, self.seed, self.laps)])
        pauses[0, events.LONG_PAUSE_STATION] += self.extra_pause_s
        return pauses

    def decoy_events(self) -> tuple[events.Decoy, ...]:
        """The decoys of this episode, from task, seed and laps alone."""
        return events.draw_decoys(self.task, self.seed, self.laps, self.decoys)

    def action_noise(self, ticks: int) -> FloatArray:
        """Noise `(ticks, 14)` rad to add to executed joint targets while labels stay clean (DART)."""
        std = self.draws().noise_std_rad if self.noise_std_rad is None else self.noise_std_rad
        rng = generator(self.task, self.seed, "noise")
        white = rng.standard_normal((ticks, len(JOINT_NAMES)))
        for tick in range(1, ticks):
            white[tick] = NOISE_KEEP * white[tick - 1] + np.sqrt(1 - NOISE_KEEP**2) * white[tick]
        return std * white


def scenarios(task: str, first_seed: int, **changes: Any) -> Iterator[Scenario]:
    """Without end, all cues of `first_seed` first, then those of the next seed."""
    for seed in count(first_seed):
        for cue in range(task_of(task).choices):
            yield Scenario(task, seed, cue, **changes)


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
    rng = generator(task, seed, "episode")
    pauses = events.draw_pauses(rng)
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
