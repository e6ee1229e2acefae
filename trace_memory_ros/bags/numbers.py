"""All numbers of a message by name, and what they do over a recording: what one selects a stream's fields from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.described import Described
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.streams import arrays
from trace_memory_ros.streams.base import ReadError, RecordedReader, StreamType, Values
from trace_memory_ros.streams.cdr import Cdr
from trace_memory_ros.streams.controller_states import CONTROLLER_STATE, DYNAMIC_JOINT_STATE, MEASUREMENTS
from trace_memory_ros.streams.joint_trajectory import recorded_points
from trace_memory_ros.streams.joints import UNITS
from trace_memory_ros.streams.registry import stream_type
from trace_memory_ros.streams.select import selected

MOST_NUMBERS = 256
"""Numbers of one message that are looked at; longer arrays are no robot's state."""
MOST_LAYOUTS = 32
"""Different sets of names on one topic that are told apart."""


class Numbers(NamedTuple):
    """Of one message. names: of its fields, as a configuration selects them. joints: of a type that names joints."""

    names: tuple[str, ...]
    values: Values
    joints: tuple[str, ...] = ()


class Range(NamedTuple):
    """What one number does. absent: whether it is ever not finite."""

    low: float
    high: float
    mean: float
    first: float
    last: float
    absent: bool = False

    @property
    def spread(self) -> float:
        """Between the least and the greatest value."""
        return self.high - self.low


@dataclass
class Spans:
    """Ranges of all numbers of one topic, in memory that does not grow with the messages."""

    layouts: dict[tuple[str, ...], list[Values]] = field(default_factory=dict)

    def take(self, names: tuple[str, ...], values: Values) -> None:
        """Add one message's numbers."""
        known = self.layouts.get(names)
        absent = ~np.isfinite(values)
        summed = np.where(absent, 0.0, values)
        if known is not None:
            low, high, total, count, _, last, missing = known
            np.fmin(low, values, out=low)
            np.fmax(high, values, out=high)
            total += summed
            count += ~absent
            last[:] = values
            missing += absent
        elif len(self.layouts) < MOST_LAYOUTS:
            begin = [values.copy() for _ in range(2)]
            self.layouts[names] = [*begin, summed, (~absent).astype(float), values.copy(), values.copy(), absent * 1.0]

    def ranges(self) -> dict[str, Range]:
        """By the name of the number; of one that came in several sets of names, over all of them."""
        found: dict[str, Range] = {}
        for names, (low, high, total, count, first, last, missing) in self.layouts.items():
            mean = total / np.maximum(count, 1)
            rows = zip(names, low, high, mean, first, last, missing > 0, strict=True)
            for name, *numbers, absent in rows:
                least, most, average, begin, end = (float(number) for number in numbers)
                one = Range(least, most, average, begin, end, bool(absent))
                found[name] = one if name not in found else _over_both(found[name], one)
        return found

    def merge(self, other: Spans) -> None:
        """Add what another recording of the topic holds."""
        for names, theirs in other.layouts.items():
            mine = self.layouts.get(names)
            if mine is None:
                self.layouts[names] = [part.copy() for part in theirs]
                continue
            np.fmin(mine[0], theirs[0], out=mine[0])
            np.fmax(mine[1], theirs[1], out=mine[1])
            for part in (2, 3, 6):
                mine[part] += theirs[part]


def _over_both(one: Range, other: Range) -> Range:
    low, high = min(one.low, other.low), max(one.high, other.high)
    return Range(low, high, (one.mean + other.mean) / 2, one.first, other.last, one.absent or other.absent)


NumbersReader = Callable[[Cdr, RawMessage], Numbers]


def numbers_reader(type_name: str, definition: str) -> NumbersReader:
    """What reads all numbers of a stream's payload, behind its header. It raises ReadError, CdrError."""
    kind = stream_type(type_name)
    if type_name == fields.JOINTS:
        return lambda cdr, raw: _of_groups(cdr.texts(), {group: cdr.doubles() for group in UNITS})
    if type_name == fields.TRAJECTORY:
        return lambda cdr, raw: _trajectory(cdr)
    if isinstance(kind, arrays.ArrayType):
        return lambda cdr, raw: _array(cdr, kind.letter)
    if type_name in _LIVE:
        described, numbers = Described(type_name, definition), _LIVE[type_name]
        return lambda cdr, raw: numbers(described.message(raw.data))
    return _of_table(kind, definition)


def _of_groups(joints: Sequence[str], groups: dict[str, Any]) -> Numbers:
    """Positions, velocities and efforts by joint; a group that hasn't a number per joint is left out."""
    known = {group: np.asarray(values, dtype=np.float64) for group, values in groups.items()}
    known = {group: values for group, values in known.items() if len(values) == len(joints)}
    if len(joints) > MOST_NUMBERS or not joints:
        known = {}
    names = tuple(f"{group}.{joint}" for group in known for joint in joints)
    values = np.concatenate(list(known.values())) if known else np.zeros(0)
    return Numbers(names, values, tuple(joints))


def _trajectory(cdr: Cdr) -> Numbers:
    joints, points = recorded_points(cdr)
    if not points:
        raise ReadError("command without a trajectory point")
    return _of_groups(joints, points[0].arrays)


def _array(cdr: Cdr, letter: str) -> Numbers:
    values = arrays.recorded_numbers(cdr, letter)[:MOST_NUMBERS]
    return Numbers(tuple(str(index) for index in range(len(values))), values)


def _controller_state(message: Any) -> Numbers:
    for name in MEASUREMENTS:
        point = getattr(message, name, None)
        if point is not None and len(point.positions):
            groups = {"position": point.positions, "velocity": point.velocities, "effort": point.effort}
            return _of_groups(list(message.joint_names), groups)
    raise ReadError(f"the controller's state has no positions in {' or '.join(MEASUREMENTS)}")


def _dynamic_joint_state(message: Any) -> Numbers:
    given = {
        f"{interface}.{joint}": float(value)
        for joint, values in zip(message.joint_names, message.interface_values, strict=False)
        for interface, value in zip(values.interface_names, values.values, strict=False)
    }
    joints = tuple(joint for joint in message.joint_names if f"position.{joint}" in given)
    return Numbers(tuple(given), np.array(list(given.values())), joints)


_LIVE: dict[str, Callable[[Any], Numbers]] = {
    CONTROLLER_STATE.name: _controller_state,
    DYNAMIC_JOINT_STATE.name: _dynamic_joint_state,
}


def _of_table(kind: StreamType, definition: str) -> NumbersReader:
    """All fields of a type with a fixed table; the usual ones of another, and where some of all are not there."""
    usual = tuple(one.field.name for one in selected(kind, None, kind.name)) if kind.usual else ()
    whole = tuple(one.name for one in getattr(kind, "table", ()))
    choices = [(names, kind.reader(names)) for names in dict.fromkeys((whole, usual)) if names]
    described = None
    if not all(isinstance(reader, RecordedReader) for _, reader in choices):
        described = Described(kind.name, definition)

    def read(cdr: Cdr, raw: RawMessage) -> Numbers:
        begin, fault = cdr.at, ReadError(f"{kind.name} has no fields that are usually meant")
        for names, reader in choices:
            cdr.at = begin
            try:
                if described is not None:
                    return Numbers(names, reader.live(described.message(raw.data)))
                assert isinstance(reader, RecordedReader)
                return Numbers(names, reader.recorded(cdr))
            except ReadError as error:
                fault = error
        raise fault

    return read
