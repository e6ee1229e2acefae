"""A recording configuration is read strictly, and reads back what it wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from studies import tiny_bags as tiny
from trace_memory_ros.arm.recorder import arm_recording
from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.runtime.actions import ActionConfig

ROOT = Path(__file__).parents[2]


def test_the_shipped_file_is_the_arm_of_the_tasks() -> None:
    shipped = RecordingConfig.load(ROOT / "config" / "observation.yaml")
    assert shipped.observation == default_arm()
    assert shipped.actions == arm_recording().actions
    assert shipped.actions is not None and shipped.actions.names == ACTION_NAMES
    assert shipped.episodes == EpisodeRule() and shipped.branches is None


def test_the_page_about_describing_a_robot_holds_one_configuration() -> None:
    page = (ROOT / "docs" / "how-to" / "describe_your_robot.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    others = [block for block in blocks if block.startswith("actions:")][1:]
    blocks = [block for block in blocks if block not in others]
    for other in others:
        ActionConfig.from_dict(yaml.safe_load(other)["actions"])
    inner = [block for block in blocks if block.startswith((" ", "observation:"))]
    recording = RecordingConfig.from_dict(yaml.safe_load("".join([*inner, *(b for b in blocks if b not in inner)])))
    assert [camera.transport for camera in recording.observation.cameras] == ["raw", "compressed", "raw"]
    assert recording.observation.path_dim == 3 and recording.namespace == "lab/robot1"
    assert recording.actions is not None and recording.actions.names[2:] == ("gripper.width", "linear.x", "angular.z")


@pytest.mark.parametrize("recording", [tiny.RECORDING, tiny.BY_STATUS, RecordingConfig(default_arm(), namespace="a/b")])
def test_a_file_gives_back_what_was_written(tmp_path: Path, recording: RecordingConfig) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(yaml.safe_dump(recording.to_dict()))
    assert RecordingConfig.load(file) == recording


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"episode": {}}, "unknown key 'episode'; did you mean 'episodes'"),
        ({"episodes": {"kind": "bags"}}, "must be one of bag, topic, gap"),
        ({"episodes": {"kind": "topic"}}, "episodes.topic"),
        ({"episodes": {"kind": "gap", "gap_s": 0}}, "episodes.gap_s = 0"),
        ({"actions": {"topic": "x", "kind": "joint_trajectory"}}, "key 'names' is missing"),
        ({"actions": {"topic": "x", "kind": "joint_state", "names": "abc"}}, "must be a list"),
        ({"actions": {"topic": "x", "kind": "joint_state", "names": ["a", "a"]}}, "each commanded joint once"),
        ({"actions": {"topic": "x", "kind": "twist", "names": ["a"]}}, "actions.kind"),
        ({"branches": {}}, "give one of them"),
        ({"branches": {"topic": "a", "file": "b"}}, "give one of them"),
        ({"branches": {"topic": ["a", "b"]}}, "branches.topic = .* must be a non-empty string"),
        ({"branches": {"file": 3}}, "branches.file = 3: must be a non-empty string"),
        ({"namespace": 5}, "namespace = 5"),
        ({"observation": None}, "expected a mapping"),
    ],
)
def test_a_mistake_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RecordingConfig.from_dict({**tiny.RECORDING.to_dict(), **change})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        RecordingConfig.load(tmp_path / "none.yaml")
    (tmp_path / "odd.yaml").write_text("{")
    with pytest.raises(ConfigError, match="is not YAML"):
        RecordingConfig.load(tmp_path / "odd.yaml")
    (tmp_path / "odd.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"odd\.yaml"):
        RecordingConfig.load(tmp_path / "odd.yaml")


@pytest.mark.parametrize(
    ("namespace", "name", "topic"),
    [
        ("", "odom", "/odom"),
        ("robot", "odom", "/robot/odom"),
        ("/robot/", "/odom", "/odom"),
        ("/a/b", "c/d", "/a/b/c/d"),
    ],
)
def test_topics_are_resolved_as_a_node_would(namespace: str, name: str, topic: str) -> None:
    assert RecordingConfig(default_arm(), namespace=namespace).topic(name) == topic


def test_a_branch_config_has_one_source() -> None:
    assert BranchConfig(topic="x").file == ""
