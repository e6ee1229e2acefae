"""Whether conditions come, in time and good ones."""

from __future__ import annotations

from collections.abc import Sequence

from trace_memory_ros.nodes.memory.findings import Finding, Level, Recent
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.condition import Condition, ConditionStatus
from trace_memory_ros.runtime.message_fields import MS_NS

LEAST_SILENCE_NS = 500 * MS_NS
LEAST_WAIT_MS = 50.0
"""A message may wait this long in the node's queues, and at least a tick period, before that is called overload."""
OVERLOADED_SHARE = 0.1


class TickWatch:
    """Follows conditions since `begin`; times are ns on the monotonic wall clock.

    timeout_ns: how long the first may take.
    """

    def __init__(self, config: ObservationConfig, timeout_ns: int) -> None:
        self._silent_ns = max(LEAST_SILENCE_NS, config.deadline_ms * MS_NS + 2 * config.period_ns)
        self._period_ms = config.period_ns / MS_NS
        self._timeout_ns = timeout_ns
        self._waits_ms, self._latencies_ms, self._ages_ms = Recent(), Recent(), Recent()
        self.begin(0)

    def begin(self, now_ns: int) -> None:
        """Look anew."""
        self._began_ns = now_ns
        self._newest_ns = -1
        self._condition: Condition | None = None
        for recent in (self._waits_ms, self._latencies_ms, self._ages_ms):
            recent.clear()

    def came(self, wait_ms: float) -> None:
        """An input that had waited so long in this node's queues."""
        self._waits_ms.add(wait_ms)

    def ticked(self, condition: Condition, now_ns: int, latency_ms: float, age_ms: float) -> None:
        """A condition was published; age_ms: wall clock less its stamp."""
        self._condition, self._newest_ns = condition, now_ns
        self._latencies_ms.add(latency_ms)
        self._ages_ms.add(age_ms)

    def finding(self, now_ns: int, stopped: str, waiting: str, publishers: Sequence[str] = ()) -> Finding:
        """The conditions' state.

        stopped: why there are none any more; waiting: for what the first one waits. publishers: nodes that publish
        conditions on this topic, as the graph knows them: one that was killed is listed for some seconds.
        """
        condition = self._condition
        level, message = self._judged(now_ns, stopped, waiting)
        if len(publishers) > 1:
            level = max(level, Level.WARN)
            rivals = f"{len(publishers)} publishers of memory/condition: {', '.join(sorted(publishers))}"
            message = f"{rivals}; run one memory_node per namespace; {message}"
        values = {
            "tick": str(condition.tick) if condition else "-",
            "status": condition.status.name if condition else "-",
            "latency (ms) p50 / p99 / max": self._latencies_ms.percentiles(),
            "age when published (ms) p50 / p99 / max": self._ages_ms.percentiles(),
            "inputs waited (ms) p50 / p99 / max": self._waits_ms.percentiles(),
        }
        return Finding("condition", level, message, values)

    def _judged(self, now_ns: int, stopped: str, waiting: str) -> tuple[Level, str]:
        if stopped:
            return Level.ERROR, stopped
        condition = self._condition
        if condition is None:
            level = Level.WARN if now_ns - self._began_ns < self._timeout_ns else Level.ERROR
            return level, f"no control tick yet: {waiting or 'its inputs are not complete'}"
        if now_ns - self._newest_ns > self._silent_ns:
            return Level.ERROR, "no control tick comes any more: see the streams"
        overload = self._overload()
        if condition.status is not ConditionStatus.OK:
            text = f"condition {condition.status.name}: {condition.reason}"
            return Level.ERROR, f"{overload}; {text}" if overload else text
        return (Level.WARN, overload) if overload else (Level.OK, "a condition at every tick")

    def _overload(self) -> str:
        limit_ms = max(LEAST_WAIT_MS, self._period_ms)
        if self._waits_ms.share_above(limit_ms) <= OVERLOADED_SHARE:
            return ""
        return (
            f"overload: inputs wait for more than {limit_ms:g} ms in this node's queues, so conditions come late: give "
            "it a core, or slow down or throttle the fastest stream"
        )
