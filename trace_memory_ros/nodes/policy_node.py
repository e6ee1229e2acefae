"""policy_node: one command per usable memory condition, from the very observation that the condition names."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import conversion, parameters, qos
from trace_memory_ros.nodes.deadline import DrainedDeadline
from trace_memory_ros.nodes.health import Health, diagnostic_array
from trace_memory_ros.nodes.inputs import InputSubscriptions
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.policy_loading import load_policy, warm_up
from trace_memory_ros.nodes.sample_store import SampleStore
from trace_memory_ros.nodes.shipped import find_checkpoint
from trace_memory_ros.nodes.tables import PolicyNodeParameters
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.condition import Condition, ConditionStatus
from trace_memory_ros.runtime.model import one_thread

MAX_PENDING = 50
SHORT_ID = 12


class PolicyNode(ManagedNode):
    """Waits for conditions; acts, holds, or stops and says why."""

    table = PolicyNodeParameters

    def __init__(self) -> None:
        self._inputs: InputSubscriptions | None = None
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
        self._policy = load_policy(loaded)
        warm_up(self._policy, loaded.config.observation)
        self._model_id = loaded.model_id
        self._period_ns = loaded.config.observation.period_ns
        self._store = SampleStore(loaded.config.observation)
        self._health = Health()
        self._restart()
        self._commands = self.create_lifecycle_publisher(JointTrajectory, "command", qos.COMMAND)
        self._diagnostics = self.create_lifecycle_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        self._publishers_made = [self._commands, self._diagnostics]
        self._inputs = InputSubscriptions(
            self, loaded.config.observation, settings.reliability, self._store, self._after_input
        )
        self._condition_subscription = self.create_subscription(
            MemoryCondition, "memory/condition", self._on_condition, qos.CONDITION
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
        self._timers_made, self._publishers_made = [], []
        self._inputs, self._condition_subscription = None, None

    def _restart(self) -> None:
        """Forget the episode so far."""
        self._policy.reset()
        self._store.reset()
        self._pending: deque[tuple[Condition, int]] = deque()
        self._episode, self._last_tick = -1, -1
        self._targets: NDArray[np.float32] | None = None
        self._last_stamp_ns = 0
        self._unusable_since_ns: int | None = None
        self._counts = {"conditions": 0, "commands": 0, "holds": 0, "no_command": 0}
        self._act_ms = 0.0

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
            self._refuse(
                f"condition of model {message.model_id[:SHORT_ID]} ({message.mechanism}) refused: this policy is of "
                f"model {self._model_id[:SHORT_ID]}; start memory_node and policy_node with the same checkpoint"
            )
            return
        try:
            condition = conversion.condition_of(message)
        except ValueError as error:
            self._refuse(str(error))
            return
        if len(self._pending) >= MAX_PENDING:
            self._pending.popleft()
            self._fault(
                "memory/condition", f"more than {MAX_PENDING} conditions wait for their inputs: the oldest is given up"
            )
        self._pending.append((condition, time.monotonic_ns() + self._settings.input_wait_ms * 1_000_000))
        self._work()

    def _after_input(self, stream: str, verdict: Verdict, stamp_ns: int) -> None:
        if self.active:
            self._wait.note_input()
            self._work()

    def _on_wait_over(self) -> None:
        if self.active:
            self._work(give_up_until_ns=time.monotonic_ns())

    def _work(self, give_up_until_ns: int = 0) -> None:
        """Answer conditions in order, as far as their samples are there, or were due by `give_up_until_ns`."""
        while self._pending:
            condition, deadline_ns = self._pending[0]
            missing = self._store.missing(condition.input_stamps_ns)
            if condition.status == ConditionStatus.OK and missing and deadline_ns > give_up_until_ns:
                self._wait.set(deadline_ns)
                return
            self._pending.popleft()
            self._answer(condition, missing)
        self._wait.set(None)

    def _answer(self, condition: Condition, missing: list[str]) -> None:
        if condition.episode != self._episode:
            self._restart_for(condition)
        if condition.tick != self._last_tick + 1:
            # Chunks are averaged by age, and a gap would shift their ages.
            self._policy.reset()
        self._last_tick = condition.tick
        if condition.status != ConditionStatus.OK:
            self._hold(condition, f"memory is {condition.status.name}: {condition.reason}")
        elif missing:
            self._hold(
                condition,
                f"no sample of {', '.join(missing)} with the stamp the condition names within "
                f"{self._settings.input_wait_ms} ms: lost on the way? Set reliability to reliable, or raise "
                "input_wait_ms",
            )
        else:
            self._act(condition)

    def _act(self, condition: Condition) -> None:
        observation = self._store.observation(condition.tick, condition.stamp_ns, condition.input_stamps_ns)
        if not observation.usable:
            self._hold(condition, "; ".join(observation.faults.values()))
            return
        begun = time.perf_counter()
        try:
            targets = self._policy.act(observation, condition)
        except ConditionMismatch as error:
            self._refuse(str(error))
            return
        self._act_ms = 1e3 * (time.perf_counter() - begun)
        if not np.isfinite(targets).all():
            self._hold(condition, "the policy's action is not finite: check its checkpoint and the units of its inputs")
            return
        self._targets = targets
        self._unusable_since_ns = None
        self._counts["commands"] += 1
        self._publish(condition.stamp_ns)

    def _hold(self, condition: Condition, reason: str) -> None:
        """Repeat the last command for a while, then fall silent."""
        self._fault("memory/condition", reason)
        now_ns = time.monotonic_ns()
        if self._unusable_since_ns is None:
            self._unusable_since_ns = now_ns
        if self._targets is None:
            self._counts["no_command"] += 1
        elif now_ns - self._unusable_since_ns <= self._settings.hold_ms * 1_000_000:
            self._counts["holds"] += 1
            self._publish(condition.stamp_ns)
        else:
            self._counts["no_command"] += 1
            self._fault(
                "command", f"no usable condition for {self._settings.hold_ms} ms: commands stopped until there is one"
            )

    def _on_silence(self) -> None:
        self._silence_timer.cancel()
        if self.active and self._targets is not None:
            silence_ms = self._settings.condition_timeout_ms
            self._fault(
                "memory/condition",
                f"no condition for {silence_ms} ms: last command repeated, then no more until one comes",
            )
            self._counts["holds"] += 1
            self._publish(self._last_stamp_ns)

    def _restart_for(self, condition: Condition) -> None:
        pending, counts = self._pending, self._counts
        self._restart()
        self._pending, self._counts, self._episode = pending, counts, condition.episode

    def _refuse(self, reason: str) -> None:
        """Give no command: whoever made this condition is not whom this policy was trained with."""
        self._counts["no_command"] += 1
        self._targets = None
        self._fault("memory/condition", reason)

    def _publish(self, stamp_ns: int) -> None:
        assert self._targets is not None
        self._last_stamp_ns = stamp_ns
        self._commands.publish(
            conversion.command_message(self._policy.action_names, self._targets, stamp_ns, self._period_ns)
        )

    def _fault(self, source: str, text: str) -> None:
        if self._health.note(source, text):
            self.get_logger().warning(text)

    def _publish_diagnostics(self) -> None:
        if self.active:
            values = {name: str(count) for name, count in self._counts.items()}
            values |= {"act_ms": f"{self._act_ms:.2f}", "model_id": self._model_id}
            self._diagnostics.publish(diagnostic_array(self, self._health, values))


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(PolicyNode, args)


if __name__ == "__main__":
    main()
