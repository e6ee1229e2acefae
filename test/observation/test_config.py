"""The observation config says everything once, strictly."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import (
    BaseStreamConfig,
    CameraConfig,
    JointStreamConfig,
    ObservationConfig,
    default_arm,
)


def test_default_arm_survives_yaml() -> None:
    for masked in (True, False):
        config = default_arm(base_masked=masked)
        assert ObservationConfig.from_dict(yaml.safe_load(yaml.safe_dump(config.to_dict()))) == config


def test_default_arm_is_the_robot() -> None:
    config = default_arm()
    assert config.state_dim == 17
    assert config.state_names[:4] == ("base_vx", "base_vy", "base_yaw_rate", "left_joint_1")
    assert config.state_names[-1] == "right_joint_7"
    assert [s.name for s in config.streams] == ["overhead", "left_wrist", "right_wrist", "joint_states"]
    assert [s.name for s in default_arm(base_masked=False).streams][-1] == "odom"
    assert config.period_ns == 100_000_000


def test_every_stream_kind_survives_its_mapping() -> None:
    config = ObservationConfig(
        cameras=(CameraConfig("front", "front/compressed", 99.5, "compressed"),),
        joints=("a", "b", "c"),
        joint_streams=(JointStreamConfig("left", "l", 50, ("c", "a")), JointStreamConfig("right", "r", 50, ("b",))),
        base=BaseStreamConfig("base", "cmd", 60, "twist"),
        tick_period_ms=33,
    )
    assert ObservationConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"camera": []}, "observation: unknown key 'camera'; did you mean 'cameras'"),
        ({"cameras": []}, "the first camera is the tick clock"),
        ({"cameras": {"overhead": 1}}, "observation.cameras = .* must be a list"),
        ({"cameras": [{"name": "a", "topic": "b"}]}, r"cameras\[0\]: key 'stale_after_ms' is missing"),
        ({"cameras": [{"name": "a", "topic": "", "stale_after_ms": 1}]}, "CameraConfig 'a': topic = ''"),
        ({"cameras": [{"name": "a", "topic": "b", "stale_after_ms": 0}]}, "stale_after_ms = 0"),
        (
            {"cameras": [{"name": "a", "topic": "b", "stale_after_ms": 9, "transport": "theora"}]},
            "transport = 'theora': must be one of raw, compressed",
        ),
        (
            {"cameras": [{"name": "joint_states", "topic": "b", "stale_after_ms": 9}]},
            "stream name 'joint_states' is used 2 times",
        ),
        ({"joints": []}, "joints is empty"),
        ({"joints": ["a", "a"]}, "joint 'a' is used 2 times"),
        ({"joint_streams": []}, "no joint stream gives left_joint_1"),
        (
            {"joint_streams": [{"name": "j", "topic": "j", "stale_after_ms": 9, "joints": ["left_joint_8"]}]},
            "'left_joint_8' is not in .*did you mean 'left_joint_",
        ),
        ({"base": None, "base_masked": False}, "name the base stream, or set base_masked"),
        ({"base_masked": "yes"}, "base_masked = 'yes'"),
        ({"image_px": 0}, "image_px = 0: must be an integer, at least 1"),
        ({"thumbnail_px": 64}, "thumbnail_px = 64.*image_px = 48"),
        ({"tick_period_ms": 33.3}, "tick_period_ms = 33.3"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ObservationConfig.from_dict({**default_arm().to_dict(), **changes})
