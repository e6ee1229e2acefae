"""Options with which the mechanisms are compared: at the arm's sizes each has TRACE's parameters, within 5 %."""

from __future__ import annotations

from typing import Any

from trace_memory_ros.memory.base import MemoryDims

ARM_DIMS = MemoryDims(content=96, signature=306, width=64, slots=4)
"""What the arm tasks train with: three cameras and 17 state channels, signatures of depth 2."""
PARAMETERS = 62_369
"""TRACE's, at `ARM_DIMS`."""
_TRACE = {"address_width": 32, "hidden": 32, "routing_width": 32, "read_norm": True, "address_norm": True}
MATCHED: dict[str, dict[str, Any]] = {
    "aura": {
        "encoder_hidden": 282,
        "step_size": 0.1,
        "rate_of": "writes",
        "ramp_from": 0.6,
        "ramp": 0.8,
        "ib_weight": 1e-5,
    },
    "deltanet": {"hidden": 285},
    "elmur": {"model": 40, "hidden": 40},
    "gru": {"hidden": 96},
    "gru+gate": {"inner": {"hidden": 94}, "hidden": 12},
    "last_k": {"frames": 9},
    "linear_attention": {"hidden": 285},
    "lru": {"hidden": 120},
    "prism": {"window": 64, "width": 40, "layers": 1, "hidden": 104},
    "retrieval": {"hidden": 120},
    "trace": _TRACE,
    "trace+gate": {"inner": _TRACE, "hidden": 12},
    "transformer": {"layers": 2, "heads": 4, "hidden": 77},
    "vla": {"hidden": 280},
}
POLICY_OPTIONS: dict[str, dict[str, Any]] = {
    "diffusion": {"model": 32, "width": 64, "channels": (24, 48), "kernel": 3, "draws": 8},
}
"""What a policy family is asked for beyond its defaults: a checkpoint of half a megabyte."""
