"""The two processes between which pictures pass: `python -m studies.pictures.ends send|hear ...`."""

from __future__ import annotations

import json
import sys
import threading
import time

import rclpy
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import Image

from trace_memory_ros.nodes import qos

FOUND_S = 30.0
"""Within which a listener has to be there."""


def send(cameras: int, width: int, height: int, rate_hz: float, seconds: float) -> None:
    """Publish a picture of every camera at once, `rate_hz` times a second; prints how many each sent."""
    rclpy.init()
    node = rclpy.create_node("driver")
    topics = [node.create_publisher(Image, f"camera_{k}", qos.sensor("best_effort")) for k in range(cameras)]
    picture = Image(height=height, width=width, step=3 * width, encoding="rgb8", data=bytes(3 * width * height))
    deadline = time.monotonic() + FOUND_S
    while any(topic.get_subscription_count() < 1 for topic in topics):
        if time.monotonic() > deadline:
            raise SystemExit(f"no listener within {FOUND_S:g} s")
        time.sleep(0.05)
    begun, count = time.monotonic(), round(seconds * rate_hz)
    for k in range(count):
        for topic in topics:
            topic.publish(picture)
        time.sleep(max(0.0, begun + (k + 1) / rate_hz - time.monotonic()))
    print(count, flush=True)
    sys.stdin.read()
    rclpy.shutdown()


def hear(cameras: int) -> None:
    """Count pictures until stdin ends, then print those that came, and those that the middleware says it lost."""
    rclpy.init()
    node = rclpy.create_node("listener")
    came, lost = [0] * cameras, [0] * cameras
    waiting = threading.Thread(target=sys.stdin.read, daemon=True)
    waiting.start()

    def subscribe(camera: int) -> None:
        def count(_: Image) -> None:
            came[camera] += 1

        def miss(event: object) -> None:
            lost[camera] = int(event.total_count)  # type: ignore[attr-defined]

        told = SubscriptionEventCallbacks(message_lost=miss)
        node.create_subscription(Image, f"camera_{camera}", count, qos.sensor("best_effort"), event_callbacks=told)

    for camera in range(cameras):
        subscribe(camera)
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    while waiting.is_alive():
        executor.spin_once(timeout_sec=0.1)
    print(json.dumps({"came": came, "lost": lost}), flush=True)
    rclpy.shutdown()


if __name__ == "__main__":
    role, cameras_, *rest = sys.argv[1:]
    if role == "hear":
        hear(int(cameras_))
    else:
        send(int(cameras_), int(rest[0]), int(rest[1]), float(rest[2]), float(rest[3]))
