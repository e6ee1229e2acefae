"""Runs episodes on running nodes over ROS topics and services, and says what happened: for the demo and for tests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import rclpy
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.msg import EpisodeStatus, MemoryCondition
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.tasks.arm.scenario import Scenario


class EpisodeFailed(RuntimeError):
    """An episode could not be run; the message names the node or service and the reason."""


@dataclass(frozen=True)
class ReceivedCondition:
    """One condition as it arrived. latency_ms: tick stamp -> received here; meaningful in real time only."""

    tick: int
    stamp_ns: int
    status: int
    wrote: bool
    latency_ms: float


@dataclass(frozen=True)
class EpisodeResult:
    """One episode over ROS. ticks_expected: by the simulator. conditions: all that were received, in order."""

    task: str
    seed: int
    cue: int
    branch: int
    success: bool
    progress: float
    elapsed_s: float
    ticks_expected: int
    mechanism: str
    model_id: str
    conditions: tuple[ReceivedCondition, ...]
    reasons: tuple[str, ...]

    @property
    def ticks_published(self) -> int:
        """Distinct ticks for which a condition was received."""
        return len({condition.tick for condition in self.conditions})

    @property
    def latencies_ms(self) -> tuple[float, ...]:
        return tuple(condition.latency_ms for condition in self.conditions)

    @property
    def statuses(self) -> Mapping[int, int]:
        """How many conditions came with each status."""
        return Counter(condition.status for condition in self.conditions)

    @property
    def writes(self) -> int:
        return sum(condition.wrote for condition in self.conditions)


@dataclass
class _Recording:
    conditions: list[ReceivedCondition] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)
    status: EpisodeStatus | None = None
    running: bool = False
    mechanism: str = ""
    model_id: str = ""


class EpisodeClient:
    """A ROS node of its own in this process (context manager). Use from one thread.

    domain_id: ROS domain of the nodes; None takes ROS_DOMAIN_ID. namespace: that of the nodes.
    """

    def __init__(self, domain_id: int | None = None, namespace: str = "", name: str = "episode_client") -> None:
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain_id)
        self.node: Node = rclpy.create_node(name, namespace=namespace, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._recording = _Recording()
        self._connected = False
        self._commands_seen = 0
        self.on_status: Callable[[EpisodeStatus], None] | None = None
        self._clients: dict[str, Any] = {}
        self.node.create_subscription(MemoryCondition, "memory/condition", self._on_condition, qos.CONDITION)
        self.node.create_subscription(JointTrajectory, "command", self._on_command, qos.COMMAND)
        self.node.create_subscription(EpisodeStatus, "episode", self._on_status, qos.STATUS)

    def __enter__(self) -> EpisodeClient:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    def trigger(self, service: str, timeout_s: float = 20.0) -> str:
        """Call a std_srvs/Trigger, for example `memory_node/reset`; returns its message. Raises `EpisodeFailed`."""
        response = self.call(Trigger, service, Trigger.Request(), timeout_s)
        if not response.success:
            raise EpisodeFailed(f"{service}: {response.message}")
        return str(response.message)

    def set_parameters(self, node: str, values: Mapping[str, Any], timeout_s: float = 20.0) -> None:
        """Set parameters of a running node together. Raises `EpisodeFailed` with the node's reason."""
        request = SetParameters.Request(
            parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        )
        response = self.call(SetParameters, f"{node}/set_parameters", request, timeout_s)
        for name, result in zip(values, response.results, strict=True):
            if not result.successful:
                raise EpisodeFailed(f"{node} refused {name} = {values[name]!r}: {result.reason}")

    def call(self, kind: Any, service: str, request: Any, timeout_s: float = 20.0) -> Any:
        """Call any service. Raises `EpisodeFailed` when it isn't there or doesn't answer in time."""
        if service not in self._clients:
            self._clients[service] = self.node.create_client(kind, service)
        client = self._clients[service]
        deadline = time.monotonic() + timeout_s
        if not client.wait_for_service(timeout_s):
            raise EpisodeFailed(f"service {client.srv_name} is not there after {timeout_s:g} s: is its node running?")
        future = client.call_async(request)
        self._executor.spin_until_future_complete(future, max(0.1, deadline - time.monotonic()))
        if not future.done():
            client.remove_pending_request(future)
            raise EpisodeFailed(f"service {client.srv_name} did not answer within {timeout_s:g} s")
        return future.result()

    def spin_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Handle messages until `condition()` holds; False if it didn't within `timeout_s`."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self._executor.spin_once(timeout_sec=0.05)
        return True

    def get_parameter(self, node: str, name: str, timeout_s: float = 20.0) -> Any:
        """The value of a running node's parameter."""
        response = self.call(GetParameters, f"{node}/get_parameters", GetParameters.Request(names=[name]), timeout_s)
        return parameter_value_to_python(response.values[0])

    def state(self, node: str, timeout_s: float = 20.0) -> str:
        """Lifecycle state of a node: `unconfigured`, `inactive`, `active` or `finalized`."""
        return str(self.call(GetState, f"{node}/get_state", GetState.Request(), timeout_s).current_state.label)

    def change_state(self, node: str, transition: str, timeout_s: float = 60.0) -> None:
        """`configure`, `activate`, `deactivate`, `cleanup` or `shutdown` a node. Raises `EpisodeFailed` if it fails."""
        request = ChangeState.Request(transition=Transition(label=transition))
        if not self.call(ChangeState, f"{node}/change_state", request, timeout_s).success:
            raise EpisodeFailed(f"{node} failed to {transition}: its log says why")

    def wait_active(self, nodes: Sequence[str], timeout_s: float = 60.0) -> None:
        """Wait until these lifecycle nodes are active. Raises `EpisodeFailed` naming the first that isn't."""
        deadline = time.monotonic() + timeout_s
        for node in nodes:
            label = ""
            while label != "active":
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise EpisodeFailed(
                        f"{node} is {label or 'silent'}, not active, after {timeout_s:g} s: its log says why"
                    )
                if label:
                    self.spin_until(lambda: False, 0.1)
                label = self.state(node, left_s)

    def begin(
        self,
        scenario: Scenario,
        mode: str = "realtime",
        sim: str = "arm_sim_node",
        memory: str = "memory_node",
        policy: str = "policy_node",
    ) -> None:
        """Set the scenario, reset memory and policy, start. `received` and `status` then tell of this episode."""
        self.trigger(f"{sim}/stop")
        self.connect(sim, (memory, policy))
        values = {"task": scenario.task, "seed": scenario.seed, "cue": scenario.cue, "mode": mode}
        self.set_parameters(sim, {**values, "extra_pause_s": float(scenario.extra_pause_s)})
        for node in (memory, policy):
            self.trigger(f"{node}/reset")
        self._recording = _Recording()
        self.trigger(f"{sim}/start")

    def run(
        self,
        scenario: Scenario,
        mode: str = "realtime",
        timeout_s: float = 300.0,
        on_status: Callable[[EpisodeStatus], None] | None = None,
    ) -> EpisodeResult:
        """One episode from `begin` to its end.

        mode: `realtime` or `lockstep`. on_status: called with every status received, about 10 per simulated second.
        Raises `EpisodeFailed` when it doesn't finish within `timeout_s` of wall time.
        """
        self.on_status = on_status
        try:
            self.begin(scenario, mode)
            if not self.spin_until(lambda: self._finished(scenario), timeout_s):
                self.trigger("arm_sim_node/stop")
                raise EpisodeFailed(
                    f"{scenario} did not finish within {timeout_s:g} s: {len(self.received)} conditions came"
                )
        finally:
            self.on_status = None
        recording = self._recording
        assert recording.status is not None
        # The last condition may still be on its way when the end is announced.
        expected = int(recording.status.ticks_expected)
        self.spin_until(lambda: len(recording.conditions) >= expected, 1.0)
        return _result(recording)

    def connect(
        self,
        sim: str = "arm_sim_node",
        consumers: Sequence[str] = ("memory_node", "policy_node"),
        timeout_s: float = 30.0,
    ) -> None:
        """Once, let a picture go all the way to a command; `begin` does it where it wasn't done.

        A matched topic's first large sample may take seconds, while its transport connects: too long for a first tick.
        Raises `EpisodeFailed` when no command comes.
        """
        deadline = time.monotonic() + timeout_s
        while not self._connected:
            if time.monotonic() > deadline:
                who = ", ".join(consumers)
                raise EpisodeFailed(f"no command within {timeout_s:g} s of looking: /diagnostics of {who} say why")
            for node in consumers:
                self.trigger(f"{node}/reset")
            self._commands_seen = 0
            self.trigger(f"{sim}/look")
            self._connected = self.spin_until(lambda: self._commands_seen > 0, 3.0)

    @property
    def received(self) -> Sequence[ReceivedCondition]:
        """Conditions of the episode so far, in the order they came."""
        return self._recording.conditions

    def _finished(self, scenario: Scenario) -> bool:
        status = self._recording.status
        return (
            status is not None
            # A status kept for late joiners may tell of an earlier episode of the same scenario.
            and self._recording.running
            and status.phase == EpisodeStatus.FINISHED
            and (status.task, status.seed, status.cue) == (scenario.task, scenario.seed, scenario.cue)
        )

    def _on_condition(self, message: MemoryCondition) -> None:
        now_ns = time.time_ns()
        stamp = stamp_ns(message.header.stamp)
        latency_ms = (now_ns - stamp) / 1e6
        self._recording.mechanism = message.mechanism
        self._recording.model_id = message.model_id
        self._recording.conditions.append(
            ReceivedCondition(int(message.tick), stamp, int(message.status), bool(message.wrote), latency_ms)
        )
        if message.reason:
            self._recording.reasons[message.reason] = None

    def _on_command(self, message: JointTrajectory) -> None:
        self._commands_seen += 1

    def _on_status(self, message: EpisodeStatus) -> None:
        self._recording.status = message
        self._recording.running |= message.phase == EpisodeStatus.RUNNING
        if self.on_status:
            self.on_status(message)


def _result(recording: _Recording) -> EpisodeResult:
    status = recording.status
    assert status is not None
    return EpisodeResult(
        task=status.task,
        seed=int(status.seed),
        cue=int(status.cue),
        branch=int(status.branch),
        success=bool(status.success),
        progress=float(status.progress),
        elapsed_s=float(status.elapsed_s),
        ticks_expected=int(status.ticks_expected),
        mechanism=recording.mechanism,
        model_id=recording.model_id,
        conditions=tuple(recording.conditions),
        reasons=tuple(recording.reasons),
    )
