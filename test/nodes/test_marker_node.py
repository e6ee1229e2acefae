"""marker_node in its own process, over DDS."""

import itertools
import math
import time

import pytest
import rclpy
from nodes.graph import allowed, declared, unused
from nodes.panel import check_valid, diagnostics, joints, of, words
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from trace_memory_ros.msg import MemoryDiagnostics
from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec


@pytest.fixture
def ros():
    rclpy.init()
    node = rclpy.create_node("marker_test")
    yield node
    node.destroy_node()
    rclpy.shutdown()


def receive(node, arrays, send, wanted, timeout_s=20.0):
    """Send again and again until an array fulfils `wanted`; returns that array."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        send()
        arrays.clear()
        rclpy.spin_once(node, timeout_sec=0.2)
        for array in arrays:
            check_valid(array)
            if wanted(array.markers):
                return array
    raise AssertionError(f"no such array within {timeout_s:g} s")


def test_the_node_draws_what_other_processes_publish(ros, tmp_path):
    arrays = []
    ros.create_subscription(MarkerArray, "memory/markers", arrays.append, 10)
    send_diagnostics = ros.create_publisher(MemoryDiagnostics, "memory/diagnostics", 10)
    send_joints = ros.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
    process = NodeProcess(NodeSpec("marker_node", {"autostart": True, "rate_hz": 30.0}), tmp_path)
    try:
        process.wait_ready()
        receive(ros, arrays, lambda: None, lambda markers: "waiting for the first" in words(markers))

        def send(message, joint_state):
            return lambda: (send_joints.publish(joint_state), send_diagnostics.publish(message))

        receive(ros, arrays, send(diagnostics(4), joints()), lambda markers: len(of(markers, "slots")) == 6)
        bad = joints(left_joint_2=math.nan)
        receive(ros, arrays, send(diagnostics(5), bad), lambda markers: "left_joint_2 is nan" in words(markers))
        episodes = itertools.count(1)

        def begin():
            send(diagnostics(0, episode=next(episodes), slots=1, mechanism="gru"), joints())()

        # Of the many pictures of one episode only the first clears, and a busy machine may lose it.
        cleared = receive(ros, arrays, begin, lambda markers: markers[0].action == Marker.DELETEALL)
        assert len(of(cleared.markers, "slots")) == 1
        used, rights = declared(ros, "marker_node", ""), allowed("origin_trace", "marker_node", "")
        assert all(names <= rights[right] for right, names in used.items())
        assert unused(rights, used) == {"/clock"}
        assert process.running
    finally:
        code = process.stop()
    assert code == 0, process.log
