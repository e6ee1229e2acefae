"""What a message type has to say so that its numbers can be robot state, or a policy's output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError, nearest
from trace_memory_ros.streams.cdr import Cdr

Values = NDArray[np.float64]
Steps = list[tuple[int, Values]]
"""Commanded values, each with the time after the command's stamp from which on it is aimed at, ns."""
Plain = dict[str, Any]
"""A message's fields by name: numbers, texts, nested mappings and lists of them."""


CHECK = "check the sensor or its driver"
"""The remedy for a number that is none, where a message type knows no better."""


class ReadError(ValueError):
    """A message's content cannot be used; says what is wrong and the remedy, without the stream's name."""


class Field(NamedTuple):
    """One number of a message. name: as it is selected. unit: empty for a plain number. path: whether it is a position
    or base motion, and so part of the path whose signature routes writes. output: its name as a policy's output.
    """

    name: str
    unit: str = ""
    path: bool = False
    output: str = ""

    @property
    def output_name(self) -> str:
        """The field's name where a policy commands it."""
        return self.output or self.name


class Reader(Protocol):
    """Reads the selected fields `(F,)` of one stream's messages, one after the other. Raises ReadError."""

    def live(self, message: Any) -> Values:
        """From a message with attributes by field name, as rclpy and rosbags make them."""
        ...


@runtime_checkable
class RecordedReader(Reader, Protocol):
    """A reader that needs no message object for what a bag holds."""

    def recorded(self, cdr: Cdr) -> Values:
        """From a payload, behind its header where the type has one. Raises ReadError, CdrError."""
        ...


class StreamType(Protocol):
    """A message type. name: as `sensor_msgs/msg/JointState`. stamped: whether it begins with a std_msgs/Header.

    usual: the fields that are selected where the configuration selects none; empty where it must.
    """

    @property
    def name(self) -> str: ...

    @property
    def stamped(self) -> bool: ...

    @property
    def usual(self) -> tuple[str, ...]: ...

    def fields(self, name: str) -> tuple[Field, ...]:
        """The field of that name, or all of the group. Raises ConfigError naming it and what there is."""
        ...

    def reader(self, fields: Sequence[str]) -> Reader:
        """A reader of these fields, in this order; each stream has its own."""
        ...


@runtime_checkable
class CommandType(StreamType, Protocol):
    """A message type that a robot takes commands in."""

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        """A message's fields without its header, from the values of fields. period_ns: until the next command."""
        ...


@runtime_checkable
class Bounded(Protocol):
    """A command type whose fields cannot hold every number."""

    def bounds(self, field: str) -> tuple[float, float]:
        """Least and largest value that the field can hold."""
        ...


@runtime_checkable
class StepsReader(Protocol):
    """A reader of commands that hold more than one target."""

    def steps_live(self, message: Any) -> Steps: ...

    def steps_recorded(self, cdr: Cdr) -> Steps: ...


def grouped(table: Sequence[Field], name: str, type_name: str) -> tuple[Field, ...]:
    """The fields of a fixed table that are called `name` or begin with `name.`. Raises ConfigError."""
    found = tuple(field for field in table if field.name == name or field.name.startswith(f"{name}."))
    if not found:
        raise ConfigError(f"{type_name} has no field {name!r}; {nearest(name, [field.name for field in table])}")
    return found


def finite(values: Values, names: Sequence[str], remedy: str = CHECK) -> Values:
    """`values`, all of them finite. Raises ReadError naming those that aren't, and the remedy."""
    if not np.isfinite(values).all():
        bad = [name for name, value in zip(names, values, strict=True) if not np.isfinite(value)]
        raise ReadError(f"{', '.join(bad)} is not finite: {remedy}")
    return values
