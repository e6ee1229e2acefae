"""policy_node's commands to servers: goals of grippers' actions, over DDS, and requests of a switch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fixtures import tiny_checkpoint
from nodes.graph import allowed, declared
from nodes.partner import Partner
from nodes.robot import CONFIG, JOINTS, PATIENCE_S, Robot
from servers.interfaces import environment_with
from std_srvs.srv import SetBool

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

SINGLE, PARALLEL = "control_msgs/action/GripperCommand", "control_msgs/action/ParallelGripperCommand"
TOLERANCE, EFFORT = 0.003, 20.0
ARM = ActionPart("command", "trajectory_msgs/msg/JointTrajectory", tuple(JOINTS[:3]))


def gripper(name: str, effort: float = EFFORT) -> ActionPart:
    fixed = {"max_effort": effort}
    return ActionPart(name, SINGLE, {"width": "position"}, name, fixed=fixed, tolerance=TOLERANCE)


HANDS = {
    "single": gripper("single"),
    "parallel": ActionPart(
        "parallel",
        PARALLEL,
        {"width": "position.finger"},
        "parallel",
        fixed={"effort.finger": EFFORT},
        tolerance=TOLERANCE,
    ),
    "rejects": gripper("rejects", 66.0),
    "late": gripper("late", 77.0),
    "alone": gripper("alone"),
    "switch": ActionPart("switch", "std_srvs/srv/SetBool", {"width": "data"}, "switch"),
}
"""Nobody serves `alone`, and a test `switch`."""
COMMANDED = ActionConfig((ARM, *HANDS.values()))
RECORDED = ActionConfig(
    (ARM, *(ActionPart(f"{name}/width", "std_msgs/msg/Float64", {"width": "data"}, name, "received") for name in HANDS))
)
"""How demonstrations hold the same outputs."""
NODE = "policy_node"


class Grippers:
    """Action servers in a process. goals: what each was sent, in order."""

    def __init__(self, names: list[str], environment: dict[str, str]) -> None:
        asked = [f"{name}:{HANDS[name].type.rpartition('/')[2]}" for name in names]
        command = [sys.executable, Path(__file__).with_name("grippers.py"), "/hands", *asked]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == f"ready {len(names)}\n"
        self.goals: dict[str, list[dict[str, Any]]] = defaultdict(list)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, numbers = json.loads(line)
            self.goals[name].append(numbers)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture(scope="module")
def domain_id() -> int:
    return int(os.environ["ROS_DOMAIN_ID"])


@pytest.fixture(scope="module")
def environment(domain_id: int) -> dict[str, str]:
    return {**os.environ, **environment_with("control_msgs"), **private_environment(domain_id)}


@pytest.fixture(scope="module")
def goals(environment: dict[str, str]) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """What grippers were sent, by name."""
    running = [Grippers(names, environment) for names in (["single", "parallel", "rejects"], ["late"])]
    yield running[0].goals
    for one in running:
        one.stop()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hands") / "policy"
    tiny_checkpoint(folder, actions=RECORDED)
    return folder


@pytest.fixture(scope="module")
def actions_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("commanded") / "actions.yaml"
    file.write_text(yaml.safe_dump({"actions": COMMANDED.to_dict()}))
    return str(file)


@pytest.fixture(scope="module")
def group(
    goals: dict[str, Any],
    checkpoint: Path,
    actions_file: str,
    environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[NodeGroup]:
    folder = tmp_path_factory.mktemp("actions")
    quick = {**LOCKSTEP, "reliability": "reliable", "autostart": True, "diagnostics_rate_hz": 20.0, "hold_ms": 60_000}
    quick |= {"checkpoint": str(checkpoint), "actions_file": actions_file}
    specs = [NodeSpec(NODE, quick, namespace="hands"), NodeSpec(NODE, {**quick, "dry_run": True}, namespace="dry")]
    with NodeGroup(specs, folder / "logs", environment) as group:
        group.wait_ready(PATIENCE_S)
        yield group
        group.check_alive()


@pytest.fixture
def partner(group: NodeGroup, checkpoint: Path, domain_id: int) -> Iterator[Partner]:
    robot = Robot(domain_id, "hands")
    robot.wait_matched()
    robot.reset(NODE)
    yield Partner(robot, checkpoint, f"hands/{NODE}")
    robot.client.close()


def act(partner: Partner, seed: int, **changes: Any) -> dict[str, float]:
    """A tick; the widths that the policy wants, by hand. Changed conditions are no tick of the policy's."""
    stamp = partner.robot.send_tick(seed)
    condition = partner.condition(seed, stamp)
    wanted = [] if changes else partner.expected(seed, condition)[3:].tolist()
    partner.send(replace(condition, **changes))
    came = lambda: any(conversion.stamp_ns(c.header.stamp) == stamp for c in partner.robot.commands)  # noqa: E731
    partner.robot.wait(came, f"a command for {stamp}")
    return dict(zip(HANDS, wanted, strict=False))


