"""bag_player_node in its own process: the bytes of the bag, at its pace, on topics that may be renamed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fixtures import tiny_checkpoint
from learning.tiny_bags import TICKS, recording, write_bag
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.bags import messages
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.msg import EpisodeStatus
from trace_memory_ros.nodes import bag_player_node as player
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.bag_writer import BagTopic, subscribe_raw
from trace_memory_ros.nodes.node_client import NodeClient

IMAGE, JOINTS, STATUS = "sensor_msgs/msg/Image", "sensor_msgs/msg/JointState", "trace_memory_ros/msg/EpisodeStatus"
STEP_NS = 20_000_000
COUNT = 25
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half a second of pictures and joints, one status, and a type that nobody has installed."""
    folder = tmp_path_factory.mktemp("player") / "bag"
    topics = {"player/image": IMAGE, "player/joints": JOINTS, "player/episode": STATUS}
    with BagFileWriter(folder, topics) as writer:
        writer.write("player/episode", messages.episode_status(10**12, task="origin", episode=3), 10**12)
        for k in range(COUNT):
            ns = 10**12 + k * STEP_NS
            pixels = np.full((8, 10, 3), k, np.uint8)
            writer.write("player/image", messages.image(pixels, ns), ns)
            writer.write("player/joints", messages.joint_state(["a"], [0.1 * k], ns), ns + 1)
    return folder


@pytest.fixture
def client(domain_id: int) -> Iterator[NodeClient]:
    with NodeClient(domain_id, name="player_listener") as client:
        yield client


def start(bag: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "trace_memory_ros.nodes.bag_player_node", str(bag), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=os.environ)


def listen(client: NodeClient, topics: dict[str, type]) -> dict[str, list[bytes]]:
    heard: dict[str, list[bytes]] = {name: [] for name in topics}
    wanted = [
        BagTopic(name, kind, qos.STATUS if kind is EpisodeStatus else qos.sensor("reliable"))
        for name, kind in topics.items()
    ]
    subscribe_raw(client.node, wanted, lambda name, data: heard[name].append(bytes(data)))
    return heard


def test_every_message_comes_as_recorded_at_the_bags_pace(bag: Path, client: NodeClient) -> None:
    heard = listen(client, {"/renamed": Image, "/player/joints": JointState, "/player/episode": EpisodeStatus})
    topics = ("--topics", "/player/image", "/player/joints", "/player/episode")
    options = ("--rate", "2.0", "--wait-s", "60", "--remap", "/player/image:=/renamed")
    process = start(bag, *topics, *options)
    done = client.spin_until(lambda: len(heard["/renamed"]) == len(heard["/player/joints"]) == COUNT, PATIENCE_S)
    log, _ = process.communicate(timeout=PATIENCE_S)
    assert done, ({name: len(data) for name, data in heard.items()}, log)
    assert process.returncode == 0, log
    store = typestore()
    pictures = [store.deserialize_cdr(data, IMAGE) for data in heard["/renamed"]]
    assert [int(picture.data[0]) for picture in pictures] == list(range(COUNT))
    assert [picture.header.stamp.nanosec for picture in pictures] == [k * STEP_NS for k in range(COUNT)]
    expected = store.serialize_cdr(messages.joint_state(["a"], [0.1 * 7], 10**12 + 7 * STEP_NS), JOINTS)
    assert heard["/player/joints"][7] == bytes(expected)
    assert len(heard["/player/episode"]) == 1
    assert "51 messages, 0.5 s of bag" in log


