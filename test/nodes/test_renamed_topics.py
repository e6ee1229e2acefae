"""Topics that are renamed to names that another rule renames, as of two arms or cameras that changed places."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import Image

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.doctor.judge import judged
from trace_memory_ros.nodes.doctor.listen import listen
from trace_memory_ros.nodes.inputs import resolved
from trace_memory_ros.nodes.policy.company import Company
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig, default_arm

RULES = ("left/image:=/right/image", "right/image:=/third/image")
PATIENCE_S = 20.0
Make = Callable[..., Node]


@pytest.fixture
def make(domain_id: int) -> Iterator[Make]:
    """Makes nodes, with or without rules."""
    context = Context()
    rclpy.init(args=[], context=context, domain_id=domain_id)

    def node(name: str, rules: tuple[str, ...] = ()) -> Node:
        words = [word for rule in rules for word in ("-r", rule)]
        cli_args = ["--ros-args", *words] if words else None
        return rclpy.create_node(name, context=context, cli_args=cli_args, use_global_arguments=False)

    yield node
    rclpy.try_shutdown(context=context)


def test_another_that_commands_is_seen_by_the_topic_that_a_rule_gives(make: Make) -> None:
    own, other = make("renamed_policy", RULES), make("other_policy")
    kept = [own.create_publisher(Image, topic, 1) for topic in ("left/image", "right/image")]
    company = Company(own, ["left/image", "right/image"])
    company.begin()
    assert company.problem == ""
    kept.append(other.create_publisher(Image, "/right/image", 1))
    deadline = time.monotonic() + PATIENCE_S
    while not company.problem and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "/right/image, /third/image: also commanded by /other_policy" in company.problem


def test_the_doctor_looks_at_the_topics_that_rules_give(make: Make) -> None:
    cameras = tuple(CameraConfig(side, f"{side}/image", stale_after_ms=250) for side in ("left", "right"))
    driver = make("camera_driver")
    for topic in ("/left/image", "/third/image"):
        driver.create_publisher(Image, topic, 1)
    # Nodes of other tests publish joint states in their namespaces.
    observation = ObservationConfig(cameras, (SensorConfig("arm", "renamed/joints", 100, select=("a",)),))
    seen = listen(observation, None, 0.5, remap=RULES)
    assert [end.node for end in seen.streams["right"].publishers] == ["/camera_driver"]
    (row,) = [row for row in judged(seen, observation, None, "best_effort") if row.part == "stream left"]
    assert row.found == "/right/image: nobody publishes it"
    assert "if it is /left/image" in row.remedy


def test_a_topic_that_ros_does_not_take_is_named(make: Make) -> None:
    assert resolved(make("renamed_too", RULES), "left/image") == "/right/image"
    observation = replace(default_arm(), cameras=(CameraConfig("top", "cam-1/image", stale_after_ms=250),))
    with pytest.raises(ConfigError, match="topic 'cam-1/image' of the checkpoint: .*; record it by another name"):
        listen(observation, None, 0.5)
