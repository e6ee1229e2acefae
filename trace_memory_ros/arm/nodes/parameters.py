"""Parameters of arm_sim_node and controller_node; `config/` and `docs/nodes.md` repeat them, and a test compares."""

from __future__ import annotations

from dataclasses import dataclass

from trace_memory_ros.arm.sim.names import LIVE_TASKS, MOST_CHOICES
from trace_memory_ros.nodes.parameters import AUTOSTART, DIAGNOSTICS_RATE, parameter, realtime_priority, validate


@dataclass(frozen=True)
class ArmSimNodeParameters:
    """Parameters of arm_sim_node."""

    task: str = parameter("origin", "Delayed-evidence task.", choices=LIVE_TASKS, changes="live")
    seed: int = parameter(0, "Scenario seed of the next episode.", limits=(0, 1_000_000_000), changes="live")
    cue: int = parameter(
        0, "Evidence of the next episode; where there is one decision, its answer: 0 left, 1 right.",
        limits=(0, MOST_CHOICES - 1), changes="live",
    )  # fmt: skip
    extra_pause_s: float = parameter(
        0.0, "Red-lamp pause added between cue and branch in the next episode, simulated time.",
        unit="s", limits=(0.0, 3600.0), changes="live",
    )  # fmt: skip
    mode: str = parameter(
        "realtime", "Pace of the next episode: realtime follows the wall clock, lockstep waits for every command.",
        choices=("realtime", "lockstep"), changes="live",
    )  # fmt: skip
    camera_rate_hz: int = parameter(
        30, "Images per second in real time; a multiple of 10, so that every control tick has a picture.",
        unit="Hz", limits=(10, 100), changes="live",
    )  # fmt: skip
    joint_rate_hz: int = parameter(
        50, "Joint states and odometry per second in real time; a multiple of 10.",
        unit="Hz", limits=(10, 200), changes="live",
    )  # fmt: skip
    command_timeout_s: float = parameter(
        5.0, "Wall time a lock-step tick waits for its command before it goes on without one, counted.",
        unit="s", limits=(0.05, 600.0), changes="live",
    )  # fmt: skip
    realtime_priority: int = realtime_priority()
    diagnostics_rate_hz: float = parameter(1.0, DIAGNOSTICS_RATE, unit="Hz", limits=(0.1, 50.0))
    autostart: bool = parameter(False, AUTOSTART, changes="start")

    def __post_init__(self) -> None:
        validate(self)
        for name in ("camera_rate_hz", "joint_rate_hz"):
            if getattr(self, name) % 10:
                raise ValueError(f"parameter {name} = {getattr(self, name)} Hz is not a multiple of 10 Hz")


@dataclass(frozen=True)
class ControllerNodeParameters:
    """Parameters of controller_node."""

    controllers_file: str = parameter("", "YAML file with controllers: [{name, type, joints, ...}].")
    update_rate_hz: float = parameter(
        100.0, "Rate at which joints are told their place; 0 for lock-step, where each tick's command is told at once.",
        unit="Hz", limits=(0.0, 1000.0),
    )  # fmt: skip
    diagnostics_rate_hz: float = parameter(1.0, DIAGNOSTICS_RATE, unit="Hz", limits=(0.1, 50.0))
    autostart: bool = parameter(False, AUTOSTART, changes="start")

    def __post_init__(self) -> None:
        validate(self)
