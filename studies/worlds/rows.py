"""The rows of every world's table: memories by name, with the options that a world of symbols asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trace_memory_ros.learning.sizes import memory_options
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryDims

CONTENT = WIDTH = 32
SLOTS = 8
_NORMED = {"read_norm": True, "address_norm": True}


@dataclass(frozen=True)
class Row:
    """A mechanism with its options. window: ticks of the path in its signatures, None for the whole episode."""

    memory: str
    options: dict[str, Any] = field(default_factory=dict)
    window: int | None = None

    def build(self, signature: int) -> Memory:
        """A fresh memory for signatures `(S,)`; 0 where none are computed."""
        return registry.build(self.memory, MemoryDims(CONTENT, signature, WIDTH, SLOTS), self.options)

    @property
    def uses_signature(self) -> bool:
        """Whether signatures have to be computed."""
        return self.build(1).uses_signature


ROWS: dict[str, Row] = {
    "none": Row("none"),
    "first_frame": Row("first_frame"),
    "last_k": Row("last_k"),
    "gru": Row("gru"),
    "gru+gate": Row("gru+gate"),
    "gru+cache": Row("gru+cache"),
    "lru": Row("lru"),
    "transformer": Row("transformer"),
    "trace": Row("trace", _NORMED),
    "trace+window": Row("trace", _NORMED, window=8),
    "trace+gate": Row("trace+gate", {"inner": _NORMED}),
    "aura": Row("aura", memory_options("aura")),
    "aura_room": Row("aura", memory_options("aura") | {"rho": 0.9}),
    "vla": Row("vla"),
    "deltanet": Row("deltanet"),
    "elmur": Row("elmur"),
    "prism": Row("prism"),
}
AUTO = "auto"
"""What `trace-memory train --memory auto` would take: nothing of its own, one of its candidates by task and seed."""
