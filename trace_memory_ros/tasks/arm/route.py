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

SPACING_RAD = 0.01
WAYPOINT_JITTER_RAD = 0.012
_SMOOTHING_POINTS = 10

_RIGHT_REST = np.array([0.0, -0.7, 0.0, 1.7, 0.0, 0.57, 0.0])
_LEFT_FROM = np.array([0.15, -0.95, 0.0, 1.95, 0.0, 0.75, -2.5])
_LEFT_TO = np.array([1.35, -0.75, 0.0, 1.75, 0.0, 0.55, 2.5])


@dataclass(frozen=True)
class Waypoint:
    """Right cup position in m, right wrist turn in rad, how far the left arm has turned (0..1), speed towards it in rad per tick."""

    name: str
    cup_xyz: tuple[float, float, float]
    turn: float
    left: float
    speed: float
    pinned: bool = True


@dataclass(frozen=True)
class Route:
    """points `(N, 14)` rad, evenly spaced by SPACING_RAD in the largest joint step; marks: waypoint -> index of its point;
    speed `(N,)` rad per tick."""

    points: FloatArray
    marks: dict[str, int]
    speed: FloatArray

    def project(self, joints: FloatArray, near: int, back: int = 40, ahead: int = 60) -> int:
        """Index of the point nearest to `joints` `(14,)`, searched around index `near`."""
        start = max(0, near - back)
        window = self.points[start : near + ahead]
        return start + int(np.argmin(((window - joints) ** 2).sum(axis=1)))


def plan(model: mujoco.MjModel, scenario: Scenario) -> Route:
    """Route of a scenario: before the merge (`origin`) and after the branch it depends on the cue, between them never."""
    waypoints = _waypoints(scenario.task, scenario.cue)
    rng = np.random.default_rng(scenario.draws().waypoint_seed)
    jitter = WAYPOINT_JITTER_RAD * rng.uniform(-1, 1, (len(waypoints), 14))
    poses = np.stack([_pose(model, w) for w in waypoints]) + jitter
    return _densify(poses, waypoints)


def _waypoints(task: str, cue: int) -> list[Waypoint]:
    px, py = layout.TRAY_XY if task == "colour" else layout.BIN_XY[cue]
    tx, ty = layout.TARGET_XY[cue]
    top = 2 * layout.PART_HALF
    s1, s2, s3 = layout.STATION_XYZ
    return [
        Waypoint("start", layout.START_XYZ, 0.0, 0.0, 0.06),
        Waypoint("above", (px - 0.01, py, top + 0.06), 0.0, 0.05, 0.06, pinned=False),
        Waypoint("pick", (px, py, top + 0.005), 0.0, 0.10, 0.06),
        Waypoint("lift", (0.5 * px + 0.5 * layout.MERGE_XYZ[0], 0.5 * py, 0.18), 0.0, 0.15, 0.07, pinned=False),
        Waypoint("merge", layout.MERGE_XYZ, 0.0, 0.20, 0.07),
        Waypoint("station_1", s1, 1.7, 0.38, 0.055),
        Waypoint("station_2", s2, -1.3, 0.56, 0.055),
        Waypoint("station_3", s3, 1.5, 0.74, 0.055),
        Waypoint("branch", layout.BRANCH_XYZ, 0.0, 0.88, 0.055),
        Waypoint("over", (tx, ty, 0.20), 0.0, 0.95, 0.06, pinned=False),
        Waypoint("place", (tx, ty, top + 0.012), 0.0, 0.98, 0.05),
        Waypoint("done", (tx, ty, 0.22), 0.0, 1.0, 0.06),
    ]


def _pose(model: mujoco.MjModel, waypoint: Waypoint) -> FloatArray:
    right = _right_pose(model, waypoint.cup_xyz, waypoint.turn)
    left = _LEFT_FROM + waypoint.left * (_LEFT_TO - _LEFT_FROM)
    left[[3, 5]] += 0.25 * np.sin(4 * np.pi * waypoint.left) * np.array([1.0, -1.0])
    return np.concatenate([left, right])


@lru_cache(maxsize=256)
def _right_pose(model: mujoco.MjModel, cup_xyz: tuple[float, float, float], turn: float) -> FloatArray:
    rest = _RIGHT_REST.copy()
    rest[0] = np.arctan2(cup_xyz[1] + layout.SHOULDER_Y, cup_xyz[0])
    rest[6] = turn
    return solve_down(model, "right", cup_xyz, rest)


def _densify(poses: FloatArray, waypoints: list[Waypoint]) -> Route:
    """Evenly spaced points along the polyline, corners rounded except at pinned waypoints."""
    pieces, speeds, marks = [poses[:1]], [np.array([waypoints[0].speed])], {waypoints[0].name: 0}
    count = 1
    for a, b, waypoint in zip(poses[:-1], poses[1:], waypoints[1:], strict=True):
        steps = max(1, int(np.ceil(np.abs(b - a).max() / SPACING_RAD)))
        fractions = np.arange(1, steps + 1)[:, None] / steps
        pieces.append(a + fractions * (b - a))
        speeds.append(np.full(steps, waypoint.speed))
        count += steps
        marks[waypoint.name] = count - 1
    points = np.concatenate(pieces)
    pinned = np.array([0, *(marks[w.name] for w in waypoints if w.pinned), count - 1])
    radius = np.minimum(np.abs(np.arange(count)[:, None] - pinned).min(axis=1), _SMOOTHING_POINTS)
    total = np.concatenate([np.zeros((1, points.shape[1])), np.cumsum(points, axis=0)])
    index = np.arange(count)
    smooth = (total[index + radius + 1] - total[index - radius]) / (2 * radius + 1)[:, None]
    return Route(smooth, marks, np.concatenate(speeds))
