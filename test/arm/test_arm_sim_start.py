"""When an episode of the simulator begins, whatever the stamps of the one before, and what it refuses meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from sensor_msgs.msg import Image, JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from trace_memory_ros.arm.nodes.arm_sim_node import ArmSimNode
from trace_memory_ros.arm.sim.names import ACTION_NAMES, CAMERA_NAMES
from trace_memory_ros.msg import EpisodeStatus
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.conversion import stamp_ns

HOUR_NS = 3_600_000_000_000
PATIENCE_S = 60.0


@pytest.fixture
def ros() -> Iterator[SingleThreadedExecutor]:
    rclpy.init()
    executor = SingleThreadedExecutor()
    yield executor
    executor.shutdown()
    rclpy.shutdown()


def test_a_lock_step_episode_does_not_wait_for_the_wall_clock_to_reach_its_stamps(ros: SingleThreadedExecutor) -> None:
    listener, images = rclpy.create_node("listener"), list[Image]()
    for camera in CAMERA_NAMES:
        listener.create_subscription(Image, f"camera/{camera}/image_raw", images.append, qos.sensor("reliable"))
    listener.create_subscription(JointState, "joint_states", lambda _: None, qos.sensor("reliable"))
    sim = ArmSimNode()
    sim.set_parameters([Parameter("mode", value="lockstep")])
    sim.trigger_configure()
    sim.trigger_activate()
    for node in (sim, listener):
        ros.add_node(node)
    deadline = time.monotonic() + PATIENCE_S
    while sim.streams.without_subscriber() and time.monotonic() < deadline:
        ros.spin_once(timeout_sec=0.05)
    # As after many lock-step episodes that ran faster than real time.
    sim._last_stamp_ns = time.time_ns() + HOUR_NS
    start = listener.create_client(Trigger, "arm_sim_node/start").call_async(Trigger.Request())
    while not (start.done() and images) and time.monotonic() < deadline:
        ros.spin_once(timeout_sec=0.05)
    sim.stop()
    assert start.done() and start.result().success
    assert images, f"no picture within {PATIENCE_S:g} s of the start"
    assert stamp_ns(images[0].header.stamp) > time.time_ns()
    for node in (sim, listener):
        node.destroy_node()


def test_an_episode_on_the_wall_clock_says_when_it_begins(ros: SingleThreadedExecutor) -> None:
    sim = ArmSimNode()
    sim.trigger_configure()
    sim.trigger_activate()
    assert "begins in" not in sim._start()
    sim._end(EpisodeStatus.IDLE)
    sim._last_stamp_ns = time.time_ns() + HOUR_NS
    told = sim._start()
    sim.stop()
    assert "; begins in 3600 s" in told or "; begins in 3599 s" in told
    sim.destroy_node()


def test_a_command_for_a_time_that_is_over_is_refused_and_the_simulator_goes_on(ros: SingleThreadedExecutor) -> None:
    sim, operator = ArmSimNode(), rclpy.create_node("operator")
    sim.trigger_configure()
    sim.trigger_activate()
    commands = operator.create_publisher(JointTrajectory, "command", qos.COMMAND)
    for node in (sim, operator):
        ros.add_node(node)
    deadline = time.monotonic() + PATIENCE_S
    start = operator.create_client(Trigger, "arm_sim_node/start").call_async(Trigger.Request())
    while not (start.done() and commands.get_subscription_count()) and time.monotonic() < deadline:
        ros.spin_once(timeout_sec=0.05)
    point = JointTrajectoryPoint(positions=[0.0] * len(ACTION_NAMES))
    point.time_from_start.sec = -1
    message = JointTrajectory(joint_names=list(ACTION_NAMES), points=[point])
    message.header.stamp = operator.get_clock().now().to_msg()
    commands.publish(message)
    while not sim._health.faults and time.monotonic() < deadline:
        ros.spin_once(timeout_sec=0.05)
    faults = sim._health.faults
    sim.stop()
    assert ["time_from_start = -1 s" in fault for fault in faults] == [True], faults
    for node in (sim, operator):
        node.destroy_node()
