"""Message types that hold the same float64 numbers in every message: twists, poses, wrenches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np

from trace_memory_ros.streams.base import CHECK, Field, Plain, Values, finite, grouped
from trace_memory_ros.streams.cdr import Cdr


@dataclass(frozen=True)
class Numbers:
    """Where a type's numbers stand. texts: strings before them in CDR. paths: attribute of each number, an index at the
    end being one in an array. at: its place among the payload's float64. total: how many of those there are.
    """

    paths: tuple[str, ...]
    at: tuple[int, ...]
    total: int
    texts: int = 0


@dataclass(frozen=True)
class DoublesType:
    """Implements `StreamType`. table: the fields, in the order of `derive`'s output.

    derive: what is made of the numbers `(N,)` of a message, NaN for what it does not have; None for the numbers
    themselves. Raises ReadError. remedy: where a selected one is not finite.
    """

    name: str
    stamped: bool
    table: tuple[Field, ...]
    numbers: Numbers
    derive: Callable[[Values], Values] | None = None
    usual: tuple[str, ...] = ()
    remedy: str = field(default=CHECK, kw_only=True)

    def fields(self, name: str) -> tuple[Field, ...]:
        return grouped(self.table, name, self.name)

    def reader(self, fields: Sequence[str]) -> DoublesReader:
        return DoublesReader(self, fields)


@dataclass(frozen=True)
class DoublesCommand(DoublesType):
    """Implements `CommandType`. gather: numbers `(N,)` from the fields `(F,)` of the table; None for the same ones."""

    gather: Callable[[Values], Values] | None = None

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        values = np.array([targets.get(field.name, 0.0) for field in self.table])
        numbers = values if self.gather is None else self.gather(values)
        out: Plain = {}
        for path, number in zip(self.numbers.paths, numbers.tolist(), strict=True):
            *parents, leaf = path.split(".")
            inner = out
            for parent in parents:
                inner = inner.setdefault(parent, {})
            inner[leaf] = number
        return out


class DoublesReader:
    """Implements `RecordedReader`."""

    def __init__(self, kind: DoublesType, fields: Sequence[str]) -> None:
        names = [field.name for field in kind.table]
        self._kind = kind
        self._fields = tuple(fields)
        self._columns = [names.index(field) for field in fields]
        self._attributes = [_getter(path) for path in kind.numbers.paths]
        self._at = list(kind.numbers.at)

    def live(self, message: Any) -> Values:
        return self._selected(np.array([get(message) for get in self._attributes], dtype=np.float64))

    def recorded(self, cdr: Cdr) -> Values:
        for _ in range(self._kind.numbers.texts):
            cdr.text()
        return self._selected(cdr.doubles(self._kind.numbers.total)[self._at])

    def _selected(self, numbers: Values) -> Values:
        derive = self._kind.derive
        values = numbers if derive is None else derive(numbers)
        return finite(values[self._columns], self._fields, self._kind.remedy)


def _getter(path: str) -> Callable[[Any], float]:
    parent, _, last = path.rpartition(".")
    if not last.isdecimal():
        return attrgetter(path)
    array, index = attrgetter(parent), int(last)
    return lambda message: array(message)[index]


def paths(prefix: str, *groups: str) -> tuple[str, ...]:
    """`prefix.group.x`, `.y`, `.z` of each group."""
    return tuple(f"{prefix}{group}.{axis}" for group in groups for axis in "xyz")


def vectors(*groups: tuple[str, str, bool]) -> tuple[Field, ...]:
    """Fields `name.x`, `.y`, `.z` of each group of name, unit and whether it is part of the path."""
    return tuple(Field(f"{name}.{axis}", unit, path) for name, unit, path in groups for axis in "xyz")
