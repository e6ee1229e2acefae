"""Settings of AURA-Mem."""

from __future__ import annotations

from dataclasses import dataclass

from trace_memory_ros.memory.aura.write_schedule import SCHEDULES
from trace_memory_ros.memory.write_gate import LEARNED, check_penalty

GATES = (*LEARNED, *SCHEDULES)
SIGNALS = ("action", "token")
OFFERS = ("code", "rows")
OFFER_BEFORE = "rows"
"""Of checkpoints that were made before there was a choice."""


@dataclass(frozen=True)
class AuraConfig:
    """Settings of AURA-Mem.

    key_width d_k, value_width d_v. offer: the readout's tokens, "code", the bottleneck's code alone, or "rows", the
    rows of W, which pass the bottleneck by. encoder_hidden, summary_width: the MLP from content to the frame summary z;
    None: `MemoryDims.width`. gate: how the gate decides, learned or by a schedule that ignores the content.
    gate_signal: what trains a learned gate, the action loss or reconstruction of the next input. rho: target share of
    written updates. write_weight gamma: of the rate penalty. rate_of: what it counts, the gate's "probability" or its
    "writes". ramp_from, ramp: the shares of the training at which rate penalty and KL begin to rise, and are full.
    temperature tau. action_ib, ib_weight beta: the stochastic bottleneck at reads and its KL. unit_keys: keys and
    queries of length 1. step_size, decay: initial eta and alpha. gate_bias: the initial logit of the gate, open where
    positive. schedule_seed: of gate="random".
    """

    key_width: int = 32
    value_width: int = 32
    offer: str = "code"
    encoder_hidden: int | None = None
    summary_width: int | None = None
    gate: str = "straight_through"
    gate_signal: str = "action"
    gate_hidden: int = 64
    gate_bias: float = 1.0
    rho: float = 0.15
    write_weight: float = 1.0
    rate_of: str = "probability"
    ramp_from: float = 0.0
    ramp: float = 0.6
    temperature: float = 1.0
    action_ib: bool = True
    ib_weight: float = 1e-3
    unit_keys: bool = True
    step_size: float = 0.5
    decay: float = 1e-3
    schedule_seed: int = 0

    def __post_init__(self) -> None:
        for name in ("key_width", "value_width", "encoder_hidden", "summary_width", "gate_hidden"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"AuraConfig.{name} = {value}: must be at least 1")
        for name, known in (("gate", GATES), ("gate_signal", SIGNALS), ("offer", OFFERS)):
            if getattr(self, name) not in known:
                raise ValueError(f"AuraConfig.{name} = {getattr(self, name)!r}: must be one of {', '.join(known)}")
        if self.gate_signal == "token" and not self.learned:
            raise ValueError(f"AuraConfig.gate_signal = 'token' needs a learned gate, not {self.gate!r}: {LEARNED}")
        self._check_numbers()

    def _check_numbers(self) -> None:
        ranges = {"rho": (0, 1), "decay": (0, 1), "temperature": (0, None), "step_size": (0, None)}
        for name, (low, high) in ranges.items():
            value = getattr(self, name)
            if value <= low or (high is not None and value >= high):
                beyond = "" if high is None else f" and below {high}"
                raise ValueError(f"AuraConfig.{name} = {value}: must be above {low}{beyond}")
        if self.unit_keys and self.step_size > 1:
            raise ValueError(f"AuraConfig.step_size = {self.step_size}: above 1 it diverges with unit keys; lower it")
        check_penalty("AuraConfig", self.ramp_from, self.ramp, self.rate_of)
        for name in ("write_weight", "ib_weight"):
            if getattr(self, name) < 0:
                raise ValueError(f"AuraConfig.{name} = {getattr(self, name)}: must not be negative")

    @property
    def learned(self) -> bool:
        """Whether there is a gate with parameters."""
        return self.gate in LEARNED
