"""policy_node: at most one command per memory condition, from the very observation that the condition names."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from std_msgs.msg import Empty
from std_srvs.srv import Trigger

from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import parameters, qos
from trace_memory_ros.nodes.deadline import DrainedDeadline
from trace_memory_ros.nodes.health import Health, diagnostic_array
from trace_memory_ros.nodes.inputs import InputSubscriptions
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.policy.acting import Acting, acting_of
from trace_memory_ros.nodes.policy.answering import Answering, Answers
from trace_memory_ros.nodes.policy.commands import COMMAND, CommandOutput
from trace_memory_ros.nodes.policy.company import Company
from trace_memory_ros.nodes.policy.guarding import guards_of
from trace_memory_ros.nodes.policy.loading import actions_of, check_commanded, ready_policy
from trace_memory_ros.nodes.policy.one_memory import OneMemory
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.policy.permission import Permission
from trace_memory_ros.nodes.policy.publishing import CommandPublishers
from trace_memory_ros.nodes.policy.sample_store import SampleStore
from trace_memory_ros.nodes.policy.served import ServerSender
from trace_memory_ros.observation.alignment import Verdict, horizon_of
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, condition_of
from trace_memory_ros.runtime.model import one_thread, state_normaliser
from trace_memory_ros.runtime.shipped import find_checkpoint

SHORT_ID = 12
QUEUE_S = 1.0
"""How long after activation a condition may come out of the queue that was there before."""


class PolicyNode(ManagedNode):
    """Waits for conditions; acts, holds, or stops and says why."""

    table = PolicyNodeParameters

    def __init__(self) -> None:
        self._inputs: InputSubscriptions | None = None
        self._acting: Acting | None = None
        self._senders: list[ServerSender] = []
        self._timers_made: list[Any] = []
        self._publishers_made: list[Any] = []
        self._subscriptions_made: list[Any] = []
        super().__init__("policy_node")
        for name, handler in (("reset", self._on_reset), ("enable", self._on_enable), ("disable", self._on_disable)):
            self.create_service(Trigger, f"~/{name}", handler)

    def configure(self) -> None:
        """Load the checkpoint, act on nothing so that the first real tick is as fast as others, open the topics."""
        self._settings = settings = parameters.read(self, PolicyNodeParameters)
        one_thread()
        loaded = checkpoint.load(find_checkpoint(settings.checkpoint))
        policy = ready_policy(loaded, settings.actuators)
        observation = loaded.config.observation
        actions = actions_of(loaded, policy, settings.actions_file)
        if not settings.dry_run:
            check_commanded(actions)
        self._acting = acting_of(policy, self, self._after_chunk)
        self._model_id = loaded.model_id
        self._health = Health()
        self._permission = Permission(settings.start_enabled)
        self._memory = OneMemory(settings.accept_restored)
        shown = state_normaliser(loaded)
        self._commands = CommandPublishers(
            self, actions, policy.action_names, observation, shown, settings, self._fault
        )
        self._senders = self._commands.senders
        self._company = Company(self, self._commands.topics, self._senders)
        self._safety = guards_of(settings, actions, observation, self._permission)
        self._diagnostics = self.create_lifecycle_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        self._publishers_made = [*self._commands.publishers, self._diagnostics]
        self._wait = DrainedDeadline(self, self._on_wait_over)
        self._drained = DrainedDeadline(self, self._on_drained)
        store = SampleStore(observation)
        self._output = output = CommandOutput(self, self._safety, self._fault, self._now_ns, self._defer)
        answers = Answers(self._act, output.hold, output.refuse, output.stop)
        most = horizon_of(observation)  # what one image may set free at once
        self._answering = Answering(self._acting, store, most, settings, answers, self._fault, self._wait.set)
        self._restart()
        self._inputs = InputSubscriptions(self, observation, settings.reliability, store, self._after_input)
        self._subscriptions_made = [
            self.create_subscription(MemoryCondition, CONDITION_TOPIC, self._on_condition, qos.CONDITION),
            self.create_subscription(Empty, "~/stop", self._on_stop, qos.STOP),
        ]
        self._silence_timer = self.create_timer(settings.condition_timeout_ms / 1e3, self._on_silence, autostart=False)
        self._motion_timer = self.create_timer(1e-9 * self._safety.chain_ns, self._on_motion_over, autostart=False)
        report = self.create_timer(1.0 / settings.diagnostics_rate_hz, self._publish_diagnostics)
        self._timers_made = [self._wait.timer, self._drained.timer, self._silence_timer, self._motion_timer, report]
        self._say_what_is_ready(f"policy of model {self._model_id[:SHORT_ID]} from {loaded.folder}")

    def activate(self) -> None:
        """Begin an episode, with what comes from now on."""
        self._since_ns, self._since_s = time.time_ns(), time.monotonic()
        self._company.begin()
        self._restart()
        self._silence_timer.reset()

    def deactivate(self) -> None:
        """No more commands."""
        self._answering.clear()
        self._output.stop()
        for timer in (self._silence_timer, self._motion_timer):
            timer.cancel()

    def release(self) -> None:
        """Close the topics."""
        for timer in self._timers_made:
            self.destroy_timer(timer)
        subscriptions = [*(self._inputs.subscriptions if self._inputs else []), *self._subscriptions_made]
        self.drop_entities(self._publishers_made, subscriptions)
        for part in (self._acting, *self._senders):
            if part is not None:
                part.close()
        self._acting = self._inputs = None
        self._senders = []
        self._timers_made, self._publishers_made, self._subscriptions_made = [], [], []

    def _say_what_is_ready(self, text: str) -> None:
        log, settings = self.get_logger(), self._settings
        log.info(text)
        if settings.dry_run:
            log.warning("dry run: commands go to ~/dry_run/TOPIC, and nothing to the robot")
        if settings.ramp_ms and self._commands.without_place:
            log.warning(
                "not ramped, since no state channel of their name tells where they are, in their unit: "
                f"{', '.join(self._commands.without_place)}"
            )

    def _restart(self) -> None:
        """Forget the episode so far, and what was counted."""
        self._output.reset()
        self._memory.forget()
        self._forget_servers()
        self._conditions = 0
        self._answering.clear()
        self._answering.restart()

    def _forget_servers(self) -> None:
        for sender in self._senders:
            sender.forget()

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.configured
        response.message = "policy reset" if self.configured else "policy_node is not configured"
        if self.configured:
            self._output.stop()
            self._permission.new_episode()
            self._health = Health()
            self._restart()
            if self.active:
                self._silence_timer.reset()
        return response

    def _on_enable(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.active
        if not self.active:
            response.message = "policy_node is not active: configure and activate it first"
            return response
        self._output.allow()
        self._memory.forget()
        self._forget_servers()
        self._company.accept()
        self._permission.enable()
        response.message = "commands enabled" + (", dry run" if self._settings.dry_run else "")
        self.get_logger().info(response.message)
        return response

    def _on_disable(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.configured
        response.message = "commands disabled" if self.configured else "policy_node is not configured"
        self._stop("~/disable")
        return response

    def _on_stop(self, message: Empty) -> None:
        self._stop("~/stop")

    def _stop(self, who: str) -> None:
        if self.configured:
            self._permission.stop(who)
            if self.active:
                self._output.stop()
            self._fault(COMMAND, self._permission.reason)

    def _on_condition(self, message: MemoryCondition, info: Any) -> None:
        if not self.active or self._is_of_before(info["received_timestamp"]):
            return
        self._conditions += 1
        self._silence_timer.reset()
        self._drained.note_input()
        if message.model_id != self._model_id:
            self._output.refuse(
                CONDITION_TOPIC,
                f"condition of model {message.model_id[:SHORT_ID]} ({message.mechanism}) refused: this policy is of "
                f"model {self._model_id[:SHORT_ID]}; start memory_node and policy_node with the same checkpoint",
            )
            return
        try:
            condition = condition_of(message)
        except ValueError as error:
            self._output.refuse(CONDITION_TOPIC, str(error))
            return
        if problem := self._memory.problem(condition):
            self._permission.fail(problem)
        self._permission.block(self._company.problem)
        if self._permission.fault:
            self._output.refuse(CONDITION_TOPIC, self._permission.reason)
            return
        self._answering.take(condition)

    def _is_of_before(self, received_ns: int) -> bool:
        """Whether a message waited in the queue while the node was not active."""
        # Later none waits there any more, but where the wall clock was set back all seem to.
        return time.monotonic() - self._since_s < QUEUE_S and 0 < received_ns < self._since_ns

    def _after_input(self, stream: str, verdict: Verdict, stamp_ns: int) -> None:
        if self.active:
            self._wait.note_input()
            self._answering.work()

    def _after_chunk(self) -> None:
        if self.active:
            self._answering.work()

    def _on_wait_over(self) -> None:
        if self.active:
            self._answering.work(give_up_until_ns=time.monotonic_ns())

    def _defer(self) -> None:
        self._drained.set(time.monotonic_ns())

    def _on_drained(self) -> None:
        if self.active:
            self._output.flush()

    def _act(self, action: NDArray[np.float32], state: NDArray[np.float64], stamp_ns: int) -> None:
        targets = self._commands.targets(action, state)
        if not np.isfinite(targets).all():
            text = "the policy's action is not finite: check its checkpoint and the units of its inputs"
            self._output.hold(stamp_ns, CONDITION_TOPIC, text)
        elif far := self._commands.beyond_training(state):
            text = (
                f"commands are relative to {', '.join(far)}, which is far beyond what training showed: compare units "
                "and joint names with the recordings (trace-memory bags inspect)"
            )
            self._output.hold(stamp_ns, CONDITION_TOPIC, text)
        else:
            self._output.command(targets, self._commands.place(state), stamp_ns)

    def messages(self, targets: NDArray[np.float64], stamp_ns: int) -> Sequence[Any]:
        """A command's messages. Raises ReadError."""
        return self._commands.messages(targets, stamp_ns)

    def publish(self, messages: Sequence[Any]) -> None:
        """Send a command; what moves by velocity is stopped unless another follows."""
        self._commands.publish(messages)
        if self._commands.moves_by_velocity and self._safety.timeliness.limited:
            self._motion_timer.reset()

    def still(self, stamp_ns: int) -> None:
        """Stop what moves by velocity."""
        self._motion_timer.cancel()
        self._commands.still(stamp_ns)

    def _on_motion_over(self) -> None:
        self.still(self._now_ns())

    def _on_silence(self) -> None:
        if self.active:
            silence_ms = self._settings.condition_timeout_ms
            text = f"no condition for {silence_ms} ms: no command until one comes; is memory_node active and not late?"
            self._fault(CONDITION_TOPIC, text)
            if self._safety.timeliness.limited:
                self._output.stop()

    def _now_ns(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _fault(self, source: str, text: str) -> None:
        if self._health.note(source, text):
            self.get_logger().warning(text)

    def _publish_diagnostics(self) -> None:
        if not self.active:
            return
        counts = {"conditions": self._conditions, "late_chunks": self._answering.late_chunks} | self._output.counts
        values = {name: str(count) for name, count in counts.items()}
        values |= {
            "enabled": str(self._permission.allowed).lower(),
            "dry_run": str(self._settings.dry_run).lower(),
            "age_ms": f"{self._output.age_ms:.1f}",
            "act_ms": f"{self._acting.took_ms:.2f}" if self._acting else "",
            "model_id": self._model_id,
        }
        if not self._settings.dry_run and (untaken := self._company.untaken):
            self._fault(COMMAND, untaken)
        stopped = self._permission.fault or self._permission.blocked
        error = self._permission.reason if stopped else self._output.error
        self._diagnostics.publish(diagnostic_array(self, self._health, values, error))


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(PolicyNode, args)


if __name__ == "__main__":
    main()
