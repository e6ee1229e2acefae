"""How fast ticks follow one another, how long they wait and how old a sample may be, from how often messages come.

All from median times between messages, in ms, as a recording shows them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

FASTEST_MS, SLOWEST_MS = 10, 200
"""Ticks of 100 to 5 Hz."""
USUAL_MS = 100
SNAP = 0.05
"""A measured period this near to a whole number of ticks per second is taken for it."""
LEAST_WAIT_MS = 100
MOST_WAIT_MS = 1_000
LEAST_STALE_MS = 100


def tick_period_ms(
    camera_periods: Iterable[float], joint_periods: Iterable[float], command_periods: Iterable[float]
) -> int:
    """The tick period, ms, for streams and commands that come every so many ms.

    A tick is where a policy gives a command, so ticks come as often as the commands did: as those of the fastest topic,
    since a slower one, a gripper say, is held meanwhile. They never come more often than the fastest joint topic: a
    tick between two joint states has nothing new to steer by. Where no commands were recorded, a tick needs a new image
    and a new state: it comes as often as the slower of the fastest camera and the fastest joint topic. Cameras slower
    than the commands do not slow the ticks; an image is held until the next. In any case 5 to 100 Hz, 10 Hz where
    nothing is known; a period within 5 % of one that divides a second is that one.
    """
    known = [_fastest(periods) for periods in (command_periods, joint_periods, camera_periods)]
    commands, joints, cameras = known
    period = max((p for p in (commands or cameras, joints) if p is not None), default=float(USUAL_MS))
    return min(max(_whole(period), FASTEST_MS), SLOWEST_MS)


def deadline_ms(stream_periods: Iterable[float]) -> int:
    """How long a tick waits for its streams, ms: two periods of the slowest, and its period and 100 ms at least.

    A tick can only be sure of an image when the next one comes, so a shorter wait than a period would give up samples
    that are on their way, and the live ticks would not be those of the bag. No longer than a second: a stream that is
    slower than that, such as one published on change, would hold up every tick; its ticks go on without waiting for it,
    and hold its sample as long as it is not stale.
    """
    slowest = max(stream_periods, default=0.0)
    return min(_tens(max(2.0 * slowest, slowest + LEAST_WAIT_MS)), MOST_WAIT_MS)


def stale_after_ms(period: float, tick_ms: int, longest: float = 0.0) -> int:
    """How old a sample may be at a tick, ms: two and a half periods of its stream, so that one may be lost.

    At least a tick and 100 ms, and above what the stream's own jitter reaches. longest: its longest time between
    messages, of which up to four periods count: a longer silence is a fault.
    """
    return _tens(max(2.5 * period, tick_ms, LEAST_STALE_MS, 1.5 * min(longest, 4.0 * period)))


def _fastest(periods: Iterable[float]) -> float | None:
    return min((period for period in periods if period > 0.0), default=None)


def _whole(period: float) -> int:
    """The nearest whole number of ms, or of ticks per second."""
    near = [ms for ms in range(FASTEST_MS, SLOWEST_MS + 1) if 1000 % ms == 0 and abs(period / ms - 1.0) <= SNAP]
    return min(near, key=lambda ms: abs(period - ms)) if near else round(period)


def _tens(ms: float) -> int:
    """Rounded up to tens of ms."""
    return math.ceil(ms / 10 - 1e-6) * 10
