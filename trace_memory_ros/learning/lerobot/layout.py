"""What a LeRobotDataset's features mean, and the recording configuration that says the same of a robot's topics."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.rates import deadline_ms
from trace_memory_ros.bags.recording import BranchConfig, RecordingConfig
from trace_memory_ros.files.names import unique
from trace_memory_ros.observation.config import MASKED, CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.policies.lerobot.names import camera_names
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.streams.twist import BASE_MOTION

VERSION = "v3.0"
STATE, ACTION = "observation.state", "action"
BRANCH = "branch"
"""A feature that says which branch is right, from the frame on at which it is taken: text, or a number from 0."""
SIDECAR = Path("meta") / "trace_memory.yaml"
"""What LeRobot has no place for: recording configuration, names, first stamps and branches of the episodes."""
JOINTS = "joint_states.position."
BASE = tuple(f"odom.{name}" for name in BASE_MOTION)
BASES = (BASE, tuple(f"{MASKED}{name}" for name in BASE_MOTION), ("base_vx", "base_vy", "base_yaw_rate"))
"""How datasets that were exported here call the base's velocity."""
RADIANS = 2 * np.pi + 0.1
"""Joint positions beyond this are no radians: LeRobot's own robots give degrees, or percent of the range."""

SLOWEST_MS = 200
"""The longest tick that is proposed where frames come faster: at 5 to 100 Hz training was tried."""


