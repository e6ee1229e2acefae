"""trajectory_msgs/JointTrajectory: what joint_trajectory_controller is commanded with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from trace_memory_ros.streams.base import Field, Plain, ReadError, Steps, Values
from trace_memory_ros.streams.cdr import Cdr
from trace_memory_ros.streams.joints import ByName, field_of, of_every_joint

SECOND_NS = 1_000_000_000
ARRAYS = {"position": "positions", "velocity": "velocities", "effort": "effort"}


class Point(NamedTuple):
    """arrays: by group. from_start_ns: when it is to be reached, after the trajectory's stamp."""

    arrays: dict[str, Any]
    from_start_ns: int


class JointTrajectory:
    """Implements `CommandType`."""

    name = "trajectory_msgs/msg/JointTrajectory"
    stamped = True
    usual: tuple[str, ...] = ()

    def fields(self, name: str) -> tuple[Field, ...]:
        return (field_of(name, self.name),)

    def reader(self, fields: Sequence[str]) -> JointTrajectoryReader:
        return JointTrajectoryReader(fields)

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        joints = list(dict.fromkeys(field.partition(".")[2] for field in targets))
        seconds, nanoseconds = divmod(period_ns, SECOND_NS)
        point: Plain = {"time_from_start": {"sec": seconds, "nanosec": nanoseconds}}
        for group, array in ARRAYS.items():
            point[array] = of_every_joint(targets, group, joints)
        return {"joint_names": joints, "points": [point]}


class JointTrajectoryReader:
    """Implements `RecordedReader` and `StepsReader`; as a stream's value it gives the first point."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._values = ByName(fields)

    def live(self, message: Any) -> Values:
        return self.steps_live(message)[0][1]

    def recorded(self, cdr: Cdr) -> Values:
        return self.steps_recorded(cdr)[0][1]

    def steps_live(self, message: Any) -> Steps:
        points = [
            Point(
                {group: getattr(point, array) for group, array in ARRAYS.items()},
                int(point.time_from_start.sec) * SECOND_NS + int(point.time_from_start.nanosec),
            )
            for point in message.points
        ]
        return self._steps(message.joint_names, points)

    def steps_recorded(self, cdr: Cdr) -> Steps:
        names, points = recorded_points(cdr)
        return self._steps(names, points)

    def _steps(self, names: Sequence[str], points: Sequence[Point]) -> Steps:
        if not points:
            raise ReadError("command without a trajectory point: send one point with the targets as positions")
        # A point is aimed at from the moment that the one before it was to be reached.
        begins = [0, *(point.from_start_ns for point in points[:-1])]
        return [(begin, self._values.read(names, p.arrays)) for begin, p in zip(begins, points, strict=True)]


def recorded_points(cdr: Cdr) -> tuple[tuple[str, ...], list[Point]]:
    """Joint names and points behind a header. Raises CdrError."""
    names = cdr.texts()
    points = []
    for _ in range(cdr.unsigned()):
        positions, velocities, _, effort = (cdr.doubles() for _ in range(4))
        points.append(Point({"position": positions, "velocity": velocities, "effort": effort}, cdr.stamp_ns()))
    return names, points


JOINT_TRAJECTORY = JointTrajectory()
