"""What a policy's outputs are: which numbers of which messages, on which topics; said once, kept in the checkpoint."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trace_memory_ros.files.strict import (
    ConfigError,
    check_keys,
    require_choice,
    require_int,
    require_positive,
    require_text,
)
from trace_memory_ros.observation.config import STAMPS, ObservationConfig
from trace_memory_ros.streams.base import CommandType, Plain, ReadError, StreamType
from trace_memory_ros.streams.registry import command_type, stream_type
from trace_memory_ros.streams.select import Select, Selected, frozen, selected
from trace_memory_ros.streams.served import ServedType

KINDS = {"joint_trajectory": "trajectory_msgs/msg/JointTrajectory", "joint_state": "sensor_msgs/msg/JointState"}
"""Message types as configurations named them when a policy had one topic."""
VELOCITIES = ("geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped")
ABSOLUTE = -1
TOLERANCE = 0.001
SECOND_NS = 1_000_000_000


@dataclass(frozen=True)
class ActionPart:
    """Commands on one topic, or to the server of an action or a service, whose name `topic` is then.

    type, select: as of a stream. name: put before its outputs' names, with a dot.

    stamp: `header`, or `received` for commands that count from when they were recorded. ahead_ms: how long after a tick
    a message still counts as its command, of a topic of any type that says what is and not what shall be. relative:
    outputs are targets less the state's channels of the same names. frame_id: of published headers. units: of outputs,
    by their names without the part's, where they are not the type's own. fixed: numbers that every command carries, by
    their names in the type. tolerance: to a server, how far an output may be from the last command before the next one
    is sent, in its unit. Raises ConfigError.
    """

    topic: str
    type: str
    select: Select = ()
    name: str = ""
    stamp: str = "header"
    relative: bool = False
    frame_id: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    tolerance: float = TOLERANCE
    ahead_ms: int = 0

    def __post_init__(self) -> None:
        where = self.where
        require_text(self.topic, f"{where}: topic")
        require_text(self.type, f"{where}: type")
        require_choice(self.stamp, STAMPS, f"{where}: stamp")
        if not isinstance(self.name, str) or "." in self.name:
            raise ConfigError(f"{where}: name = {self.name!r}: must be text without a dot, which parts it from a field")
        if not isinstance(self.relative, bool) or not isinstance(self.frame_id, str):
            raise ConfigError(f"{where}: relative = {self.relative!r} must be true or false, frame_id a text")
        if not self.kind.stamped and self.stamp == "header" and not self.is_served:
            raise ConfigError(
                f"{where}: {self.type} has no header, so nothing says which tick a command answers: set stamp: "
                "received to take the time at which it was recorded"
            )
        if not self.kind.stamped and self.frame_id:
            raise ConfigError(f"{where}: frame_id = {self.frame_id!r}: {self.type} has no header; leave it out")
        if self.relative and self.type in VELOCITIES:
            raise ConfigError(f"{where}: relative: {self.type} commands velocities, which are no targets; leave it out")
        require_int(self.ahead_ms, f"{where}: ahead_ms", 0)
        require_positive(self.tolerance, f"{where}: tolerance", zero=True)
        if self.tolerance != TOLERANCE and not self.is_served:
            raise ConfigError(f"{where}: tolerance = {self.tolerance}: {self.type} is sent at every tick; leave it out")
        object.__setattr__(self, "select", frozen(self.select))
        self._check_fixed()
        self._check_outputs()

    def _check_outputs(self) -> None:
        names = [one.output for one in self.selected]
        if not isinstance(self.units, Mapping) or not set(self.units) <= set(names):
            raise ConfigError(f"{self.where}: units = {self.units!r}: give units of outputs, which are {names}")
        for name, unit in self.units.items():
            require_text(unit, f"{self.where}: unit of {name!r}")
        if not isinstance(self.kind, CommandType):
            return
        try:
            self.compose(dict.fromkeys(self.fields, 0.0), 0, 1)
        except ReadError as error:
            raise ConfigError(f"{self.where}: {error}") from error
        except ConfigError as error:
            raise ConfigError(f"{self.where}.select: {error}") from error

    def _check_fixed(self) -> None:
        if not isinstance(self.fixed, Mapping):
            raise ConfigError(f"{self.where}: fixed = {self.fixed!r}: must be a mapping, {{FIELD: number}}")
        # YAML reads an index as a number.
        object.__setattr__(self, "fixed", {str(name): number for name, number in self.fixed.items()})
        for name, number in self.fixed.items():
            if [one.name for one in self.kind.fields(name)] != [name] or name in self.fields:
                raise ConfigError(f"{self.where}: fixed: {name!r} must be one number's name, and none that is selected")
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
                raise ConfigError(f"{self.where}: fixed: {name} = {number!r}: must be a finite number")

    @property
    def is_served(self) -> bool:
        """Whether a server takes its commands, which are on no topic then."""
        return isinstance(self.kind, ServedType)

    @property
    def where(self) -> str:
        """How errors call it."""
        return f"actions on {self.topic!r}"

    @property
    def kind(self) -> StreamType:
        """What its message type offers. Raises ConfigError for one that cannot be a command, unless it only teaches."""
        return stream_type(self.type) if self.ahead_ms else command_type(self.type)

    @cached_property
    def selected(self) -> tuple[Selected, ...]:
        """The numbers that a command consists of, in order."""
        return selected(self.kind, self.select, self.where)

    @property
    def fields(self) -> tuple[str, ...]:
        """These numbers' names in the message type."""
        return tuple(one.field.name for one in self.selected)

    @property
    def names(self) -> tuple[str, ...]:
        """These numbers' names as outputs of the policy."""
        prefix = f"{self.name}." if self.name else ""
        return tuple(f"{prefix}{one.output}" for one in self.selected)

    def compose(self, targets: Mapping[str, float], stamp_ns: int, period_ns: int) -> Plain:
        """A message's fields from values of `fields`. Raises ReadError for values that are no command.

        stamp_ns: of the tick that it answers. period_ns: until the next.
        """
        kind = command_type(self.type)
        content = kind.compose({**targets, **self.fixed}, period_ns)
        if not kind.stamped:
            return content
        seconds, nanoseconds = divmod(stamp_ns, SECOND_NS)
        return {"header": {"stamp": {"sec": seconds, "nanosec": nanoseconds}, "frame_id": self.frame_id}, **content}

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping without what is left at its default."""
        usual = {"stamp": "header", "relative": False, "tolerance": TOLERANCE, "ahead_ms": 0}
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        empty: tuple[Any, ...] = ((), "", {})
        return {key: _plain(value) for key, value in given.items() if value not in empty and value != usual.get(key)}


@dataclass(frozen=True)
class ActionConfig:
    """A policy's outputs: those of all parts, one after the other. Raises ConfigError where two have one name."""

    parts: tuple[ActionPart, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        if not self.parts:
            raise ConfigError("actions is empty: name a command topic, or leave actions out")
        for name, count in Counter(self.names).items():
            if count > 1:
                raise ConfigError(
                    f"{count} outputs are called {name!r}: give the parts names ({{name: left, topic: ...}}), or the "
                    "outputs, {select: {NAME: FIELD}}"
                )
        for topic, count in Counter(part.topic for part in self.parts).items():
            if count > 1:
                raise ConfigError(f"{count} parts of actions command on {topic!r}: make them one, which selects all")

    @classmethod
    def of_kind(cls, topic: str, kind: str, names: Sequence[str]) -> ActionConfig:
        """Positions of the joints `names` in messages on one topic; kind: of `KINDS`."""
        require_choice(kind, KINDS, "actions.kind")
        if not names or len(set(names)) != len(names):
            raise ConfigError(f"actions.names = {list(names)}: list each commanded joint once, in output order")
        for name in names:
            require_text(name, "actions.names entry")
        return cls((ActionPart(topic, KINDS[kind], {"position": tuple(names)}),))

    @classmethod
    def of_trajectory(cls, topic: str, names: Sequence[str]) -> ActionConfig:
        """One JointTrajectory with the positions of `names`."""
        return cls.of_kind(topic, "joint_trajectory", names)

    @property
    def names(self) -> tuple[str, ...]:
        """The outputs' names, in order."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def units(self) -> tuple[str, ...]:
        """The outputs' units; empty for a plain number."""
        return tuple(part.units.get(one.output, one.field.unit) for part in self.parts for one in part.selected)

    @property
    def columns(self) -> tuple[slice, ...]:
        """Where each part's outputs stand among all."""
        ends = np.cumsum([len(part.selected) for part in self.parts]).tolist()
        return tuple(slice(end - len(part.selected), end) for part, end in zip(self.parts, ends, strict=True))

    def relative_rows(self, observation: ObservationConfig) -> NDArray[np.int64]:
        """`(A,)`: the state channel that an output is relative to, -1 for an absolute one.

        Raises ConfigError where no channel is of its name, or several are.
        """
        rows = [
            _channel_of(part, one, name, observation) if part.relative else ABSOLUTE
            for part in self.parts
            for one, name in zip(part.selected, part.names, strict=True)
        ]
        return np.array(rows, dtype=np.int64)

    def split(self, values: ArrayLike) -> tuple[dict[str, float], ...]:
        """Outputs `(A,)` as field and value, per part."""
        numbers = np.asarray(values).tolist()
        return tuple(
            dict(zip(part.fields, numbers[where], strict=True))
            for part, where in zip(self.parts, self.columns, strict=True)
        )

    def compose(self, values: ArrayLike, stamp_ns: int, period_ns: int) -> list[Plain]:
        """The fields of a message per part, from outputs `(A,)`; see `ActionPart.compose`. Raises ReadError."""
        each = zip(self.parts, self.split(values), strict=True)
        return [part.compose(targets, stamp_ns, period_ns) for part, targets in each]

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain YAML-ready list; `from_dict` inverts it."""
        return [part.to_dict() for part in self.parts]

    @classmethod
    def from_dict(cls, data: object, where: str = "actions") -> ActionConfig:
        """Read a list of parts strictly, or the mapping {topic, kind, names} of former versions. Raises ConfigError."""
        if isinstance(data, Mapping):
            keys = ("topic", "kind", "names")
            values = check_keys(data, keys, keys, where)
            if not isinstance(values["names"], (list, tuple)):
                raise ConfigError(f"{where}.names = {values['names']!r}: must be a list")
            return cls.of_kind(values["topic"], values["kind"], tuple(values["names"]))
        if not isinstance(data, (list, tuple)):
            raise ConfigError(f"{where} = {data!r}: must be a list, one entry per command topic")
        known, needed = tuple(f.name for f in fields(ActionPart)), ("topic", "type")
        entries = [check_keys(item, known, needed, f"{where}[{i}]") for i, item in enumerate(data)]
        given = [{k: v for k, v in entry.items() if v is not None or k in needed} for entry in entries]
        return cls(tuple(ActionPart(**entry) for entry in given))


def _channel_of(part: ActionPart, one: Selected, name: str, observation: ObservationConfig) -> int:
    found = observation.channels_of(name, "" if one.given else one.field.name)
    if len(found) == 1:
        return observation.state.index(found[0])
    asked = f"{part.where}: relative: output {name!r} is relative to a state channel of its name"
    if found:
        raise ConfigError(f"{asked}, and {', '.join(found)} are: give the part the name of the stream that is meant")
    raise ConfigError(f"{asked}, and none is; select and name one. The state has {', '.join(observation.state)}")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
