"""controller_node from outside: what it refuses it names, what it accepts the joints are told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

JOINTS = ["lift", "swing"]
ROBOT = {
    "controllers": [
        {"name": "crane_controller", "type": "joint_trajectory_controller", "joints": JOINTS},
        {"name": "hook_controller", "type": "forward_command_controller", "joints": ["hook"]},
    ]
}
ERROR = b"\x02"


def trajectory(positions: list[float], ms: int = 900, stamp_ns: int = 0, **changes: Any) -> JointTrajectory:
    point = JointTrajectoryPoint(positions=positions)
    point.time_from_start.nanosec = ms * 1_000_000
    header = conversion.header(stamp_ns)
    return JointTrajectory(**{"header": header, "joint_names": JOINTS, "points": [point], **changes})


@pytest.mark.timeout(120)
def test_a_bad_trajectory_is_refused_by_name_and_a_good_one_executed(tmp_path: Path, domain_id: int) -> None:
    file = tmp_path / "robot.yaml"
    file.write_text(yaml.safe_dump(ROBOT))
    values = {"controllers_file": str(file), "diagnostics_rate_hz": 20.0, "autostart": True}
    spec = NodeSpec("controller_node", values, namespace="crane", package="trace_memory_ros.arm.nodes")
    process = NodeProcess(spec, tmp_path / "logs", private_environment(domain_id))
    try:
        process.wait_ready(60.0)
        with NodeClient(domain_id, "crane", "operator") as client:
            _operate(client)
    finally:
        assert process.stop() == 0


def _operate(client: NodeClient) -> None:
    node, health, told = client.node, {}, []
    arm = node.create_publisher(JointTrajectory, "crane_controller/joint_trajectory", qos.COMMAND)
    hook = node.create_publisher(Float64MultiArray, "hook_controller/commands", qos.COMMAND)
    joints = node.create_publisher(JointState, "joint_states", qos.state("reliable"))
    node.create_subscription(JointTrajectory, "command", told.append, qos.COMMAND)
    node.create_subscription(
        DiagnosticArray, "/diagnostics", lambda m: health.update({s.name: s for s in m.status}), qos.DIAGNOSTICS
    )

    def wait(condition: Any, what: str) -> None:
        assert client.spin_until(condition, 30.0), f"{what}: {[(n, s.message) for n, s in health.items()]}"

    def refused(controller: str, rule: str) -> None:
        name = f"crane/controller_node: {controller}"
        wait(lambda: name in health and health[name].message.startswith(f"newest command refused, {rule}: "), rule)
        assert health[name].level == ERROR and health["crane/controller_node"].level == ERROR
        assert f"refused: {rule}" in {entry.key for entry in health[name].values}

    wait(lambda: all(p.get_subscription_count() for p in (arm, hook, joints)), "the node's subscriptions")
    wait(lambda: bool(node.count_publishers("/crane/command")), "its publisher")
    arm.publish(trajectory([1.0, 2.0]))
    refused("crane_controller", "no_state")
    joints.publish(conversion.joint_message({"lift": 0.0, "swing": 1.0}, time.time_ns()))
    arm.publish(trajectory([1.0, 2.0], stamp_ns=time.time_ns() - 10**9))
    refused("crane_controller", "ended")
    arm.publish(trajectory([1.0, 2.0], joint_names=["lift", "boom"]))
    refused("crane_controller", "unknown_joint")
    hook.publish(Float64MultiArray(data=[0.5, 0.5]))
    refused("hook_controller", "size")
    assert not told, "nothing moves by what was refused"
    hook.publish(Float64MultiArray(data=[0.5]))
    arm.publish(trajectory([1.0, 2.0]))
    wait(lambda: bool(told) and list(told[-1].points[0].positions) == [1.0, 2.0, 0.5], "the end of the trajectory")
    lifts = [message.points[0].positions[0] for message in told]
    assert lifts == sorted(lifts) and told[0].joint_names == [*JOINTS, "hook"]
    assert any(0.0 < lift < 1.0 for lift in lifts), "it goes there, it does not jump"
    wait(lambda: health["crane/controller_node: crane_controller"].level == b"\x00", "an end of the fault")
