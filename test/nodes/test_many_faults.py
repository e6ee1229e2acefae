"""Faults whose texts never repeat, as of a plug-in that counts: the newest is shown, and no log is flooded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nodes.partner import POLICY, Partner
from nodes.robot import CAMERAS, Robot, picture, posture

from trace_memory_ros.nodes.health import MAX_FAULTS, RECENT_S, Health
from trace_memory_ros.nodes.processes import NodeGroup
from trace_memory_ros.runtime.condition import ConditionStatus

MANY = MAX_FAULTS + 20


def test_of_too_many_faults_the_one_seen_longest_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    health = Health()
    for k in range(MAX_FAULTS):
        now_s[0] += 0.1
        assert health.note("a", f"fault {k}")
    assert not health.note("a", "fault 0")
    now_s[0] += RECENT_S + 0.1
    assert health.note("b", "another")
    assert health.current == ["another"] and len(health.faults) == MAX_FAULTS
    assert "fault 0" in health.faults and "fault 1" not in health.faults
    assert health.entries()[-1].key == "fault: b"


def test_a_flood_of_new_faults_is_logged_now_and_then_and_none_is_lost_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    health = Health()
    logged = 0
    for k in range(1_000):
        now_s[0] += 0.01
        logged += health.note("a", f"fault {k}")
    assert MAX_FAULTS < logged < MAX_FAULTS + 10 / RECENT_S + 1
    assert health.current[-1] == "fault 999"
    assert not health.note("b", "that matters")
    now_s[0] += RECENT_S
    assert health.note("b", "that matters") and not health.note("b", "that matters")


def test_the_newest_of_many_faults_is_what_the_policy_says(
    policy_robot: Robot, nodes: NodeGroup, checkpoints: dict[str, Path]
) -> None:
    policy_robot.reset("policy_node")
    partner = Partner(policy_robot, checkpoints["trace"])
    partner.act(1)
    for k in range(MANY):
        stale = {"status": ConditionStatus.STALE, "reason": f"eye {k} is silent"}
        partner.send(replace(partner.condition(2, policy_robot.next_stamp()), **stale))
        policy_robot.client.spin_until(lambda: False, 0.0)
    newest = f"eye {MANY - 1} is silent"
    # Diagnostics are published by a timer: there may be none yet.
    policy_robot.wait(
        lambda: POLICY in policy_robot.health and newest in policy_robot.health[POLICY].message, "the newest fault"
    )
    assert policy_robot.health[POLICY].level != b"\x00"
    policy_robot.reset("policy_node")


def test_faults_that_were_told_are_not_told_again_when_others_took_their_place(
    memory_robot: Robot, nodes: NodeGroup
) -> None:
    robot, process = memory_robot, nodes["memory/memory_node"]
    robot.reset("memory_node")
    robot.tick(0)
    before = process.log.count("odd_")
    for k in range(MANY):
        stamp = robot.send_tick(1, skip=(CAMERAS[0],))
        robot.send_image(CAMERAS[0], stamp, picture(k), encoding=f"odd_{k}")
        _, record = robot.answer(stamp)
    assert any(f"odd_{MANY - 1}" in fault for fault in record.faults)
    logged = process.log.count("odd_") - before
    for seed in range(20):
        robot.send_joints(robot.next_stamp(), posture(seed))
        robot.tick(seed)
    assert process.log.count("odd_") - before == logged
    robot.reset("memory_node")
