"""Whether a tick's command still is of the present: its stamp against the clock."""

from __future__ import annotations

from collections import deque
from enum import Enum

from trace_memory_ros.runtime.message_fields import MS_NS

REMEMBERED = 64


class Timing(Enum):
    """NOW: send it. PERHAPS_OLD: first see whether a newer one waits. LATE, AHEAD: never send it."""

    NOW = "now"
    PERHAPS_OLD = "perhaps old"
    LATE = "late"
    AHEAD = "ahead"


class Timeliness:
    """Judges stamps by their age; a limit of 0 takes any, as lock-step does, where the clock says nothing.

    A tick whose age exceeds the usual one by a period may have a younger one behind it, as after a freeze or where
    several ticks wait for one image.
    """

    def __init__(self, limit_ms: int, period_ns: int) -> None:
        self._limit_ms = limit_ms
        self._period_ns = period_ns
        self._ages: deque[int] = deque(maxlen=REMEMBERED)
        self.age_ns = 0

    @property
    def limited(self) -> bool:
        """Whether the clock is asked at all."""
        return self._limit_ms > 0

    def judge(self, stamp_ns: int, now_ns: int) -> Timing:
        """What to do with the command of a new tick."""
        if not self.limited:
            return Timing.NOW
        self.age_ns = now_ns - stamp_ns
        usual_ns = min(self._ages, default=0)
        self._ages.append(self.age_ns)
        timing = self.again(stamp_ns, now_ns)
        if timing is Timing.NOW and self.age_ns >= usual_ns + self._period_ns:
            return Timing.PERHAPS_OLD
        return timing

    def again(self, stamp_ns: int, now_ns: int) -> Timing:
        """What to do with a command that was judged before, and waited."""
        age_ms = (now_ns - stamp_ns) / MS_NS
        if not self.limited or abs(age_ms) <= self._limit_ms:
            return Timing.NOW
        return Timing.LATE if age_ms > 0 else Timing.AHEAD

    def remedy(self, timing: Timing) -> str:
        """What is wrong with commands that are LATE or AHEAD, and what to do."""
        clocks = "synchronise the clocks of sensors and this machine, or set use_sim_time where time is simulated"
        if timing is Timing.AHEAD:
            return (
                f"ticks are stamped more than command_age_limit_ms = {self._limit_ms} ms ahead of the clock: no "
                f"command; {clocks}"
            )
        return (
            f"ticks are older than command_age_limit_ms = {self._limit_ms} ms before their commands are ready: these "
            f"are not sent; lighten the load, the policy or the inputs, {clocks} (0 takes any age, for lock-step)"
        )
