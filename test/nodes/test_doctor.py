"""The doctor finds what is wrong with a robot before a node runs on it, and says what to do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures import tiny_checkpoint
from nodes.robot import CAMERAS, CONFIG, Robot, picture, posture

from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.cli.main import parser
from trace_memory_ros.nodes.conversion import joint_message
from trace_memory_ros.nodes.doctor.heard import Endpoint, Listening, Seen, TopicSeen
from trace_memory_ros.nodes.doctor.judge import Row, judged, table
from trace_memory_ros.nodes.memory.findings import Level
from trace_memory_ros.nodes.transport import BUILTIN, PROFILES, RANGE, private_environment
from trace_memory_ros.observation.content import Live
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart

MS = 1_000_000
NOW_NS = 1_800_000_000_000 * MS
ACTIONS = ActionConfig.of_trajectory("command", ACTION_NAMES)
TRAJECTORY = ACTIONS.parts[0].type
TRANSPORT = {"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp", "FASTDDS_BUILTIN_TRANSPORTS": "LARGE_DATA"}


def steady(stream: str, period_ms: int = 33, age_ms: int = 15) -> TopicSeen:
    config = next(one for one in CONFIG.inputs if one.name == stream)
    arrivals = [NOW_NS + k * period_ms * MS for k in range(60)]
    ends = [Endpoint(f"/{stream}_driver", config.message_type)]
    name = f"/{config.topic}"
    return TopicSeen(name, (config.message_type,), ends, (), arrivals, [a - age_ms * MS for a in arrivals])


def healthy() -> Seen:
    streams = {stream.name: steady(stream.name) for stream in CONFIG.inputs}
    command = TopicSeen("/command", (TRAJECTORY,), (), [Endpoint("/controller", TRAJECTORY)])
    topics = {seen.name: seen.types for seen in streams.values()}
    return Seen(2.0, streams, {"command": command}, TopicSeen("/memory/condition"), topics, TRANSPORT)


def wrong(seen: Seen, reliability: str = "best_effort") -> list[Row]:
    return [row for row in judged(seen, CONFIG, ACTIONS, reliability) if row.level is not Level.OK]


def with_stream(stream: str, seen: TopicSeen) -> Seen:
    well = healthy()
    return replace(well, streams={**well.streams, stream: seen})


def test_a_healthy_robot_has_nothing_wrong() -> None:
    assert wrong(healthy()) == []
    rows = judged(healthy(), CONFIG, ACTIONS, "reliable")
    assert all(row.level is Level.OK for row in rows)
    assert "30.3 Hz" in table(rows)
    assert "taken by /controller" in table(rows)


def silent() -> TopicSeen:
    return replace(steady("overhead"), arrivals_ns=[], stamps_ns=[])


def of_another_type() -> TopicSeen:
    return replace(steady("overhead"), publishers=[Endpoint("/d", "sensor_msgs/msg/CompressedImage")])


def by_two() -> TopicSeen:
    kind = CONFIG.cameras[0].message_type
    return replace(steady("overhead"), publishers=[Endpoint("/a", kind), Endpoint("/b", kind)])


def unstamped() -> TopicSeen:
    seen = steady("overhead")
    return replace(seen, stamps_ns=[0] * len(seen.stamps_ns))


def repeating() -> TopicSeen:
    seen = steady("overhead")
    return replace(seen, stamps_ns=[seen.stamps_ns[0]] * 2 + seen.stamps_ns[2:])


def losing(came: int) -> TopicSeen:
    whole = steady("overhead")
    return replace(whole, arrivals_ns=whole.arrivals_ns[:came], stamps_ns=whole.stamps_ns[:came], lost=40)


def of_wrong_content() -> TopicSeen:
    return replace(steady("overhead"), faults=Counter({"image encoding '8SC3' is unknown: set bgr8": 20}))


@pytest.mark.parametrize(
    ("seen", "found", "remedy"),
    [
        (TopicSeen("/camera/overhead/image_raw"), "nobody publishes it", "start the driver"),
        (of_another_type(), "trained on sensor_msgs/msg/Image", "remap"),
        (silent(), "nothing came in 2 s", "LARGE_DATA"),
        (losing(0), "40 of 40 messages were lost on the way", "start its driver with FASTDDS_BUILTIN_TRANSPORTS="),
        (losing(60), "40 of 100 messages were lost on the way", "start its driver with FASTDDS_BUILTIN_TRANSPORTS="),
        (by_two(), "2 publishers: /a, /b", "one node"),
        (steady("overhead", period_ms=1000), "up to 1000 ms between two", "stale after 250 ms"),
        (unstamped(), "60 of 60 messages are stamped 0", "fill header.stamp"),
        (repeating(), "1 of 60 stamps do not rise", "one clock"),
        (steady("overhead", age_ms=-120), "120 ms ahead of this machine", "chrony"),
        (steady("overhead", age_ms=3_600_000), "3600000 ms old", "set the clocks"),
        (of_wrong_content(), "image encoding '8SC3' is unknown (20", "set bgr8"),
    ],
)
def test_what_is_wrong_with_a_stream_is_named_with_its_remedy(seen: TopicSeen, found: str, remedy: str) -> None:
    rows = [row for row in wrong(with_stream("overhead", seen)) if row.part == "stream overhead"]
    assert [found in row.found for row in rows] == [True], rows
    assert remedy in rows[0].remedy


def test_a_message_that_lacks_a_joint_is_found_among_many_that_have_all() -> None:
    stream, seen = CONFIG.streams[0].name, TopicSeen("/joint_states")
    listening = Listening(CONFIG, {stream: seen})
    for k in range(200):
        joints = posture(k)
        if k % 150 == 149:
            del joints["left_joint_3"]
        listening.push(stream, k, k, Live(joint_message(joints, k)))
        listening.note(stream, k, k)
    assert list(seen.faults.values()) == [1] and "left_joint_3 is missing" in next(iter(seen.faults))


@pytest.mark.parametrize("last", [20, 59])
def test_a_stream_that_ceased_while_it_was_listened_to_is_wrong(last: int) -> None:
    whole = steady("overhead")
    ceased = replace(whole, arrivals_ns=whole.arrivals_ns[: last + 1], stamps_ns=whole.stamps_ns[: last + 1])
    seen = replace(with_stream("overhead", ceased), ended_ns=NOW_NS + 60 * 33 * MS)
    found = [row.found.rpartition(", and ")[2] for row in wrong(seen)]
    assert found == ([] if last == 59 else ["none in the last 1320 ms"])


def test_a_topic_of_another_name_is_proposed() -> None:
    seen = with_stream("overhead", TopicSeen("/camera/overhead/image_raw"))
    seen = replace(seen, topics={**seen.topics, "/overhead_cam/image_raw": (CONFIG.cameras[0].message_type,)})
    (row,) = (row for row in wrong(seen) if row.part == "stream overhead")
    assert "--remap camera/overhead/image_raw:=/" in row.remedy
    assert "/overhead_cam/image_raw" in row.remedy


def test_a_robot_in_a_namespace_is_not_taken_for_one_whose_topics_are_called_otherwise() -> None:
    absent = {stream.name: TopicSeen(f"/{stream.topic}") for stream in CONFIG.inputs}
    elsewhere = {f"/cell/{space}/{one.topic}": (one.message_type,) for one in CONFIG.inputs for space in ("a", "b")}
    # One that fits a stream by its end alone, and a driver that is down.
    elsewhere["/cell/a/other/joint_states"] = elsewhere["/cell/a/joint_states"]
    for space in ("a", "b"):
        del elsewhere[f"/cell/{space}/{CONFIG.cameras[-1].topic}"]
    seen = replace(healthy(), streams=absent, topics=elsewhere)
    remedies = {row.remedy for row in wrong(seen) if row.part.startswith("stream ")}
    (remedy,) = remedies
    assert "--namespace cell/a or --namespace cell/b, and so for the nodes" in remedy
    # Where some are there, the others are not looked for in a namespace.
    seen = replace(seen, streams={**absent, "joint_states": steady("joint_states")})
    assert "--namespace" not in table(wrong(seen))


def test_servers_are_judged() -> None:
    kind = "control_msgs/action/GripperCommand"
    hand = ActionConfig((ActionPart("hand/gripper_cmd", kind),))
    for servers, found in (
        ([], "nobody serves it"),
        (
            [Endpoint("/g", "control_msgs/action/ParallelGripperCommand")],
            "its server takes control_msgs",
        ),
        ([Endpoint("/g", kind)], "served by /g"),
    ):
        seen = TopicSeen("/hand/gripper_cmd", servers=servers)
        rows = judged(replace(healthy(), commands={"hand/gripper_cmd": seen}), CONFIG, hand, "reliable")
        (row,) = (row for row in rows if row.part == "command /hand/gripper_cmd")
        assert row.found.startswith(found) and bool(row.remedy) is (row.level is Level.ERROR)


def test_a_topic_that_was_measured_takes_no_commands() -> None:
    (part,) = ACTIONS.parts
    rows = judged(healthy(), CONFIG, ActionConfig((replace(part, ahead_ms=100),)), "reliable")
    (row,) = (row for row in rows if row.level is Level.ERROR)
    assert row.found.startswith("says where the robot is") and "--actions" in row.remedy


def test_clocks_controllers_and_doubles_are_judged() -> None:
    assert any("behind those of" in row.found for row in wrong(with_stream("overhead", steady("overhead", age_ms=900))))
    well = healthy()
    for command, found in (
        (TopicSeen("/command"), "nobody takes it"),
        (TopicSeen("/command", subscribers=[Endpoint("/c", "std_msgs/msg/String")]), "takes std_msgs/msg/String"),
    ):
        (row,) = wrong(replace(well, commands={"command": command}))
        assert found in row.found
    ends = [Endpoint("/policy_node", TRAJECTORY), Endpoint("/teleop", TRAJECTORY)]
    (row,) = wrong(replace(well, commands={"command": replace(well.commands["command"], publishers=ends)}))
    assert "2 nodes command it: /policy_node, /teleop" in row.found
    for end, count in ((ends[1], 1), (ends[0], 0), (Endpoint("/left/policy_node", TRAJECTORY), 0)):
        rows = wrong(replace(well, commands={"command": replace(well.commands["command"], publishers=[end])}))
        assert [(row.level, row.found) for row in rows] == [(Level.WARN, "/teleop commands it")] * count
    twice = TopicSeen("/memory/condition", publishers=[Endpoint("/a", "x"), Endpoint("/b", "x")])
    assert "2 nodes publish" in wrong(replace(well, conditions=twice))[0].found
    deaf = replace(well.streams["overhead"], publishers=[Endpoint("/d", CONFIG.cameras[0].message_type, False)])
    assert wrong(with_stream("overhead", deaf)) == []
    assert wrong(with_stream("overhead", deaf), "reliable")[0].remedy == "set reliability: best_effort"
    alone = replace(well, topics={}, transport={"RMW_IMPLEMENTATION": "rmw_fastrtps_cpp"})
    assert {row.part for row in wrong(alone)} == {"graph", "images"}


FAST = "rmw_fastrtps_cpp"


@pytest.mark.parametrize(
    ("given", "found", "remedy"),
    [
        ({}, "its own transports", "='LARGE_DATA', for every process"),
        ({"ROS_DISTRO": "jazzy"}, "its own transports", "='LARGE_DATA?sockets_size=4MB', for"),
        ({RANGE: "LOCALHOST", BUILTIN: "LARGE_DATA"}, "LOCALHOST leaves Fast DDS 512 kB", "unset it and set"),
        (
            {"ROS_DISTRO": "jazzy", BUILTIN: "LARGE_DATA"},
            "gives LARGE_DATA 512 kB",
            "sockets_size=4MB",
        ),
    ],
)
def test_too_little_room_for_pictures_is_named(given: dict[str, str], found: str, remedy: str) -> None:
    (row,) = wrong(replace(healthy(), transport={"RMW_IMPLEMENTATION": FAST, **given}))
    assert row.level is Level.WARN and found in row.found and remedy in row.remedy


@pytest.mark.parametrize(
    "given",
    [
        {BUILTIN: "LARGE_DATA"},
        {BUILTIN: "LARGE_DATA?sockets_size=4MB", "ROS_DISTRO": "jazzy"},
        {RANGE: "SYSTEM_DEFAULT", PROFILES[0]: "loopback.xml"},
        {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp", RANGE: "LOCALHOST"},
    ],
)
def test_enough_room_for_pictures_is_nothing_wrong(given: dict[str, str]) -> None:
    assert wrong(replace(healthy(), transport={"RMW_IMPLEMENTATION": FAST, **given})) == []


@pytest.mark.timeout(200)
def test_a_live_robot_is_looked_at(domain_id: int, tmp_path: Path) -> None:
    # Limits so wide that a busy machine does not make this robot a slow one.
    patient = [[replace(one, stale_after_ms=60_000) for one in group] for group in (CONFIG.cameras, CONFIG.streams)]
    observation = replace(CONFIG, cameras=tuple(patient[0]), streams=tuple(patient[1]))
    tiny_checkpoint(tmp_path / "checkpoint", observation=observation)
    robot = Robot(domain_id, "clinic")
    try:
        code, said = consult(robot, domain_id, tmp_path / "checkpoint", broken=False)
        assert code == 0, said
        assert "nothing is wrong" in said
        assert "rgb8 64x64" in said
        assert "14 joints" in said
        code, said = consult(robot, domain_id, tmp_path / "checkpoint", broken=True)
        assert code == 1
        for words in ("/clinic/camera/right_wrist/image_raw: nothing came", "image encoding '8SC3'", "are stamped 0"):
            assert words in said, said
        assert "left_joint_3 is missing" in said
        assert said.count("->") >= 4
    finally:
        robot.client.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--remap", "odom=/base/odom"], "remaps odom=/base/odom: .*; write OLD:=NEW"),
        (["--namespace", "my-robot"], "namespace 'my-robot': .*; write one such as cell/left"),
        (["--remap", "odom:=/base/odom"], ""),
    ],
)
def test_rules_that_ros_refuses_are_named_and_others_raise_no_warning(
    domain_id: int, tmp_path: Path, words: list[str], said: str
) -> None:
    tiny_checkpoint(tmp_path / "checkpoint", observation=CONFIG)
    command = [sys.executable, "-m", "trace_memory_ros.cli.main", "doctor", str(tmp_path / "checkpoint")]
    environment = {**os.environ, **private_environment(domain_id)}
    ended = subprocess.run(
        [*command, "--seconds", "0.5", *words], capture_output=True, text=True, env=environment, check=False
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr and "deprecated" not in ended.stdout + ended.stderr
    assert re.search(said, ended.stderr), ended.stderr


def test_topics_may_be_renamed_one_by_one_as_the_remedies_say_it() -> None:
    words = ("doctor", "CHECKPOINT", "--remap", "a:=/x", "--remap", "b:=/y", "c:=/z")
    assert parser().parse_args(words).remap == ["a:=/x", "b:=/y", "c:=/z"]


def consult(robot: Robot, domain_id: int, checkpoint: Path, broken: bool) -> tuple[int, str]:
    """Exit code and words of the doctor, about a robot that publishes meanwhile."""
    command = [sys.executable, "-m", "trace_memory_ros.cli.main", "doctor", str(checkpoint)]
    if not broken:  # by the checkpoint's own names, as robot.launch.py takes them
        command += ["--streams", "overhead: /clinic/camera/overhead/image_raw"]
    environment = {**os.environ, **private_environment(domain_id)}
    with subprocess.Popen(
        [*command, "--seconds", "2", "--namespace", "clinic"], stdout=subprocess.PIPE, text=True, env=environment
    ) as doctor:
        while doctor.poll() is None:
            stamp = time.time_ns()
            joints = posture(1)
            if broken:
                del joints["left_joint_3"]
            robot.send_joints(stamp, joints)
            robot.send_image("overhead", 0 if broken else stamp, picture(1))
            robot.send_image("left_wrist", stamp, picture(1), **({"encoding": "8SC3"} if broken else {}))
            if not broken:
                robot.send_image(CAMERAS[2], stamp, picture(1))
            robot.client.spin_until(lambda: False, 0.05)
        assert doctor.stdout is not None
        return doctor.returncode, doctor.stdout.read()
