"""policy_node in its own process, over DDS: the same observation as the memory's, and no command it shouldn't give."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nodes.partner import POLICY, Partner
from nodes.robot import CAMERAS, PATIENCE_S, PERIOD_NS, Robot, picture, posture

from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.nodes import conversion
from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.processes import NodeGroup, NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.condition import ConditionStatus


@pytest.fixture
def partner(policy_robot: Robot, nodes: NodeGroup, checkpoints: dict[str, Path]) -> Partner:
    policy_robot.reset("policy_node")
    policy_robot.commands.clear()
    policy_robot.health.clear()
    assert nodes[POLICY].running
    return Partner(policy_robot, checkpoints["trace"])


def test_commands_are_those_of_the_same_policy_on_the_same_observation(partner: Partner) -> None:
    for seed in range(4):
        stamp = partner.robot.send_tick(seed)
        condition = partner.condition(seed, stamp)
        partner.send(condition)
        np.testing.assert_array_equal(partner.answer(stamp).astype(np.float32), partner.expected(seed, condition))
    message = partner.robot.commands[-1]
    assert message.joint_names == list(ACTION_NAMES)
    duration = message.points[0].time_from_start
    assert duration.sec * 10**9 + duration.nanosec == PERIOD_NS


def test_a_condition_that_overtakes_its_images_waits_for_them(partner: Partner) -> None:
    stamp = partner.robot.next_stamp()
    condition = partner.condition(3, stamp)
    partner.send(condition)
    partner.robot.send_joints(stamp, posture(3))
    for i, camera in enumerate(CAMERAS):
        partner.robot.send_image(camera, stamp, picture(30 + i))
    np.testing.assert_array_equal(partner.answer(stamp).astype(np.float32), partner.expected(3, condition))


def test_a_sample_that_never_comes_is_named_and_the_arm_holds(partner: Partner) -> None:
    held = partner.act(1)
    stamp = partner.robot.send_tick(2, skip=("left_wrist",))
    partner.send(partner.condition(2, stamp))
    np.testing.assert_array_equal(partner.answer(stamp), held)
    partner.wait_fault("no sample of left_wrist")


def test_a_condition_of_another_model_gets_no_command(
    partner: Partner, nodes: NodeGroup, checkpoints: dict[str, Path]
) -> None:
    partner.act(1)
    foreign = checkpoint.load(checkpoints["foreign"]).model_id
    logged = nodes[POLICY].log.count(foreign[:12])
    refused = []
    for seed in (2, 3):
        stamp = partner.robot.send_tick(seed)
        partner.send(replace(partner.condition(seed, stamp), model_id=foreign))
        refused.append(stamp)
    partner.wait_fault(foreign[:12], partner.model_id[:12], "same checkpoint")
    partner.act(4)
    assert not {conversion.stamp_ns(message.header.stamp) for message in partner.robot.commands} & set(refused)
    nodes[POLICY].wait_log(foreign[:12], PATIENCE_S)
    assert nodes[POLICY].log.count(foreign[:12]) == logged + 1


def test_a_condition_of_another_width_gets_no_command(partner: Partner) -> None:
    partner.act(1)
    stamp = partner.robot.send_tick(2)
    condition = partner.condition(2, stamp)
    partner.send(replace(condition, tokens=np.zeros((2, 5), np.float32), read_weights=np.zeros(2, np.float32)))
    partner.wait_fault("10 token numbers")
    partner.act(3)
    assert stamp not in {conversion.stamp_ns(message.header.stamp) for message in partner.robot.commands}


def test_a_stale_condition_holds_for_a_while_then_commands_stop(partner: Partner) -> None:
    held = partner.act(1)
    stamp = partner.robot.next_stamp()
    stale = replace(partner.condition(2, stamp), status=ConditionStatus.STALE, reason="left_wrist is silent")
    partner.send(stale)
    np.testing.assert_array_equal(partner.answer(stamp), held)
    partner.wait_fault("memory is STALE: left_wrist is silent")

    def send_stale() -> None:
        partner.send(replace(stale, stamp_ns=partner.robot.next_stamp(), tick=partner.tick))
        partner.tick += 1

    def stopped() -> bool:
        send_stale()
        status = partner.robot.health[POLICY]
        return any("commands stopped" in entry.value and "is silent" in entry.value for entry in status.values)

    def quiet() -> bool:
        before = len(partner.robot.commands)
        partner.robot.client.spin_until(lambda: False, 0.3)
        return len(partner.robot.commands) == before

    partner.robot.wait(stopped, "the policy to stop commanding")
    # Held commands of the conditions before may still be on their way when the stop is reported.
    partner.robot.wait(quiet, "the last held commands")
    given = len(partner.robot.commands)
    for _ in range(5):
        send_stale()
    partner.robot.client.spin_until(lambda: False, 0.3)
    assert len(partner.robot.commands) == given
    partner.act(5)


def test_after_a_tick_that_could_not_be_used_no_chunk_of_before_it_is_executed(partner: Partner) -> None:
    """Chunks of four ticks are averaged by age, and ages are counted in calls of the policy."""

    def stale() -> None:
        stamp = partner.robot.next_stamp()
        partner.send(replace(partner.condition(9, stamp), status=ConditionStatus.STALE, reason="an eye is silent"))

    def lost() -> None:
        partner.send(partner.condition(9, partner.robot.send_tick(9, skip=("left_wrist",))))

    for unusable in (stale, lost):
        partner.act(1)
        unusable()
        partner.policy.reset()
        for seed in (2, 3):
            stamp = partner.robot.send_tick(seed)
            condition = partner.condition(seed, stamp)
            partner.send(condition)
            np.testing.assert_array_equal(partner.answer(stamp).astype(np.float32), partner.expected(seed, condition))


def test_an_invalid_condition_at_the_start_gets_no_command(partner: Partner) -> None:
    stamp = partner.robot.send_tick(1)
    none = np.zeros(0, np.float32)
    empty = {"tokens": none.reshape(0, 8), "vector": none, "address": none, "read_weights": none}
    partner.send(replace(partner.condition(1, stamp), status=ConditionStatus.INVALID, reason="no image yet", **empty))
    partner.wait_fault("memory is INVALID: no image yet")
    partner.act(2)
    assert stamp not in {conversion.stamp_ns(message.header.stamp) for message in partner.robot.commands}


def test_after_a_simulators_reset_the_new_run_is_seen(partner: Partner) -> None:
    """Its stamps are those of the run before."""
    robot = partner.robot
    begun_ns, begun_s = robot.now_ns, time.monotonic()
    partner.act(1)
    end_ns = robot.now_ns
    robot.wait(lambda: time.monotonic() - begun_s > 1.5, "the first run to be over")
    robot.now_ns, partner.tick = begun_ns, 0
    partner.policy.reset()
    stamp = robot.send_tick(2)
    condition = replace(partner.condition(2, stamp), episode=2)
    robot.commands.clear()
    partner.send(condition)
    np.testing.assert_array_equal(partner.answer(stamp).astype(np.float32), partner.expected(2, condition))
    robot.now_ns = end_ns


def test_deactivation_stops_commands(partner: Partner) -> None:
    partner.act(1)
    partner.robot.client.change_state("policy_node", "deactivate")
    stamp = partner.robot.send_tick(2)
    partner.send(partner.condition(2, stamp))
    partner.robot.client.change_state("policy_node", "activate")
    partner.act(3)
    assert stamp not in {conversion.stamp_ns(message.header.stamp) for message in partner.robot.commands}


SET_BACK = """
import time
from trace_memory_ros.nodes.lifecycle import run
from trace_memory_ros.nodes.policy_node import PolicyNode

