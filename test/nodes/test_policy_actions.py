"""policy_node's commands of every type, on several topics, relative to the state: over DDS, and byte for byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from fixtures import tiny_checkpoint
from nodes.partner import Partner
from nodes.robot import CONFIG, JOINTS, PATIENCE_S, PERIOD_NS, Robot, posture
from rclpy.serialization import deserialize_message, serialize_message

from trace_memory_ros.bags import messages
from trace_memory_ros.bags.described import Described
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.message_classes import fill, message_class
from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.processes import NodeFailed, NodeGroup, NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart
from trace_memory_ros.runtime.condition import ConditionStatus

TRAJECTORY, ARRAY = "trajectory_msgs/msg/JointTrajectory", "std_msgs/msg/Float64MultiArray"
ARM = ActionPart("arm/command", TRAJECTORY, tuple(JOINTS[:3]), frame_id="base")
GRIPPER = ActionPart("gripper/commands", ARRAY, {"width": 0, "force": 1}, name="gripper", stamp="received")
WHEELS = ActionPart("cmd_vel", "geometry_msgs/msg/Twist", ("linear.x", "angular.z"), stamp="received")
CARRIAGE = ActionPart("carriage", ARRAY, {"lift": 0, "wheel": 1}, stamp="received", units={"wheel": "rad/s"})
RELATIVE = ActionPart("leader", "sensor_msgs/msg/JointState", (JOINTS[4], JOINTS[1]), relative=True)
POSE = ActionPart("target", "geometry_msgs/msg/PoseStamped", ("position", "rotation"), frame_id="base")
MISSING = ActionPart("gripper", "control_msgs/msg/GripperCommand", stamp="received")
CONFIGS = {
    "two": ActionConfig((ARM, GRIPPER)),
    "wheels": ActionConfig((WHEELS,)),
    "carriage": ActionConfig((CARRIAGE,)),
    "relative": ActionConfig((RELATIVE,)),
    "pose": ActionConfig((POSE,)),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("actions")
    for name, actions in (*CONFIGS.items(), ("missing", ActionConfig((MISSING,)))):
        tiny_checkpoint(folder / name, actions=actions)
    return {name: folder / name for name in (*CONFIGS, "missing")}


@pytest.fixture(scope="module")
def group(folders: dict[str, Path], domain_id: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeGroup]:
    """A policy_node of each configuration, in a namespace of its name."""
    quick = {**LOCKSTEP, "reliability": "reliable", "autostart": True, "diagnostics_rate_hz": 20.0, "hold_ms": 60_000}
    specs = [
        NodeSpec("policy_node", {**quick, "checkpoint": str(folders[name])}, namespace=f"acts_{name}")
        for name in CONFIGS
    ]
    with NodeGroup(specs, tmp_path_factory.mktemp("logs"), private_environment(domain_id)) as group:
        group.wait_ready(PATIENCE_S)
        yield group
        group.check_alive()


class Hearer(Partner):
    """Hears every part's topic. heard: part's topic -> its messages."""

    def __init__(self, robot: Robot, folder: Path, node: str, actions: ActionConfig) -> None:
        super().__init__(robot, folder, node)
        self.actions = actions
        self.heard: dict[str, list[Any]] = {part.topic: [] for part in actions.parts}
        subscriptions = [
            robot.client.node.create_subscription(
                message_class(part.type, "test"), part.topic, self.heard[part.topic].append, qos.COMMAND
            )
            for part in actions.parts
        ]
        robot.wait(lambda: all(s.get_publisher_count() for s in subscriptions), "publishers of all parts")

    def act_on(self, seed: int, **changes: Any) -> tuple[int, np.ndarray]:
        """Send a tick; its stamp and the policy's outputs for it."""
        count = len(self.heard[self.actions.parts[0].topic])
        stamp = self.robot.send_tick(seed)
        condition = self.condition(seed, stamp)
        expected = self.expected(seed, condition)
        self.send(replace(condition, **changes))
        self.robot.wait(lambda: all(len(some) > count for some in self.heard.values()), "a command on every topic")
        return stamp, expected


