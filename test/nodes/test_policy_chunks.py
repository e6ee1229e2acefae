"""A policy of an installed package that takes seconds per chunk: ticks go on, and so does the memory's history."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures import damage, tiny_checkpoint
from nodes.conftest import READY_S
from nodes.robot import CAMERAS, JOINTS, Robot, picture, posture
from policies.installed import install, slow_project

from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.nodes import conversion
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.processes import NodeFailed, NodeGroup, NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.checkpoint import PolicyConfig
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

SECONDS = 1.0
TICKS = 40
POLICY = "slow/policy_node"


def family_checkpoint(folder: Path, name: str, family: str, **options: object) -> None:
    """The tiny memory of `folder` under a policy of an installed family."""
    loaded = checkpoint.load(folder / "tiny")
    shape = {name: loaded.policy.options[f"memory_{name}"] for name in ("tokens", "width", "address")}
    options = {"action_names": list(ACTION_NAMES), "condition": shape, **options}
    tensors = {name: tensor for name, tensor in loaded.tensors.items() if not name.startswith("policy.")}
    checkpoint.save(folder / name, replace(loaded.config, policy=PolicyConfig(family, options)), tensors)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("slow")
    install(path / "site", slow_project(path / "project"))
    tiny_checkpoint(path / "tiny")
    # Chunks of 200 ticks, a new one wanted after every 2.
    family_checkpoint(path, "slow", "slow", ticks=200, execute=2, seconds=SECONDS)
    family_checkpoint(path, "odd", "odd", always=0)
    family_checkpoint(path, "never", "odd", always=2)
    damage(path / "tiny", path / "damaged")
    return path


def environment(folder: Path, domain_id: int) -> dict[str, str]:
    paths = [str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**private_environment(domain_id), "PYTHONPATH": os.pathsep.join(paths)}


@pytest.fixture(scope="module")
def robot(folder: Path, domain_id: int) -> Iterator[Robot]:
    model = {"checkpoint": str(folder / "slow"), "reliability": "reliable", "autostart": True}
    patient = {**model, **LOCKSTEP, "diagnostics_rate_hz": 20.0, "input_wait_ms": 10_000, "chunk_wait_ms": 0}
    specs = [
        NodeSpec("memory_node", {**model, "deadline_ms": 20_000}, namespace="slow"),
        NodeSpec("policy_node", patient, namespace="slow"),
    ]
    with NodeGroup(specs, folder / "logs", environment(folder, domain_id)) as group:
        group.wait_ready(READY_S)
        robot = Robot(domain_id, "slow")
        robot.wait_matched(nodes=2)
        robot.wait_acting()
        robot.reset("memory_node")
        yield robot
        robot.client.close()
        group.check_alive()


def replayed(folder: Path, ticks: int) -> list[Condition]:
    """What the memory says where there is no policy at all."""
    runtime = MemoryRuntime.from_checkpoint(folder / "slow")
    observer = LockstepObserver(checkpoint.load(folder / "slow").config.observation)
    conditions = []
    for seed in range(ticks):
        images = {camera: picture(10 * seed + i) for i, camera in enumerate(CAMERAS)}
        conditions.append(runtime.tick(observer.observe(images, posture(seed)))[0])
    return conditions


def answered(robot: Robot, stamp_ns: int) -> np.ndarray:
    def found() -> list[np.ndarray]:
        return [
            conversion.command_targets(command, ACTION_NAMES)
            for command in robot.commands
            if conversion.stamp_ns(command.header.stamp) == stamp_ns
        ]

    robot.wait(found, f"a command for {stamp_ns}")
    return found()[0]


def test_ticks_and_memory_go_on_while_a_slow_policy_thinks(robot: Robot, folder: Path) -> None:
    stamps, commands = [], []
    for seed in range(TICKS):
        stamps.append(robot.send_tick(seed))
        commands.append(answered(robot, stamps[-1])[0])
    robot.wait(lambda: all(stamp in robot.conditions for stamp in stamps), "all conditions")
    live = [robot.conditions[stamp] for stamp in stamps]
    expected = replayed(folder, TICKS)
    assert [condition.tick for condition in live] == list(range(TICKS))
    for published, replay in zip(live, expected, strict=True):
        for name in ("tokens", "vector", "read_weights", "address"):
            np.testing.assert_array_equal(np.asarray(getattr(published, name)), np.ravel(getattr(replay, name)))
        assert published.wrote == replay.wrote
    # Every tick was answered from some chunk, and each chunk from the condition of the tick that began it.
    said = {float(condition.vector[0]): tick for tick, condition in enumerate(expected)}
    begun = [said[float(np.float32(value))] for value in commands]
    assert begun[0] == 0
    assert begun == sorted(begun)
    assert all(tick >= start for tick, start in enumerate(begun))
    assert len(set(begun)) < TICKS // 2, "a chunk of a second cannot be new at every second tick"

    def late() -> bool:
        status = robot.health.get(POLICY)
        return status is not None and any(v.key == "late_chunks" and int(v.value) > 0 for v in status.values)

    robot.wait(late, "late_chunks in /diagnostics")


@pytest.fixture(scope="module")
def bare(folder: Path, domain_id: int) -> Iterator[tuple[NodeProcess, EpisodeClient]]:
    """An unconfigured policy_node that does not see the installed package."""
    spec = NodeSpec("policy_node", namespace="bare")
    process = NodeProcess(spec, folder / "logs", private_environment(domain_id))
    with EpisodeClient(domain_id, "bare") as client:
        assert client.state("policy_node", READY_S) == "unconfigured"
        yield process, client
    assert process.stop() == 0, process.log[-2000:]


@pytest.mark.parametrize(
    ("model", "actuators", "named"),
    [
        ("slow", "", ["policy family 'slow' is unknown here: there are act, diffusion"]),
        ("tiny", "lift, grip", ["commands left_joint_1, ", " and nothing for lift, grip of parameter"]),
        ("damaged", "", ["damaged, truncated or another model's"]),
    ],
    ids=["a family that is not installed", "actuators of another robot", "a damaged checkpoint"],
)
def test_what_cannot_act_fails_configuration_by_name(
    bare: tuple[NodeProcess, EpisodeClient], folder: Path, model: str, actuators: str, named: list[str]
) -> None:
    process, client = bare
    client.set_parameters("policy_node", {"checkpoint": str(folder / model), "actuators": actuators})
    with pytest.raises(EpisodeFailed, match="configure"):
        client.change_state("policy_node", "configure")
    assert client.state("policy_node") == "unconfigured"
    for text in named:
        process.wait_log(text)


def test_a_policy_whose_answers_are_no_actions_is_named_and_the_arm_holds(folder: Path, domain_id: int) -> None:
    model = {"checkpoint": str(folder / "odd"), "reliability": "reliable", "autostart": True}
    patient = {**model, **LOCKSTEP, "diagnostics_rate_hz": 20.0, "input_wait_ms": 10_000, "hold_ms": 60_000}
    memory = NodeSpec("memory_node", {**model, "deadline_ms": 20_000}, namespace="odd")
    specs = [memory, NodeSpec("policy_node", patient, namespace="odd")]
    with NodeGroup(specs, folder / "logs", environment(folder, domain_id)) as group:
        group.wait_ready(READY_S)
        robot = Robot(domain_id, "odd")
        robot.wait_matched(nodes=2)
        robot.wait_acting()
        for place, words in ((1, "shape (15,)"), (2, "shape (1, 16)"), (3, "str in place of numbers (16,)")):
            held = answered(robot, robot.send_tick(place, joints=posture(place) | {JOINTS[0]: float(place)}))
            np.testing.assert_array_equal(np.float32(held), np.float32(0.1))
            group["odd/policy_node"].wait_log(words)
        answered(robot, robot.send_tick(4, joints=posture(4) | {JOINTS[0]: 0.0}))
        group.check_alive()
        robot.client.close()


def test_a_policy_that_never_gives_an_action_fails_configuration(folder: Path, domain_id: int) -> None:
    spec = NodeSpec("policy_node", {"checkpoint": str(folder / "never"), "autostart": True}, namespace="never")
    process = NodeProcess(spec, folder / "logs", environment(folder, domain_id))
    with pytest.raises(NodeFailed, match="exit code 1"):
        process.wait_ready(READY_S)
    assert "cannot configure: the policy answered with numbers of shape (1, 16)" in process.log
    process.stop()
