"""What launch files decide: what runs with which names, what a replayed bag plays, when all ends."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures import tiny_checkpoint
from learning.tiny_bags import recording
from nodes.test_launch import KNOWN, given

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.bag_player_node import parse
from trace_memory_ros.nodes.launch_arguments import DEMO, REPLAY, ROBOT
from trace_memory_ros.nodes.launch_plan import (
    LaunchPlan,
    Restarts,
    demo_plan,
    replay_command,
    replay_plan,
    robot_plan,
    ros_arguments,
    rviz_arguments,
    rviz_missing,
)
from trace_memory_ros.nodes.parent import PARENT
from trace_memory_ros.nodes.played_topics import absolute, sensor_topics
from trace_memory_ros.nodes.robot_topics import command_topics

ENDS = "import sys, time; from trace_memory_ros.nodes import parent; import os; parent.watch(lambda: os._exit(3)); "


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    tiny_checkpoint(folder, observation=recording(cameras=2).observation)
    return str(folder)


def topics_of(command: list[str]) -> list[str]:
    begin = command.index("--topics") + 1
    end = command.index("--remap") if "--remap" in command else len(command)
    return command[begin:end]


def test_the_arms_sensors_are_played_and_its_command_is_not() -> None:
    cameras = [f"/camera/{name}/image_raw" for name in ("overhead", "left_wrist", "right_wrist")]
    assert topics_of(replay_command("bag", "1.0", "origin_trace")) == [*cameras, "/joint_states"]


@pytest.mark.parametrize("ros2_bag", [False, True])
def test_names_follow_namespace_and_remapping(model: str, ros2_bag: bool) -> None:
    renamed = {"eye_1/image": "/other/camera", "odom": "odom"}
    command = replay_command("bag", "2.0", model, "/cell/", renamed, ros2_bag=ros2_bag)
    assert topics_of(command) == ["/cell/eye_0/image", "/other/camera", "/cell/joints"]
    assert "--remap" not in command
    assert command[command.index("--rate") + 1] == "2.0"
    assert (command[:4] == ["ros2", "bag", "play", "bag"]) == ros2_bag


def test_what_is_asked_for_by_name_plays_besides_and_a_recorded_memory_beside_the_live_one(model: str) -> None:
    command = replay_command("bag", "1.0", model, "cell", more=["command", "/memory/condition", "memory/condition"])
    assert topics_of(command)[-3:] == ["/cell/command", "/memory/condition", "/cell/memory/condition"]
    assert command[-1:] == ["/cell/memory/condition:=/recorded/cell/memory/condition"]


def test_a_checkpoint_that_tells_no_topics_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        sensor_topics("nowhere")
    with pytest.raises(ValueError, match=r"config\.yaml tells no topics"):
        sensor_topics(str(tmp_path))
    (tmp_path / "config.yaml").write_text("observation: [1, 2]")
    with pytest.raises(ValueError, match=r"config\.yaml: observation"):
        sensor_topics(str(tmp_path))


def test_a_name_is_absolute_once() -> None:
    assert [absolute("a/b"), absolute("a", "/n/"), absolute("/a", "n")] == ["/a/b", "/n/a", "/a"]


def test_rviz_is_started_only_where_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    monkeypatch.setenv("ROS_DISTRO", "kilted")
    assert "apt-get install -y ros-kilted-rviz2" in rviz_missing()
    index = tmp_path / "share/ament_index/resource_index/packages"
    index.mkdir(parents=True)
    (index / "rviz2").touch()
    assert rviz_missing() == ""


def test_a_node_ends_with_its_launcher_behind_a_launch_prefix_too() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as launcher:
        environment = {**os.environ, PARENT: str(launcher.pid)}
        code = ENDS + "print('on', flush=True); time.sleep(600)"
        with subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE) as node:
            assert node.stdout is not None and node.stdout.readline() == b"on\n"
            assert node.poll() is None
            launcher.kill()
            launcher.wait()
            assert node.wait(60) == 3


def test_a_node_whose_launcher_is_gone_already_ends() -> None:
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    environment = {**os.environ, PARENT: gone.stdout.decode().strip()}
    ended = subprocess.run([sys.executable, "-c", ENDS + "time.sleep(60)"], env=environment, check=False, timeout=60)
    assert ended.returncode == 3


def test_without_a_launcher_nothing_ends() -> None:
    environment = {name: value for name, value in os.environ.items() if name != PARENT}
    ended = subprocess.run([sys.executable, "-c", ENDS + "time.sleep(0.2)"], env=environment, check=False, timeout=60)
    assert ended.returncode == 0


def robot(**changes: str) -> LaunchPlan:
    return robot_plan(given(ROBOT, **changes), KNOWN, policy=True)


def test_memory_and_policy_are_prompt_and_the_panel_is_not(model: str) -> None:
    found = {node.name: node.parameters.get("realtime_priority") for node in robot(checkpoint=model).nodes}
    assert found == {"memory_node": 20, "policy_node": 20, "marker_node": None}
    assert robot(checkpoint=model, realtime_priority="0").nodes[0].parameters["realtime_priority"] == 0
    with pytest.raises(ConfigError, match="realtime_priority = 'high': must be a whole number"):
        robot(checkpoint=model, realtime_priority="high")


def remaps(plan: LaunchPlan) -> dict[str, dict[str, str]]:
    return {node.name: dict(node.remaps) for node in plan.nodes}


def test_a_robot_is_a_dry_run_that_nothing_enabled_unless_told_otherwise() -> None:
    memory, policy, markers = robot().nodes
    assert policy.parameters["dry_run"] is True and policy.parameters["start_enabled"] is False
    assert memory.required and policy.required and not markers.required
    assert markers.parameters["checkpoint"] == memory.parameters["checkpoint"] == "origin_trace"
    assert "/cell/policy_node/dry_run/command" in robot(namespace="cell").notes[-1]
    assert "/cell/policy_node/enable" in robot(namespace="/cell", dry_run="false").notes[-1]
    with pytest.raises(ConfigError, match="dry_run = 'yes'"):
        robot(dry_run="yes")


def test_streams_are_renamed_by_the_checkpoints_names(model: str, tmp_path: Path) -> None:
    text = "{overhead: /top/image, joint_states: /bot/joints, commands: {command: /ctl/joint_trajectory}}"
    file = tmp_path / "streams.yaml"
    file.write_text(text)
    plan = robot(streams=text)
    assert remaps(plan) == remaps(robot(streams=str(file)))
    sensors = {"camera/overhead/image_raw": "/top/image", "joint_states": "/bot/joints"}
    assert remaps(plan)["memory_node"] == remaps(plan)["marker_node"] == sensors
    assert remaps(plan)["policy_node"] == {**sensors, "command": "/ctl/joint_trajectory"}
    assert "/ctl/joint_trajectory" in robot(streams=text, dry_run="false").notes[-1]
    assert remaps(robot())["policy_node"] == {}
    assert remaps(robot(checkpoint=model, streams="{eye_1: other}"))["memory_node"] == {"eye_1/image": "other"}


def test_commands_of_an_actions_file_are_told_and_renamed_by_its_names(tmp_path: Path) -> None:
    actions, params = tmp_path / "actions.yaml", tmp_path / "params.yaml"
    part = "{name: %s, topic: %s/joint_trajectory, type: trajectory_msgs/msg/JointTrajectory, select: {position: [a]}}"
    actions.write_text(f"actions: [{part % ('left', 'l')}, {part % ('right', 'r')}]")
    params.write_text(f"/**/policy_node: {{ros__parameters: {{actions_file: {actions}}}}}")
    plan = robot(params_file=str(params), dry_run="false", streams="{commands: {left: /bot/l}}")
    assert "commands go to /bot/l, /r/joint_trajectory once enabled" in plan.notes[-1]
    assert remaps(plan)["policy_node"] == {"l/joint_trajectory": "/bot/l"}
    shown = "/policy_node/dry_run/l/joint_trajectory, /policy_node/dry_run/r/joint_trajectory"
    assert shown in robot(params_file=str(params)).notes[-1]
    with pytest.raises(ConfigError, match="command 'command' is none .* commands left, right"):
        robot(params_file=str(params), streams="{commands: {command: /x}}")
    params.write_text("/**/policy_node: {ros__parameters: {actions_file: nowhere.yaml}}")
    with pytest.raises(ConfigError, match=r"actions_file = nowhere\.yaml: cannot be read"):
        robot(params_file=str(params))


@pytest.mark.parametrize(
    ("streams", "words"),
    [
        ("{front: /x}", "'front' is none of the checkpoint's: streams overhead, .*; commands command"),
        ("{command: /x}", "stream 'command' is none"),
        ("{commands: {overhead: /x}}", "command 'overhead' is none"),
        ("{overhead: 3}", "3 is no topic"),
        ("{overhead: /top, left_wrist: /top}", "cameras 'overhead' and 'left_wrist' have one topic"),
        ("{overhead: camera/left_wrist/image_raw}", "cameras 'overhead' and 'left_wrist' have one topic"),
        ("{overhead: /a b}", "is no topic"),
        ("[overhead]", "cannot be read"),
        ("{overhead: [}", "cannot be read"),
        ("nowhere.yaml", "cannot be read"),
        ("~nobody_of_that_name/streams.yaml", "streams = ~nobody_of_that_name/streams.yaml: cannot be read"),
    ],
)
def test_streams_that_cannot_be_renamed_are_named(streams: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        robot(streams=streams)


def test_commands_of_one_name_go_by_their_topics() -> None:
    robots = {name: RecordingConfig.load(f"config/robots/{name}.yaml").actions for name in ("aloha", "two_arms_wrench")}
    assert list(command_topics(robots["two_arms_wrench"])) == ["left", "right"]
    assert list(command_topics(robots["aloha"]))[2] == "follower_left/gripper_controller/joint_trajectory"
    assert command_topics(None) == {"command": "command"}


def test_a_parameter_file_is_checked_and_what_it_says_in_vain_is_told(tmp_path: Path) -> None:
    file = tmp_path / "params.yaml"
    file.write_text(
        "/**:\n  ros__parameters: {hold_ms: 400, dry_run: false}\ncell:\n  policy_node: {ros__parameters: {}}"
    )
    (note, *_) = robot(params_file=str(file)).notes
    assert "dry_run = False does not count" in note and "hold_ms" not in note
    for content, words in (
        ("policy: {ros__parameters: {hold_ms: 1}}", "'policy' is of no node.*policy_node"),
        ("memory_node: {ros__parameters: {hold_ms: 1}}", "'hold_ms' does not exist"),
        ("policy_node: {hold_ms: 1}", "must be a mapping"),
        ("[", "cannot be read"),
    ):
        file.write_text(content)
        with pytest.raises(ConfigError, match=words):
            robot(params_file=str(file))


@pytest.mark.parametrize("section", ["policy_node", "/policy_node"])
def test_parameters_that_a_namespace_takes_from_a_node_end_the_launch(tmp_path: Path, section: str) -> None:
    file = tmp_path / "params.yaml"
    file.write_text(f"{section}: {{ros__parameters: {{limits_file: limits.yaml}}}}", encoding="utf-8")
    robot(params_file=str(file))
    with pytest.raises(ConfigError, match=r"'/?policy_node' does not reach /cell/left/policy_node: write /\*\*/policy"):
        robot(params_file=str(file), namespace="cell/left")


@pytest.mark.parametrize(
    ("section", "reaches"),
    [("/**", True), ("/**/policy_node", True), ("/cell/*/policy_node", True), ("cell/left/policy_node", True),
     ("/*/policy_node", False), ("/cell/right/policy_node", False)],
)  # fmt: skip
def test_a_section_of_another_namespace_is_told(tmp_path: Path, section: str, reaches: bool) -> None:
    file = tmp_path / "params.yaml"
    file.write_text(f'"{section}": {{ros__parameters: {{ramp_ms: 2000}}}}', encoding="utf-8")
    notes = robot(params_file=str(file), namespace="/cell/left").notes
    assert any(f"{section!r} does not count" in note for note in notes) is not reaches


def test_a_parameter_file_goes_to_every_node_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "params.yaml").write_text("policy_node: {ros__parameters: {ramp_ms: 1000}}")
    plan = robot(params_file="~/params.yaml")
    assert {node.params_files for node in plan.nodes} == {(str(tmp_path / "params.yaml"),)}
    assert {node.params_files for node in robot().nodes} == {()}
    with pytest.raises(ConfigError, match="Give the whole path"):
        robot(params_file="~nobody-of-this-name/params.yaml")


@pytest.mark.parametrize("ros2_bag", [False, True])
def test_a_bag_in_the_home_folder_is_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ros2_bag: bool) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert str(tmp_path / "bag") in replay_command("~/bag", "1.0", "origin_trace", ros2_bag=ros2_bag)


def test_a_process_is_started_again_after_faults_but_not_for_ever() -> None:
    assert not Restarts(False).again(-9, 0.0)
    restarts = Restarts(True, most=2, within_s=10.0)
    assert [restarts.again(code, now_s) for code, now_s in ((0, 0.0), (-9, 1.0), (1, 2.0), (1, 3.0), (1, 11.5))] == [
        False, True, True, False, True,
    ]  # fmt: skip


def test_rviz_and_loggers_follow_the_namespace() -> None:
    assert rviz_arguments("", "") == ([], ())
    words, rules = rviz_arguments("cell", "base_link")
    assert words == ["-f", "base_link"] and rules[0] == ("/memory/markers", "/cell/memory/markers")
    assert ros_arguments("memory_node", "/a/b", "warn") == [
        "--enclave",
        "/a/b/memory_node",
        "--log-level",
        "a.b.memory_node:=warn",
    ]


def demo(**changes: str) -> dict[str, dict[str, object]]:
    """Parameters by node of demo.launch.py."""
    return {node.name: dict(node.parameters) for node in demo_plan(given(DEMO, **changes), "robot.yaml").nodes}


def test_the_launched_demo_is_the_demos_own_graph(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="the extra [sim] brings the simulated arm")
    from trace_memory_ros.arm.demo.cell import node_specs
    from trace_memory_ros.arm.demo.plan import DemoOptions, lockstep_cells, realtime_cells

    options = DemoOptions(tasks=("colour",), memories=("gru",), out=tmp_path)
    for mode, cells in (("realtime", realtime_cells(options)), ("lockstep", lockstep_cells(options))):
        specs = {spec.node_name: spec for spec in node_specs(cells[0], tmp_path)}
        launched = demo(task="colour", memory="gru", mode=mode)
        assert list(specs) == list(launched)
        places = {str(cells[0].checkpoint.resolve()): "colour_gru", str(tmp_path / "robot.yaml"): "robot.yaml"}
        for name, spec in specs.items():
            values = {key: places.get(str(value), value) for key, value in spec.parameters.items()}
            assert values == launched[name], (mode, name)


def test_the_demo_in_real_time_runs_as_on_a_robot_and_in_lockstep_waits() -> None:
    realtime, lockstep = demo(mode="realtime"), demo(mode="lockstep")
    assert realtime["controller_node"]["update_rate_hz"] == 50.0 and lockstep["controller_node"]["update_rate_hz"] == 0
    for nodes in (realtime, lockstep):
        assert nodes["policy_node"]["actions_file"] == nodes["controller_node"]["controllers_file"] == "robot.yaml"
    waits = {"deadline_ms", "input_wait_ms", "chunk_wait_ms", "command_age_limit_ms", "command_timeout_s"}
    assert not waits & {name for values in realtime.values() for name in values}
    assert waits == waits & {name for values in lockstep.values() for name in values}


def test_streams_that_a_played_bag_cannot_give_are_named_first(tmp_path: Path, model: str) -> None:
    observation = recording().observation
    (joints,) = observation.streams
    for name, cameras in (
        ("mixed", observation.cameras),
        ("all", tuple(replace(camera, stamp="received") for camera in observation.cameras)),
    ):
        streams = (replace(joints, stamp="received"),)
        tiny_checkpoint(tmp_path / name, observation=replace(observation, cameras=cameras, streams=streams))
    said = f"{joints.name}: stamped when received"
    (note,) = replay_plan(given(REPLAY, checkpoint=str(tmp_path / "mixed"))).notes
    assert said in note and "trace-memory replay" in note
    assert said in parse(["BAG", "--checkpoint", str(tmp_path / "mixed")])[1].warning
    for playable in (str(tmp_path / "all"), model):
        assert not replay_plan(given(REPLAY, checkpoint=playable)).notes
        assert not parse(["BAG", "--checkpoint", playable])[1].warning