@pytest.fixture
def hearer(
    request: pytest.FixtureRequest, group: NodeGroup, folders: dict[str, Path], domain_id: int
) -> Iterator[Hearer]:
    """The partner of the configuration that the test names."""
    name = request.param
    robot = Robot(domain_id, f"acts_{name}")
    robot.wait_matched()
    robot.reset("policy_node")
    yield Hearer(robot, folders[name], f"acts_{name}/policy_node", CONFIGS[name])
    robot.client.close()


def stamp_of(message: Any) -> int:
    return int(conversion.stamp_ns(message.header.stamp))


@pytest.mark.parametrize("hearer", ["two"], indirect=True)
def test_all_parts_of_a_tick_are_commanded_together(hearer: Hearer) -> None:
    arm, gripper = hearer.heard[ARM.topic], hearer.heard[GRIPPER.topic]
    for seed in range(4):
        stamp, expected = hearer.act_on(seed)
        assert stamp_of(arm[-1]) == stamp and arm[-1].header.frame_id == "base"
        assert arm[-1].joint_names == list(ARM.select)
        np.testing.assert_array_equal(np.float32(arm[-1].points[0].positions), expected[:3])
        assert arm[-1].points[0].time_from_start.nanosec == PERIOD_NS
        np.testing.assert_array_equal(np.float32(gripper[-1].data), expected[3:])
        assert len(arm) == len(gripper) == seed + 1
    stamp, _ = hearer.act_on(5, status=ConditionStatus.STALE, reason="an eye is silent")
    assert stamp_of(arm[-1]) == stamp and arm[-1].points == arm[-2].points
    assert gripper[-1] == gripper[-2]


@pytest.mark.parametrize("hearer", ["wheels"], indirect=True)
def test_a_type_without_a_header_is_commanded_without_a_stamp(hearer: Hearer) -> None:
    for seed in range(3):
        _, expected = hearer.act_on(seed)
        twist = hearer.heard[WHEELS.topic][-1]
        np.testing.assert_array_equal(np.float32([twist.linear.x, twist.angular.z]), expected)
        assert (twist.linear.y, twist.angular.x) == (0.0, 0.0)
        assert twist.linear.x and twist.angular.z
    hearer.act_on(7, status=ConditionStatus.STALE, reason="an eye is silent")
    held = hearer.heard[WHEELS.topic][-1]
    assert held == type(held)()  # a base that is told nothing new must stop, not drive on


@pytest.mark.parametrize("hearer", ["wheels"], indirect=True)
def test_a_base_is_told_to_stand_when_an_episode_ends(hearer: Hearer) -> None:
    hearer.act_on(1)
    driving = hearer.heard[WHEELS.topic][-1]
    hearer.act_on(2, episode=2, status=ConditionStatus.STALE, reason="an eye is silent")
    standing = hearer.heard[WHEELS.topic][-1]
    assert driving != type(driving)() and standing == type(standing)()


@pytest.mark.parametrize("hearer", ["carriage"], indirect=True)
def test_a_velocity_beside_a_position_is_told_to_stop_and_the_position_stays(hearer: Hearer) -> None:
    _, (lift, wheel) = hearer.act_on(1)
    heard = hearer.heard[CARRIAGE.topic]
    assert wheel and np.float32(heard[-1].data).tolist() == [lift, wheel]
    hearer.robot.client.trigger("policy_node/disable")
    hearer.robot.wait(lambda: len(heard) > 1, "the wheel to be told to stop")
    hearer.robot.client.trigger("policy_node/enable")
    assert np.float32(heard[-1].data).tolist() == [lift, 0.0]


@pytest.mark.parametrize("hearer", ["wheels"], indirect=True)
def test_a_base_is_told_to_stand_where_another_node_may_command_it(hearer: Hearer) -> None:
    heard, node = hearer.heard[WHEELS.topic], hearer.robot.client.node
    hearer.act_on(1)
    count, standing = len(heard), type(heard[-1])()

    def send() -> None:
        hearer.send(hearer.condition(2, hearer.robot.send_tick(2)))

    def blocked() -> bool:
        send()
        status = hearer.robot.health.get(hearer.node)
        return status is not None and "also commanded by" in status.message

    def acts() -> bool:
        send()
        return len(heard) > count and heard[-1] != standing

    other = node.create_publisher(type(standing), WHEELS.topic, qos.COMMAND)
    try:
        hearer.robot.wait(blocked, "no command beside another node")
        hearer.robot.wait(lambda: heard[-1] == standing, "the base to be told to stand")
        assert heard[-2] != standing
        count = len(heard)
    finally:
        node.destroy_publisher(other)
    hearer.robot.wait(acts, "commands alone")


