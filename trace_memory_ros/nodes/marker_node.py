"""marker_node: shows in RViz what the memory writes, keeps and reads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from trace_memory_ros.msg import EpisodeStatus, MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import parameters, qos
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.markers.groups import groups_in
from trace_memory_ros.nodes.markers.joints import ANY_ROBOT, JointDistances, JointSource, sources_of
from trace_memory_ros.nodes.markers.painter import Placement
from trace_memory_ros.nodes.markers.parameters import COMPACT, MarkerNodeParameters
from trace_memory_ros.nodes.markers.scene import MarkerScene
from trace_memory_ros.nodes.robot_topics import RobotTopics
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, MARKERS_TOPIC, RECORD_TOPIC


class MarkerNode(ManagedNode):
    """Subscribes the memory's topics and publishes `memory/markers`."""

    table = MarkerNodeParameters

    def __init__(self) -> None:
        self._inputs: list[Any] = []
        self._publisher: Any = None
        self._timer: Any = None
        self._waiting: dict[str, bytes] = {}
        super().__init__("marker_node")

    def configure(self) -> None:
        """Build the empty scene and open the topics."""
        values = parameters.read(self, MarkerNodeParameters)
        placement = Placement(
            frame_id=values.frame_id,
            position_m=(values.position_x, values.position_y, values.position_z),
            yaw_deg=values.yaw_deg,
            scale=values.scale,
            lifetime_s=values.lifetime_s,
        )
        sources: Sequence[JointSource] = ANY_ROBOT
        if values.checkpoint:
            sources = sources_of(RobotTopics.of_checkpoint(values.checkpoint).observation)
        joints = JointDistances(sources, groups_in(values.joint_groups))
        scene = MarkerScene(
            placement, joints, values.path_points, values.silent_after_s, compact=values.layout == COMPACT
        )
        self._scene = scene
        self._waiting = {}
        self._publisher = self.create_lifecycle_publisher(MarkerArray, MARKERS_TOPIC, qos.DIAGNOSTICS)
        self._inputs = [
            self.create_subscription(MemoryDiagnostics, RECORD_TOPIC, self._on_diagnostics, qos.CONDITION),
            self.create_subscription(MemoryCondition, CONDITION_TOPIC, scene.on_condition, qos.CONDITION),
            self.create_subscription(EpisodeStatus, "episode", scene.on_episode, qos.STATUS),
            *(self._subscribe_joints(topic, values.reliability) for topic in joints.topics),
        ]
        self._timer = self.create_timer(1.0 / values.rate_hz, self._publish, autostart=False)

    def activate(self) -> None:
        """Publish from now on."""
        self._timer.reset()

    def deactivate(self) -> None:
        """Publish no more; the panel vanishes after its lifetime."""
        self._timer.cancel()

    def release(self) -> None:
        """Close the topics."""
        if self._timer is not None:
            self.destroy_timer(self._timer)
        self.drop_entities([self._publisher] if self._publisher else [], self._inputs)
        self._timer, self._publisher, self._inputs = None, None, []

    def _subscribe_joints(self, topic: str, reliability: str) -> Any:
        keep = partial(self._waiting.__setitem__, topic)
        return self.create_subscription(JointState, topic, keep, qos.state(reliability), raw=True)

    def _take_joints(self) -> None:
        """The newest joint states alone are unpacked: a driver may send a thousand a second."""
        for topic, data in self._waiting.items():
            self._scene.on_joints(topic, deserialize_message(data, JointState))
        self._waiting.clear()

    def _on_diagnostics(self, message: MemoryDiagnostics) -> None:
        self._take_joints()
        self._scene.on_diagnostics(message, time.monotonic())

    def _publish(self) -> None:
        # Drawing costs more than everything else here: not for an empty room.
        if self._publisher.get_subscription_count():
            self._take_joints()
            self._publisher.publish(self._scene.picture(time.monotonic()))


def main(args: Sequence[str] | None = None) -> int:
    """Entry point of the executable."""
    return run(MarkerNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
