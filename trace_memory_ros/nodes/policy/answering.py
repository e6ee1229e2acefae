"""Conditions to answers, in order: each waits for the samples that it names, and for its chunk of actions."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.nodes.policy.acting import Acting, failure
from trace_memory_ros.nodes.policy.commands import Fault
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.policy.sample_store import SampleStore
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.runtime.condition import Condition, ConditionStatus
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC

Action = NDArray[np.float32]
State = NDArray[np.float64]


@dataclass
class Waiting:
    """A condition that is not answered yet. deadline_ns: until when its inputs, then its chunk, are waited for.

    state: of the observation that it names, once that was seen.
    """

    condition: Condition
    deadline_ns: int
    seen: bool = False
    state: State | None = None


@dataclass(frozen=True)
class Answers:
    """What is called with each condition's answer, in order.

    act: action, state and stamp of its tick. hold: stamp, source and reason. refuse: source and reason.
    stop: before the first of an episode.
    """

    act: Callable[[Action, State, int], None]
    hold: Callable[[int, str, str], None]
    refuse: Fault
    stop: Callable[[], None]


class Answering:
    """Every condition is answered, late ones too, so that policies which count ticks see them all.

    most: conditions that may wait. wait: told until when to call `work` again, on `time.monotonic_ns`, or None.
    """

    def __init__(
        self,
        run: Acting,
        store: SampleStore,
        most: int,
        settings: PolicyNodeParameters,
        answers: Answers,
        fault: Fault,
        wait: Callable[[int | None], None],
    ) -> None:
        self._run, self._store, self._most, self._settings = run, store, most, settings
        self._answers, self._fault, self._wait = answers, fault, wait
        self._episode = self._last_tick = -1
        self.restart()

    def restart(self) -> None:
        """Forget the episode, and what was counted."""
        self._pending: deque[Waiting] = deque()
        self.late_chunks = 0
        self._begin_episode(-1)

    def clear(self) -> None:
        """Answer nothing that waits."""
        self._pending.clear()
        self._wait(None)

    def take(self, condition: Condition) -> None:
        """A condition came."""
        if len(self._pending) >= self._most:
            self._pending.popleft()
            self._fault(
                CONDITION_TOPIC, f"more than {self._most} conditions wait for their inputs: the oldest is given up"
            )
        self._pending.append(Waiting(condition, time.monotonic_ns() + self._settings.input_wait_ms * 1_000_000))
        self.work()

    def work(self, give_up_until_ns: int = 0) -> None:
        """Answer conditions in order, as far as what they wait for is there, or was due by `give_up_until_ns`."""
        while self._pending:
            waiting = self._pending[0]
            condition = waiting.condition
            missing = [] if waiting.seen else self._store.missing(condition.input_stamps_ns)
            if condition.status == ConditionStatus.OK and missing and waiting.deadline_ns > give_up_until_ns:
                self._wait(waiting.deadline_ns)
                return
            if not waiting.seen and not self._look(waiting, missing):
                self._pending.popleft()
                continue
            if self._awaits_chunk(waiting, give_up_until_ns):
                return
            self._pending.popleft()
            self._answer(waiting)
        self._wait(None)

    def _look(self, waiting: Waiting, missing: list[str]) -> bool:
        """Show the policy a condition's tick; False where that cannot be, which then is dealt with."""
        condition = waiting.condition
        if condition.episode != self._episode:
            self._begin_episode(condition.episode)
            self._answers.stop()
        if condition.tick != self._last_tick + 1:
            # Chunks are averaged or executed by age, and a gap would shift their ages.
            self._run.reset()
        self._last_tick = condition.tick
        observation = self._observation(condition, missing)
        if observation is None:
            return False
        waiting.seen, waiting.state = True, observation.state
        waiting.deadline_ns = time.monotonic_ns() + self._settings.chunk_wait_ms * 1_000_000
        try:
            self._run.begin(observation, condition)
        except ConditionMismatch as error:
            self._answers.refuse(CONDITION_TOPIC, str(error))
            return False
        except Exception as error:
            self._hold(condition, failure(error))
            return False
        return True

    def _observation(self, condition: Condition, missing: list[str]) -> Observation | None:
        """What the condition was made from; None where that cannot be used, and the last command is held."""
        if condition.status != ConditionStatus.OK:
            self._hold(condition, f"memory is {condition.status.name}: {condition.reason}")
            return None
        if missing:
            self._hold(
                condition,
                f"no sample of {', '.join(missing)} with the stamp the condition names within "
                f"{self._settings.input_wait_ms} ms: lost on the way? Set reliability to reliable, or raise "
                "input_wait_ms",
            )
            return None
        observation = self._store.observation(condition.tick, condition.stamp_ns, condition.input_stamps_ns)
        if not observation.usable:
            self._hold(condition, "; ".join(observation.faults.values()))
            return None
        return observation

    def _awaits_chunk(self, waiting: Waiting, give_up_until_ns: int) -> bool:
        """Whether to come back later, when a chunk is there; only the newest condition is worth waiting for."""
        if not self._run.awaited(waiting.condition.tick) or len(self._pending) > 1:
            return False
        if self._run.first_awaited():
            self._wait(None)
            return True
        if waiting.deadline_ns > give_up_until_ns:
            self._wait(waiting.deadline_ns)
            return True
        return False

    def _answer(self, waiting: Waiting) -> None:
        condition = waiting.condition
        self.late_chunks += self._run.awaited(condition.tick)
        try:
            action = self._run.action(condition.tick)
        except Exception as error:
            self._hold(condition, failure(error))
            return
        if action is None:
            self._hold(condition, self._run.why_none())
            return
        assert waiting.state is not None
        self._answers.act(action, waiting.state, condition.stamp_ns)

    def _hold(self, condition: Condition, reason: str) -> None:
        self._answers.hold(condition.stamp_ns, CONDITION_TOPIC, reason)

    def _begin_episode(self, episode: int) -> None:
        self._run.reset()
        self._episode, self._last_tick = episode, -1
