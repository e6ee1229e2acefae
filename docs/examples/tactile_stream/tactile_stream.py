"""A tactile sensor's message as robot state: `std_msgs/Header header`, `float32[] pressures` in kPa.

Bags bring the definition, so that this reads them without tactile_msgs; a live node needs it installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trace_memory_ros.streams.base import Field, ReadError, Values, finite


class Taxels:
    """Fields `pressure.0`, `pressure.1`, ..."""

    name = "tactile_msgs/msg/Taxels"
    stamped = True
    usual: tuple[str, ...] = ()

    def fields(self, name: str) -> tuple[Field, ...]:
        return (Field(f"pressure.{int(name.rpartition('.')[2])}", "kPa"),)

    def reader(self, fields: Sequence[str]) -> TaxelsReader:
        return TaxelsReader(fields)


class TaxelsReader:
    """Reads the selected pressures."""

    def __init__(self, fields: Sequence[str]) -> None:
        self._fields = tuple(fields)
        self._at = [int(field.rpartition(".")[2]) for field in fields]

    def live(self, message: Any) -> Values:
        pressures = np.asarray(message.pressures, dtype=np.float64)
        if max(self._at) >= pressures.size:
            raise ReadError(f"{pressures.size} pressures, {max(self._at)} is selected: correct the selection")
        return finite(pressures[self._at], self._fields)


TAXELS = Taxels()
