"""memory_node in its own process, over DDS: what it publishes, and what it does about bad input."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from nodes.robot import CAMERAS, CONFIG, JOINTS, PATIENCE_S, PERIOD_NS, Robot, picture, posture
from sensor_msgs.msg import Image

from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeGroup, NodeProcess
from trace_memory_ros.observation.images import prepare

OK, STALE, INVALID = MemoryCondition.OK, MemoryCondition.STALE, MemoryCondition.INVALID
MEMORY = "memory/memory_node"


@pytest.fixture
def robot(memory_robot: Robot) -> Robot:
    """A robot at the beginning of an episode."""
    memory_robot.reset("memory_node")
    return memory_robot


@pytest.fixture
def node(nodes: NodeGroup) -> Iterator[NodeProcess]:
    """The node's process, which must outlive every test."""
    process = nodes[MEMORY]
    yield process
    assert process.running, process.log[-2000:]


def arrays(condition: MemoryCondition) -> list[list[float]]:
    return [list(part) for part in (condition.tokens, condition.vector, condition.read_weights, condition.address)]


def check_fault(robot: Robot, node: NodeProcess, break_tick: Callable[[int], int], *words: str) -> None:
    """A good tick, two broken ones and a good one: named, logged once, memory untouched, recovered."""
    good, _ = robot.tick(1)
    assert good.status == OK
    logged = node.log.count(words[0])
    for seed in (2, 3):
        condition, record = robot.answer(break_tick(seed))
        assert condition.status == STALE
        assert all(word in condition.reason for word in words), condition.reason
        assert any(all(word in fault for word in words) for fault in record.faults), record.faults
        assert arrays(condition) == arrays(good)
        assert not condition.wrote
    assert record.ticks_stale == 2
    node.wait_log(words[0], PATIENCE_S)
    assert node.log.count(words[0]) == logged + 1
    assert robot.tick(4)[0].status == OK
    assert robot.tick(5)[1].write_count == 2


def test_a_condition_per_tick_with_everything_filled(robot: Robot) -> None:
    answers = [robot.tick(seed) for seed in range(4)]
    assert [condition.tick for condition, _ in answers] == [0, 1, 2, 3]
    condition, record = answers[-1]
    assert condition.status == OK
    assert condition.mechanism == "trace"
    assert len(condition.tokens) == condition.token_count * condition.token_width > 0
    assert len(condition.vector) == condition.token_width
    assert sum(condition.read_weights) == pytest.approx(1.0, abs=1e-5)
    assert list(condition.input_names) == [*CAMERAS, "joint_states"]
    assert set(condition.input_stamps_ns) == {robot.now_ns}
    assert [c.wrote for c, _ in answers] == [True, False, True, False]
    assert record.header == condition.header
    assert record.instance == condition.instance == answers[0][0].instance > 0
    assert not condition.restored
    assert record.write_count == 2
    assert record.state_bytes == answers[0][1].state_bytes > 0
    assert {"align", "encode", "signature", "memory", "publish"} == set(record.stage_names)
    assert record.latency_ms > 0
    assert list(record.input_ages_ms) == [0.0] * 4
    assert list(record.input_received) == [4] * 4


def test_extra_joints_in_any_order_change_nothing(robot: Robot) -> None:
    plain = [robot.tick(seed)[0] for seed in range(3)]
    robot.reset("memory_node")
    rng = np.random.default_rng(0)
    for seed in range(3):
        joints = {**posture(seed), "gripper": 0.5, "left_joint_8": float("nan")}
        shuffled = {str(name): joints[str(name)] for name in rng.permutation(list(joints))}
        condition, _ = robot.tick(seed, joints=shuffled)
        assert arrays(condition) == arrays(plain[seed])


def test_what_the_memory_sees_is_shown(robot: Robot) -> None:
    shown: dict[int, Image] = {}

    def take(message: Image) -> None:
        shown[stamp_ns(message.header.stamp)] = message

    node = robot.client.node
    subscription = node.create_subscription(Image, "memory/seen", take, qos.DIAGNOSTICS)
    try:
        robot.wait(lambda: subscription.get_publisher_count() > 0, "a publisher of memory/seen")
        stamp = robot.send_tick(3)
        robot.wait(lambda: stamp in shown, f"the picture of {stamp}")
        # Nothing is shown of a tick that the memory does not use.
        refused = robot.send_tick(4, joints={})
        later = robot.send_tick(5)
        robot.wait(lambda: later in shown, f"the picture of {later}")
    finally:
        node.destroy_subscription(subscription)
    assert refused not in shown
    message, px = shown[stamp], CONFIG.thumbnail_px
    assert (message.width, message.height, message.encoding) == (len(CAMERAS) * px, px, "rgb8")
    pixels = np.frombuffer(message.data, dtype=np.uint8).reshape(px, len(CAMERAS) * px, 3)
    kept = [prepare(picture(30 + i), CONFIG.image_px) for i in range(len(CAMERAS))]
    assert np.array_equal(pixels, np.concatenate([prepare(image, px) for image in kept], axis=1))


