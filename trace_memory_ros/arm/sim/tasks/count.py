"""`count`: the panel blinks one to six times, and at the branch the arm presses as often, of six times."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.events import MAX_CUES, ShowPace, draw_pace
from trace_memory_ros.arm.sim.referee import GREY, Position, Referee
from trace_memory_ros.arm.sim.seeding import generator
from trace_memory_ros.arm.sim.tasks.panel import PanelScene, PanelTask
from trace_memory_ros.arm.sim.tasks.visits import VisitReferee, VisitTask
from trace_memory_ros.arm.sim.waypoints import Waypoint

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

BEATS = MAX_CUES
"""Times at which the panel may blink, and at which the arm is asked."""
PRESS, PASS = 0, 1
BLINK = 0
"""The panel's side that a blink shows, whatever the cue."""
_EXTRA_S = 40.0


@dataclass(frozen=True)
class Beats:
    """order: of the beats; the panel blinks at the first n of them, so a twin of one more blinks once more."""

    pace: ShowPace
    order: tuple[int, ...]

    @property
    def length_s(self) -> float:
        """From the lamp's turning red to the end of the last beat, whatever the number of blinks."""
        return self.pace.length_s(BEATS)


@lru_cache(maxsize=64)
def draw_beats(task: str, seed: int) -> Beats:
    """Draw an episode's beats; nothing of them depends on the cue."""
    order = generator(task, seed, "mix").permutation(BEATS)
    return Beats(draw_pace(task, seed), tuple(int(beat) for beat in order))


class CountReferee(VisitReferee):
    """Each of the six answers is a press (left target) or a pass (right target)."""

    def __init__(self, scenario: Scenario) -> None:
        self._beats = draw_beats(scenario.task, scenario.seed)
        self._blinks = frozenset(self._beats.order[: scenario.cue + 1])
        pace = self._beats.pace
        super().__init__(
            scenario, layout.TARGET_XY, layout.START_XYZ, self._beats.length_s, pace.after_s, pace.visit_pause_s
        )

    def _show(self, cup: Position, holding: bool) -> None:
        self.cue_visible = self._time_s < self._show_s
        beat = self._beats.pace.shown(self._time_s, BEATS)
        self.panel = BLINK if beat in self._blinks else GREY


class CountTask(PanelTask, VisitTask):
    """Cue n blinks n + 1 times."""

    name = "count"
    words = ("press", "pass")
    choices = BEATS
    shown_s = 2.0
    scene_type = PanelScene

    def answers(self, scenario: Scenario) -> tuple[int, ...]:
        """Presses, then passes."""
        presses = scenario.cue + 1
        return (PRESS,) * presses + (PASS,) * (BEATS - presses)

    def extra_s(self, scenario: Scenario) -> float:
        return _EXTRA_S

    def referee(self, scenario: Scenario) -> Referee:
        return CountReferee(scenario)

    def way(self, scenario: Scenario) -> list[Waypoint]:
        return self.watch_and_visit(scenario, draw_beats(scenario.task, scenario.seed).length_s)
