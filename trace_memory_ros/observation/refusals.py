"""Why samples were refused, in words that a live node and a replay share."""

from __future__ import annotations

from trace_memory_ros.observation.alignment import Verdict

_REFUSALS = {
    Verdict.DUPLICATE: "a sample with the stamp of the one before was refused: stamp every sample when it is taken",
    Verdict.OUT_OF_ORDER: "a sample stamped before an earlier one was refused: one publisher per topic, rising stamps",
    Verdict.AHEAD: "a sample stamped far ahead of the other streams was refused: stamp all streams by one clock",
    Verdict.UNSTAMPED: "a sample with a stamp of zero was refused: let the driver fill header.stamp, or train with "
    "stamp: received",
    Verdict.LATE: "a sample arrived after its tick had fired: speed up the stream, raise deadline_ms, or, where it is "
    "not late but stamped in the past, stamp all streams by one clock",
}


def refusal(stream: str, verdict: Verdict) -> str:
    """What is wrong with a sample that was refused or late, and the remedy; empty for an accepted one."""
    text = _REFUSALS.get(verdict)
    return f"{stream}: {text}" if text else ""
