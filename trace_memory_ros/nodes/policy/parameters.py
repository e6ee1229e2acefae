"""The parameters of policy_node, which `config/policy_node.yaml` and `docs/nodes.md` repeat; a test compares them."""

from __future__ import annotations

from dataclasses import dataclass

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

ON_LIMIT = ("clamp", "refuse")
TRAJECTORY_STAMPS = ("now", "tick")
LOCKSTEP: dict[str, bool | int | float | str] = {"command_age_limit_ms": 0, "trajectory_stamp": "tick"}
"""Where a simulator waits for the command of each tick: every tick is answered, by its stamp, whatever its age."""


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
    actions_file: str = parameter(
        "", "YAML file whose actions are published in place of the checkpoint's, with outputs of the same names.",
    )  # fmt: skip
    command_age_limit_ms: int = parameter(
        500, "Age, ROS clock less stamp, from which on a tick's command is not sent; 0 for any, as lock-step needs it.",
        unit="ms", limits=(0, 60_000),
    )  # fmt: skip
    hold_ms: int = parameter(
        500, "How long after its last good command, by stamps, ticks without a usable condition repeat it.",
        unit="ms", limits=(0, 60_000),
    )  # fmt: skip
    condition_timeout_ms: int = parameter(
        500, "Silence of memory/condition after which what moves by velocity is stopped and the silence reported.",
        unit="ms", limits=(10, 60_000),
    )  # fmt: skip
    limits_file: str = parameter(
        "", "YAML file with limits: {OUTPUT: {min, max, max_step, max_velocity, max_acceleration}}.",
    )  # fmt: skip
    urdf: str = parameter(
        "", "URDF file of the robot; position and velocity limits of joints called as outputs are taken from it.",
    )  # fmt: skip
    on_limit: str = parameter(
        "clamp", "A command beyond a limit is sent as far as the limit allows, or refused as a whole.",
        choices=ON_LIMIT,
    )  # fmt: skip
    ramp_ms: int = parameter(
        0, "How long commands go from where the arm is to the policy's targets, after enabling, a stop or an outage.",
        unit="ms", limits=(0, 60_000),
    )  # fmt: skip
    trajectory_stamp: str = parameter(
        "now", "Stamp of JointTrajectory: now is 0, which its controller takes as now; tick is for lock-step.",
        choices=TRAJECTORY_STAMPS,
    )  # fmt: skip
    time_from_start_ms: int = parameter(
        0, "When after its stamp a JointTrajectory's target is to be reached; 0 for one tick.",
        unit="ms", limits=(0, 60_000),
    )  # fmt: skip
    trajectory_velocities: bool = parameter(
        False, "Send velocities beside a JointTrajectory's positions: allow_nonzero_velocity_at_trajectory_end only.",
    )  # fmt: skip
    accept_restored: bool = parameter(
        False, "Go on in mid-episode with a memory restored from a snapshot, rather than stop until ~/enable.",
    )  # fmt: skip
    enable_after_outage_s: float = parameter(
        30.0, "Time without a command after which the next one needs ~/enable, or ~/reset; 0 for none.",
        unit="s", limits=(0.0, 86_400.0),
    )  # fmt: skip
    start_enabled: bool = parameter(True, "Commands are sent without a call of ~/enable.")
    dry_run: bool = parameter(
        False, "Publish commands on ~/dry_run/TOPIC in place of TOPIC: everything but moving the robot.",
    )  # fmt: skip
    realtime_priority: int = realtime_priority()
    hang_timeout_s: float = hang_timeout()
    diagnostics_rate_hz: float = parameter(1.0, DIAGNOSTICS_RATE, unit="Hz", limits=(0.1, 50.0))
    autostart: bool = parameter(False, AUTOSTART, changes="start")

    def __post_init__(self) -> None:
        validate(self)
