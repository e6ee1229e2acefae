"""Subscriptions to the streams of an observation config, handing message contents to whoever observes."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import CompressedImage, Image, JointState

from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig
from trace_memory_ros.observation.sink import Sink

After = Callable[[str, Verdict, int], None]
"""Called with the stream, what became of its sample, and the sample's stamp in ns."""

_REFUSALS = {
    Verdict.DUPLICATE: "a sample with the stamp of the one before was refused: stamp every sample when it is taken",
    Verdict.OUT_OF_ORDER: "a sample stamped before an earlier one was refused: one publisher per topic, rising stamps",
    Verdict.AHEAD: "a sample stamped far ahead of the other streams was refused: stamp all streams by one clock",
    Verdict.LATE: "a sample arrived after its tick had fired: raise deadline_ms, or speed up the stream",
}


def refusal(stream: str, verdict: Verdict) -> str:
    """What is wrong with a sample that was refused or late, and the remedy; empty for an accepted one."""
    text = _REFUSALS.get(verdict)
    return f"{stream}: {text}" if text else ""


class InputSubscriptions:
    """One subscription per stream of `config`; a message goes to `sink`, then `after` is called."""

    def __init__(self, node: Node, config: ObservationConfig, reliability: str, sink: Sink, after: After) -> None:
        self._sink = sink
        self._after = after
        self.subscriptions: list[Any] = []

        def subscribe(kind: Any, stream: Any, callback: Callable[[str, Any], None]) -> None:
            handler = partial(callback, stream.name)
            profile = (qos.sensor if isinstance(stream, CameraConfig) else qos.state)(reliability)
            self.subscriptions.append(node.create_subscription(kind, stream.topic, handler, profile))

        for camera in config.cameras:
            if camera.transport == "compressed":
                subscribe(CompressedImage, camera, self._on_compressed)
            else:
                subscribe(Image, camera, self._on_image)
        for stream in config.joint_streams:
            subscribe(JointState, stream, self._on_joints)
        if config.base is not None and not config.base_masked:
            if config.base.kind == "twist":
                subscribe(TwistStamped, config.base, self._on_twist)
            else:
                subscribe(Odometry, config.base, self._on_odometry)

    def _on_image(self, stream: str, message: Image) -> None:
        arrival, stamp = time.monotonic_ns(), stamp_ns(message.header.stamp)
        verdict = self._sink.push_image(
            stream,
            stamp,
            arrival,
            data=message.data,
            encoding=message.encoding,
            height=message.height,
            width=message.width,
            step=message.step,
            is_bigendian=message.is_bigendian,
        )
        self._after(stream, verdict, stamp)

    def _on_compressed(self, stream: str, message: CompressedImage) -> None:
        arrival, stamp = time.monotonic_ns(), stamp_ns(message.header.stamp)
        verdict = self._sink.push_compressed(stream, stamp, arrival, data=message.data, format=message.format)
        self._after(stream, verdict, stamp)

    def _on_joints(self, stream: str, message: JointState) -> None:
        arrival, stamp = time.monotonic_ns(), stamp_ns(message.header.stamp)
        verdict = self._sink.push_joints(stream, stamp, arrival, names=message.name, positions=message.position)
        self._after(stream, verdict, stamp)

    def _on_odometry(self, stream: str, message: Odometry) -> None:
        self._push_twist(stream, stamp_ns(message.header.stamp), message.twist.twist)

    def _on_twist(self, stream: str, message: TwistStamped) -> None:
        self._push_twist(stream, stamp_ns(message.header.stamp), message.twist)

    def _push_twist(self, stream: str, stamp: int, twist: Twist) -> None:
        verdict = self._sink.push_base(
            stream, stamp, time.monotonic_ns(), vx=twist.linear.x, vy=twist.linear.y, yaw_rate=twist.angular.z
        )
        self._after(stream, verdict, stamp)
