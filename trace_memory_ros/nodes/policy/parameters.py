"""The parameters of policy_node, which `config/policy_node.yaml` and `docs/nodes.md` repeat; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass

from trace_memory_ros.nodes.parameters import AUTOSTART, CHECKPOINT, DIAGNOSTICS_RATE, RELIABILITY, parameter, validate
from trace_memory_ros.nodes.qos import RELIABILITIES


@dataclass(frozen=True)
class PolicyNodeParameters:
    """Parameters of policy_node."""

    checkpoint: str = parameter("", CHECKPOINT)
    reliability: str = parameter("best_effort", RELIABILITY, choices=RELIABILITIES)
    input_wait_ms: int = parameter(
        100, "How long a condition waits for an input sample that it names and that has not arrived yet.",
        unit="ms", limits=(0, 10_000),
    )  # fmt: skip
    chunk_wait_ms: int = parameter(
        50, "How long a tick waits for a chunk that is being computed, before the one that is executed goes on.",
        unit="ms", limits=(0, 60_000),
    )  # fmt: skip
    actuators: str = parameter(
        "", "The robot's actuators, by comma; the policy's action names must be these. Empty takes the policy's word.",
    )  # fmt: skip
    hold_ms: int = parameter(
        500, "How long the last command is repeated on ticks without a usable condition, before commands stop.",
        unit="ms", limits=(0, 60_000),
    )  # fmt: skip
    condition_timeout_ms: int = parameter(
        500, "Silence of memory/condition after which the last command is repeated once and the stop is reported.",
        unit="ms", limits=(10, 60_000),
    )  # fmt: skip
    diagnostics_rate_hz: float = parameter(1.0, DIAGNOSTICS_RATE, unit="Hz", limits=(0.1, 50.0))
    autostart: bool = parameter(False, AUTOSTART, changes="start")

    def __post_init__(self) -> None:
        validate(self)
