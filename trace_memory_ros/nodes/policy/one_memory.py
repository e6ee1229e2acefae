"""Whose conditions are acted on: one memory's, which stays the same throughout an episode."""

from __future__ import annotations

from trace_memory_ros.runtime.condition import Condition


class OneMemory:
    """Notices another memory in mid-episode: a second one on the topic, or one that began anew.

    accept_restored: a memory that goes on from a snapshot takes the place of the one before.
    """

    def __init__(self, accept_restored: bool) -> None:
        self._accept_restored = accept_restored
        self._instance: int | None = None

    def forget(self) -> None:
        """Whichever memory speaks next is the one."""
        self._instance = None

    def problem(self, condition: Condition) -> str:
        """Why a condition must not be acted on; empty where it may."""
        known = self._instance
        self._instance = condition.instance
        if known is None or known == condition.instance or (condition.restored and self._accept_restored):
            return ""
        what = f"restored, {condition.gap_ticks} ticks missing" if condition.restored else f"at tick {condition.tick}"
        return (
            f"the memory changed in mid-episode, from instance {known} to {condition.instance} ({what}): memory_node "
            "was restarted, or two of them publish on one topic"
        )
