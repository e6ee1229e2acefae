"""States that ros2_control's controllers publish: DynamicJointState and JointTrajectoryControllerState."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from trace_memory_ros.streams.base import Field, ReadError, Values, finite
from trace_memory_ros.streams.joints import ByName, field_of

REFERENCES = ("reference", "desired")
MEASUREMENTS = ("feedback", "actual")
"""Names of the two points in newer and older versions of the message."""


class ControllerState:
    """Implements `StreamType`: what a joint_trajectory_controller measures; `reference.FIELD`: its setpoint."""

    name = "control_msgs/msg/JointTrajectoryControllerState"
    stamped = True
    usual: tuple[str, ...] = ()

    def fields(self, name: str) -> tuple[Field, ...]:
        head, _, rest = name.partition(".")
        if head not in REFERENCES or not rest:
            return (field_of(name, self.name),)
        field = field_of(rest, self.name)
        return (Field(f"reference.{field.name}", field.unit, False, field.output),)

    def reader(self, fields: Sequence[str]) -> ControllerStateReader:
        return ControllerStateReader(fields)


class ControllerStateReader:
    """Implements `Reader`."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._count = len(fields)
        self._parts: list[tuple[tuple[str, ...], list[int], ByName]] = []
        for reference, names in ((False, MEASUREMENTS), (True, REFERENCES)):
            rows = [i for i, field in enumerate(fields) if field.startswith("reference.") == reference]
            if rows:
                chosen = ByName([fields[i].removeprefix("reference.") for i in rows])
                self._parts.append((names, rows, chosen))

    def live(self, message: Any) -> Values:
        out = np.empty(self._count)
        for names, rows, values in self._parts:
            out[rows] = values.read(message.joint_names, _arrays(message, names))
        return out


def _arrays(message: Any, names: Sequence[str]) -> dict[str, ArrayLike]:
    for name in names:
        point = getattr(message, name, None)
        if point is not None and len(point.positions):
            return {"position": point.positions, "velocity": point.velocities, "effort": point.effort}
    raise ReadError(f"the controller's state has no positions in {' or '.join(names)}: check the controller")


class DynamicJointState:
    """Implements `StreamType`: any interface of a joint, selected as `INTERFACE.JOINT`."""

    name = "control_msgs/msg/DynamicJointState"
    stamped = True
    usual: tuple[str, ...] = ()

    def fields(self, name: str) -> tuple[Field, ...]:
        interface, _, joint = name.partition(".")
        if not joint or interface in ("position", "velocity", "effort"):
            return (field_of(name, self.name),)
        return (Field(name),)

    def reader(self, fields: Sequence[str]) -> DynamicJointStateReader:
        return DynamicJointStateReader(fields)


class DynamicJointStateReader:
    """Implements `Reader`."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = tuple(fields)

    def live(self, message: Any) -> Values:
        given = {
            f"{interface}.{joint}": value
            for joint, values in zip(message.joint_names, message.interface_values, strict=False)
            for interface, value in zip(values.interface_names, values.values, strict=False)
        }
        absent = [field for field in self._fields if field not in given]
        if absent:
            raise ReadError(
                f"{', '.join(absent)} is not in the message, which has {', '.join(sorted(given)) or 'nothing'}: "
                "correct the selection, or export the interface"
            )
        return finite(np.array([given[field] for field in self._fields], dtype=np.float64), self._fields)


CONTROLLER_STATE = ControllerState()
DYNAMIC_JOINT_STATE = DynamicJointState()
