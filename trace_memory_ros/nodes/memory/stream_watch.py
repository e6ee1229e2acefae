"""Whether a stream comes, how fast, and whether it can be used."""

from __future__ import annotations

from collections import deque

from trace_memory_ros.nodes.memory.findings import Finding, Level
from trace_memory_ros.nodes.transport import room
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.observation.stream_config import StreamConfig
from trace_memory_ros.runtime.message_fields import MS_NS

WINDOW_NS = 5_000_000_000
"""Over which a rate is taken."""
REFUSED_IN_ROW = 3
"""From so many refusals in a row on, a stream is at fault; one alone is a warning for `RECENT_NS`."""
RECENT_NS = 3_000_000_000


class StreamWatch:
    """Follows one stream since `begin`; times are ns on the monotonic wall clock.

    timeout_ns: how long it may take to begin. topic: as this robot calls it; empty for the config's.
    """

    def __init__(self, config: StreamConfig, period_ns: int, timeout_ns: int, topic: str = "") -> None:
        self.config = config
        self._topic = topic or config.topic
        self._silent_ns = round(config.stale_after_ms * MS_NS) + period_ns
        self._timeout_ns = timeout_ns
        self.begin(0)

    def begin(self, now_ns: int) -> None:
        """Look anew."""
        self._began_ns = now_ns
        self._count = 0
        self._newest_ns = -1
        self._marks: deque[tuple[int, int]] = deque()
        self._refused_in_row, self._refusal, self._refused_ns = 0, "", -RECENT_NS
        self._fault = self._repeats = ""
        self._lost, self._lost_ns = 0, -RECENT_NS
        self._held_age_ms = float("nan")

    def came(self, now_ns: int, refusal: str) -> None:
        """A message; `refusal` says why it was refused or late, empty where it was not."""
        self._count += 1
        self._newest_ns = now_ns
        if refusal:
            self._refused_in_row += 1
            self._refusal, self._refused_ns = refusal, now_ns
        else:
            self._refused_in_row = 0

    def lost(self, now_ns: int, count: int) -> None:
        """The middleware lost messages."""
        self._lost, self._lost_ns = self._lost + count, now_ns

    def held(self, age_ms: float, fault: str) -> None:
        """What a tick held of the stream: its age by stamps, and why it could not be used."""
        self._held_age_ms, self._fault = age_ms, fault

    def repeats(self, fault: str) -> None:
        """Whether it sends one picture again and again, in words; empty where it does not."""
        self._repeats = fault

    def finding(self, now_ns: int, counters: StreamCounters, publishers: int) -> Finding:
        """The stream's state. publishers: of its topic, as the graph knows them."""
        rate_hz = self._rate_hz(now_ns)
        level, message = self._judged(now_ns, publishers)
        silent_ms = (now_ns - self._newest_ns) / MS_NS
        values = {
            "topic": self._topic,
            "rate (Hz)": f"{rate_hz:.1f}",
            "age (ms)": f"{silent_ms:.0f}" if self._count else "-",
            "held age (ms)": f"{self._held_age_ms:.0f}",
            "received": str(counters.received),
            "rejected": str(counters.rejected),
            "lost": str(self._lost),
            "out of order": str(counters.out_of_order),
            "late": str(counters.late),
            "stale ticks": str(counters.stale),
            "publishers": str(publishers),
        }
        return Finding(self.config.name, level, message or f"{rate_hz:.1f} Hz", values)

    def _judged(self, now_ns: int, publishers: int) -> tuple[Level, str]:
        name, topic = self.config.name, self._topic
        lost = f"{name}: {self._lost} messages on {topic!r} were lost on the way"
        if not self._count:
            level = Level.WARN if now_ns - self._began_ns < self._timeout_ns else Level.ERROR
            if self._lost:
                return level, f"{lost}, and none came; {room()}"
            return level, f"{name}: no message on {topic!r} yet; {self._remedy(publishers)}"
        if now_ns - self._newest_ns > self._silent_ns:
            text = f"{name}: no message on {topic!r} for over {self.config.stale_after_ms:g} ms"
            return Level.ERROR, f"{text}; {self._remedy(publishers)}"
        if self._refused_in_row >= REFUSED_IN_ROW:
            return Level.ERROR, self._refusal
        if self._fault:
            return Level.ERROR, self._fault
        if now_ns - self._refused_ns < RECENT_NS:
            return Level.WARN, self._refusal
        if self._repeats:
            return Level.WARN, self._repeats
        if now_ns - self._lost_ns < RECENT_NS:
            remedy = "set realtime_priority, lighten the network or the machine, or set reliability: reliable"
            return Level.WARN, f"{lost}; {room()}, {remedy}"
        return Level.OK, ""

    def _rate_hz(self, now_ns: int) -> float:
        self._marks.append((now_ns, self._count))
        while len(self._marks) > 2 and now_ns - self._marks[1][0] >= WINDOW_NS:
            self._marks.popleft()
        since_ns, count = self._marks[0]
        if now_ns == since_ns:
            since_ns, count = self._began_ns, 0
        return 1e9 * (self._count - count) / max(1, now_ns - since_ns)

    def _remedy(self, publishers: int) -> str:
        if not publishers:
            return "nobody publishes it: start its driver, or correct name, namespace and ROS_DOMAIN_ID"
        sends = f"sends {self.config.message_type}, and with a quality of service that this node's reliability takes"
        return f"it has a publisher: see whether that {sends}"
