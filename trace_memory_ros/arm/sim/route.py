"""The expert's way through joint space: a polyline that never crosses itself, so that joint angles tell the phase."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import mujoco
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.kinematics import solve_down
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.arm.sim.waypoints import Waypoint

FloatArray = NDArray[np.float64]

SPACING_RAD = 0.005
WAYPOINT_JITTER_RAD = 0.012
_SMOOTHING_POINTS = 20
_FINE = 200

_RIGHT_REST = np.array([0.0, -0.7, 0.0, 1.7, 0.0, 0.57, 0.0])
_LEFT_FROM = np.array([0.15, -0.95, 0.0, 1.95, 0.0, 0.75, -2.5])
_LEFT_TO = np.array([1.35, -0.75, 0.0, 1.75, 0.0, 0.55, 2.5])
_LEFT_CIRCLE_RAD = (0.75, 0.65)


@dataclass(frozen=True)
class Route:
    """A polyline with landmarks.

    points: `(N, 14)` rad, SPACING_RAD apart in the joint that moves most. marks: waypoint -> index of its point.
    speed: `(N,)` rad per tick. stops: indices at which to wait for a red lamp, ascending.
    """

    points: FloatArray
    marks: dict[str, int]
    speed: FloatArray
    stops: tuple[int, ...]

    def project(self, joints: FloatArray, near: int, back_rad: float = 0.4, ahead_rad: float = 0.6) -> int:
        """Index of the point nearest to `joints` `(14,)`, searched around index `near`."""
        start = max(0, near - round(back_rad / SPACING_RAD))
        window = self.points[start : near + round(ahead_rad / SPACING_RAD)]
        return start + int(np.argmin(((window - joints) ** 2).sum(axis=1)))


def plan(model: mujoco.MjModel, scenario: Scenario) -> Route:
    """Route of a scenario; on its first lap it does not depend on the number of laps."""
    task = task_of(scenario.task)
    way, turns = task.way(scenario), task.left_turns
    offsets = _offsets(way, scenario.draws().waypoint_seed)
    right = np.stack([_right_pose(model, w.cup_xyz, w.turn) for w in way])
    segments = [
        _segment(_left_way(way[i - 1], way[i], turns), right[i - 1 : i + 1], offsets[i - 1 : i + 1])
        for i in range(1, len(way))
    ]
    return _join(segments, way)


def _offsets(way: list[Waypoint], seed: int) -> FloatArray:
    """What each waypoint is off its nominal pose `(W, 14)` rad."""
    rng = np.random.default_rng(seed)
    later = np.array([w.lap > 0 for w in way])
    offsets = np.empty((len(way), 14))
    for rows in (~later, later):
        offsets[rows] = WAYPOINT_JITTER_RAD * rng.uniform(-1, 1, (int(rows.sum()), 14))
    return offsets


def _left_way(one: Waypoint, other: Waypoint, turns: float) -> FloatArray:
    """Left arm `(_FINE, 7)` rad between two waypoints."""
    fraction = np.linspace(0, 1, _FINE)
    if other.straight:
        ends = _left_pose(np.array([one.left, other.left]), turns)
        way: FloatArray = ends[0] + fraction[:, None] * (ends[1] - ends[0])
        return way
    return _left_pose(one.left + fraction * (other.left - one.left), turns)


def _left_pose(turned: FloatArray, turns: float) -> FloatArray:
    """Left arm `(N, 7)` rad after `turned` `(N,)` of its way: a helix, which tells the phase and never doubles back."""
    pose: FloatArray = _LEFT_FROM + turned[:, None] * (_LEFT_TO - _LEFT_FROM)
    angle = 2 * np.pi * turns * turned
    pose[:, 4] += _LEFT_CIRCLE_RAD[0] * np.sin(angle)
    pose[:, 5] += _LEFT_CIRCLE_RAD[1] * np.cos(angle)
    return pose


@lru_cache(maxsize=256)
def _right_pose(model: mujoco.MjModel, cup_xyz: tuple[float, float, float], turn: float) -> FloatArray:
    rest = _RIGHT_REST.copy()
    rest[0] = np.arctan2(cup_xyz[1] + layout.SHOULDER_Y, cup_xyz[0])
    rest[6] = turn
    return solve_down(model, "right", cup_xyz, rest)


def _segment(left: FloatArray, right: FloatArray, offsets: FloatArray) -> FloatArray:
    """Evenly spaced points `(N, 14)` from after one waypoint up to and with the next."""
    fraction = np.linspace(0, 1, _FINE)
    right_fine = right[0] + fraction[:, None] * (right[1] - right[0])
    fine = np.concatenate([left, right_fine], axis=1)
    fine += offsets[0] + fraction[:, None] * (offsets[1] - offsets[0])
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(fine, axis=0)).max(axis=1))])
    steps = max(1, int(np.ceil(length[-1] / SPACING_RAD)))
    at = np.linspace(0, length[-1], steps + 1)[1:]
    return np.stack([np.interp(at, length, fine[:, joint]) for joint in range(fine.shape[1])], axis=1)


def _join(segments: list[FloatArray], way: list[Waypoint]) -> Route:
    """One route out of segments, corners rounded except at pinned waypoints."""
    points = np.concatenate(segments)
    count = len(points)
    ends = np.cumsum([len(s) for s in segments]) - 1
    marks = {way[0].name: 0} | {w.name: int(end) for w, end in zip(way[1:], ends, strict=True)}
    speed = np.concatenate([np.full(len(s), w.speed) for s, w in zip(segments, way[1:], strict=True)])
    pinned = np.array([marks[w.name] for w in way if w.pinned])
    index = np.arange(count)
    radius = np.minimum(np.abs(index[:, None] - pinned).min(axis=1), _SMOOTHING_POINTS)
    total = np.concatenate([np.zeros((1, points.shape[1])), np.cumsum(points, axis=0)])
    smooth = (total[index + radius + 1] - total[index - radius]) / (2 * radius + 1)[:, None]
    stops = tuple(marks[w.name] for w in way if w.stop)
    return Route(smooth, marks, speed, stops)
