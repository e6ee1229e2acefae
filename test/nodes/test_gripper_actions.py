"""policy_node's commands as goals of a gripper's action, with a server in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fixtures import tiny_checkpoint
from nodes.interfaces import environment_with
from nodes.partner import Partner
from nodes.robot import CONFIG, JOINTS, PATIENCE_S, Robot

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes import conversion
from trace_memory_ros.nodes.doctor.judge import judged
from trace_memory_ros.nodes.doctor.listen import listen
from trace_memory_ros.nodes.memory.findings import Level
from trace_memory_ros.nodes.policy.loading import check_commanded
from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.processes import NodeGroup, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart
from trace_memory_ros.runtime.condition import ConditionStatus

ARM = ActionPart("command", "trajectory_msgs/msg/JointTrajectory", tuple(JOINTS[:3]))
WIDTH = ActionPart("width", "std_msgs/msg/Float64", {"width": "data"}, name="hand", stamp="received")
TOLERANCE = 0.003
PARTS: dict[str, dict[str, Any]] = {
    "single": {
        "topic": "hand/gripper_cmd",
        "type": "control_msgs/action/GripperCommand",
        "select": {"width": "position"},
        "fixed": {"max_effort": 20.0},
        "tolerance": TOLERANCE,
    },
    "parallel": {
        "topic": "hand/gripper_cmd",
        "type": "control_msgs/action/ParallelGripperCommand",
        "select": {"width": "position.finger"},
        "fixed": {"effort.finger": 20.0},
        "tolerance": TOLERANCE,
    },
}
PARTS |= {name: {**PARTS["single"], "fixed": {"max_effort": effort}} for name, effort in (("no", 66.0), ("late", 77.0))}
NODES = {**dict(zip(PARTS, PARTS, strict=True)), "dry": "single", "alone": "single"}
"""Namespace -> which of `PARTS` its policy_node has. `dry` and `alone` have no server."""


class Server:
    """The action server of a namespace. goals: what it was sent, in order."""

    def __init__(self, namespace: str, kind: str, environment: dict[str, str]) -> None:
        script = Path(__file__).with_name("gripper_server.py")
        self._process = subprocess.Popen(
            [sys.executable, script, f"/{namespace}", "hand/gripper_cmd", kind.rpartition("/")[2]],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        self.goals: list[dict[str, Any]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.goals.append(json.loads(line))

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def environment(domain_id: int) -> dict[str, str]:
    return {**os.environ, **environment_with("control_msgs"), **private_environment(domain_id)}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy that learned the hand's width from a topic, as demonstrations hold it."""
    folder = tmp_path_factory.mktemp("gripper") / "policy"
    tiny_checkpoint(folder, actions=ActionConfig((ARM, WIDTH)))
    return folder


@pytest.fixture(scope="module")
def servers(environment: dict[str, str]) -> Iterator[dict[str, Server]]:
    running = {name: Server(f"hand_{name}", PARTS[name]["type"], environment) for name in PARTS}
    yield running
    for server in running.values():
        server.stop()


@pytest.fixture(scope="module")
def group(
    servers: dict[str, Server], checkpoint: Path, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeGroup]:
    folder = tmp_path_factory.mktemp("actions")
    quick = {**LOCKSTEP, "reliability": "reliable", "autostart": True, "diagnostics_rate_hz": 20.0, "hold_ms": 60_000}
    specs = []
    for name, part in NODES.items():
        file = folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump({"actions": [ARM.to_dict(), {"name": "hand", **PARTS[part]}]}))
        given = {"checkpoint": str(checkpoint), "actions_file": str(file), "dry_run": name == "dry"}
        specs.append(NodeSpec("policy_node", {**quick, **given}, namespace=f"hand_{name}"))
    with NodeGroup(specs, folder / "logs", environment) as group:
        group.wait_ready(PATIENCE_S)
        yield group
        group.check_alive()


@pytest.fixture
def partner_of(group: NodeGroup, checkpoint: Path, domain_id: int) -> Iterator[Callable[[str], Partner]]:
    robots = []

    def made(name: str) -> Partner:
        robot = Robot(domain_id, f"hand_{name}")
        robots.append(robot)
        robot.wait_matched()
        robot.reset("policy_node")
        return Partner(robot, checkpoint, f"hand_{name}/policy_node")

    yield made
    for robot in robots:
        robot.client.close()


def act(partner: Partner, seed: int, answer: bool = True, **changes: Any) -> float:
    """A tick; the width that the policy wants. Changed conditions are no tick of the policy's."""
    stamp = partner.robot.send_tick(seed)
    condition = partner.condition(seed, stamp)
    wanted = float(partner.expected(seed, condition)[-1]) if not changes else np.nan
    partner.send(replace(condition, **changes))
    if answer:
        came = lambda: any(conversion.stamp_ns(c.header.stamp) == stamp for c in partner.robot.commands)  # noqa: E731
        partner.robot.wait(came, f"a command for {stamp}")
    return wanted


