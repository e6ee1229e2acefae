"""Rules of an episode: lamp timers, what counts as a stage, when the branch is taken, when it is over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.events import Decoy
from trace_memory_ros.arm.sim.sample import Outcome

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

Position = NDArray[np.float64]

STATION_NAMES = tuple(f"station_{i}" for i in range(1, len(layout.STATION_XYZ) + 1))
GREY = -1
ZONES = {
    **{name: np.array(xyz) for name, xyz in zip(STATION_NAMES, layout.STATION_XYZ, strict=True)},
    "branch": np.array(layout.BRANCH_XYZ),
}


class Referee(ABC):
    """Follows cup and part through one episode; `update` is called on a fixed grid of simulated time.

    lamp_red, safeguard_stop, cue_visible, panel (0 or 1 lit, GREY) and decoy (None: dark) are what the cell shows now.
    """

    leaving_m = 0.02
    """How far the right cup may draw back from where it waits at red before the safeguard stop holds both arms."""

    def __init__(self, scenario: Scenario, stages: tuple[str, ...]) -> None:
        self.scenario = scenario
        self.lamp_red = False
        self.safeguard_stop = False
        self.cue_visible = True
        self.panel = GREY
        self.decoy: Decoy | None = None
        self.visits: list[int] = []
        self._stages = dict.fromkeys(stages, False)
        self._pauses_s = scenario.pauses_s()
        self._decoys = scenario.decoy_events()
        self._decoy_times: list[tuple[float, Decoy]] = []
        self._lap = 0
        self._ahead = self._zones_of_lap()
        self._red_until_s = -1.0
        self._stop_centre = np.zeros(3)
        self._nearest_m = np.inf
        self._time_s = 0.0

    @property
    def showing(self) -> bool:
        """Whether the cue, or what only its context tells from it, is shown now."""
        return self.cue_visible

    def update(self, time_s: float, cup: Position, part: Position, holding: bool) -> None:
        """One look at right cup and part positions `(3,)` in m."""
        self._time_s = time_s
        self._follow(cup, part, holding)
        self.lamp_red = time_s < self._red_until_s
        self._guard(cup)
        self.decoy = next((d for start_s, d in self._decoy_times if 0 <= time_s - start_s < d.length_s), None)
        self._show(cup, holding)

    def outcome(self) -> Outcome:
        """How the episode stands now."""
        timed_out = self._time_s >= self.scenario.timeout_s
        answers = self.scenario.answers
        return Outcome(
            branch=self.visits[0] if self.visits else -1,
            decided=len(self.visits) == len(answers),
            success=tuple(self.visits) == answers,
            stages=dict(self._stages),
            progress=sum(self._stages.values()) / len(self._stages),
            cue_visible=self.cue_visible,
            finished=self._over() or timed_out,
            timed_out=timed_out,
            visits=tuple(self.visits),
            visits_right=sum(visit == answer for visit, answer in zip(self.visits, answers, strict=False)),
        )

    @abstractmethod
    def _follow(self, cup: Position, part: Position, holding: bool) -> None:
        """Stages that arm and part pass, and the lamp that the arm turns red."""

    @abstractmethod
    def _show(self, cup: Position, holding: bool) -> None:
        """Set `panel` and `cue_visible`."""

    @abstractmethod
    def _over(self) -> bool:
        """Nothing more is to come."""

    @abstractmethod
    def _branch_pause_s(self) -> float:
        """Seconds of red lamp at this arrival at the branch."""

    def _station_red_s(self, station: int) -> float:
        return float(self._pauses_s[self._lap, station])

    def _zones_of_lap(self) -> list[str]:
        return [*STATION_NAMES, *(["branch"] if self._lap == self.scenario.laps - 1 else [])]

    def _visit_zones(self, cup: Position) -> None:
        for name in tuple(self._ahead):
            if self._counts(name) and np.linalg.norm(cup - ZONES[name]) < layout.STATION_ZONE_RADIUS:
                self._ahead.remove(name)
                self._stages[name] = True
                self._arrive(name)
        if not self._ahead and self._lap < self.scenario.laps - 1:
            self._lap += 1
            self._ahead = self._zones_of_lap()

    def _counts(self, name: str) -> bool:
        """Whether a zone that has not been reached may be reached now."""
        return True

    def _arrive(self, name: str) -> None:
        if name == "branch":
            self._turn_red(ZONES[name], self._branch_pause_s())
            return
        station = STATION_NAMES.index(name)
        self._turn_red(ZONES[name], self._station_red_s(station))
        here = [d for d in self._decoys if (d.lap, d.station) == (self._lap, station)]
        after_s = self._time_s + self._decoys_after_s(station)
        self._decoy_times += [(after_s + decoy.delay_s, decoy) for decoy in here]

    def _decoys_after_s(self, station: int) -> float:
        return 0.0

    def _turn_red(self, centre: Position, pause_s: float) -> None:
        if pause_s:
            self._red_until_s = self._time_s + pause_s
            self._stop_centre, self._nearest_m = centre, np.inf

    def _guard(self, cup: Position) -> None:
        distance = float(np.linalg.norm(cup - self._stop_centre))
        self._nearest_m = min(self._nearest_m, distance)
        self.safeguard_stop = self.lamp_red and distance > self._nearest_m + self.leaving_m
