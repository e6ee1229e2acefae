"""bag_player_node in its own process: the bytes of the bag, at its pace, on topics that may be renamed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import Image, JointState

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
    options = ("--rate", "2.0", "--wait-s", "60", "--remap", "/player/image:=/renamed")
    process = start(bag, *options)
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
    unknown = start(bag, "--topics", "/nowhere")
    log, _ = unknown.communicate(timeout=PATIENCE_S)
    assert unknown.returncode == 1
    assert "has no topic /nowhere" in log


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="rate = -1"):
        player.PlayOptions(rate=-1.0)
    with pytest.raises(SystemExit):
        player.parse(["bag", "--remap", "a:b"])
    assert player.parse(["bag", "--rate", "0"])[1].rate == 0
