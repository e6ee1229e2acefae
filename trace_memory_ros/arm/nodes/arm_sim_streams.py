"""The simulated robot's topics: cameras, joint states, odometry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.lifecycle import LifecycleNode
from sensor_msgs.msg import Image, JointState

from trace_memory_ros.nodes import conversion, qos


class ArmStreams:
    """Publishers of one simulated robot. They are reliable, which serves best-effort subscribers as well."""

    def __init__(self, node: LifecycleNode, cameras: Sequence[str]) -> None:
        profile = qos.sensor("reliable")
        self._cameras = {
            name: node.create_lifecycle_publisher(Image, f"camera/{name}/image_raw", profile) for name in cameras
        }
        self._joints = node.create_lifecycle_publisher(JointState, "joint_states", profile)
        self._odometry = node.create_lifecycle_publisher(Odometry, "odom", profile)

    @property
    def publishers(self) -> tuple[object, ...]:
        return (*self._cameras.values(), self._joints, self._odometry)

    def without_subscriber(self) -> list[str]:
        """Topics that nobody subscribes to, except odometry, which a fixed base does without."""
        needed = (*self._cameras.values(), self._joints)
        return [publisher.topic_name for publisher in needed if publisher.get_subscription_count() == 0]

    def image(self, camera: str, image: NDArray[np.uint8], stamp_ns: int) -> None:
        """Publish a camera's rgb8 image `(H, W, 3)`."""
        self._cameras[camera].publish(conversion.image_message(image, stamp_ns, f"{camera}_camera"))

    def joints(self, positions: Mapping[str, float], stamp_ns: int) -> None:
        """Publish joint positions, rad."""
        self._joints.publish(conversion.joint_message(positions, stamp_ns))

    def odometry(self, velocity: NDArray[np.float64], stamp_ns: int) -> None:
        """Publish the base's vx, vy (m/s) and yaw rate (rad/s)."""
        self._odometry.publish(conversion.odometry_message(velocity, stamp_ns))
