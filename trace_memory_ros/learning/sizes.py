"""The memory that a robot has, and its sizes, unless others are asked for.

A mechanism is as wide as `WIDTH` says and otherwise at its own defaults: 16 to 180 thousand parameters, a state of a
few kB. `SLOTS` are enough for a handful of things to hold at once; an unused one costs `WIDTH` numbers. What is set
besides are options without which a mechanism was seen to learn nothing, or its training episodes by heart.
"""

from __future__ import annotations

from typing import Any

from trace_memory_ros.memory.registry import inner_name

AUTO = "auto"
"""In place of a memory's name, and where none is asked for: training chooses among these."""
LADDER = ("none", "first_frame", "gru+gate", "gru", "gru+cache")
"""The simplest first: nothing, the first look, a summary, seldom written or always, beside looks as they were."""
USUAL = "gru"
"""What is taken of them where no episode is there to choose by (docs/how-to/choose-a-memory.md)."""
WIDTH = 64
SLOTS = 8
OPTIONS: dict[str, dict[str, Any]] = {
    # A whole episode's signature is a fingerprint of it: addresses of full width learn by heart which episode it is.
    # Without the norms its numbers, which grow with the path, outweigh what was seen.
    "trace": {"address_width": 32, "hidden": 32, "routing_width": 32, "read_norm": True, "address_norm": True},
    # At its first step size every write wiped the one before, and the penalties shut the gate for good or emptied the
    # code (docs/explanation/mechanisms/aura.md).
    "aura": {"step_size": 0.1, "rate_of": "writes", "ramp_from": 0.6, "ramp": 0.8, "ib_weight": 1e-5},
}
"""Options of mechanisms, by registry name."""


def memory_options(name: str) -> dict[str, Any]:
    """The options of a mechanism, those of one behind a write gate or before a cache as its inner ones."""
    inner = inner_name(name)
    return dict(OPTIONS.get(name, {})) if inner is None else {"inner": memory_options(inner)}
