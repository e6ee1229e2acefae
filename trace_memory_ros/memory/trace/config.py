"""Settings of TRACE; sizes shared by every mechanism are in `MemoryDims`."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from trace_memory_ros.memory.base import MemoryDims

ROUTINGS = ("slots", "prototypes")


@dataclass(frozen=True)
class TraceConfig:
    """Settings of `TraceMemory`; the defaults are the paper's form, a size of None means `MemoryDims.width`.

    address_width: width of g_t and of delta g_t. routing_width: d_r of eq. 26. hidden: hidden width of every phi.
    temperature: tau of eq. 26. slot_identity: lambda_eta of eq. 25; at 0 all slots stay equal for ever, because they
    start equal and see the same input. use_delta: delta g_t in the address. anchor: content of the first tick in q_t.
    routing: "slots" (eq. 26) or "prototypes" (distance of the signature to K centres, see `calibrate`).
    read_norm: LayerNorm on the read vector. address_norm: LayerNorm on g_t and delta g_t.
    Raises ValueError on a value out of range, TypeError on a value of the wrong type.
    """

    address_width: int | None = None
    routing_width: int | None = None
    hidden: int | None = None
    temperature: float = 1.0
    slot_identity: float = 1.0
    use_delta: bool = True
    anchor: bool = False
    routing: str = "slots"
    read_norm: bool = False
    address_norm: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, bool) != isinstance(value, bool):
                kind = "true or false" if isinstance(field.default, bool) else "not a boolean"
                raise TypeError(f"TraceConfig.{field.name} = {value!r}: must be {kind}")
        for name in ("address_width", "routing_width", "hidden"):
            size = getattr(self, name)
            if size is not None and not isinstance(size, int):
                raise TypeError(f"TraceConfig.{name} = {size!r}: must be an integer, or null for the memory's width")
            if size is not None and size < 1:
                raise ValueError(f"TraceConfig.{name} = {size}: must be at least 1, or null for the memory's width")
        for name in ("temperature", "slot_identity"):
            number = getattr(self, name)
            if not isinstance(number, int | float):
                raise TypeError(f"TraceConfig.{name} = {number!r}: must be a number")
            if not math.isfinite(number) or number < 0 or (name == "temperature" and number == 0):
                sign = "positive" if name == "temperature" else "not negative"
                raise ValueError(f"TraceConfig.{name} = {number}: must be finite and {sign}")
        if self.routing not in ROUTINGS:
            raise ValueError(f"TraceConfig.routing = {self.routing!r}: must be one of {', '.join(ROUTINGS)}")

    @staticmethod
    def paper() -> TraceConfig:
        """Table 10: 512 for the signature embeddings and the routing; belongs to `paper_dims`."""
        return TraceConfig(address_width=512, routing_width=512, hidden=512)

    @staticmethod
    def paper_dims(slots: int = 6) -> MemoryDims:
        """Table 10: e_t = [v_t, p_t] of 512 + 512, depth-3 signature of a 17-D state, slots 512 wide."""
        return MemoryDims(content=1024, signature=17 + 17**2 + 17**3, width=512, slots=slots)
