"""Whether the robot is where its demonstrations were."""

from __future__ import annotations

from collections import Counter, deque

from trace_memory_ros.nodes.memory.findings import Finding, Level, Recent
from trace_memory_ros.runtime.condition import TickRecord

RANGE = "range"
RECENT_TICKS = 20
"""A number of the state that was beyond training at half of them is told."""


class RangeWatch:
    """Follows what ticks cut off of state and signature since `begin`."""

    def __init__(self) -> None:
        self._beyond: deque[tuple[str, ...]] = deque(maxlen=RECENT_TICKS)
        self._shares = Recent()

    def begin(self) -> None:
        """Look anew."""
        self._beyond.clear()
        self._shares.clear()

    def ticked(self, record: TickRecord) -> None:
        """A condition was published."""
        self._beyond.append(record.clipped_state)
        self._shares.add(100 * record.clipped_share)

    def finding(self) -> Finding:
        """What is beyond training, and by what share of all numbers."""
        counts = Counter(name for names in self._beyond for name in names)
        far = [name for name, count in counts.items() if 2 * count >= len(self._beyond)]
        values = {"cut off of state and signature (%) p50 / p99 / max": self._shares.percentiles()}
        if not far:
            message = "the state is near what training showed" if self._beyond else "no tick yet"
            return Finding(RANGE, Level.OK, message, values)
        message = (
            f"far beyond what training showed, and cut off: {', '.join(far)}; compare units and joint names with the "
            "recordings (trace-memory bags inspect), or demonstrate what is done here"
        )
        return Finding(RANGE, Level.WARN, message, values)
