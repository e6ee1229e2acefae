"""Quality of service per kind of topic, in one place so that both ends agree."""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

RELIABILITIES: tuple[str, ...] = ("best_effort", "reliable")


def _profile(reliability: ReliabilityPolicy, durability: DurabilityPolicy, depth: int) -> QoSProfile:
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=reliability, durability=durability)


def sensor(reliability: str) -> QoSProfile:
    """Images, joints, odometry. `best_effort` for live drivers, `reliable` where a lost sample would stall a lock-step.

    The depth covers half a second of 100 Hz joints while a callback is busy.
    """
    if reliability not in RELIABILITIES:
        raise ValueError(f"reliability = {reliability!r}; choose one of {', '.join(RELIABILITIES)}")
    policy = ReliabilityPolicy.RELIABLE if reliability == "reliable" else ReliabilityPolicy.BEST_EFFORT
    return _profile(policy, DurabilityPolicy.VOLATILE, 50)


CONDITION = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 50)
"""Conditions and their diagnostics: one per tick, none may be lost."""

COMMAND = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)
"""Commands to the arm."""

STATUS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 1)
"""Episode status: a late joiner gets the newest one."""

DIAGNOSTICS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)
"""diagnostic_msgs for people and aggregators."""
