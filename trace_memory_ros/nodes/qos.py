"""Quality of service per kind of topic, in one place so that both ends agree."""

from __future__ import annotations

from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

RELIABILITIES: tuple[str, ...] = ("best_effort", "reliable")


def _profile(reliability: ReliabilityPolicy, durability: DurabilityPolicy, depth: int) -> QoSProfile:
    return QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=depth, reliability=reliability, durability=durability)


def sensor(reliability: str) -> QoSProfile:
    """Images. `best_effort` for live drivers, `reliable` where a lost sample would stall a lock-step.

    The depth covers over a second of 30 Hz images while a callback is busy.
    """
    return _profile(_reliability(reliability), DurabilityPolicy.VOLATILE, 50)


def state(reliability: str) -> QoSProfile:
    """Joints, odometry and whatever else is small.

    Nothing is lost within a second of 1 kHz: memory and policy must find the same samples, and one that skipped some
    would name, or lack, others. What waits too long is named as overload.
    """
    return _profile(_reliability(reliability), DurabilityPolicy.VOLATILE, 1000)


def _reliability(name: str) -> ReliabilityPolicy:
    if name not in RELIABILITIES:
        raise ValueError(f"reliability = {name!r}; choose one of {', '.join(RELIABILITIES)}")
    return ReliabilityPolicy.RELIABLE if name == "reliable" else ReliabilityPolicy.BEST_EFFORT


CONDITION = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 500)
"""Conditions and their diagnostics: one per tick, none may be lost. Deep enough for the ticks of five seconds at
100 Hz, which fire together when a camera comes back."""

COMMAND = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 100)
"""Commands to the arm: a second of ticks of 100 Hz, for whoever records them."""


def command(lifespan_ms: int) -> QoSProfile:
    """Commands that expire on the way: what a frozen process or a cut network kept is not delivered late. 0: never."""
    profile = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 100)
    if lifespan_ms:
        profile.lifespan = Duration(nanoseconds=lifespan_ms * 1_000_000)
    return profile


STOP = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 1)
"""A button: any message counts, and none may be lost."""

STATUS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.TRANSIENT_LOCAL, 1)
"""Episode status: a late joiner gets the newest one."""

DIAGNOSTICS = _profile(ReliabilityPolicy.RELIABLE, DurabilityPolicy.VOLATILE, 10)
"""diagnostic_msgs for people and aggregators."""