now_ns = time.time_ns


class SetBack(PolicyNode):
    def activate(self):
        time.time_ns = lambda: now_ns() + 3600 * 10**9
        super().activate()
        time.time_ns = now_ns


run(SetBack)
"""


def test_a_wall_clock_that_is_set_back_after_activation_stops_no_command(
    tmp_path: Path, domain_id: int, checkpoints: dict[str, Path]
) -> None:
    package = tmp_path / "set_back"
    package.mkdir()
    (package / "policy_node.py").write_text(SET_BACK)
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    model = {**LOCKSTEP, "checkpoint": str(checkpoints["trace"]), "reliability": "reliable", "autostart": True}
    spec = NodeSpec("policy_node", model, namespace="set_back", package="set_back")
    process = NodeProcess(spec, tmp_path, {**private_environment(domain_id), "PYTHONPATH": paths})
    robot = Robot(domain_id, "set_back")
    partner = Partner(robot, checkpoints["trace"], "set_back/policy_node")

    def commanded() -> bool:
        partner.send(partner.condition(1, robot.send_tick(1)))
        return bool(robot.commands)

    try:
        process.wait_ready(PATIENCE_S)
        robot.wait_matched()
        robot.wait(commanded, "a command", timeout_s=20.0)
    finally:
        process.stop()
        robot.client.close()
