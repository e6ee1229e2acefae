"""`when`: the panel lights up several times, early and late; the frame around it says which time counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.events import STATIONS
from trace_memory_ros.arm.sim.referee import GREY, STATION_NAMES, Position, Referee
from trace_memory_ros.arm.sim.seeding import generator
from trace_memory_ros.arm.sim.tasks.carry import CarryReferee, CarryTask
from trace_memory_ros.arm.sim.tasks.panel import PanelScene, PanelTask

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

START = -1
"""In place of a station: from the beginning of the episode."""
VOIDS = (2, 4)
"""Look-alikes of the first lap, least and most; those of each later lap are the least."""
COUNTS_RGBA = (0.94, 0.94, 0.90, 1.0)
VOID_RGBA = (0.75, 0.04, 0.45, 1.0)
_DARK_RGBA = (0.20, 0.23, 0.28, 1.0)
_GREY = fixtures.glow(fixtures.GREY_RGBA)
_FRAME_M = (0.035, 0.07)
# Seconds after the start, and after leaving a station, for the first and the second light of a leg.
_AT_START_S = 0.8
_ON_LEG_S = (0.2, 2.1)


@dataclass(frozen=True)
class Light:
    """The panel is lit for `length_s` from `delay_s` after the lamp of a station has turned green, or after START.

    lap, station: from 0. side: its colour, None for the one that counts and shows the cue.
    """

    lap: int
    station: int
    delay_s: float
    length_s: float
    side: int | None


@lru_cache(maxsize=64)
def draw_lights(task: str, seed: int, laps: int) -> tuple[Light, ...]:
    """Draw an episode's lights: one that counts, at any time of the first lap, and look-alikes. The first lap's do not
    depend on `laps`, and none on the cue.
    """
    rng = generator(task, seed, "show")
    first = [(0, START, _AT_START_S), *_slots(0)]
    chosen = rng.permutation(len(first))[: 1 + int(rng.integers(VOIDS[0], VOIDS[1] + 1))]
    lights = [_light(rng, first[slot], counts=place == 0) for place, slot in enumerate(chosen)]
    for lap in range(1, laps):
        later = _slots(lap)
        lights += [_light(rng, later[slot], counts=False) for slot in rng.permutation(len(later))[: VOIDS[0]]]
    return tuple(lights)


def _slots(lap: int) -> list[tuple[int, int, float]]:
    return [(lap, station, start_s) for station in range(STATIONS) for start_s in _ON_LEG_S]


def _light(rng: np.random.Generator, slot: tuple[int, int, float], counts: bool) -> Light:
    lap, station, start_s = slot
    delay_s, length_s = start_s + float(rng.uniform(0, 0.6)), float(rng.uniform(1.0, 1.25))
    side = int(rng.integers(2))
    return Light(lap, station, delay_s, length_s, None if counts else side)


class WhenReferee(CarryReferee):
    """The panel lights up on the way. counts: whether the light that shows now does; None where none shows."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.cue_visible = False
        self.counts: bool | None = None
        self._lights = draw_lights(scenario.task, scenario.seed, scenario.laps)
        self._times = [(light.delay_s, light) for light in self._lights if light.station == START]

    @property
    def showing(self) -> bool:
        """A look-alike, too, is shown briefly."""
        return self.counts is not None

    def _arrive(self, name: str) -> None:
        super()._arrive(name)
        if name in STATION_NAMES:
            station = STATION_NAMES.index(name)
            # Nothing is written while the arms wait.
            after_s = self._time_s + self._station_red_s(station)
            here = [light for light in self._lights if (light.lap, light.station) == (self._lap, station)]
            self._times += [(after_s + light.delay_s, light) for light in here]

    def _show(self, cup: Position, holding: bool) -> None:
        lit = [light for start_s, light in self._times if 0 <= self._time_s - start_s < light.length_s]
        self.counts = lit[0].side is None if lit else None
        self.cue_visible = self.counts is True
        self.panel = GREY
        if lit:
            self.panel = self.scenario.cue if lit[0].side is None else lit[0].side


class WhenScene(PanelScene):
    """The frame is white around a light that counts, purple around one that does not."""

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        assert isinstance(referee, WhenReferee)
        super().show(data, referee)
        colours = {None: _DARK_RGBA, True: COUNTS_RGBA, False: VOID_RGBA}
        self.paint("panel_frame", colours[referee.counts])


class WhenTask(PanelTask, CarryTask):
    """Two twins differ in the colour of the one light that counts."""

    name = "when"
    brief = True
    scene_type = WhenScene

    def referee(self, scenario: Scenario) -> Referee:
        return WhenReferee(scenario)

    def furniture(self) -> list[str]:
        (x, y), (dx, dy), (fx, fy) = layout.PANEL_XY, self.panel_half, _FRAME_M
        frame = (
            f'<geom name="panel_frame" type="box" pos="{x} {y} 0.004" size="{dx + fx} {dy + fy} 0.004"'
            f" {fixtures.glow(_DARK_RGBA)}/>"
        )
        panel = f'<geom name="panel" type="box" pos="{x} {y} 0.009" size="{dx} {dy} 0.003" {_GREY}/>'
        return [fixtures.tray("tray", layout.TRAY_XY), frame, panel]
