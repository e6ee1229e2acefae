"""bag_player_node: publishes a bag's sensors at their own pace, bytes as recorded, where there is no `ros2 bag play`.

It plays the topics that a checkpoint observes, and others only by name: what a bag recorded on a command topic would
move the robot again.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import rclpy
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.signals import SignalHandlerOptions

from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.types import of_another_version
from trace_memory_ros.nodes import parent
from trace_memory_ros.nodes.played_topics import absolute, lost_in_play, sensor_topics
from trace_memory_ros.nodes.robot_topics import TOPIC

IMAGE_DEPTH, DEPTH = 50, 1000
IMAGE_TYPES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
KEPT_TYPES = ("trace_memory_ros/msg/EpisodeStatus", "tf2_msgs/msg/TFMessage")
KEPT_TOPICS = ("/tf_static", "/robot_description")
ROS_ARGUMENTS = "--ros-args"
_BEHIND_S = 0.1


@dataclass(frozen=True)
class PlayOptions:
    """How to play. rate: bag seconds per wall second; 0 means as fast as it goes.

    topics: absolute names to play. remap: absolute old name -> new name. wait_s: wall time to wait for somebody to
    listen to every topic. loop: begin again at the end. warning: said first, empty for none.
    """

    rate: float = 1.0
    topics: tuple[str, ...] = ()
    remap: Mapping[str, str] | None = None
    wait_s: float = 0.0
    loop: bool = False
    warning: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.rate < float("inf"):
            raise ValueError(f"rate = {self.rate}: give a number of at least 0, such as 1.0 for the bag's own pace")


@dataclass
class Played:
    """What was published: messages, seconds of bag and of wall time, and the longest that one was late."""

    messages: int = 0
    bag_s: float = 0.0
    wall_s: float = 0.0
    late_s: float = 0.0


class BagPlayer:
    """Publishers of `node` for the topics of an open bag.

    left_out: topics that cannot be published as they were recorded, and why: their type is not installed, or another.
    """

    def __init__(self, node: Node, reader: BagReader, options: PlayOptions) -> None:
        self._node, self._reader, self._options = node, reader, options
        self.publishers: dict[str, Any] = {}
        self.left_out: dict[str, str] = {}
        absent = [topic for topic in options.topics if topic not in reader.topics]
        if absent:
            raise ValueError(
                f"{reader.path} has no topic {', '.join(absent)}; it has {', '.join(reader.topics)}: name others by "
                "--topics, and give their new names by --remap"
            )
        if not options.topics:
            raise ValueError(
                f"nothing of {reader.path} is to be played: give --checkpoint for what its memory observes, or "
                f"--topics of {', '.join(reader.topics)}"
            )
        if idle := [name for name in options.remap or {} if name not in options.topics]:
            raise ValueError(
                f"--remap of {', '.join(idle)}, which is not played: give an OLD of {', '.join(options.topics)}"
            )
        for name in options.topics:
            info = reader.topics[name]
            if of_another_version(info.type_name, info.definition):
                self.left_out[name] = f"it was recorded with another version of {info.type_name}"
                continue
            kind = message_class(info.type_name)
            if kind is None:
                self.left_out[name] = f"{info.type_name} is not installed"
                continue
            new_name = (options.remap or {}).get(name, name)
            self.publishers[name] = node.create_publisher(kind, new_name, profile(name, info.type_name))

    def unheard(self) -> list[str]:
        """Topics that nobody subscribes to."""
        return [p.topic_name for p in self.publishers.values() if not p.get_subscription_count()]

    def wait_for_listeners(self, running: Callable[[], bool] = lambda: True) -> list[str]:
        """Wait until every topic is listened to, at most `wait_s` and while `running()`; returns those that are not."""
        deadline = time.monotonic() + self._options.wait_s
        while self.unheard() and time.monotonic() < deadline and running():
            time.sleep(0.05)
        return self.unheard()

    def play(self, running: Callable[[], bool] = lambda: True) -> Played:
        """Publish every message when its time has come, until the end or until `running()` is false."""
        played = Played()
        begun, start_ns, log_ns = time.monotonic(), self._reader.begin_ns, self._reader.begin_ns
        rate = self._options.rate
        for raw in self._reader.messages(list(self.publishers)):
            if rate:
                due = begun + 1e-9 * (raw.log_ns - start_ns) / rate
                if not _sleep_until(due, running):
                    break
                played.late_s = max(played.late_s, time.monotonic() - due)
            elif not running():
                break
            self.publishers[raw.topic].publish(bytes(raw.data))
            played.messages += 1
            log_ns = raw.log_ns
        played.bag_s = 1e-9 * (log_ns - start_ns)
        played.wall_s = time.monotonic() - begun
        return played

    def drain(self, timeout_s: float = 5.0) -> None:
        """Wait until reliable listeners have acknowledged everything, so that the end of the bag is not cut off."""
        for publisher in self.publishers.values():
            publisher.wait_for_all_acked(Duration(seconds=timeout_s))


def message_class(type_name: str) -> Any | None:
    """The Python class of `package/msg/Name`; None where its package is not installed."""
    parts = type_name.split("/")
    if len(parts) != 3:
        return None
    try:
        return getattr(import_module(f"{parts[0]}.{parts[1]}"), parts[2], None)
    except ImportError:
        return None


def profile(topic: str, type_name: str) -> QoSProfile:
    """Reliable, which suits every listener; what is said once is kept for those who come late."""
    kept = topic in KEPT_TOPICS or (type_name in KEPT_TYPES and topic != "/tf")
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=IMAGE_DEPTH if type_name in IMAGE_TYPES else DEPTH,
        reliability=ReliabilityPolicy.RELIABLE,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if kept else DurabilityPolicy.VOLATILE,
    )


def _sleep_until(due: float, running: Callable[[], bool]) -> bool:
    """False if `running()` became false meanwhile."""
    while (left := due - time.monotonic()) > 0:
        if not running():
            return False
        time.sleep(min(left, 0.1))
    return running()


def parse(arguments: Sequence[str]) -> tuple[Path, PlayOptions]:
    """Command line without its `--ros-args` part. Raises ValueError for a rate or a checkpoint that cannot be."""
    parser = argparse.ArgumentParser(prog="bag_player_node", description=__doc__)
    parser.add_argument("bag", type=Path, help="bag folder, or its .mcap or .db3 file")
    parser.add_argument("--rate", type=float, default=1.0, help="bag seconds per second; 0: as fast as it goes")
    parser.add_argument("--checkpoint", default="", help="play what the memory of this checkpoint observes")
    parser.add_argument("--namespace", default="", help="namespace of that memory's topics (default: none)")
    parser.add_argument("--topics", nargs="+", action="extend", default=[], help="topics to play, or to play besides")
    parser.add_argument(
        "--remap", nargs="+", action="extend", default=[], metavar="OLD:=NEW", help="publish OLD under the name NEW"
    )
    parser.add_argument("--wait-s", type=float, default=0.0, help="wait at most so long for listeners to every topic")
    parser.add_argument("--loop", action="store_true", help="begin again at the end")
    parsed = parser.parse_args(arguments)
    rules = (rule.split(":=", 1) for rule in parsed.remap if ":=" in rule)
    remap = {absolute(old): new for old, new in rules}
    wrong = [rule for rule in parsed.remap if not TOPIC.fullmatch(rule.partition(":=")[2])]
    if wrong:
        parser.error(f"--remap {' '.join(wrong)}: write OLD:=NEW, both as topics")
    observed = sensor_topics(parsed.checkpoint, parsed.namespace) if parsed.checkpoint else ()
    topics = tuple(dict.fromkeys((*observed, *(absolute(topic) for topic in parsed.topics))))
    warning = lost_in_play(parsed.checkpoint) if parsed.checkpoint else ""
    return parsed.bag, PlayOptions(parsed.rate, topics, remap, parsed.wait_s, parsed.loop, warning)


def play(node: Node, bag: Path, options: PlayOptions, running: Callable[[], bool]) -> None:
    """Play a bag until its end or until `running()` is false. Raises ValueError naming what is wrong."""
    logger = node.get_logger()
    with BagReader(bag) as reader:
        player = BagPlayer(node, reader, options)
        if options.warning:
            logger.warning(options.warning)
        for topic, reason in player.left_out.items():
            logger.warning(f"{topic} is left out: {reason}")
        unheard = player.wait_for_listeners(running)
        if unheard:
            logger.warning(f"nobody listens to {', '.join(unheard)}")
        logger.info(f"playing {len(player.publishers)} topics of {bag}")
        while True:
            played = player.play(running)
            text = f"{played.messages} messages, {played.bag_s:.1f} s of bag in {played.wall_s:.1f} s"
            logger.info(text)
            if played.late_s > _BEHIND_S:
                logger.warning(f"messages were up to {played.late_s:.2f} s late: play at a lower rate")
            if not options.loop or not running():
                break
        if running():
            player.drain()
        for fault in reader.faults:
            logger.warning(str(fault))


def main(args: Sequence[str] | None = None) -> int:
    """Entry point of the executable; returns 1 for a bag that cannot be played."""
    given = list(sys.argv[1:] if args is None else args)
    # Not left to rclpy, which takes every OLD:=NEW for a rule of its own.
    ours = given.index(ROS_ARGUMENTS) if ROS_ARGUMENTS in given else len(given)
    try:
        bag, options = parse(given[:ours])
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    rclpy.init(args=["bag_player_node", *given[ours:]], signal_handler_options=SignalHandlerOptions.NO)
    # Not a shutdown: it would take the publishers away from what is using them.
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    parent.watch(stopped.set)
    node = rclpy.create_node("bag_player_node")
    try:
        play(node, bag, options, lambda: not stopped.is_set())
    except (ValueError, OSError) as error:
        node.get_logger().error(str(error))
        return 1
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
