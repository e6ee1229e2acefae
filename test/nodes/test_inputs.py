"""What cannot be subscribed to is refused at configuring, by name."""

from __future__ import annotations

import pytest
from rclpy.parameter import Parameter

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.inputs import InputSubscriptions
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.observer import Observer

GRIPPER = SensorConfig(
    "gripper", "width", 250, type="std_msgs/msg/Float64MultiArray", select={"width": 0}, stamp="received"
)


def subscribe(domain_id: int, stream: SensorConfig, sim_time: bool) -> list[str]:
    """Topics that a node on the wall clock or on simulated time subscribes to."""
    config = ObservationConfig((CameraConfig("front", "front/image", 250),), (stream,), image_px=16)
    with NodeClient(domain_id, name="subscriber") as client:
        client.node.set_parameters([Parameter("use_sim_time", value=sim_time)])
        made = InputSubscriptions(client.node, config, "reliable", Observer(config), lambda *_: None)
        return [subscription.topic_name for subscription in made.subscriptions]


def test_every_stream_is_subscribed_to(domain_id: int) -> None:
    assert subscribe(domain_id, GRIPPER, sim_time=False) == ["/front/image", "/width"]


def test_receive_times_do_not_go_with_simulated_time(domain_id: int) -> None:
    with pytest.raises(ConfigError, match="use_sim_time is true and gripper is stamped when received"):
        subscribe(domain_id, GRIPPER, sim_time=True)


def test_a_message_package_that_is_not_there_is_named(domain_id: int) -> None:
    name = "control_msgs/msg/DynamicJointState"
    stream = SensorConfig("arm", "dynamic", 250, type=name, select=("position.a",))
    with pytest.raises(ConfigError, match=f"stream 'arm' on dynamic: message type {name} is not installed"):
        subscribe(domain_id, stream, sim_time=False)