def hold(partner: Partner) -> None:
    """A tick without an answer, which repeats the last command."""
    act(partner, 0, status=ConditionStatus.STALE, reason="a camera is silent")


def hold_until(partner: Partner, done: Callable[[], bool]) -> None:
    """A server may not be discovered yet, or the answer to the goal before be on its way."""
    until = time.monotonic() + PATIENCE_S
    while not partner.robot.client.spin_until(done, 0.2):
        assert time.monotonic() < until, f"no goal in {PATIENCE_S} s"
        hold(partner)


@pytest.mark.parametrize("name", ["single", "parallel"])
def test_goals_follow_the_policy_where_it_moves(
    name: str, partner_of: Callable[[str], Partner], servers: dict[str, Server]
) -> None:
    partner, goals = partner_of(name), servers[name].goals
    began = len(goals)
    act(partner, 0)
    hold_until(partner, lambda: len(goals) > began)
    partner.robot.reset("policy_node")
    partner.policy.reset()
    began = len(goals)

    def places() -> list[float]:
        return [goal["position"] if name == "single" else goal["position"][0] for goal in goals[began:]]

    wanted = [act(partner, seed) for seed in range(12)]
    hold_until(partner, lambda: bool(places()) and abs(places()[-1] - wanted[-1]) <= TOLERANCE)
    found = places()
    assert set(np.float32(found)) <= set(np.float32(wanted))
    assert 1 < len(found) < 12 and np.float32(found[0]) == np.float32(wanted[0])
    assert (np.abs(np.diff(found)) > TOLERANCE).all()
    assert all(goal["effort"] == (20.0 if name == "single" else [20.0]) for goal in goals[began:])
    if name == "parallel":
        assert all(goal["name"] == ["finger"] for goal in goals[began:])


def test_a_held_target_is_no_new_goal(partner_of: Callable[[str], Partner], servers: dict[str, Server]) -> None:
    partner, goals = partner_of("single"), servers["single"].goals
    began = len(goals)
    act(partner, 0)
    hold_until(partner, lambda: len(goals) > began)
    for _ in range(3):
        hold(partner)
    assert len(goals) == began + 1


def test_a_rejected_goal_is_named_and_tried_again(
    partner_of: Callable[[str], Partner], servers: dict[str, Server]
) -> None:
    partner, goals = partner_of("no"), servers["no"].goals
    until = time.monotonic() + PATIENCE_S
    while len(goals) < 2:
        assert time.monotonic() < until, f"{len(goals)} goals in {PATIENCE_S} s"
        act(partner, 0)
    partner.wait_fault("was rejected", "see whether its controller is active")
    assert partner.robot.commands, "the arm goes on"


def test_a_server_that_does_not_answer_is_named(partner_of: Callable[[str], Partner]) -> None:
    partner = partner_of("late")
    until = time.monotonic() + PATIENCE_S
    while not any("no answer to a goal" in entry.value for entry in partner.health()):
        assert time.monotonic() < until
        act(partner, 0)


def test_a_dry_run_shows_what_goals_would_hold(partner_of: Callable[[str], Partner]) -> None:
    node = partner_of("dry").robot.client.node
    shown = dict(node.get_topic_names_and_types())
    assert shown["/hand_dry/policy_node/dry_run/hand/gripper_cmd"] == ["control_msgs/msg/GripperCommand"]
    assert not node.count_clients("/hand_dry/hand/gripper_cmd/_action/send_goal")


def test_an_action_without_a_server_is_named(partner_of: Callable[[str], Partner]) -> None:
    partner = partner_of("alone")
    for seed in range(3):
        act(partner, seed)
    partner.wait_fault("nobody takes /hand_alone/hand/gripper_cmd", "start the controller")


def test_the_doctor_finds_the_server(partner_of: Callable[[str], Partner]) -> None:
    for name, level in (("single", Level.OK), ("alone", Level.ERROR)):
        partner = partner_of(name)
        actions = ActionConfig((ARM, ActionPart(name="hand", **PARTS["single"])))
        seen = listen(CONFIG, actions, 2.0, f"hand_{name}")
        rows = {row.part: row for row in judged(seen, CONFIG, actions, "reliable")}
        assert rows[f"action /hand_{name}/hand/gripper_cmd"].level is level, partner.node


def test_nobody_is_commanded_on_a_topic_that_was_measured() -> None:
    measured = ActionConfig((replace(ARM, ahead_ms=100), WIDTH))
    with pytest.raises(ConfigError, match=r"on 'command': it says where the robot is \(ahead_ms = 100\).*actions_file"):
        check_commanded(measured)
    check_commanded(ActionConfig((ARM, WIDTH)))