@pytest.mark.parametrize("hearer", ["relative"], indirect=True)
def test_relative_outputs_are_added_to_the_state_that_the_condition_names(hearer: Hearer) -> None:
    """By the time a condition is answered, newer joints have come."""
    rows = CONFIGS["relative"].relative_rows(CONFIG)
    messages = hearer.heard[RELATIVE.topic]
    for seed in range(3):
        stamp = hearer.robot.send_tick(seed)
        hearer.robot.send_joints(stamp + PERIOD_NS // 2, dict.fromkeys(JOINTS, 3.0))
        hearer.robot.now_ns = stamp
        condition = hearer.condition(seed, stamp)
        state = hearer.observe(seed).state
        assert state is not None
        expected = hearer.policy.act(hearer.observe(seed), condition) + state[rows]
        hearer.send(condition)
        hearer.robot.wait(lambda: len(messages) > seed, "a command")  # noqa: B023
        assert messages[-1].name == [JOINTS[4], JOINTS[1]] and stamp_of(messages[-1]) == stamp
        np.testing.assert_array_equal(messages[-1].position, expected)
    stamp = hearer.robot.send_tick(9)
    held = list(messages[-1].position)
    hearer.send(replace(hearer.condition(9, stamp), status=ConditionStatus.STALE, reason="an eye is silent"))
    hearer.robot.wait(lambda: len(messages) > 3, "a command that holds")
    assert list(messages[-1].position) == held  # the place that was aimed at, wherever the arm is now


@pytest.mark.parametrize("hearer", ["relative"], indirect=True)
def test_nothing_is_commanded_relative_to_a_joint_in_another_unit(hearer: Hearer) -> None:
    """Degrees in place of radians would send the arm fifty radians away; joints that nothing is added to may lie so."""
    messages = hearer.heard[RELATIVE.topic]
    hearer.robot.now_ns += 1000 * PERIOD_NS  # the node keeps the samples of the test before

    def commanded(joints: dict[str, float]) -> list[float]:
        count = len(messages)
        stamp = hearer.robot.send_tick(2, joints=posture(2) | joints)
        hearer.send(hearer.condition(2, stamp))
        hearer.robot.wait(lambda: len(messages) > count, "a command, or the last one again")
        return list(messages[-1].position)

    first = commanded({})
    assert commanded({JOINTS[0]: 57.3}) != first
    last = list(messages[-1].position)
    assert commanded({JOINTS[1]: 57.3}) == last
    hearer.wait_fault("relative to", JOINTS[1], "compare units")


@pytest.mark.parametrize("hearer", ["pose"], indirect=True)
def test_a_pose_is_commanded_as_a_rotation(hearer: Hearer) -> None:
    _, expected = hearer.act_on(1)
    pose = hearer.heard[POSE.topic][-1].pose
    turn = pose.orientation
    assert np.linalg.norm([turn.x, turn.y, turn.z, turn.w]) == pytest.approx(1.0)
    np.testing.assert_array_equal(np.float32([pose.position.x, pose.position.y, pose.position.z]), expected[:3])


def test_a_type_whose_package_is_not_there_is_named(folders: dict[str, Path], domain_id: int, tmp_path: Path) -> None:
    pytest.importorskip("trajectory_msgs.msg")
    try:
        import control_msgs.msg  # noqa: F401
    except ImportError:
        pass
    else:
        pytest.skip("control_msgs is installed")
    spec = NodeSpec("policy_node", {"checkpoint": str(folders["missing"]), "autostart": True}, namespace="acts_missing")
    process = NodeProcess(spec, tmp_path, private_environment(domain_id))
    with pytest.raises(NodeFailed, match="exit code 1"):
        process.wait_ready(PATIENCE_S)
    assert "actions on 'gripper': message type control_msgs/msg/GripperCommand is not installed" in process.log
    assert "install ros-$ROS_DISTRO-control-msgs" in process.log
    process.stop()


def test_actions_of_another_policy_are_refused(folders: dict[str, Path]) -> None:
    from trace_memory_ros.nodes.policy.loading import actions_of, load_policy
    from trace_memory_ros.runtime import checkpoint

    two, wheels = (checkpoint.load(folders[name]) for name in ("two", "wheels"))
    with pytest.raises(
        checkpoint.CheckpointError, match=r"actions are .*gripper\.width.*outputs linear\.x, angular\.z"
    ):
        actions_of(two, load_policy(wheels))
    assert actions_of(two, load_policy(two)) == CONFIGS["two"]


def test_a_file_divides_the_outputs_among_controllers_in_any_order(folders: dict[str, Path], tmp_path: Path) -> None:
    from trace_memory_ros.nodes.policy.loading import actions_of, load_policy
    from trace_memory_ros.runtime import checkpoint

    two = checkpoint.load(folders["two"])
    policy, path = load_policy(two), tmp_path / "actions.yaml"
    elbow = {"topic": "elbow/trajectory", "type": TRAJECTORY, "select": [JOINTS[1]]}
    arm = {"topic": "arm/trajectory", "type": TRAJECTORY, "select": [JOINTS[2], JOINTS[0]]}
    parts = [GRIPPER.to_dict(), elbow, arm]
    path.write_text(yaml.safe_dump({"actions": parts}, sort_keys=False))
    expected = ("gripper.width", "gripper.force", JOINTS[1], JOINTS[2], JOINTS[0])
    assert actions_of(two, policy, str(path)).names == expected
    for content, named in (
        ({"actions": parts[1:]}, r"outputs are .*, the policy's are .*gripper\.width"),
        ({"action": parts}, "key 'actions' is missing"),
        ({"actions": [{"topic": "x"}]}, r"actions.yaml: actions\[0\]: key 'type' is missing"),
    ):
        path.write_text(yaml.safe_dump(content))
        with pytest.raises(ConfigError, match=named):
            actions_of(two, policy, str(path))


@pytest.mark.parametrize(
    ("name", "part", "named"),
    [
        (
            "relative",
            replace(RELATIVE, relative=False),
            f"output '{JOINTS[4]}' was learned relative to the state: give",
        ),
        ("two", replace(ARM, relative=True), f"output '{JOINTS[0]}' was learned as an absolute target: leave out"),
        (
            "wheels",
            replace(WHEELS, type=ARRAY, select={"linear.x": 0, "angular.z": 1}),
            "learned in .*/s, and is in none",
        ),
        (
            "relative",
            replace(RELATIVE, type=TRAJECTORY, select={"velocity": RELATIVE.select}),
            "learned in rad, .* rad/s",
        ),
        ("two", replace(ARM, select={"effort": ARM.select}), f"'{JOINTS[0]}' was learned in rad, and is in N m here"),
    ],
)
def test_a_file_cannot_give_an_output_another_meaning(
    folders: dict[str, Path], tmp_path: Path, name: str, part: ActionPart, named: str
) -> None:
    from trace_memory_ros.nodes.policy.loading import actions_of, load_policy
    from trace_memory_ros.runtime import checkpoint

    loaded, path = checkpoint.load(folders[name]), tmp_path / "actions.yaml"
    others = [other.to_dict() for other in CONFIGS[name].parts[1:]]
    path.write_text(yaml.safe_dump({"actions": [part.to_dict(), *others]}))
    with pytest.raises(ConfigError, match=named):
        actions_of(loaded, load_policy(loaded), str(path))
    if name == "wheels":
        units = {"linear.x": "m/s", "angular.z": "rad/s"}
        path.write_text(yaml.safe_dump({"actions": [replace(part, units=units).to_dict()]}))
        assert set(actions_of(loaded, load_policy(loaded), str(path)).units) == {"m/s", "rad/s"}


@pytest.mark.parametrize(
    ("select", "units", "part", "found"),
    [
        ({"position": ["elbow"]}, {}, {"type": TRAJECTORY, "select": ["elbow"]}, True),
        ({"position": ["elbow"]}, {}, {"units": {"elbow": "m"}}, True),
        ({"position": ["elbow"]}, {"arm.position.elbow": "deg"}, {"units": {"elbow": "deg"}}, True),
        ({"position": ["elbow"]}, {"arm.position.elbow": "deg"}, {}, True),
        ({"position": ["elbow"]}, {"arm.position.elbow": "raw"}, {"type": TRAJECTORY, "select": ["elbow"]}, True),
        ({"position": ["elbow"]}, {"arm.position.elbow": "deg"}, {"type": TRAJECTORY, "select": ["elbow"]}, False),
        ({"position": ["elbow"]}, {"arm.position.elbow": "mm"}, {"units": {"elbow": "m"}}, False),
        ({"velocity": ["elbow"]}, {}, {"type": TRAJECTORY, "select": ["elbow"]}, False),
        ({"velocity": ["elbow"]}, {}, {}, False),
        ({"effort": ["elbow"]}, {}, {}, False),
        ({"position": ["elbow"]}, {}, {"units": {"elbow": "rad/s"}}, False),
        ({"effort": ["elbow"]}, {}, {"type": TRAJECTORY, "select": {"effort": ["elbow"]}}, False),
    ],
)
def test_where_an_output_is_tells_a_position_in_its_own_unit_alone(
    select: dict[str, list[str]], units: dict[str, str], part: dict[str, Any], found: bool
) -> None:
    from trace_memory_ros.nodes.policy.publishing import NOWHERE, place_rows

    streams = (SensorConfig("arm", "joint_states", 100, select=select),)
    seen = ObservationConfig((CameraConfig("eye", "image", 100),), streams, units=units)
    given = {"topic": "arm/commands", "type": ARRAY, "select": {"elbow": 0}, "stamp": "received"} | part
    rows = place_rows(ActionConfig((ActionPart(**given),)), seen)
    assert rows.tolist() == [0 if found else NOWHERE]


def test_a_fixed_velocity_that_no_stop_would_end_is_refused() -> None:
    from trace_memory_ros.nodes.policy.loading import check_commanded

    slow = {"velocity.finger": 0.1}
    hand = ActionPart("hand", "control_msgs/action/ParallelGripperCommand", {"width": "position.finger"}, fixed=slow)
    check_commanded(ActionConfig((hand, replace(WHEELS, fixed={"linear.y": 0.0}))))
    with pytest.raises(ConfigError, match=r"on 'cmd_vel': fixed: linear.y = 0.1 is a velocity that would go on"):
        check_commanded(ActionConfig((hand, replace(WHEELS, fixed={"linear.y": 0.1}))))


EVERY = [
    ARM,
    GRIPPER,
    POSE,
    WHEELS,
    ActionPart("cmd", "geometry_msgs/msg/TwistStamped", ("linear", "angular"), frame_id="base"),
    ActionPart("joints", "sensor_msgs/msg/JointState", {"a": "position.a", "speed": "velocity.a"}),
    ActionPart("f", "std_msgs/msg/Float32MultiArray", {"a": 0, "b": 1}, stamp="received"),
    ActionPart("on", "std_msgs/msg/Bool", stamp="received"),
    ActionPart("mode", "std_msgs/msg/UInt8", stamp="received"),
    ActionPart("level", "std_msgs/msg/Float32", stamp="received"),
]


@pytest.mark.parametrize("part", EVERY, ids=lambda part: part.type)
def test_what_is_published_and_what_a_synthesised_bag_holds_are_the_same(part: ActionPart) -> None:
    """Byte for byte, but for those that only align what follows: the middleware leaves in them what was there."""
    actions = ActionConfig((part,))
    outputs = np.random.default_rng(3).uniform(0.0, 5.0, len(actions.names))
    stamp_ns = 1_700_000_000_123_456_789
    (plain,) = actions.compose(outputs, stamp_ns, PERIOD_NS)
    kind = message_class(part.type, "test")
    live = fill(kind(), plain)
    (made,) = messages.commands(actions, outputs, stamp_ns, PERIOD_NS)
    data = bytes(typestore().serialize_cdr(made, part.type))
    sent = serialize_message(live)
    assert deserialize_message(data, kind) == deserialize_message(sent, kind)
    assert bytes(typestore().serialize_cdr(Described(part.type, "").message(sent), part.type)) == data
