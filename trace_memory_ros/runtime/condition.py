"""What `MemoryRuntime.tick` returns: the condition for a policy and the record for people."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]


class ConditionStatus(IntEnum):
    """Same values as the constants of `MemoryCondition.msg`."""

    OK = 0
    STALE = 1
    INVALID = 2


@dataclass(frozen=True)
class Condition:
    """One tick's memory condition; shapes as in `MemoryCondition.msg`.

    instance: of the node that made it, 0 in a replay; restored, gap_ticks: as in the message.
    """

    episode: int
    tick: int
    stamp_ns: int
    status: ConditionStatus
    reason: str
    mechanism: str
    model_id: str
    tokens: FloatArray
    vector: FloatArray
    read_weights: FloatArray
    address: FloatArray
    wrote: bool
    input_stamps_ns: dict[str, int]
    instance: int = 0
    restored: bool = False
    gap_ticks: int = 0


@dataclass(frozen=True)
class TickRecord:
    """What the memory did at one tick; shapes and meanings as in `MemoryDiagnostics.msg`."""

    slot_kind: str
    route: FloatArray
    write_strength: FloatArray
    slot_norms: FloatArray
    gate: float
    surprise: float
    due: bool
    path_length: float
    write_entropy: float
    slot_churn: float
    slot_occupancy: float
    write_count: int
    due_count: int
    write_rate_hz: float
    state_bytes: int
    ticks_stale: int
    ticks_invalid: int
    stage_ms: dict[str, float] = field(default_factory=dict)
    clipped_share: float = 0.0
    clipped_state: tuple[str, ...] = ()
