"""Runs episodes on running nodes over ROS topics and services, and says what happened: for the demo and for tests."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.arm.nodes.episode_log import EpisodeLog, PlayedEpisode, ReceivedCondition
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.msg import EpisodeStatus, MemoryCondition
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.node_client import EpisodeFailed, NodeClient
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC


class EpisodeClient(NodeClient):
    """Starts and follows episodes of arm_sim_node, memory_node and policy_node."""

    def __init__(self, domain_id: int | None = None, namespace: str = "", name: str = "episode_client") -> None:
        super().__init__(domain_id, namespace, name)
        self._log = EpisodeLog()
        self._connected = False
        self._commands_seen = 0
        self.on_status: Callable[[EpisodeStatus], None] | None = None
        self.node.create_subscription(MemoryCondition, CONDITION_TOPIC, self._on_condition, qos.CONDITION)
        self.node.create_subscription(JointTrajectory, "command", self._on_command, qos.COMMAND)
        self.node.create_subscription(EpisodeStatus, "episode", self._on_status, qos.STATUS)

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
        self._log = EpisodeLog()
        self.trigger(f"{sim}/start")

    def run(
        self,
        scenario: Scenario,
        mode: str = "realtime",
        timeout_s: float = 300.0,
        on_status: Callable[[EpisodeStatus], None] | None = None,
    ) -> PlayedEpisode:
        """One episode from `begin` to its end.

        mode: `realtime` or `lockstep`. on_status: called with every status received, about 10 per simulated second.
        Raises `EpisodeFailed` when it doesn't finish within `timeout_s` of wall time.
        """
        self.on_status = on_status
        try:
            self.begin(scenario, mode)
            if not self.spin_until(lambda: self._log.finished(scenario), timeout_s):
                self.trigger("arm_sim_node/stop")
                raise EpisodeFailed(
                    f"{scenario} did not finish within {timeout_s:g} s: {len(self.received)} conditions came"
                )
        finally:
            self.on_status = None
        log = self._log
        assert log.status is not None
        # The last condition may still be on its way when the end is announced.
        expected = int(log.status.ticks_expected)
        self.spin_until(lambda: len(log.conditions) >= expected, 1.0)
        return log.result()

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
            self._commands_seen = 0
            self.look(sim, consumers)
            self._connected = self.spin_until(lambda: self._commands_seen > 0, 3.0)

    def look(self, sim: str = "arm_sim_node", consumers: Sequence[str] = ("memory_node", "policy_node")) -> None:
        """Between episodes, let one sample of every stream through to memory and policy."""
        for node in consumers:
            self.trigger(f"{node}/reset")
        self.trigger(f"{sim}/look")

    @property
    def received(self) -> Sequence[ReceivedCondition]:
        """Conditions of the episode so far, in the order they came."""
        return self._log.conditions

    def _on_condition(self, message: MemoryCondition) -> None:
        self._log.take_condition(message, time.time_ns())

    def _on_command(self, message: JointTrajectory) -> None:
        self._commands_seen += 1

    def _on_status(self, message: EpisodeStatus) -> None:
        self._log.take_status(message)
        if self.on_status:
            self.on_status(message)
