"""What a task is: what stands on the table, what is shown when, where the expert goes, and the rules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING

import mujoco

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.referee import Referee
from trace_memory_ros.arm.sim.waypoints import Waypoint

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario


class Scene:
    """What a task shows in its cell, by changing a model's colours and poses; one per simulator."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model

    def place(self, data: mujoco.MjData, scenario: Scenario) -> None:
        """Put everything where this episode begins."""

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        """Let the cell look as the referee says; asked at every look, and once at the start."""

    def paint(self, name: str, rgba: fixtures.Rgba) -> None:
        """Give a geom a colour."""
        self.model.geom_rgba[self.model.geom(name).id] = rgba


class Task(ABC):
    """One kind of episode; its scenarios say what varies.

    name: as of `TASK_NAMES`. words: what the answers are called; an answer's number is its place here, and that of the
    target that it calls for. targets_xy: where these are, m. choices: values of `Scenario.cue`, so many counterfactual
    twins has a scene. left_turns: of the left arm's helix on the expert's way. brief: what is shown is shown too
    briefly for a coarse update clock. shown_s: when a picture of it can be taken for people.
    """

    name: str
    words: tuple[str, ...] = ("left", "right")
    targets_xy: tuple[fixtures.XY, ...] = layout.TARGET_XY
    choices = 2
    left_turns = 2.6
    brief = False
    shown_s = 0.0

    def answers(self, scenario: Scenario) -> tuple[int, ...]:
        """What is right at each decision, in order."""
        return (scenario.cue,)

    def with_cue(self, scenario: Scenario, cue: int) -> Scenario:
        """The scenario's twin of that cue."""
        return replace(scenario, cue=cue, cues=(cue,))

    def extra_s(self, scenario: Scenario) -> float:
        """Simulated seconds that an episode may take beyond what laps and pauses ask for."""
        return 0.0

    @property
    @abstractmethod
    def stages(self) -> tuple[str, ...]:
        """Stages of a plain episode, in order."""

    @abstractmethod
    def way(self, scenario: Scenario) -> list[Waypoint]:
        """The expert's way; up to the branch it depends on the cue only where that is seen by the way itself."""

    @abstractmethod
    def referee(self, scenario: Scenario) -> Referee:
        """Rules of one episode."""

    @abstractmethod
    def scene(self, model: mujoco.MjModel) -> Scene:
        """What the cell of this model shows."""

    def part_xy(self, scenario: Scenario) -> fixtures.XY:
        """Where the part lies at the start, m, but for its random offset."""
        return layout.TRAY_XY

    def assets(self) -> str:
        """MJCF of what the fixtures are made of."""
        return ""

    def furniture(self) -> list[str]:
        """MJCF of what only this task has on its table."""
        return [fixtures.tray("tray", layout.TRAY_XY)]

    def targets(self) -> list[str]:
        """MJCF of what marks the targets."""
        return fixtures.targets(self.words, self.targets_xy)

    def decoy(self) -> str:
        """MJCF of what looks like a cue and is none, hidden."""
        return ""

    def fixtures(self) -> str:
        """MJCF of everything fixed to the table, with placeholders for distractors."""
        parts = [*self.furniture(), fixtures.lamp(), *self.targets()]
        return "\n    ".join([*parts, *fixtures.stations(), *fixtures.distractors(), self.decoy()])
