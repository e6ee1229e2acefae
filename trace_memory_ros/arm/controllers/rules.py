"""What ros2_control's controllers refuse, rule by rule, each with a name to count it by.

After joint_trajectory_controller and forward_command_controller of ros2_controllers, by their documentation and their
public sources. Two rules are stricter here, since an arm that is only simulated need not find out: a joint named twice
and a number that is not finite are refused in trajectories too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite

from trace_memory_ros.arm.controllers.config import ControllerConfig

SECOND_NS = 1_000_000_000
LEAST_VELOCITY = 1.1920929e-07
"""The smallest step of a float32 at 1: what counts as a velocity of zero."""
FIELDS = ("positions", "velocities", "accelerations")


@dataclass(frozen=True)
class Point:
    """Where the joints are to be, `after_ns` the trajectory's begin; empty lists are left out."""

    after_ns: int
    positions: Sequence[float] = ()
    velocities: Sequence[float] = ()
    accelerations: Sequence[float] = ()
    effort: Sequence[float] = ()


@dataclass(frozen=True)
class Trajectory:
    """A JointTrajectory's content. stamp_ns: 0 begins now."""

    joints: Sequence[str]
    points: Sequence[Point] = field(default_factory=tuple)
    stamp_ns: int = 0


@dataclass(frozen=True)
class Refusal:
    """Why a command is not executed. rule: its name in counts."""

    rule: str
    text: str


def trajectory_refusal(config: ControllerConfig, trajectory: Trajectory, now_ns: int) -> Refusal | None:
    """The first rule that a trajectory breaks at `now_ns`, on the clock of its stamp; None where it is accepted."""
    return next(_trajectory_refusals(config, trajectory, now_ns), None)


def forward_refusal(config: ControllerConfig, values: Sequence[float]) -> Refusal | None:
    """The first rule that the numbers of a forward command break."""
    if len(values) != len(config.joints):
        text = f"{len(values)} numbers for {len(config.joints)} joints ({', '.join(config.joints)})"
        return Refusal("size", f"{text}: send one number per joint, in this order")
    if not all(map(isfinite, values)):
        return Refusal("not_finite", f"{_not_finite(config.joints, values)}: a controller drops the message")
    return None


def _trajectory_refusals(config: ControllerConfig, trajectory: Trajectory, now_ns: int) -> Iterator[Refusal]:
    joints, points = trajectory.joints, trajectory.points
    if not joints:
        yield Refusal("no_joints", "it names no joint")
    if not points:
        yield Refusal("no_points", "it has no point")
        return
    yield from _joint_refusals(config, joints)
    ends_ns = trajectory.stamp_ns + points[-1].after_ns
    if trajectory.stamp_ns and ends_ns < now_ns:
        late_s = (now_ns - ends_ns) / SECOND_NS
        yield Refusal("ended", f"it ended {late_s:.3f} s ago: stamp it 0 to begin now, or reach further ahead")
    if not config.allow_nonzero_velocity_at_trajectory_end:
        moving = [abs(value) > LEAST_VELOCITY for value in points[-1].velocities]
        if any(moving):
            text = f"velocity {points[-1].velocities[moving.index(True)]:g} at its end"
            yield Refusal("end_velocity", f"{text}: leave velocities out, or end with 0")
    for i, point in enumerate(points):
        if i and point.after_ns <= points[i - 1].after_ns:
            yield Refusal("time_order", f"time_from_start of point {i} is not later than that of point {i - 1}")
        yield from _point_refusals(joints, point, i)


def _joint_refusals(config: ControllerConfig, joints: Sequence[str]) -> Iterator[Refusal]:
    known = ", ".join(config.joints)
    unknown = [name for name in joints if name not in config.joints]
    if unknown:
        yield Refusal("unknown_joint", f"{', '.join(unknown)}: this controller's joints are {known}")
    if len(set(joints)) != len(joints):
        yield Refusal("repeated_joint", f"a joint is named twice: {', '.join(joints)}")
    if len(joints) != len(config.joints) and not config.allow_partial_joints_goal:
        yield Refusal("partial", f"{len(joints)} joints of {len(config.joints)} ({known}): partial goals are off")


def _point_refusals(joints: Sequence[str], point: Point, i: int) -> Iterator[Refusal]:
    for name in FIELDS:
        values = getattr(point, name)
        if (values or name == "positions") and len(values) != len(joints):
            yield Refusal("point_size", f"point {i} has {len(values)} {name} for {len(joints)} joints")
        elif not all(map(isfinite, values)):
            yield Refusal("not_finite", f"point {i}, {name}: {_not_finite(joints, values)}")
    if point.effort:
        yield Refusal("effort", f"point {i} has efforts, which a position controller does not take")


def _not_finite(joints: Sequence[str], values: Sequence[float]) -> str:
    return "not finite: " + ", ".join(f"{j} = {v}" for j, v in zip(joints, values, strict=True) if not isfinite(v))
