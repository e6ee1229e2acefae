"""Pictures on the loopback arrive whole, and the variables that see to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import rclpy
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image

from trace_memory_ros.nodes.transport import (
    BUILTIN,
    PROFILES,
    RANGE,
    large_data,
    leave_loopback,
    loopback,
    open_environment,
    private_environment,
)

SENT = 20
CAMERAS = 3
DRIVER = f"""
import time, rclpy
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import Image
rclpy.init()
node = rclpy.create_node("driver")
cameras = [node.create_publisher(Image, f"camera_{{k}}", qos_profile_sensor_data) for k in range({CAMERAS})]
picture = Image(height=480, width=640, step=1920, encoding="rgb8", data=bytes(640 * 480 * 3))
while any(camera.get_subscription_count() < 1 for camera in cameras):
    time.sleep(0.05)
for _ in range({SENT}):
    for camera in cameras:
        camera.publish(picture)
    time.sleep(0.1)
input()
"""


@pytest.mark.timeout(120)
def test_raw_pictures_of_three_cameras_arrive(domain_id: int) -> None:
    context = Context()
    rclpy.init(context=context)
    node = rclpy.create_node("listener", context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    heard = [0] * CAMERAS
    qos = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=SENT, reliability=ReliabilityPolicy.BEST_EFFORT)

    def note(camera: int) -> None:
        heard[camera] += 1

    for camera in range(CAMERAS):
        node.create_subscription(Image, f"camera_{camera}", lambda _, camera=camera: note(camera), qos)
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdin=subprocess.PIPE, env={**os.environ, **private_environment(domain_id)}
    )
    # By LOCALHOST and Fast DDS's own 512 kB next to none arrive; a machine that stands still may cost one or two.
    enough, deadline = SENT - 2, time.monotonic() + 60.0
    while min(heard) < enough and time.monotonic() < deadline:
        executor.spin_once(timeout_sec=0.2)
    driver.communicate(b"\n", timeout=20.0)
    executor.shutdown()
    node.destroy_node()
    rclpy.shutdown(context=context)
    assert min(heard) >= enough, heard


def test_the_loopback_is_a_profile_of_fast_dds_and_a_range_of_others() -> None:
    for own, name in (({}, PROFILES[0]), ({"ROS_DISTRO": "jazzy"}, PROFILES[1])):
        found = loopback(own)
        assert found.keys() == {RANGE, name} and found[RANGE] == "SYSTEM_DEFAULT"
        assert Path(found[name]).name == "loopback.xml" and Path(found[name]).is_file()
    assert loopback({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}) == {RANGE: "LOCALHOST"}


def test_an_open_network_forgets_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in loopback({}).items():
        monkeypatch.setenv(name, value)
    leave_loopback()
    assert not {RANGE, *PROFILES} & set(os.environ)
    assert open_environment(3, "UDPv4")[RANGE] == "SUBNET" and open_environment(3, "UDPv4")[BUILTIN] == "UDPv4"


def test_jazzy_has_to_ask_for_room() -> None:
    assert large_data({"ROS_DISTRO": "jazzy"}) == "LARGE_DATA?sockets_size=4MB"
    assert large_data({"ROS_DISTRO": "kilted"}) == large_data({}) == "LARGE_DATA"
