"""sensor_msgs/JointState: positions, velocities and efforts by joint name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from trace_memory_ros.streams.base import Field, Plain, Values
from trace_memory_ros.streams.cdr import Cdr
from trace_memory_ros.streams.joints import UNITS, ByName, SameTexts, field_of, of_every_joint


class JointState:
    """Implements `CommandType`; also what teleoperation leaders publish."""

    name = "sensor_msgs/msg/JointState"
    stamped = True
    usual: tuple[str, ...] = ()

    def fields(self, name: str) -> tuple[Field, ...]:
        return (field_of(name, self.name),)

    def reader(self, fields: Sequence[str]) -> JointStateReader:
        return JointStateReader(fields)

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        joints = list(dict.fromkeys(field.partition(".")[2] for field in targets))
        out: Plain = {"name": joints}
        for group in UNITS:
            out[group] = of_every_joint(targets, group, joints)
        return out


class JointStateReader:
    """Implements `RecordedReader`."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._values = ByName(fields)
        self._names = SameTexts()
        self._last = [group in self._values.groups for group in UNITS]

    def live(self, message: Any) -> Values:
        return self._values.read(message.name, {group: getattr(message, group) for group in self._values.groups})

    def recorded(self, cdr: Cdr) -> Values:
        names = self._names.read(cdr)
        arrays: dict[str, ArrayLike] = {}
        for place, group in enumerate(UNITS):
            if any(self._last[place:]):
                arrays[group] = cdr.doubles()
        return self._values.read(names, arrays)


JOINT_STATE = JointState()
