"""What a runtime remembers of its past ticks, beside the memory itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.memory.base import Readout, WriteRecord
from trace_memory_ros.runtime.condition import FloatArray


@dataclass
class LastOutputs:
    """The last usable tick's readout and the last due write's record, float32; shapes as in the messages."""

    tokens: FloatArray
    vector: FloatArray
    read_weights: FloatArray
    address: FloatArray
    route: FloatArray
    write_strength: FloatArray
    gate: FloatArray
    surprise: FloatArray

    @classmethod
    def empty(cls, slots: int, width: int, address: int) -> LastOutputs:
        """Before the first usable tick: zeros, gate 1."""
        sizes = ((slots, width), (width,), (slots,), (address,), (slots,), (slots,), (1,), (1,))
        outputs = cls(*(np.zeros(size, dtype=np.float32) for size in sizes))
        outputs.gate[:] = 1.0
        return outputs

    def take_read(self, readout: Readout) -> None:
        """Keep a batch-1 readout."""
        self.tokens, self.vector = _first(readout.tokens), _first(readout.vector)
        self.read_weights, self.address = _first(readout.read_weights), _first(readout.address)

    def take_write(self, record: WriteRecord) -> None:
        """Keep a batch-1 record."""
        self.route, self.write_strength = _first(record.route), _first(record.write_strength)
        self.gate, self.surprise = _first(record.gate[:, None]), _first(record.surprise[:, None])

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `restore` accepts."""
        return {f.name: getattr(self, f.name).copy() for f in fields(self)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Stand where `snapshot` was taken."""
        for f in fields(self):
            setattr(self, f.name, arrays[f.name].copy())


@dataclass
class TickCounts:
    """Ticks since reset by outcome; episode: resets since the runtime began.

    first_ns: first usable tick's stamp, which tells who reads a snapshot of what time it is.
    due: ticks at which the update clock asked for a write.
    """

    episode: int = 0
    ok: int = 0
    stale: int = 0
    invalid: int = 0
    due: int = 0
    first_ns: int = 0

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `restore` accepts."""
        return {f.name: np.array([getattr(self, f.name)], dtype=np.int64) for f in fields(self)}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Stand where `snapshot` was taken."""
        for f in fields(self):
            setattr(self, f.name, int(arrays[f.name][0]))


def _first(tensor: Tensor) -> FloatArray:
    """The only row of a batch of one, as an array of its own."""
    array: FloatArray = np.array(tensor[0].numpy(), dtype=np.float32)
    return array