def test_a_missing_joint_is_named(robot: Robot, node: NodeProcess) -> None:
    def broken(seed: int) -> int:
        joints = posture(seed)
        del joints["left_joint_3"]
        return robot.send_tick(seed, joints=joints)

    check_fault(robot, node, broken, "joint left_joint_3 is missing", "joint_states")


def test_a_joint_that_is_not_a_number_is_named(robot: Robot, node: NodeProcess) -> None:
    def broken(seed: int) -> int:
        return robot.send_tick(seed, joints={**posture(seed), "right_joint_2": float("nan")})

    check_fault(robot, node, broken, "position of right_joint_2 is not finite", "joint_states")


def test_an_unknown_encoding_is_named(robot: Robot, node: NodeProcess) -> None:
    def broken(seed: int) -> int:
        stamp = robot.send_tick(seed, skip=("left_wrist",))
        robot.send_image("left_wrist", stamp, picture(seed), encoding="8SC3")
        return stamp

    check_fault(robot, node, broken, "image encoding '8SC3'", "left_wrist")


def test_a_change_of_resolution_is_named(robot: Robot, node: NodeProcess) -> None:
    def broken(seed: int) -> int:
        stamp = robot.send_tick(seed, skip=("overhead",))
        robot.send_image("overhead", stamp, picture(seed, px=48))
        return stamp

    check_fault(robot, node, broken, "image size changed from 64x64 to 48x48", "overhead")


def test_an_image_with_too_few_bytes_is_named(robot: Robot, node: NodeProcess) -> None:
    def broken(seed: int) -> int:
        stamp = robot.send_tick(seed, skip=("overhead",))
        robot.send_image("overhead", stamp, picture(seed), height=70)
        return stamp

    check_fault(robot, node, broken, "rgb8 image of 64x70", "overhead")


def test_a_silent_camera_makes_ticks_stale_but_never_stops_them(robot: Robot, node: NodeProcess) -> None:
    good, _ = robot.tick(1)
    logged = node.log.count("'/memory/camera/right_wrist/image_raw' is older than 250 ms")
    statuses = [robot.tick(seed, skip=("right_wrist",))[0].status for seed in range(2, 7)]
    assert statuses == [OK, OK, STALE, STALE, STALE]
    condition, record = robot.answer(robot.now_ns)
    assert "right_wrist" in condition.reason
    assert arrays(condition) != arrays(good)
    assert list(record.input_stale) == [False, False, True, False]
    assert record.input_ages_ms[2] == 500.0
    node.wait_log("'/memory/camera/right_wrist/image_raw' is older than 250 ms", PATIENCE_S)
    assert node.log.count("'/memory/camera/right_wrist/image_raw' is older than 250 ms") == logged + 1
    condition, record = robot.tick(7)
    assert condition.status == OK
    assert condition.tick == 6


