"""The parameters of memory_node, which `config/memory_node.yaml` and `docs/nodes.md` repeat; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass

from trace_memory_ros.files.home import opened
from trace_memory_ros.nodes.memory.continuity import Keeping
from trace_memory_ros.nodes.memory.remembering import ON_CLOCK_JUMP
from trace_memory_ros.nodes.parameters import (
    AUTOSTART,
    CHECKPOINT,
    DIAGNOSTICS_RATE,
    RELIABILITY,
    hang_timeout,
    parameter,
    realtime_priority,
    validate,
)
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
    snapshot_dir: str = parameter(
        "", "Folder in which a snapshot is kept while the node ticks, to go on from after a fault; empty keeps none."
    )
    snapshot_period_s: float = parameter(
        1.0, "Time between these snapshots; 0 keeps none.", unit="s", limits=(0.0, 3600.0)
    )
    restore_max_age_s: float = parameter(
        30.0, "Oldest snapshot that activation goes on from; 0 begins empty.", unit="s", limits=(0.0, 86_400.0)
    )
    restore_max_gap_ticks: int = parameter(
        3_000, "Control ticks that the memory may miss, by a restoration or a silence of all streams, before a new "
        "episode begins.", limits=(0, 1_000_000),
    )  # fmt: skip
    on_clock_jump: str = parameter(
        "stop", "When the stamps of all streams jump: stop until ~/reset, or begin a new_episode.",
        choices=ON_CLOCK_JUMP,
    )  # fmt: skip
    stream_timeout_s: float = parameter(
        3.0, "How long a stream may take to begin before that is an error.", unit="s", limits=(0.1, 3600.0)
    )
    repeat_timeout_s: float = parameter(
        3.0, "How long a camera may send one and the same picture while the robot moves, before that is told; 0 for "
        "ever.", unit="s", limits=(0.0, 3600.0),
    )  # fmt: skip
    realtime_priority: int = realtime_priority()
    hang_timeout_s: float = hang_timeout()
    diagnostics_rate_hz: float = parameter(1.0, DIAGNOSTICS_RATE, unit="Hz", limits=(0.1, 50.0))
    publish_seen: bool = parameter(
        False, "Publish what the memory sees at every tick, all cameras side by side at its size, on memory/seen."
    )
    autostart: bool = parameter(False, AUTOSTART, changes="start")

    def __post_init__(self) -> None:
        validate(self)

    @property
    def keeping(self) -> Keeping:
        """Where snapshots are kept, and which are gone on from."""
        folder = opened(self.snapshot_dir).absolute() if self.snapshot_dir else None
        return Keeping(folder, self.snapshot_period_s, self.restore_max_age_s, self.restore_max_gap_ticks)
