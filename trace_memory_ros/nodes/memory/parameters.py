"""The parameters of memory_node, which `config/memory_node.yaml` and `docs/nodes.md` repeat; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass

from trace_memory_ros.nodes.parameters import AUTOSTART, CHECKPOINT, DIAGNOSTICS_RATE, RELIABILITY, parameter, validate
from trace_memory_ros.nodes.qos import RELIABILITIES


@dataclass(frozen=True)
class MemoryNodeParameters:
    """Parameters of memory_node."""

    checkpoint: str = parameter("", CHECKPOINT)
    reliability: str = parameter("best_effort", RELIABILITY, choices=RELIABILITIES)
    deadline_ms: int = parameter(
        0, "How long a tick waits for late streams before it goes on without them; 0 takes the checkpoint's time.",
        unit="ms", limits=(0, 60_000),
    )  # fmt: skip
    snapshot_path: str = parameter(
        "memory_snapshot.safetensors", "File that ~/snapshot writes and ~/restore reads.", changes="live"
    )
    diagnostics_rate_hz: float = parameter(1.0, DIAGNOSTICS_RATE, unit="Hz", limits=(0.1, 50.0))
    publish_seen: bool = parameter(
        False, "Publish what the memory sees at every tick, all cameras side by side at its size, on memory/seen."
    )
    autostart: bool = parameter(False, AUTOSTART, changes="start")

    def __post_init__(self) -> None:
        validate(self)
