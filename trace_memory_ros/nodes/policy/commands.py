"""What policy_node sends: commands of the present and within limits, for a while the last one again, then nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.nodes.policy.permission import Permission
from trace_memory_ros.nodes.policy.ramp import Ramp
from trace_memory_ros.nodes.policy.timeliness import Timeliness, Timing
from trace_memory_ros.runtime.limiter import Limiter
from trace_memory_ros.runtime.message_fields import MS_NS
from trace_memory_ros.streams.base import ReadError

Values = NDArray[np.float64]
Fault = Callable[[str, str], None]
COMMAND = "command"
COUNTED = ("commands", "holds", "no_command", "late_commands", "superseded", "clamped", "refused")
ERROR_S = 3.0
"""Late commands alone for that long are an error; between others they are a warning."""


class Publisher(Protocol):
    """Where commands go."""

    def messages(self, targets: Values, stamp_ns: int) -> Sequence[Any]:
        """The messages of targets `(A,)` of the tick at a stamp. Raises ReadError for what is no command."""

    def publish(self, messages: Sequence[Any]) -> None:
        """Send them."""

    def still(self, stamp_ns: int) -> None:
        """Tell whatever is commanded by velocity alone to stop."""


@dataclass(frozen=True)
class Guards:
    """What stands between a policy and the robot. hold_ms: by stamps, from the last good command on.

    refuse: a command beyond a limit is not sent at all. velocity: which outputs are velocities, `(A,)`. outage_s: so
    long after a command the next one needs a person's word; 0 for none.
    """

    timeliness: Timeliness
    permission: Permission
    limiter: Limiter
    ramp: Ramp
    hold_ms: int
    period_ns: int
    refuse: bool
    velocity: NDArray[np.bool_]
    outage_s: float = 0.0

    @property
    def chain_ns(self) -> int:
        """Without a command for that long, the next one counts from where the arm is."""
        return max(self.hold_ms * MS_NS, 2 * self.period_ns)


@dataclass(frozen=True)
class Answer:
    """A tick's targets `(A,)` and the place `(A,)` of the arm; or why the last command is to be held."""

    stamp_ns: int
    targets: Values | None = None
    place: Values | None = None
    why_none: str = ""


