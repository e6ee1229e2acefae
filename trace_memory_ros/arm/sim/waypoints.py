"""Where the expert goes: the right cup's waypoints of each task and how far the left arm has turned there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.scenario import Scenario

_TOP = 2 * layout.PART_HALF
_LAP_SPEED = 0.048
_RETURN_SPEED = 0.075
_STATION_TURNS = (0.8, -0.3, 0.8)

# `sequence`, in shares of the left arm's way; a share of 1 / SEQUENCE_TURNS is one turn of its helix.
SEQUENCE_TURNS = 7.4
_TURN = 1 / SEQUENCE_TURNS
_SHOW_SPEED = 0.09
_LEG_SPEED = 0.06
_LEG = 0.45 * _TURN
_STATION_2 = 4.6 * _TURN
_VISIT = 0.3 * _TURN
_VISIT_HEIGHT = 0.10


@dataclass(frozen=True)
class Waypoint:
    """Right cup in m, right wrist turn in rad, how far the left arm has turned (0..1), speed there in rad per tick.

    pinned: the corner is not rounded. stop: where the expert waits at a red lamp. straight: the left arm goes there
    directly, not along its helix. lap: from 0.
    """

    name: str
    cup_xyz: tuple[float, float, float]
    turn: float
    left: float
    speed: float
    pinned: bool = True
    stop: bool = False
    straight: bool = False
    lap: int = 0


def waypoints(scenario: Scenario) -> list[Waypoint]:
    """The scenario's way; it depends on the cues after the branch, in `origin` also before the merge, between never."""
    if scenario.task == "sequence":
        return _sequence(scenario)
    return _carry_part(scenario)


def left_turns(task: str) -> float:
    """Turns of the left arm's helix."""
    return SEQUENCE_TURNS if task == "sequence" else 2.6


def _carry_part(scenario: Scenario) -> list[Waypoint]:
    px, py = layout.BIN_XY[scenario.cue] if scenario.task == "origin" else layout.TRAY_XY
    tx, ty = layout.TARGET_XY[scenario.cue]
    start = [
        Waypoint("start", layout.START_XYZ, 0.0, 0.0, 0.07),
        Waypoint("above", (px - 0.01, py, _TOP + 0.06), 0.0, 0.03, 0.07, pinned=False),
        Waypoint("pick", (px, py, _TOP + 0.005), 0.0, 0.06, 0.07),
        Waypoint("lift", (0.5 * px + 0.5 * layout.MERGE_XYZ[0], 0.5 * py, 0.18), 0.0, 0.09, 0.075, pinned=False),
    ]
    lap = [
        Waypoint("merge", layout.MERGE_XYZ, 0.0, 0.12, 0.075),
        *(_station(i, left, _LAP_SPEED) for i, left in enumerate((0.32, 0.52, 0.72))),
    ]
    end = [
        Waypoint("branch", layout.BRANCH_XYZ, 0.0, 0.90, _LAP_SPEED, stop=True),
        Waypoint("over", (tx, ty, 0.20), 0.0, 0.94, 0.06, pinned=False),
        Waypoint("place", (tx, ty, _TOP + 0.012), 0.0, 0.97, 0.045),
        Waypoint("done", (tx, ty, 0.22), 0.0, 1.0, 0.06),
    ]
    return [*start, *_laps(lap, scenario.laps), *end]


def _sequence(scenario: Scenario) -> list[Waypoint]:
    """The left arm turns while colours are shown, so that a clock of motion ticks; the right arm stands.

    From station 2 on the left arm's angles are the same for any number of cues.
    """
    count = len(scenario.cues)
    show = 0.24 * (0.3 + 1.2 * count) * _TURN
    reach_2 = _STATION_2 - show
    merge = reach_2 - 2 * _LEG
    ready = merge - 0.1 * _TURN
    lap = [
        Waypoint("merge", layout.MERGE_XYZ, 0.0, merge, _LEG_SPEED),
        _station(0, merge + _LEG, _LEG_SPEED),
        replace(_station(1, reach_2, _LEG_SPEED), name="reach_2", stop=False),
        _station(1, _STATION_2, _SHOW_SPEED),
        _station(2, _STATION_2 + _LEG, _LEG_SPEED),
    ]
    at = _STATION_2 + 2 * _LEG
    way = [
        Waypoint("start", layout.START_XYZ, 0.0, ready - show, _SHOW_SPEED),
        Waypoint("ready", layout.START_XYZ, 0.0, ready, _SHOW_SPEED, stop=True),
        *_laps(lap, scenario.laps),
        Waypoint("branch", layout.BRANCH_XYZ, 0.0, at, _LEG_SPEED, stop=True),
    ]
    for visit, side in enumerate(scenario.answers, start=1):
        target = (*layout.TARGET_XY[side], _VISIT_HEIGHT)
        way.append(Waypoint(f"visit_{visit}", target, 0.0, at + _VISIT / 2, _LEG_SPEED))
        at += _VISIT
        # The last visit ends like the others: nothing tells an arm that there are no more.
        name = "done" if visit == count else f"branch_{visit + 1}"
        way.append(Waypoint(name, layout.BRANCH_XYZ, 0.0, at, _LEG_SPEED, stop=True))
    return way


def _station(index: int, left: float, speed: float) -> Waypoint:
    return Waypoint(f"station_{index + 1}", layout.STATION_XYZ[index], _STATION_TURNS[index], left, speed, stop=True)


def _laps(lap: list[Waypoint], laps: int) -> list[Waypoint]:
    """Once more round: straight back to the first waypoint of `lap`, then the same poses again."""
    way = list(lap)
    for number in range(1, laps):
        back = replace(lap[0], speed=_RETURN_SPEED, straight=True)
        way += [replace(w, name=f"{w.name}@{number + 1}", lap=number) for w in (back, *lap[1:])]
    return way