@dataclass(frozen=True)
class Layout:
    """What a dataset's features mean. cameras: name -> feature. state: names of its numbers, in order.

    sizes: height and width of each camera's images. branched: whether frames say which branch is right.
    """

    fps: int
    cameras: Mapping[str, str]
    state: tuple[str, ...]
    actions: tuple[str, ...]
    sizes: Mapping[str, tuple[int, int]]
    branched: bool = False

    @property
    def base(self) -> bool:
        """Whether the state begins with the base's velocity."""
        return self.state[:3] in BASES

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of what is no base velocity, as a JointState topic has them."""
        return tuple(name.removeprefix(JOINTS) for name in self.state[3 if self.base else 0 :])

    @cached_property
    def topics(self) -> dict[str, str]:
        """Topic of each camera on the robot that is proposed: ROS takes ASCII alone, and no digit at the beginning."""
        tokens: list[str] = []
        for name in self.cameras:
            token = re.sub(r"\W", "_", name, flags=re.ASCII)
            tokens.append(unique(f"camera_{token}" if token[:1].isdigit() else token, tokens))
        return {name: f"camera/{token}/image_raw" for name, token in zip(self.cameras, tokens, strict=True)}


def read_info(folder: Path) -> dict[str, Any]:
    """`meta/info.json` of the dataset in `folder`. Raises ValueError where it is none, or of another version."""
    path = folder / "meta" / "info.json"
    try:
        info = dict(json.loads(path.read_text(encoding="utf-8")))
        version, _, _ = info["codebase_version"], info["features"], int(info["fps"])
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{folder} is not a LeRobotDataset ({path.name}: {error!r}): give its root folder") from error
    if version != VERSION:
        raise ValueError(
            f"{folder} is of format {version}, LeRobot 0.4 reads {VERSION}: convert it with lerobot's "
            "datasets/v30/convert_dataset_v21_to_v30.py"
        )
    return info


def read_layout(folder: Path) -> Layout:
    """The features of the dataset in `folder`. Raises ValueError naming what is missing or of another version."""
    info = read_info(folder)
    found = info["features"]
    cameras = camera_names(key for key, feature in found.items() if feature["dtype"] in ("image", "video"))
    lacking = [key for key in (STATE, ACTION) if key not in found] + ["a camera"] * (not cameras)
    if lacking:
        raise ValueError(f"{folder} lacks {', '.join(lacking)}: it has {', '.join(found)}")
    state, actions = (_names(found[key], word) for key, word in ((STATE, "state"), (ACTION, "action")))
    sizes = {name: _size(found[key]) for name, key in cameras.items()}
    fps = float(info["fps"])
    if fps != round(fps) or fps < 1:
        raise ValueError(f"{folder}: fps = {info['fps']}: frames are placed by a whole number of them a second")
    return Layout(int(fps), cameras, state, actions, sizes, BRANCH in found)


def described(folder: Path) -> RecordingConfig:
    """What a dataset says of itself: as it was exported here, else `proposed`. Raises ValueError, ConfigError."""
    exported = read_sidecar(folder).get("recording")
    if exported is None:
        return proposed(folder)
    read_layout(folder)
    return RecordingConfig.from_dict(exported, str(folder / SIDECAR))


def proposed(folder: Path) -> RecordingConfig:
    """The recording configuration of the dataset in `folder`. Raises ValueError as `read_layout` does."""
    layout, stats = read_layout(folder), _state_range(folder)
    still = layout.base and stats is not None and not (stats[0][:3].any() or stats[1][:3].any())
    angles = stats is None or max(np.abs(end[3 if layout.base else 0 :]).max(initial=0.0) for end in stats) <= RADIANS
    return recording_of(layout, still or not layout.base, read_sidecar(folder), angles)


def recording_of(layout: Layout, still: bool, sidecar: Mapping[str, Any], angles: bool = True) -> RecordingConfig:
    """What is what, as a robot's topics. still: the base never moves. angles: joint positions are radians.

    Sizes of images are the sidecar's, else the defaults. The tick period is `proposed_period_ms`.
    """
    seen = sidecar.get("recording", {}).get("observation", {})
    period_ms = proposed_period_ms(layout.fps)
    stale_ms = max(250.0, 2.5 * period_ms)
    joints = SensorConfig("joint_states", "joint_states", stale_ms, select={"position": layout.joints})
    odom = SensorConfig("odom", "odom", stale_ms, type=fields.ODOMETRY)
    base = (BASES[1] if still else BASE) if layout.base else ()
    state = (*base, *joints.channels)
    observation = ObservationConfig(
        cameras=tuple(CameraConfig(name, topic, stale_ms) for name, topic in layout.topics.items()),
        streams=(joints,) if still else (joints, odom),
        state=state,
        path=state if layout.base else (),
        units={} if angles else dict.fromkeys(joints.channels, "raw"),
        tick_period_ms=period_ms,
        deadline_ms=max(ObservationConfig.deadline_ms, deadline_ms([period_ms])),
        **{key: seen[key] for key in ("image_px", "thumbnail_px") if key in seen},
    )
    branched = layout.branched or any(episode["branches"] for episode in sidecar.get("episodes", []))
    return RecordingConfig(
        observation,
        ActionConfig.of_trajectory("command", layout.actions),
        branches=BranchConfig(topic=BRANCH) if branched else None,
    )


def proposed_period_ms(fps: int) -> int:
    """The shortest whole number of milliseconds that is a whole number of frames; one frame, rounded, where it is long.

    33 frames per second would else be a tick a second.
    """
    whole_ms = 1000 // gcd(1000, fps)
    return whole_ms if whole_ms <= SLOWEST_MS else round(1000 / fps)


def read_sidecar(folder: Path) -> dict[str, Any]:
    """What an export from here left beside the dataset; empty where nothing did."""
    path = folder / SIDECAR
    return dict(yaml.safe_load(path.read_text(encoding="utf-8"))) if path.exists() else {}


def relative_rows(sidecar: Mapping[str, Any], folder: Path) -> NDArray[np.int64] | None:
    """`(A,)`: which number of the state an export wrote each action less of, -1 for none; None where it was not ours.

    Raises ConfigError for a sidecar that was edited.
    """
    if "recording" not in sidecar:
        return None
    recording = RecordingConfig.from_dict(sidecar["recording"], str(folder / SIDECAR))
    return None if recording.actions is None else recording.actions.relative_rows(recording.observation)


def _state_range(folder: Path) -> tuple[np.ndarray, np.ndarray] | None:
    """Least and greatest state of the dataset, as its statistics have them."""
    try:
        stats = json.loads((folder / "meta" / "stats.json").read_text(encoding="utf-8"))[STATE]
        least, most = (np.asarray(stats[end], dtype=float).reshape(-1) for end in ("min", "max"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return least, most


def _size(feature: Mapping[str, Any]) -> tuple[int, int]:
    """Height and width, whichever way the feature's shape is written."""
    shape, names = list(feature["shape"]), list(feature.get("names") or [])
    if set(names) >= {"height", "width"}:
        return int(shape[names.index("height")]), int(shape[names.index("width")])
    first = 1 if shape[0] in (1, 3) and shape[-1] not in (1, 3) else 0
    return int(shape[first]), int(shape[first + 1])


def _names(feature: Mapping[str, Any], word: str) -> tuple[str, ...]:
    """Names of a vector's numbers: a list, a list by group, a place by name, or none; repeated ones are numbered."""
    names: Any = feature.get("names")
    if isinstance(names, Mapping) and all(isinstance(place, int) for place in names.values()):
        names = sorted(names, key=names.__getitem__)
    elif isinstance(names, Mapping):
        names = [name for group in names.values() for name in (group if isinstance(group, Sequence) else [group])]
    count = int(feature["shape"][0])
    if not names or len(names) != count:
        return tuple(f"{word}_{i}" for i in range(count))
    found: list[str] = []
    for name in names:
        found.append(unique(str(name), found))
    return tuple(found)