class CommandOutput:
    """Ticks' answers to commands, of which each is counted once. Stamps and clock in ns.

    fault: called with the source and text of a fault. clock: the time that stamps are compared with. defer: asks for
    `flush` as soon as no younger answer waits.
    """

    def __init__(
        self, publisher: Publisher, guards: Guards, fault: Fault, clock: Callable[[], int], defer: Callable[[], None]
    ) -> None:
        self._publisher, self._guards = publisher, guards
        self._fault, self._clock, self._defer = fault, clock, defer
        self.reset()

    def reset(self) -> None:
        """Begin to count."""
        self.counts = dict.fromkeys(COUNTED, 0)
        self._sent_at = self._late_at = -np.inf
        self._late_text = ""
        self._forget()

    def _forget(self) -> None:
        self._waiting: Answer | None = None
        self._last: Values | None = None
        self._good_ns = self._last_ns = 0

    @property
    def error(self) -> str:
        """Why no command at all is sent in time; empty where some are."""
        now = time.monotonic()
        return self._late_text if now - self._late_at < ERROR_S <= now - self._sent_at else ""

    @property
    def age_ms(self) -> float:
        """Of the newest tick when its command was ready."""
        return self._guards.timeliness.age_ns / MS_NS

    def command(self, targets: Values, place: Values, stamp_ns: int) -> None:
        """Take the policy's answer."""
        self._take(Answer(stamp_ns, targets, place))

    def hold(self, stamp_ns: int, source: str, reason: str) -> None:
        """Take a tick that has no answer."""
        self._fault(source, reason)
        self._take(Answer(stamp_ns, why_none=reason))

    def allow(self) -> None:
        """A person says go: what was before is no outage."""
        self.stop()
        self._sent_at = -np.inf

    def refuse(self, source: str, reason: str) -> None:
        """Give no command: it may not be given, or whoever asked is not whom this policy was trained with."""
        self.counts["no_command"] += 1
        self.stop()
        self._fault(source, reason)

    def stop(self) -> None:
        """Stop what moves by itself; what comes next counts from where the arm is. Counts go on."""
        moving = self._last is not None
        self._drop_waiting()
        self._forget()
        if moving:
            self._publisher.still(self._clock())

    def flush(self) -> None:
        """Nothing younger waits: send what was deferred, if it still is of the present."""
        answer, self._waiting = self._waiting, None
        if answer is None:
            return
        self._send(answer)

    def _take(self, answer: Answer) -> None:
        self._note_outage()
        if reason := self._guards.permission.reason:
            self.refuse(COMMAND, reason)
            return
        timing = self._guards.timeliness.judge(answer.stamp_ns, self._clock())
        self._drop_waiting()
        if timing in (Timing.LATE, Timing.AHEAD):
            self._late(answer, timing)
        elif timing is Timing.PERHAPS_OLD:
            self._waiting = answer
            self._defer()
        else:
            self._send(answer)

    def _note_outage(self) -> None:
        guards, silent_s = self._guards, time.monotonic() - self._sent_at
        if guards.timeliness.limited and guards.outage_s and np.isfinite(silent_s) and silent_s > guards.outage_s:
            limit = f"enable_after_outage_s = {guards.outage_s:g}"
            guards.permission.fail(f"no command was sent for {silent_s:.0f} s, {limit}: who knows what moved meanwhile")

    def _drop_waiting(self) -> None:
        if self._waiting is not None:
            self.counts["superseded"] += 1
            self._waiting = None

    def _late(self, answer: Answer, timing: Timing) -> None:
        self.counts["late_commands" if answer.targets is not None else "no_command"] += 1
        self._late_at, self._late_text = time.monotonic(), self._guards.timeliness.remedy(timing)
        self._fault(COMMAND, self._late_text)

    def _send(self, answer: Answer) -> None:
        if answer.targets is None or answer.place is None:
            self._hold(answer, answer.why_none)
        elif why_none := self._act(answer, answer.targets, answer.place):
            self._hold(answer, why_none)

    def _act(self, answer: Answer, targets: Values, place: Values) -> str:
        """Send the policy's targets; or why they are no command, or refused."""
        guards, stamp_ns = self._guards, answer.stamp_ns
        if self._last is None or stamp_ns - self._last_ns > guards.chain_ns:
            guards.ramp.begin(place, stamp_ns)
            guards.limiter.begin(place)
        limited = guards.limiter.apply(targets, partial(guards.ramp.apply, stamp_ns=stamp_ns))
        what = "refused" if guards.refuse else "clamped"
        for text in limited.met:
            self._fault("limits", f"{text}: the policy asks for more, {what}; is the checkpoint this robot's?")
        self.counts[what] += bool(limited.met)
        if limited.met and guards.refuse:
            return f"the policy asks for more than {limited.met[0]}"
        try:
            messages = self._publisher.messages(limited.targets, stamp_ns)
        except ReadError as error:
            self._fault(COMMAND, text := f"the policy's action is no command: {error}")
            return text
        if self._published(answer, messages, limited.targets, limited.aims):
            self.counts["commands"] += 1
            self._good_ns = stamp_ns
        return ""

    def _hold(self, answer: Answer, reason: str) -> None:
        """The last command once more, so that a position is kept and a velocity is none."""
        guards, stamp_ns = self._guards, answer.stamp_ns
        if self._last is None:
            self.counts["no_command"] += 1
        elif stamp_ns - self._good_ns <= guards.hold_ms * MS_NS:
            held = np.where(guards.velocity, 0.0, self._last)
            messages = self._publisher.messages(held, stamp_ns)
            self.counts["holds"] += self._published(answer, messages, held, held)
        else:
            self.counts["no_command"] += 1
            self._fault(COMMAND, f"commands stopped, after {guards.hold_ms} ms of: {reason}")

    def _published(self, answer: Answer, messages: Sequence[Any], targets: Values, aims: Values) -> bool:
        """Send messages, unless they grew old meanwhile: a process may be frozen anywhere."""
        timing = self._guards.timeliness.again(answer.stamp_ns, self._clock())
        if timing is not Timing.NOW:
            self._late(answer, timing)
            return False
        self._publisher.publish(messages)
        self._guards.limiter.sent(targets, aims)
        self._last, self._last_ns = targets, answer.stamp_ns
        self._sent_at = time.monotonic()
        return True