@pytest.fixture(scope="module")
def robot_bag(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What a robot recorded, its own commands included, and a checkpoint that observes camera and joints."""
    folder = tmp_path_factory.mktemp("robot")
    write_bag(folder / "bag", 0, 0, recording())
    tiny_checkpoint(folder / "model", observation=recording().observation)
    return folder / "bag", folder / "model"


def test_a_recorded_command_is_played_only_by_name(robot_bag: tuple[Path, Path], client: NodeClient) -> None:
    bag, model = robot_bag
    heard = listen(client, {"/eye_0/image": Image, "/joints": JointState, "/targets": JointTrajectory})
    quick = ("--rate", "0", "--wait-s", "10")
    process = start(bag, "--checkpoint", str(model), *quick)
    done = client.spin_until(lambda: len(heard["/eye_0/image"]) == len(heard["/joints"]) == TICKS, PATIENCE_S)
    log, _ = process.communicate(timeout=PATIENCE_S)
    assert done and process.returncode == 0, log
    assert f"playing 2 topics of {bag}" in log
    assert heard["/targets"] == []
    # The listener would have heard it: by name it comes.
    process = start(bag, "--topics", "targets", *quick)
    done = client.spin_until(lambda: len(heard["/targets"]) == TICKS, PATIENCE_S)
    log, _ = process.communicate(timeout=PATIENCE_S)
    assert done and process.returncode == 0, log
    assert len(heard["/joints"]) == TICKS


def test_a_player_ends_with_what_started_it(bag: Path) -> None:
    starter = (
        "import os, subprocess, sys\n"
        "from trace_memory_ros.nodes.parent import PARENT\n"
        "os.environ[PARENT] = str(os.getpid())\n"
        "words = [sys.executable, '-m', 'trace_memory_ros.nodes.bag_player_node', sys.argv[1]]\n"
        "words += ['--topics', '/player/joints', '--loop', '--rate', '0.01']\n"
        "player = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)\n"
        "print(player.pid, player.stdout.readline(), flush=True)\n"
        "player.wait()\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter, str(bag)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[0])
        process.kill()
    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline, f"bag player {pid} outlived its starter"
        time.sleep(0.1)


def test_the_pace_is_that_of_the_log_times(bag: Path, client: NodeClient) -> None:
    class Clockless:
        """Publishes nothing, so that only the pace is measured."""

        def publish(self, data: bytes) -> None:
            times.append(time.monotonic())

    times: list[float] = []
    with player.BagReader(bag) as reader:
        played = player.BagPlayer(client.node, reader, player.PlayOptions(rate=2.0, topics=("/player/joints",)))
        played.publishers["/player/joints"] = Clockless()
        result = played.play()
    assert result.messages == COUNT
    # A message never comes early; how late it comes is the machine's to say.
    early = [at - times[0] - k * 1e-9 * STEP_NS / 2.0 for k, at in enumerate(times)]
    assert min(early) >= -result.late_s - 1e-3
    assert result.bag_s == pytest.approx((COUNT - 1) * 1e-9 * STEP_NS)


def test_only_classes_that_are_installed_are_found() -> None:
    assert player.message_class("sensor_msgs/msg/Image") is Image
    assert player.message_class("nobody_msgs/msg/Thing") is None
    assert player.message_class("sensor_msgs/msg/Nothing") is None
    assert player.message_class("garbage") is None


def test_what_cannot_be_played_is_said(bag: Path, tmp_path: Path) -> None:
    missing = start(tmp_path / "nothing")
    log, _ = missing.communicate(timeout=PATIENCE_S)
    assert missing.returncode == 1
    assert "does not exist" in log
    assert "Traceback" not in log
    untold = start(bag)
    log, _ = untold.communicate(timeout=PATIENCE_S)
    assert untold.returncode == 1
    assert "give --checkpoint for what its memory observes, or --topics of /player" in log
    lost = start(bag, "--checkpoint", str(tmp_path / "nobody"))
    log, _ = lost.communicate(timeout=PATIENCE_S)
    assert lost.returncode == 1
    assert "nobody" in log and "Traceback" not in log
    unknown = start(bag, "--topics", "/nowhere")
    log, _ = unknown.communicate(timeout=PATIENCE_S)
    assert unknown.returncode == 1
    assert "has no topic /nowhere" in log
    unheard = start(bag, "--topics", "/player/image", "--remap", "/player/joints:=/renamed")
    log, _ = unheard.communicate(timeout=PATIENCE_S)
    assert unheard.returncode == 1
    assert "--remap of /player/joints, which is not played" in log


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="rate = -1"):
        player.PlayOptions(rate=-1.0)
    for rule in ("a:b", "a:=", "a:=two words"):
        with pytest.raises(SystemExit):
            player.parse(["bag", "--remap", rule])
    assert player.parse(["bag", "--rate", "0"])[1].rate == 0


def test_names_without_a_slash_are_renamed_as_they_are_played() -> None:
    _, options = player.parse(["bag", "--topics", "player/image", "--remap", "player/image:=/renamed"])
    assert options.topics == ("/player/image",)
    assert options.remap == {"/player/image": "/renamed"}


def test_topics_and_names_may_be_given_one_by_one() -> None:
    words = ("--topics", "image", "--topics", "joints", "--remap", "image:=/a", "--remap", "joints:=/b")
    _, options = player.parse(["bag", *words])
    assert options.topics == ("/image", "/joints")
    assert options.remap == {"/image": "/a", "/joints": "/b"}


def test_a_player_that_waits_for_listeners_ends_when_it_is_interrupted(bag: Path, client: NodeClient) -> None:
    process = start(bag, "--topics", "/player/image", "--wait-s", "600")
    assert client.spin_until(lambda: client.node.count_publishers("/player/image") > 0, PATIENCE_S)
    process.send_signal(signal.SIGINT)
    log, _ = process.communicate(timeout=PATIENCE_S)
    assert "Traceback" not in log, log
    assert process.returncode == 0, log
