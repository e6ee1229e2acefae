"""std_msgs Float32, Float64, Bool and integers: one number, `data`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from trace_memory_ros.streams.arrays import FLOAT32_MOST
from trace_memory_ros.streams.base import Field, Plain, Values, finite, grouped
from trace_memory_ros.streams.cdr import Cdr

FIELDS = (Field("data"),)
LETTERS = {
    "Float32": "f",
    "Float64": "d",
    "Bool": "?",
    "Int8": "b",
    "Int16": "h",
    "Int32": "i",
    "Int64": "q",
    "UInt8": "B",
    "UInt16": "H",
    "UInt32": "I",
    "UInt64": "Q",
}
RANGES = {
    letter: (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if letter.islower() else (0, 2**bits - 1)
    for letter, bits in {"b": 8, "h": 16, "i": 32, "q": 64, "B": 8, "H": 16, "I": 32, "Q": 64}.items()
}
"""Least and largest integer of a type."""
INTEGERS = {f"std_msgs/msg/{name}": letter for name, letter in LETTERS.items() if letter in "bhiqBHIQ"}


@dataclass(frozen=True)
class ScalarType:
    """Implements `CommandType`, `Bounded`; a Bool is 0 or 1, and commanded from 0.5 on."""

    name: str
    letter: str
    stamped: bool = False
    usual: tuple[str, ...] = ("data",)

    def fields(self, name: str) -> tuple[Field, ...]:
        return grouped(FIELDS, name, self.name)

    def reader(self, fields: Sequence[str]) -> ScalarReader:
        return ScalarReader(self.letter)

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        value = targets["data"]
        if self.letter == "?":
            return {"data": value >= 0.5}
        if self.letter in "fd":
            return {"data": value}
        least, most = RANGES[self.letter]
        return {"data": min(max(round(value), least), most)}

    def bounds(self, field: str) -> tuple[float, float]:
        if self.letter in "?d":
            return (-inf, inf)
        if self.letter == "f":
            return (-FLOAT32_MOST, FLOAT32_MOST)
        least, most = RANGES[self.letter]
        return (least - 0.5, most + 0.5)  # what rounds to them is within


class ScalarReader:
    """Implements `RecordedReader`."""

    def __init__(self, letter: str) -> None:
        self._letter = letter

    def live(self, message: Any) -> Values:
        return finite(np.array([message.data], dtype=np.float64), ("data",))

    def recorded(self, cdr: Cdr) -> Values:
        return finite(cdr.numbers(self._letter, 1).astype(np.float64), ("data",))


SCALARS = tuple(ScalarType(f"std_msgs/msg/{name}", letter) for name, letter in LETTERS.items())
BOOL = next(kind for kind in SCALARS if kind.letter == "?")