def test_samples_out_of_order_are_refused_and_counted(robot: Robot, node: NodeProcess) -> None:
    robot.tick(1)
    robot.send_joints(robot.now_ns - PERIOD_NS // 2, posture(99))
    robot.send_joints(robot.now_ns, posture(98))
    condition, record = robot.tick(2)
    assert condition.status == OK
    assert list(record.input_out_of_order) == [0, 0, 0, 2]
    assert any("stamped before an earlier one" in fault for fault in record.faults)
    assert set(condition.input_stamps_ns) == {robot.now_ns}


def test_without_a_good_observation_the_condition_is_invalid_and_empty(robot: Robot) -> None:
    condition, record = robot.tick(1, joints={**posture(1), "left_joint_1": float("inf")})
    assert condition.status == INVALID
    assert "left_joint_1" in condition.reason
    assert [len(part) for part in arrays(condition)] == [0, 0, 0, 0]
    assert record.ticks_invalid == 1
    assert record.write_count == 0
    condition, record = robot.tick(2)
    assert condition.status == OK
    assert condition.wrote


OKAY, WARN, ERROR = b"\x00", b"\x01", b"\x02"
STREAMS = (*CAMERAS, "joint_states")


def wait_says(robot: Robot, level: bytes, word: str, part: str = "", tick: Callable[[], object] | None = None) -> None:
    """Wait until /diagnostics say so of the node or a part of it; `tick` is called meanwhile."""

    def says() -> bool:
        if tick is not None:
            tick()
        status = robot.health.get(f"{MEMORY}: {part}" if part else MEMORY)
        return status is not None and status.level == level and word in status.message

    robot.health.clear()
    robot.wait(says, f"level {level!r} and {word!r} of {part or MEMORY} in /diagnostics")


def test_diagnostics_are_good_while_all_is_and_name_every_stream(robot: Robot) -> None:
    wait_says(robot, OKAY, "working", tick=lambda: robot.tick(1))

    def values(part: str) -> dict[str, str]:
        return {entry.key: entry.value for entry in robot.health[f"{MEMORY}: {part}"].values}

    def rated() -> bool:
        robot.tick(1)
        return all(float(values(part)["rate (Hz)"]) > 0.0 for part in STREAMS)

    # A machine that is busy elsewhere may send one tick between two diagnostics: a rate takes two.
    robot.wait(rated, "a rate of every stream in /diagnostics")
    for part in STREAMS:
        assert int(values(part)["received"]) >= 1
        assert int(values(part)["publishers"]) >= 1
    of_condition = values("condition")
    assert all(len(text.split(" / ")) == 3 for key, text in of_condition.items() if "p50" in key)
    # Whoever stops sending is at fault, though no tick comes that could say so.
    wait_says(robot, ERROR, "no message on", part="overhead")
    wait_says(robot, ERROR, "")


def test_a_camera_that_never_begins_is_an_error(robot: Robot) -> None:
    send = lambda: robot.tick(1, skip=("right_wrist",))  # noqa: E731
    words = "'/memory/camera/right_wrist/image_raw' yet; it has a publisher"
    wait_says(robot, ERROR, words, part="right_wrist", tick=send)
    wait_says(robot, ERROR, "condition INVALID", part="condition", tick=send)
    wait_says(robot, ERROR, "", tick=send)


def test_stamps_of_zero_are_refused_by_name(robot: Robot) -> None:
    def send() -> None:
        robot.send_joints(0, posture(1))
        for camera in CAMERAS:
            robot.send_image(camera, 0, picture(1))

    for part in (*CAMERAS, "joint_states"):
        wait_says(robot, ERROR, "stamp of zero was refused", part=part, tick=send)
    assert 0 not in robot.conditions
    condition, record = robot.tick(1)
    assert (condition.tick, condition.status) == (0, OK)
    assert min(record.input_rejected) >= 3


def test_a_camera_that_repeats_its_picture_is_named_while_the_robot_moves(robot: Robot) -> None:
    angles = posture(0)

    def run(seconds: float, still: tuple[str, ...], move: float = 0.0) -> None:
        for _ in range(round(1e9 * seconds / PERIOD_NS)):
            angles.update({name: angle + move * PERIOD_NS / 1e9 for name, angle in angles.items()})
            stamp = robot.next_stamp()
            for i, camera in enumerate(CAMERAS):
                robot.send_image(camera, stamp, picture(0 if camera in still else stamp // PERIOD_NS + i))
            robot.send_joints(stamp, angles)
            assert robot.answer(stamp)[0].status == OK

    run(5, CAMERAS)
    assert all("one and the same picture" not in status.message for status in robot.health.values())
    run(4, CAMERAS, move=1.0)
    text = "one and the same picture on '/memory/camera/overhead/image_raw' for over 3 s"
    wait_says(robot, WARN, text, "overhead", lambda: run(0.1, CAMERAS, move=1.0))
    wait_says(robot, WARN, "restart the camera", "left_wrist", lambda: run(0.1, CAMERAS, move=1.0))
    run(4, ())
    run(4, ("left_wrist",))
    wait_says(robot, WARN, "one and the same picture", "left_wrist", lambda: run(0.1, ("left_wrist",)))
    assert {robot.health[f"{MEMORY}: {name}"].level for name in ("overhead", "right_wrist", "condition")} == {OKAY}
    wait_says(robot, OKAY, "Hz", "left_wrist", lambda: run(0.1, ()))


@pytest.mark.parametrize(("hours", "way"), [(1, "ahead"), (-1, "back")])
def test_a_clock_jump_ends_the_episode_by_name(robot: Robot, hours: int, way: str) -> None:
    before, _ = robot.tick(1)
    robot.now_ns += hours * 3600 * 10**9
    stamps: list[int] = []
    wait_says(robot, ERROR, f"jumped {way} by 3", "condition", lambda: stamps.append(robot.send_tick(1)))
    wait_says(robot, ERROR, "jumped", tick=lambda: stamps.append(robot.send_tick(1)))
    received = lambda part: next(e.value for e in robot.health[f"{MEMORY}: {part}"].values if e.key == "received")  # noqa: E731
    robot.wait(lambda: received("overhead") == received("joint_states") == str(1 + len(stamps)), "all to be received")
    assert not any(stamp in robot.conditions for stamp in stamps)
    robot.reset("memory_node")
    after, _ = robot.tick(1)
    assert (after.tick, after.episode, after.instance) == (0, before.episode + 1, before.instance)


def test_diagnostics_name_a_current_fault(robot: Robot) -> None:
    robot.tick(1)
    robot.tick(2, joints={})
    wait_says(robot, ERROR, "left_joint_1", tick=lambda: robot.tick(2, joints={}))
    wait_says(robot, WARN, "", tick=lambda: robot.tick(3))
    assert any(entry.key == "fault: joint_states" for entry in robot.health[MEMORY].values)


def test_diagnostics_name_a_joint_far_beyond_training(robot: Robot) -> None:
    wait_says(robot, OKAY, "near", part="range", tick=lambda: robot.tick(1))
    name = JOINTS[2]
    in_degrees = {**posture(2), name: 57.0}
    _, record = robot.tick(2, joints=in_degrees)
    assert record.clipped_state == [f"joint_states.position.{name}"]
    assert 0.0 < record.clipped_share < 1.0
    wait_says(robot, WARN, name, part="range", tick=lambda: robot.tick(2, joints=in_degrees))
    wait_says(robot, OKAY, "near", part="range", tick=lambda: robot.tick(3))


def test_restore_gives_the_identical_next_conditions(robot: Robot) -> None:
    for seed in range(5):
        robot.tick(seed)
    robot.client.trigger("memory_node/snapshot")
    expected = [robot.tick(seed)[0] for seed in (5, 6, 7)]
    robot.client.trigger("memory_node/restore")
    again = [robot.tick(seed)[0] for seed in (5, 6, 7)]
    for one, two in zip(expected, again, strict=True):
        assert arrays(two) == arrays(one)
        assert (two.tick, two.wrote, two.episode) == (one.tick, one.wrote, one.episode)


def test_reset_forgets_the_episode(robot: Robot) -> None:
    first = [robot.tick(seed)[0] for seed in range(3)]
    robot.reset("memory_node")
    second = [robot.tick(seed)[0] for seed in range(3)]
    assert [arrays(condition) for condition in second] == [arrays(condition) for condition in first]
    assert {condition.episode for condition in second} == {first[0].episode + 1}


def test_a_snapshot_that_is_not_there_is_named(robot: Robot) -> None:
    path = robot.client.get_parameter("memory_node", "snapshot_path")
    robot.client.set_parameters("memory_node", {"snapshot_path": "/nowhere/at/all"})
    try:
        with pytest.raises(EpisodeFailed, match="there is no snapshot file /nowhere/at/all"):
            robot.client.trigger("memory_node/restore")
        with pytest.raises(EpisodeFailed, match="/nowhere/at"):
            robot.client.trigger("memory_node/snapshot")
    finally:
        robot.client.set_parameters("memory_node", {"snapshot_path": path})


def test_a_fixed_parameter_is_refused_while_configured(robot: Robot) -> None:
    with pytest.raises(EpisodeFailed, match="only while the node is unconfigured"):
        robot.client.set_parameters("memory_node", {"checkpoint": "/elsewhere"})


def test_deactivation_silences_and_activation_begins_an_episode(robot: Robot, node: NodeProcess) -> None:
    before, _ = robot.tick(1)
    robot.client.change_state("memory_node", "deactivate")
    silent = robot.send_tick(2)
    robot.client.change_state("memory_node", "activate")
    after, _ = robot.tick(1)
    assert silent not in robot.conditions
    assert after.tick == 0
    assert after.episode > before.episode
    assert arrays(after) == arrays(before)
