"""policy_node beside memory_node on a robot in real time, from outside: what a frozen, cut-off or stopped one sends."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from math import nan
from typing import Any

import numpy as np
import pytest
from fixtures import tiny_checkpoint
from nodes.conftest import READY_S
from nodes.live_robot import ACTIONS, CONFIG, JOINTS, PERIOD_MS, SECOND_NS, LiveRobot, write_limits
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeGroup, NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

WARN, ERROR = 1, 2
LIMIT_NS = SECOND_NS // 2
FAR, MOST = 2.0, 2.6
"""Where the arm stands, far from where the policy wants it; and its upper limit."""
RAMP_MS = 1_000

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def group(domain_id: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeGroup]:
    folder = tmp_path_factory.mktemp("live")
    tiny_checkpoint(folder / "checkpoint", observation=CONFIG, actions=ACTIONS)
    limits = write_limits(folder / "limits.yaml", {"arm_1": {"max": MOST, "max_step": 0.2}, "linear.x": {"max": 1e-6}})
    model = {"checkpoint": str(folder / "checkpoint"), "reliability": "reliable", "autostart": True}
    careful = {"start_enabled": False, "ramp_ms": RAMP_MS, "limits_file": limits, "diagnostics_rate_hz": 20.0}
    specs = [
        NodeSpec("memory_node", {**model, "diagnostics_rate_hz": 20.0}, namespace="live"),
        # The tick's stamp tells which command is which; what a controller takes is tried in the dry run.
        NodeSpec("policy_node", {**model, **careful, "trajectory_stamp": "tick"}, namespace="live"),
    ]
    with NodeGroup(specs, folder / "logs", private_environment(domain_id)) as group:
        group.wait_ready(READY_S)
        yield group
        group.check_alive()


@pytest.fixture(scope="module")
def robot(group: NodeGroup, domain_id: int) -> Iterator[LiveRobot]:
    robot = LiveRobot(domain_id, "live")
    robot.wait_matched(2)
    yield robot
    robot.client.close()


@pytest.fixture
def policy(group: NodeGroup) -> NodeProcess:
    return group["live/policy_node"]


@pytest.fixture
def acting(robot: LiveRobot) -> LiveRobot:
    """The robot, with a policy that was enabled and acts."""
    robot.client.trigger("policy_node/enable")
    robot.clear()
    robot.play_until(lambda: len(robot.arm) > 5, "commands")
    return robot


def stamp_ns(message: object) -> int:
    return int(conversion.stamp_ns(message.header.stamp))  # type: ignore[attr-defined]


def test_nothing_moves_before_it_is_enabled_and_then_from_where_the_arm_is(robot: LiveRobot) -> None:
    robot.place = FAR
    robot.play_until(lambda: robot.says("start_enabled is false", "~/enable"), "the reason for standing still")
    robot.play_until(lambda: sum(c.status == c.OK for c in robot.conditions) > 5, "conditions")
    assert not robot.arm and not robot.wheels and robot.value("enabled") == "false" and robot.level() == WARN
    robot.client.trigger("policy_node/enable")
    robot.play_until(lambda: len(robot.arm) > 1.5 * RAMP_MS / PERIOD_MS, "the end of the ramp")
    targets = robot.targets
    assert targets[0] == pytest.approx(FAR, abs=1e-6)
    assert abs(targets[-1]) < 1.0, "the policy stays near 0"
    stamps = [stamp_ns(message) for _, message in robot.arm]
    assert stamps == sorted(set(stamps))
    steps = [abs(b - a) for a, b in zip(targets, targets[1:], strict=False)]
    gaps = [b - a for a, b in zip(stamps, stamps[1:], strict=False)]
    # After a gap, as on a machine that is too busy, commands begin anew from where the arm is.
    assert all(step <= 0.2 + 1e-6 for step, gap in zip(steps, gaps, strict=True) if gap <= LIMIT_NS)
    assert robot.wheels[0].linear.x == 0.0 and max(wheel.linear.x for wheel in robot.wheels) <= 1e-6


def test_a_frozen_policy_sends_nothing_old_when_it_wakes(acting: LiveRobot, policy: NodeProcess) -> None:
    os.kill(policy.pid, signal.SIGSTOP)
    try:
        acting.play(1.5)
        acting.arm.clear()
    finally:
        woken_ns = acting.node.get_clock().now().nanoseconds
        os.kill(policy.pid, signal.SIGCONT)
    acting.play_until(lambda: any(stamp_ns(m) > woken_ns for _, m in acting.arm), "commands of the present")
    stamps = [stamp_ns(message) for _, message in acting.arm]
    # One may have been between the node and the wire when the process froze.
    assert len([stamp for stamp in stamps if stamp < woken_ns - LIMIT_NS]) <= 1
    young = [stamp for stamp in stamps if woken_ns - LIMIT_NS <= stamp < woken_ns]
    assert len(young) <= 3, f"{len(young)} commands in a burst"
    acting.play_until(lambda: acting.says("command_age_limit_ms = 500 ms", "lighten the load"), "the remedy")
    assert int(acting.value("late_commands")) > 0


def test_after_an_outage_of_all_inputs_nothing_old_is_repeated(acting: LiveRobot) -> None:
    acting.place = 0.0
    acting.play_until(lambda: abs(acting.targets[-1]) < 1.0, "commands near 0")
    acting.idle(4.6)
    acting.play_until(lambda: acting.says("no condition for 500 ms"), "the silence to be named")
    acting.place = FAR  # somebody moved the arm meanwhile
    before = len(acting.arm)
    conditions = len(acting.conditions)
    acting.play_until(lambda: len(acting.arm) > before + 5, "commands again")
    assert len(acting.conditions) - conditions > 60, "the memory answers the ticks of the outage"
    assert min(acting.targets[before : before + 3]) > 1.0, "the target of before the outage was repeated"


def test_a_late_memory_is_named_as_such(acting: LiveRobot, group: NodeGroup) -> None:
    memory = group["live/memory_node"]
    os.kill(memory.pid, signal.SIGSTOP)
    acting.play(1.5)
    woken_ns = acting.node.get_clock().now().nanoseconds
    os.kill(memory.pid, signal.SIGCONT)
    acting.arm.clear()
    acting.play_until(lambda: len(acting.arm) > 3, "commands again")
    assert min(stamp_ns(message) for _, message in acting.arm) > woken_ns - LIMIT_NS


def without_images(message: object) -> object | None:
    return None if isinstance(message, Image) else message


def half_images(message: object) -> object:
    if isinstance(message, Image):
        message.height //= 2
    return message


def joint_nan(message: object) -> object:
    if isinstance(message, JointState):
        message.position[1] = nan
    return message


def without_a_joint(message: object) -> object:
    if isinstance(message, JointState):
        message.name, message.position = message.name[:-1], message.position[:-1]
    return message


def joints_stamped_zero(message: object) -> object:
    if isinstance(message, JointState):
        message.header.stamp.sec = message.header.stamp.nanosec = 0
    return message


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (without_images, "no message on"),
        (half_images, "size changed"),
        (joint_nan, "arm_1"),
        (without_a_joint, JOINTS[-1]),
        (joints_stamped_zero, "stamp of zero was refused"),
    ],
)
def test_a_fault_of_a_stream_is_named_stops_commands_and_passes(
    acting: LiveRobot, edit: Callable[[Any], Any], words: str
) -> None:
    """As rows of `trace-memory bench faults` do it."""
    last = acting.conditions[-1]
    acting.edit = edit
    acting.play_until(lambda: any(words in status.message for status in acting.memory(ERROR)), "the fault by name")
    acting.play_until(lambda: acting.conditions[-1].status == MemoryCondition.STALE, "a condition that says so")
    acting.play(0.7)  # a command is held for half a second
    assert all(np.isfinite(target) for target in acting.targets)
    acting.arm.clear()
    acting.play_until(lambda: acting.says("commands stopped", "memory is STALE"), "the policy to say so")
    assert not acting.arm
    acting.edit = lambda message: message
    acting.play_until(lambda: len(acting.arm) > 3 and not acting.memory(ERROR), "all to be well again")
    after = acting.conditions[-1]
    assert (after.instance, after.episode) == (last.instance, last.episode) and after.tick > last.tick


def test_a_stop_lasts_until_it_is_enabled(acting: LiveRobot) -> None:
    acting.button.publish(acting.button.msg_type())
    acting.play_until(lambda: acting.value("enabled") == "false", "the stop")
    assert acting.wheels[-1] == type(acting.wheels[-1])(), "the base is told to stand"
    sent = len(acting.arm)
    acting.client.trigger("policy_node/reset")
    acting.clear()
    acting.play_until(lambda: acting.says("disabled (~/stop)") and len(acting.conditions) > 10, "conditions")
    assert not acting.arm and sent
    acting.client.trigger("policy_node/enable")
    acting.play_until(lambda: bool(acting.arm), "commands")
    assert acting.targets[0] == pytest.approx(acting.place, abs=1e-6)
    acting.client.trigger("policy_node/disable")
    acting.clear()
    acting.play_until(lambda: acting.says("disabled (~/disable)") and len(acting.conditions) > 10, "conditions")
    assert not acting.arm


def test_limits_are_kept_counted_and_named(acting: LiveRobot) -> None:
    acting.client.trigger("policy_node/disable")
    acting.place = 2 * FAR
    acting.clear()
    acting.play_until(lambda: acting.value("enabled") == "false" and len(acting.conditions) > 5, "the stop")
    acting.clear()
    acting.client.trigger("policy_node/enable")
    acting.play_until(lambda: len(acting.arm) > RAMP_MS / PERIOD_MS, "commands")
    assert acting.targets[0] == pytest.approx(2 * FAR, abs=1e-6) and MOST < acting.targets[1] < 2 * FAR, "it comes back"
    acting.play_until(lambda: acting.says("linear.x: max = 1e-06", "clamped"), "the limit to be named")
    assert int(acting.value("clamped")) > 3


def test_two_memories_stop_commands_until_a_person_looks(acting: LiveRobot) -> None:
    acting.intrude()
    acting.play_until(lambda: acting.level() == ERROR and acting.says("two of them publish"), "the fault")
    acting.clear()
    acting.play_until(lambda: len(acting.conditions) > 10 and bool(acting.value("enabled")), "conditions")
    assert not acting.arm and acting.level() == ERROR and acting.value("enabled") == "false"
    acting.client.trigger("policy_node/enable")
    acting.play_until(lambda: bool(acting.arm), "commands")


def test_nothing_is_sent_while_another_node_may_command_until_a_person_accepts_it(acting: LiveRobot) -> None:
    other = acting.node.create_publisher(JointTrajectory, "arm_controller/command", qos.COMMAND)
    try:
        acting.play_until(lambda: acting.level() == ERROR and acting.says("also commanded by /live/live_robot"), "it")
        acting.clear()
        acting.play_until(lambda: len(acting.conditions) > 10 and bool(acting.value("enabled")), "conditions")
        assert not acting.arm and acting.value("enabled") == "false"
        acting.client.trigger("policy_node/enable")
        acting.play_until(lambda: bool(acting.arm), "commands beside the other")
    finally:
        acting.node.destroy_publisher(other)
    acting.clear()
    acting.play_until(lambda: bool(acting.arm), "commands alone")


def test_a_dry_run_shows_what_a_controller_would_take(robot: LiveRobot) -> None:
    for transition in ("deactivate", "cleanup"):
        robot.client.change_state("policy_node", transition)
    with pytest.raises(EpisodeFailed, match="not active"):
        robot.client.trigger("policy_node/enable")
    values = {"dry_run": True, "start_enabled": True, "trajectory_stamp": "now", "on_limit": "refuse"}
    robot.client.set_parameters("policy_node", values)
    for transition in ("configure", "activate"):
        robot.client.change_state("policy_node", transition)
    robot.place = FAR
    robot.idle(0.5)
    robot.clear()
    robot.play_until(lambda: len(robot.dry_arm) > 5 and bool(robot.dry_wheels), "commands of the dry run")
    assert not robot.arm and not robot.wheels and robot.value("dry_run") == "true"
    for message in robot.dry_arm:  # the rules of joint_trajectory_controller
        (point,) = message.points
        assert message.joint_names == list(JOINTS) and len(point.positions) == len(JOINTS)
        assert stamp_ns(message) == 0 and not point.velocities and not point.effort
        assert point.time_from_start.sec * SECOND_NS + point.time_from_start.nanosec > 0


def test_stamps_are_compared_with_simulated_time_where_it_is_used(robot: LiveRobot) -> None:
    """After the dry run, which goes on. Without a clock, simulated time is 0."""
    robot.client.set_parameters("policy_node", {"use_sim_time": True})
    robot.play_until(lambda: robot.says("ahead of the clock", "use_sim_time"), "the difference of the clocks")
    robot.clear()
    robot.play_until(lambda: len(robot.conditions) > 10 and bool(robot.value("enabled")), "conditions")
    assert not robot.dry_arm and robot.says("ahead of the clock")
    robot.with_clock = True
    robot.play_until(lambda: len(robot.dry_arm) > 5, "commands by simulated time")
