"""controller_node: in the place of ros2_control, refuses what its controllers refuse and drives the simulated arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from trace_memory_ros.arm.controllers.config import TRAJECTORY, ControllerConfig, read_controllers
from trace_memory_ros.arm.controllers.rules import SECOND_NS, Point, Refusal, Trajectory
from trace_memory_ros.arm.nodes.controller_board import Controller, ControllerBoard
from trace_memory_ros.arm.nodes.parameters import ControllerNodeParameters
from trace_memory_ros.arm.sim.names import PERIOD_S
from trace_memory_ros.nodes import conversion, parameters, qos
from trace_memory_ros.nodes.health import Health, status_array
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.memory.findings import Finding, Level

PERIOD_NS = round(PERIOD_S * SECOND_NS)


class ControllerNode(ManagedNode):
    """Takes each controller's commands, by its rules; what the joints are told goes out on `command`."""

    table = ControllerNodeParameters

    def __init__(self) -> None:
        self._subscriptions_made: list[Any] = []
        self._publishers_made: list[Any] = []
        self._timers_made: list[Any] = []
        super().__init__("controller_node")

    def configure(self) -> None:
        settings = parameters.read(self, ControllerNodeParameters)
        configs = read_controllers(settings.controllers_file)
        self._board = ControllerBoard(configs)
        self._health = Health()
        self._clock_ns = 0
        self._lockstep = not settings.update_rate_hz
        self._command = self.create_lifecycle_publisher(JointTrajectory, "command", qos.COMMAND)
        self._diagnostics = self.create_lifecycle_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        self._publishers_made = [self._command, self._diagnostics]
        joints = self.create_subscription(JointState, "joint_states", self._on_joints, qos.state("reliable"))
        self._subscriptions_made = [joints, *map(self._subscribed, configs)]
        self._timers_made = [self.create_timer(1.0 / settings.diagnostics_rate_hz, self._publish_diagnostics)]
        if not self._lockstep:
            self._step_ns = round(SECOND_NS / settings.update_rate_hz)
            self._timers_made.append(self.create_timer(1.0 / settings.update_rate_hz, self._on_update))

    def release(self) -> None:
        for timer in self._timers_made:
            self.destroy_timer(timer)
        self.drop_entities(self._publishers_made, self._subscriptions_made)
        self._timers_made, self._publishers_made, self._subscriptions_made = [], [], []

    def _subscribed(self, config: ControllerConfig) -> Any:
        name = config.name

        def trajectory(message: JointTrajectory) -> None:
            self._take(name, lambda: self._board.trajectory(name, plain_trajectory(message), self._now_ns()))

        def numbers(message: Float64MultiArray) -> None:
            self._take(name, lambda: self._board.numbers(name, message.data, self._now_ns()))

        kind, take = (JointTrajectory, trajectory) if config.type == TRAJECTORY else (Float64MultiArray, numbers)
        return self.create_subscription(kind, config.command_topic, take, qos.COMMAND)

    def _take(self, name: str, offer: Callable[[], Refusal | None]) -> None:
        if not self.active:
            return
        if refusal := offer():
            self._fault(name, f"{name} refused a command ({refusal.rule}): {refusal.text}")
        elif self._lockstep and (targets := self._board.complete()) is not None:
            self._tell(targets, self._clock_ns, PERIOD_NS)

    def _on_joints(self, message: JointState) -> None:
        self._board.positions.update(zip(message.name, message.position, strict=False))
        self._clock_ns = conversion.stamp_ns(message.header.stamp)

    def _on_update(self) -> None:
        """Tell the joints where to be at the next update."""
        if not self.active:
            return
        now_ns = self._now_ns()
        busy = self._board.busy(now_ns)  # asked first: the update that ends a trajectory tells its end
        for name in self._board.update(now_ns):
            self._fault(name, f"{name}: {self._board.controllers[name].newest}")
        targets = self._board.desired(now_ns + self._step_ns)
        if targets is not None and busy:
            self._tell(targets, now_ns, self._step_ns)

    def _now_ns(self) -> int:
        """In lock-step time stands still between the ticks of the joints; else it is the clock of stamps."""
        return self._clock_ns if self._lockstep else int(self.get_clock().now().nanoseconds)

    def _tell(self, targets: NDArray[np.float64], stamp_ns: int, within_ns: int) -> None:
        point = JointTrajectoryPoint(positions=targets.tolist())
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(within_ns, SECOND_NS)
        message = JointTrajectory(header=conversion.header(stamp_ns), points=[point])
        message.joint_names = list(self._board.joints)
        self._command.publish(message)

    def _fault(self, name: str, text: str) -> None:
        if self._health.note(name, text):
            self.get_logger().warning(text)

    def _publish_diagnostics(self) -> None:
        if self.active:
            findings = [finding(one) for one in self._board.controllers.values()]
            self._diagnostics.publish(status_array(self, findings, self._health))


def plain_trajectory(message: JointTrajectory) -> Trajectory:
    """What the rules look at."""
    points = [
        Point(
            point.time_from_start.sec * SECOND_NS + point.time_from_start.nanosec,
            point.positions,
            point.velocities,
            point.accelerations,
            point.effort,
        )
        for point in message.points
    ]
    return Trajectory(message.joint_names, points, conversion.stamp_ns(message.header.stamp))


def finding(one: Controller) -> Finding:
    """A controller's state: ERROR while its newest command was refused, with a count by rule."""
    level = Level.ERROR if one.newest else Level.OK
    message = f"newest command refused, {one.newest}" if one.newest else "executing" if one.accepted else "waiting"
    counts = {f"refused: {rule}": str(count) for rule, count in one.refused.items()}
    values = {"type": one.config.type, "topic": one.config.command_topic, "accepted": str(one.accepted), **counts}
    return Finding(one.config.name, level, message, values)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(ControllerNode, args)


if __name__ == "__main__":
    main()
