"""std_msgs/Float64MultiArray and Float32MultiArray: numbers by index, as forward_command_controller takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.streams.base import Field, Plain, ReadError, Values, finite
from trace_memory_ros.streams.cdr import Cdr

FLOAT32_MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class ArrayType:
    """Implements `CommandType`, `Bounded`. letter: the struct letter of its numbers."""

    name: str
    letter: str
    stamped: bool = False
    usual: tuple[str, ...] = ()

    def fields(self, name: str) -> tuple[Field, ...]:
        if not name.isdecimal():
            raise ConfigError(f"{self.name} has no field {name!r}: select numbers by index and name them, {{name: 0}}")
        return (Field(str(int(name))),)

    def reader(self, fields: Sequence[str]) -> ArrayReader:
        return ArrayReader(self.letter, fields)

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        indices = {int(field): value for field, value in targets.items()}
        missing = sorted(set(range(len(indices))) - set(indices))
        if missing:
            raise ConfigError(f"{self.name} needs every index from 0 on: {missing} is not selected")
        return {"data": [indices[index] for index in range(len(indices))]}

    def bounds(self, field: str) -> tuple[float, float]:
        return (-FLOAT32_MOST, FLOAT32_MOST) if self.letter == "f" else (-inf, inf)


class ArrayReader:
    """Implements `RecordedReader`."""

    def __init__(self, letter: str, fields: Sequence[str]) -> None:
        self._letter = letter
        self._fields = tuple(fields)
        self._columns = [int(field) for field in fields]

    def live(self, message: Any) -> Values:
        return self._selected(np.asarray(message.data, dtype=np.float64))

    def recorded(self, cdr: Cdr) -> Values:
        return self._selected(recorded_numbers(cdr, self._letter))

    def _selected(self, values: Values) -> Values:
        if values.size <= max(self._columns):
            raise ReadError(
                f"array of {values.size} numbers has no index {max(self._columns)}: correct the selection, or the "
                "publisher"
            )
        return finite(values[self._columns], [f"index {field}" for field in self._fields])


def recorded_numbers(cdr: Cdr, letter: str) -> Values:
    """All numbers of an array's payload. Raises CdrError."""
    for _ in range(cdr.unsigned()):  # dimensions of the layout
        cdr.text()
        cdr.unpack("II", 4)
    cdr.unsigned()
    return cdr.numbers(letter, cdr.unsigned()).astype(np.float64)


FLOAT64_ARRAY = ArrayType("std_msgs/msg/Float64MultiArray", "d")
FLOAT32_ARRAY = ArrayType("std_msgs/msg/Float32MultiArray", "f")
