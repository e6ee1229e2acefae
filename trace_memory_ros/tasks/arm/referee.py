"""Rules of an episode: lamp timers, what counts as a stage, when the branch is taken, when it is over."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.tasks.arm import layout
from trace_memory_ros.tasks.arm.sample import Outcome
from trace_memory_ros.tasks.arm.scenario import EXTRA_PAUSE_STATION, Scenario

STAGES = ("picked", "station_1", "station_2", "station_3", "branch", "target", "placed")
_ZONES = {
    **{f"station_{i}": np.array(xyz) for i, xyz in enumerate(layout.STATION_XYZ, start=1)},
    "branch": np.array(layout.BRANCH_XYZ),
}
_LEAVING_M = 0.02
_AFTER_RELEASE_S = 0.5
_AFTER_BRANCH_S = 8.0


class Referee:
    """Follows cup and part through one episode; `update` is called on a fixed grid of simulated time."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.lamp_red = False
        self.safeguard_stop = False
        self.cue_visible = True
        self.branch = -1
        self._stages = dict.fromkeys(STAGES, False)
        draws = scenario.draws()
        pauses = list(draws.station_pause_s)
        pauses[EXTRA_PAUSE_STATION] += scenario.extra_pause_s
        self._pause_s = dict(zip(_ZONES, [*pauses, draws.branch_pause_s], strict=True))
        self._cue_off_s = draws.cue_off_s
        self._red_until_s = -1.0
        self._stop_centre = np.zeros(3)
        self._nearest_m = np.inf
        self._branch_s = np.inf
        self._released_s = np.inf
        self._time_s = 0.0

    def update(self, time_s: float, cup: NDArray[np.float64], part: NDArray[np.float64], holding: bool) -> None:
        """One look at right cup and part positions `(3,)` in m."""
        self._time_s = time_s
        self._stages["picked"] |= holding
        if self._stages["picked"]:
            self._visit_zones(time_s, cup)
        self.lamp_red = time_s < self._red_until_s
        self._guard(cup)
        if self.cue_visible:
            self.cue_visible = self._cue_still_visible(time_s, cup, holding)
        self._follow_part(time_s, part, holding)

    def outcome(self) -> Outcome:
        """How the episode stands now."""
        timed_out = self._time_s >= self.scenario.timeout_s
        over = self._time_s >= min(self._released_s + _AFTER_RELEASE_S, self._branch_s + _AFTER_BRANCH_S)
        return Outcome(
            branch=self.branch,
            decided=self.branch >= 0,
            success=self.branch == self.scenario.cue,
            stages=dict(self._stages),
            progress=sum(self._stages.values()) / len(STAGES),
            cue_visible=self.cue_visible,
            finished=over or timed_out,
            timed_out=timed_out,
        )

    def _visit_zones(self, time_s: float, cup: NDArray[np.float64]) -> None:
        for name, centre in _ZONES.items():
            if not self._stages[name] and np.linalg.norm(cup - centre) < layout.STATION_ZONE_RADIUS:
                self._stages[name] = True
                if self._pause_s[name]:
                    self._red_until_s = time_s + self._pause_s[name]
                    self._stop_centre, self._nearest_m = centre, np.inf

    def _guard(self, cup: NDArray[np.float64]) -> None:
        distance = float(np.linalg.norm(cup - self._stop_centre))
        self._nearest_m = min(self._nearest_m, distance)
        self.safeguard_stop = self.lamp_red and distance > self._nearest_m + _LEAVING_M

    def _cue_still_visible(self, time_s: float, cup: NDArray[np.float64], holding: bool) -> bool:
        if self.scenario.task == "colour":
            return time_s < self._cue_off_s
        return not (holding and abs(cup[1]) < layout.MERGED_Y)

    def _follow_part(self, time_s: float, part: NDArray[np.float64], holding: bool) -> None:
        if self.branch < 0 and self._stages["picked"] and part[2] < layout.TARGET_HEIGHT:
            distances = [float(np.hypot(*(part[:2] - np.array(xy)))) for xy in layout.TARGET_XY]
            if min(distances) < layout.TARGET_RADIUS:
                self.branch = int(np.argmin(distances))
                self._branch_s = time_s
                self._stages["target"] = self.branch == self.scenario.cue
        if self.branch >= 0 and not holding and self._released_s == np.inf:
            self._released_s = time_s
            near = np.hypot(*(part[:2] - np.array(layout.TARGET_XY[self.scenario.cue]))) < layout.TARGET_RADIUS
            self._stages["placed"] = bool(near)
