"""policy_node: one command per usable memory condition, from the very observation that the condition names."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from std_srvs.srv import Trigger

from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import parameters, qos
from trace_memory_ros.nodes.deadline import DrainedDeadline
from trace_memory_ros.nodes.health import Health, diagnostic_array
from trace_memory_ros.nodes.inputs import InputSubscriptions
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.policy.acting import Acting, acting_of, failure
from trace_memory_ros.nodes.policy.commands import CommandOutput
from trace_memory_ros.nodes.policy.loading import actions_of, ready_policy
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.policy.publishing import CommandPublishers
from trace_memory_ros.nodes.policy.sample_store import SampleStore
from trace_memory_ros.observation.alignment import Verdict, horizon_of
from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.condition import Condition, ConditionStatus
from trace_memory_ros.runtime.message_fields import condition_of
from trace_memory_ros.runtime.model import one_thread
from trace_memory_ros.runtime.shipped import find_checkpoint
from trace_memory_ros.streams.base import ReadError

CONDITION = "memory/condition"
SHORT_ID = 12


@dataclass
class Waiting:
    """A condition that is not answered yet. deadline_ns: until when its inputs, then its chunk, are waited for.

    state: of the observation that it names, once that was seen.
    """

    condition: Condition
    deadline_ns: int
    seen: bool = False
    state: NDArray[np.float64] | None = None


class PolicyNode(ManagedNode):
    """Waits for conditions; acts, holds, or stops and says why."""

    table = PolicyNodeParameters

    def __init__(self) -> None:
        self._inputs: InputSubscriptions | None = None
        self._acting: Acting | None = None
        self._timers_made: list[Any] = []
        self._publishers_made: list[Any] = []
        self._condition_subscription: Any = None
        super().__init__("policy_node")
        self.create_service(Trigger, "~/reset", self._on_reset)

    def configure(self) -> None:
        """Load the checkpoint, act on nothing so that the first real tick is as fast as others, open the topics."""
        self._settings = settings = parameters.read(self, PolicyNodeParameters)
        one_thread()
        loaded = checkpoint.load(find_checkpoint(settings.checkpoint))
        policy = ready_policy(loaded, settings.actuators)
        self._acting = acting_of(policy, self, self._after_chunk)
        self._model_id = loaded.model_id
        self._most_pending = horizon_of(loaded.config.observation)  # what one image may set free at once
        self._store = SampleStore(loaded.config.observation)
        self._health = Health()
        self._commands = CommandPublishers(self, actions_of(loaded, policy), loaded.config.observation)
        self._diagnostics = self.create_lifecycle_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        self._publishers_made = [*self._commands.publishers, self._diagnostics]
        self._restart()
        self._inputs = InputSubscriptions(
            self, loaded.config.observation, settings.reliability, self._store, self._after_input
        )
        self._condition_subscription = self.create_subscription(
            MemoryCondition, CONDITION, self._on_condition, qos.CONDITION
        )
        self._wait = DrainedDeadline(self, self._on_wait_over)
        self._silence_timer = self.create_timer(settings.condition_timeout_ms / 1e3, self._on_silence, autostart=False)
        report = self.create_timer(1.0 / settings.diagnostics_rate_hz, self._publish_diagnostics)
        self._timers_made = [self._wait.timer, self._silence_timer, report]
        self.get_logger().info(f"policy of model {self._model_id[:SHORT_ID]} from {loaded.folder}")

    def activate(self) -> None:
        """Begin an episode."""
        self._restart()

    def deactivate(self) -> None:
        """No more commands."""
        self._wait.set(None)
        self._silence_timer.cancel()
        self._pending.clear()

    def release(self) -> None:
        """Close the topics."""
        for timer in self._timers_made:
            self.destroy_timer(timer)
        subscriptions = self._inputs.subscriptions if self._inputs else []
        if self._condition_subscription is not None:
            subscriptions = [*subscriptions, self._condition_subscription]
        self.drop_entities(self._publishers_made, subscriptions)
        if self._acting is not None:
            self._acting.close()
        self._acting = None
        self._timers_made, self._publishers_made = [], []
        self._inputs, self._condition_subscription = None, None

    def _restart(self) -> None:
        """Forget the episode so far, and what was counted."""
        self._output = CommandOutput(self._commands.publish, self._fault, self._settings.hold_ms)
        self._counts = {"conditions": 0, "late_chunks": 0}
        self._begin_episode()

    def _begin_episode(self) -> None:
        self._run.reset()
        self._store.reset()
        self._output.restart()
        self._pending: deque[Waiting] = deque()
        self._episode, self._last_tick = -1, -1

    @property
    def _run(self) -> Acting:
        assert self._acting is not None
        return self._acting

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.configured
        response.message = "policy reset" if self.configured else "policy_node is not configured"
        if self.configured:
            self._wait.set(None)
            self._silence_timer.cancel()
            self._health = Health()
            self._restart()
        return response

    def _on_condition(self, message: MemoryCondition) -> None:
        if not self.active:
            return
        self._counts["conditions"] += 1
        self._silence_timer.reset()
        if message.model_id != self._model_id:
            self._output.refuse(
                CONDITION,
                f"condition of model {message.model_id[:SHORT_ID]} ({message.mechanism}) refused: this policy is of "
                f"model {self._model_id[:SHORT_ID]}; start memory_node and policy_node with the same checkpoint",
            )
            return
        try:
            condition = condition_of(message)
        except ValueError as error:
            self._output.refuse(CONDITION, str(error))
            return
        if len(self._pending) >= self._most_pending:
            self._pending.popleft()
            text = f"more than {self._most_pending} conditions wait for their inputs: the oldest is given up"
            self._fault(CONDITION, text)
        self._pending.append(Waiting(condition, time.monotonic_ns() + self._settings.input_wait_ms * 1_000_000))
        self._work()

    def _after_input(self, stream: str, verdict: Verdict, stamp_ns: int) -> None:
        if self.active:
            self._wait.note_input()
            self._work()

    def _after_chunk(self) -> None:
        if self.active:
            self._work()

    def _on_wait_over(self) -> None:
        if self.active:
            self._work(give_up_until_ns=time.monotonic_ns())

    def _work(self, give_up_until_ns: int = 0) -> None:
        """Answer conditions in order, as far as what they wait for is there, or was due by `give_up_until_ns`."""
        while self._pending:
            waiting = self._pending[0]
            condition = waiting.condition
            missing = [] if waiting.seen else self._store.missing(condition.input_stamps_ns)
            if condition.status == ConditionStatus.OK and missing and waiting.deadline_ns > give_up_until_ns:
                self._wait.set(waiting.deadline_ns)
                return
            if not waiting.seen and not self._look(waiting, missing):
                self._pending.popleft()
                continue
            if self._awaits_chunk(waiting, give_up_until_ns):
                return
            self._pending.popleft()
            self._answer(waiting)
        self._wait.set(None)

    def _look(self, waiting: Waiting, missing: list[str]) -> bool:
        """Show the policy a condition's tick; False where that cannot be, which then is dealt with."""
        condition = waiting.condition
        if condition.episode != self._episode:
            self._restart_for(condition)
        if condition.tick != self._last_tick + 1:
            # Chunks are averaged or executed by age, and a gap would shift their ages.
            self._run.reset()
        self._last_tick = condition.tick
        if condition.status != ConditionStatus.OK:
            self._hold(condition, f"memory is {condition.status.name}: {condition.reason}")
            return False
        if missing:
            self._hold(
                condition,
                f"no sample of {', '.join(missing)} with the stamp the condition names within "
                f"{self._settings.input_wait_ms} ms: lost on the way? Set reliability to reliable, or raise "
                "input_wait_ms",
            )
            return False
        observation = self._store.observation(condition.tick, condition.stamp_ns, condition.input_stamps_ns)
        if not observation.usable:
            self._hold(condition, "; ".join(observation.faults.values()))
            return False
        waiting.seen, waiting.state = True, observation.state
        waiting.deadline_ns = time.monotonic_ns() + self._settings.chunk_wait_ms * 1_000_000
        try:
            self._run.begin(observation, condition)
        except ConditionMismatch as error:
            self._output.refuse(CONDITION, str(error))
            return False
        except Exception as error:
            self._hold(condition, failure(error))
            return False
        return True

    def _awaits_chunk(self, waiting: Waiting, give_up_until_ns: int) -> bool:
        """Whether to come back later, when a chunk is there; only the newest condition is worth waiting for."""
        if not self._run.awaited(waiting.condition.tick) or len(self._pending) > 1:
            return False
        if self._run.first_awaited():
            self._wait.set(None)
            return True
        if waiting.deadline_ns > give_up_until_ns:
            self._wait.set(waiting.deadline_ns)
            return True
        return False

    def _answer(self, waiting: Waiting) -> None:
        condition = waiting.condition
        self._counts["late_chunks"] += self._run.awaited(condition.tick)
        try:
            action = self._run.action(condition.tick)
        except Exception as error:
            self._hold(condition, failure(error))
            return
        if action is None:
            self._hold(condition, self._run.why_none())
            return
        assert waiting.state is not None
        targets = self._commands.targets(action, waiting.state)
        if not np.isfinite(targets).all():
            self._hold(condition, "the policy's action is not finite: check its checkpoint and the units of its inputs")
            return
        try:
            messages = self._commands.messages(targets)
        except ReadError as error:
            self._hold(condition, f"the policy's action is no command: {error}")
            return
        self._output.command(messages, condition.stamp_ns)

    def _hold(self, condition: Condition, reason: str) -> None:
        self._output.hold(condition.stamp_ns, CONDITION, reason)

    def _on_silence(self) -> None:
        self._silence_timer.cancel()
        if self.active:
            silence_ms = self._settings.condition_timeout_ms
            self._output.repeat(
                CONDITION, f"no condition for {silence_ms} ms: last command repeated, then no more until one comes"
            )

    def _restart_for(self, condition: Condition) -> None:
        pending = self._pending
        self._begin_episode()
        self._pending, self._episode = pending, condition.episode

    def _fault(self, source: str, text: str) -> None:
        if self._health.note(source, text):
            self.get_logger().warning(text)

    def _publish_diagnostics(self) -> None:
        if self.active:
            counts = self._counts | self._output.counts
            values = {name: str(count) for name, count in counts.items()}
            values |= {"act_ms": f"{self._run.took_ms:.2f}", "model_id": self._model_id}
            self._diagnostics.publish(diagnostic_array(self, self._health, values))


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(PolicyNode, args)


if __name__ == "__main__":
    main()