def hold_until(partner: Partner, done: Callable[[], bool]) -> None:
    """Ticks without an answer repeat the last command: a server may not be discovered yet, or its answer on the way."""
    until = time.monotonic() + PATIENCE_S
    while not partner.robot.client.spin_until(done, 0.2):
        assert time.monotonic() < until, f"not within {PATIENCE_S} s"
        act(partner, 0, status=ConditionStatus.STALE, reason="a camera is silent")


@pytest.mark.parametrize("name", ["single", "parallel"])
def test_goals_follow_the_policy_where_it_moves(
    name: str, partner: Partner, goals: dict[str, list[dict[str, Any]]]
) -> None:
    began = len(goals[name])
    act(partner, 0)
    hold_until(partner, lambda: len(goals[name]) > began)
    partner.robot.reset(NODE)
    partner.policy.reset()
    began = len(goals[name])

    def places() -> list[float]:
        return [np.ravel(goal["position"])[0] for goal in goals[name][began:]]

    wanted = [act(partner, seed)[name] for seed in range(12)]
    hold_until(partner, lambda: bool(places()) and abs(places()[-1] - wanted[-1]) <= TOLERANCE)
    found = places()
    assert set(np.float32(found)) <= set(np.float32(wanted))
    assert 1 < len(found) < 12 and np.float32(found[0]) == np.float32(wanted[0])
    assert (np.abs(np.diff(found)) > TOLERANCE).all()
    assert all(np.ravel(goal["effort"]).tolist() == [EFFORT] for goal in goals[name])
    assert name == "single" or all(goal["name"] == ["finger"] for goal in goals[name])


def test_a_held_target_is_no_new_goal(partner: Partner, goals: dict[str, list[dict[str, Any]]]) -> None:
    began = len(goals["single"])
    act(partner, 0)
    hold_until(partner, lambda: len(goals["single"]) > began)
    for _ in range(3):
        act(partner, 0, status=ConditionStatus.STALE, reason="a camera is silent")
    assert len(goals["single"]) == began + 1


def test_servers_that_do_not_serve_are_named(partner: Partner, goals: dict[str, list[dict[str, Any]]]) -> None:
    """And what a gripper refused is tried again, while the arm goes on."""
    began = len(goals["rejects"])
    act(partner, 0)
    hold_until(partner, lambda: len(goals["rejects"]) > began + 1)
    hold_until(partner, lambda: any("no answer to a command" in entry.value for entry in partner.health()))
    partner.wait_fault("was refused: see whether its controller is active")
    partner.wait_fault("nobody takes /hands/alone", "start the controller")


def test_a_switch_is_asked_once_and_again_where_it_refused(partner: Partner) -> None:
    asked: list[bool] = []

    def on_request(request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        asked.append(request.data)
        response.success, response.message = len(asked) > 1, "no air"
        return response

    partner.robot.client.node.create_service(SetBool, "switch", on_request)
    act(partner, 0)
    hold_until(partner, lambda: len(asked) == 2)
    partner.wait_fault("the command 0 was refused: no air")
    for seed in range(3):
        act(partner, seed)
    assert asked == [False, False], "what it was asked for stays as it is"


def test_a_dry_run_shows_what_servers_would_be_sent(partner: Partner) -> None:
    node = partner.robot.client.node
    wanted = {"single": "control_msgs/msg/GripperCommand", "switch": "std_msgs/msg/Bool"}
    shown = {f"/dry/{NODE}/dry_run/{name}": [kind] for name, kind in wanted.items()}
    partner.robot.wait(lambda: shown.items() <= dict(node.get_topic_names_and_types()).items(), "what is shown")
    assert not node.count_clients("/dry/single/_action/send_goal") and not node.count_clients("/dry/switch")


def test_permissions_are_of_the_servers_that_a_node_asks(partner: Partner, checkpoint: Path, actions_file: str) -> None:
    used = declared(partner.robot.client.node, NODE, "hands")
    rights = allowed(str(checkpoint), NODE, "hands", actions_file=actions_file)
    hands = {f"/hands/{name}" for name in HANDS}
    assert used["call"] == rights["call"] == hands - {"/hands/switch"}
    assert used["request"] == rights["request"] == {"/hands/switch"}
    assert used["publish"] - rights["publish"] == set() and not hands & rights["publish"]
    dry = allowed(str(checkpoint), NODE, "hands", dry_run=True, actions_file=actions_file)
    assert not dry["call"] | dry["request"] | {"/hands/command"} & dry["publish"]


def test_the_doctor_finds_the_servers(partner: Partner) -> None:
    partner.robot.client.node.create_service(SetBool, "switch", lambda request, response: response)
    seen = listen(CONFIG, COMMANDED, 2.0, "hands")
    levels = {row.part.rpartition("/")[2]: row.level for row in judged(seen, CONFIG, COMMANDED, "reliable")}
    assert [levels[name] for name in ("single", "parallel", "switch", "alone")] == [Level.OK] * 3 + [Level.ERROR]


def test_nobody_is_commanded_on_a_topic_that_was_measured() -> None:
    with pytest.raises(ConfigError, match=r"on 'command': it says where the robot is \(ahead_ms = 100\).*actions_file"):
        check_commanded(ActionConfig((replace(ARM, ahead_ms=100),)))
    check_commanded(COMMANDED)
