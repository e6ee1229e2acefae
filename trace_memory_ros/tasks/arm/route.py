"""The expert's way through joint space: a polyline that never crosses itself, so that joint angles tell the phase."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import mujoco
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.tasks.arm import layout
from trace_memory_ros.tasks.arm.kinematics import solve_down
from trace_memory_ros.tasks.arm.scenario import Scenario

FloatArray = NDArray[np.float64]

SPACING_RAD = 0.005
WAYPOINT_JITTER_RAD = 0.012
_SMOOTHING_POINTS = 20
_FINE = 200

_RIGHT_REST = np.array([0.0, -0.7, 0.0, 1.7, 0.0, 0.57, 0.0])
_LEFT_FROM = np.array([0.15, -0.95, 0.0, 1.95, 0.0, 0.75, -2.5])
_LEFT_TO = np.array([1.35, -0.75, 0.0, 1.75, 0.0, 0.55, 2.5])
_LEFT_TURNS = 2.6
_LEFT_CIRCLE_RAD = (0.75, 0.65)


@dataclass(frozen=True)
class Waypoint:
    """Right cup in m, right wrist turn in rad, how far the left arm has turned (0..1), speed there in rad per tick."""

    name: str
    cup_xyz: tuple[float, float, float]
    turn: float
    left: float
    speed: float
    pinned: bool = True


@dataclass(frozen=True)
class Route:
    """A polyline with landmarks.

    points: `(N, 14)` rad, SPACING_RAD apart in the joint that moves most. marks: waypoint -> index of its point.
    speed: `(N,)` rad per tick.
    """

    points: FloatArray
    marks: dict[str, int]
    speed: FloatArray

    def project(self, joints: FloatArray, near: int, back_rad: float = 0.4, ahead_rad: float = 0.6) -> int:
        """Index of the point nearest to `joints` `(14,)`, searched around index `near`."""
        start = max(0, near - round(back_rad / SPACING_RAD))
        window = self.points[start : near + round(ahead_rad / SPACING_RAD)]
        return start + int(np.argmin(((window - joints) ** 2).sum(axis=1)))


def plan(model: mujoco.MjModel, scenario: Scenario) -> Route:
    """Route of a scenario; it depends on the cue after the branch, in `origin` also before the merge, between never."""
    waypoints = _waypoints(scenario.task, scenario.cue)
    rng = np.random.default_rng(scenario.draws().waypoint_seed)
    offsets = WAYPOINT_JITTER_RAD * rng.uniform(-1, 1, (len(waypoints), 14))
    right = np.stack([_right_pose(model, w.cup_xyz, w.turn) for w in waypoints])
    left = np.array([w.left for w in waypoints])
    segments = [_segment(left[i : i + 2], right[i : i + 2], offsets[i : i + 2]) for i in range(len(waypoints) - 1)]
    return _join(segments, waypoints)


def _waypoints(task: str, cue: int) -> list[Waypoint]:
    px, py = layout.TRAY_XY if task == "colour" else layout.BIN_XY[cue]
    tx, ty = layout.TARGET_XY[cue]
    top = 2 * layout.PART_HALF
    s1, s2, s3 = layout.STATION_XYZ
    return [
        Waypoint("start", layout.START_XYZ, 0.0, 0.0, 0.07),
        Waypoint("above", (px - 0.01, py, top + 0.06), 0.0, 0.03, 0.07, pinned=False),
        Waypoint("pick", (px, py, top + 0.005), 0.0, 0.06, 0.07),
        Waypoint("lift", (0.5 * px + 0.5 * layout.MERGE_XYZ[0], 0.5 * py, 0.18), 0.0, 0.09, 0.075, pinned=False),
        Waypoint("merge", layout.MERGE_XYZ, 0.0, 0.12, 0.075),
        Waypoint("station_1", s1, 0.8, 0.32, 0.048),
        Waypoint("station_2", s2, -0.3, 0.52, 0.048),
        Waypoint("station_3", s3, 0.8, 0.72, 0.048),
        Waypoint("branch", layout.BRANCH_XYZ, 0.0, 0.90, 0.048),
        Waypoint("over", (tx, ty, 0.20), 0.0, 0.94, 0.06, pinned=False),
        Waypoint("place", (tx, ty, top + 0.012), 0.0, 0.97, 0.045),
        Waypoint("done", (tx, ty, 0.22), 0.0, 1.0, 0.06),
    ]


def _left_pose(turned: FloatArray) -> FloatArray:
    """Left arm `(N, 7)` rad after `turned` `(N,)` of its way: a helix, which tells the phase and never doubles back."""
    pose: FloatArray = _LEFT_FROM + turned[:, None] * (_LEFT_TO - _LEFT_FROM)
    angle = 2 * np.pi * _LEFT_TURNS * turned
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
    fine = np.concatenate([_left_pose(left[0] + fraction * (left[1] - left[0])), right_fine], axis=1)
    fine += offsets[0] + fraction[:, None] * (offsets[1] - offsets[0])
    length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(fine, axis=0)).max(axis=1))])
    steps = max(1, int(np.ceil(length[-1] / SPACING_RAD)))
    at = np.linspace(0, length[-1], steps + 1)[1:]
    return np.stack([np.interp(at, length, fine[:, joint]) for joint in range(fine.shape[1])], axis=1)


def _join(segments: list[FloatArray], waypoints: list[Waypoint]) -> Route:
    """One route out of segments, corners rounded except at pinned waypoints."""
    points = np.concatenate(segments)
    count = len(points)
    ends = np.cumsum([len(s) for s in segments]) - 1
    marks = {waypoints[0].name: 0} | {w.name: int(end) for w, end in zip(waypoints[1:], ends, strict=True)}
    speed = np.concatenate([np.full(len(s), w.speed) for s, w in zip(segments, waypoints[1:], strict=True)])
    pinned = np.array([marks[w.name] for w in waypoints if w.pinned])
    index = np.arange(count)
    radius = np.minimum(np.abs(index[:, None] - pinned).min(axis=1), _SMOOTHING_POINTS)
    total = np.concatenate([np.zeros((1, points.shape[1])), np.cumsum(points, axis=0)])
    smooth = (total[index + radius + 1] - total[index - radius]) / (2 * radius + 1)[:, None]
    return Route(smooth, marks, speed)
