"""A LeRobotDataset (format v3.0) on disk as rosbag2 bags, one per episode, and what is what in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.rates import deadline_ms
from trace_memory_ros.bags.recording import BranchConfig, RecordingConfig
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.learning.lerobot.export import ACTION, IMAGES, SIDECAR, STATE
from trace_memory_ros.learning.lerobot.frames import video_frames
from trace_memory_ros.observation.config import (
    MASKED,
    CameraConfig,
    ObservationConfig,
    SensorConfig,
)
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.streams.twist import BASE_MOTION

VERSION = "v3.0"
START_NS = 1_000_000_000
"""Stamp of the first frame where nothing tells it: zero would mean that there is none."""
SECOND_NS = 1_000_000_000
_SENSED_NS, _TOLD_NS, _ANSWERED_NS = 1_000_000, 3_000_000, 5_000_000
CONFIG = "observation.yaml"
JOINTS = "joint_states.position."
BASE = tuple(f"odom.{name}" for name in BASE_MOTION)
BASES = (BASE, tuple(f"{MASKED}{name}" for name in BASE_MOTION), ("base_vx", "base_vy", "base_yaw_rate"))
"""How datasets that were exported here call the base's velocity."""


@dataclass(frozen=True)
class Layout:
    """What a dataset's features mean. cameras: name -> feature. state: names of its numbers, in order."""

    fps: int
    cameras: Mapping[str, str]
    state: tuple[str, ...]
    actions: tuple[str, ...]

    @property
    def base(self) -> bool:
        """Whether the state begins with the base's velocity."""
        return self.state[:3] in BASES

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of what is no base velocity, as a JointState topic has them."""
        return tuple(name.removeprefix(JOINTS) for name in self.state[3 if self.base else 0 :])


def import_dataset(folder: str | Path, out: Path) -> Iterator[Path]:
    """Write each episode of the dataset in `folder` as a bag under `out`, and `observation.yaml` beside them first.

    Frame k is stamped its episode's first stamp + k / fps, to the nanosecond; the dataset's own timestamps are float32.
    Images, state, actions and task strings are carried over as they are; other features are not. Raises ValueError
    where the folder is no dataset of this version, or has no cameras, state or actions.
    """
    path = Path(folder)
    layout = read_layout(path)
    sidecar = _sidecar(path)
    dataset = lerobot("lerobot.datasets.lerobot_dataset").LeRobotDataset(path.name, root=path)
    still = _base_still(dataset) if layout.base else True
    recording = recording_of(layout, still, sidecar)
    out.mkdir(parents=True, exist_ok=True)
    (out / CONFIG).write_text(yaml.safe_dump(recording.to_dict(), sort_keys=False), encoding="utf-8")
    for index in range(dataset.num_episodes):
        known = sidecar.get("episodes", [])
        about = known[index] if index < len(known) else {}
        yield _write_episode(dataset, index, out / f"episode_{index:06d}", layout, recording, about)


def read_layout(folder: Path) -> Layout:
    """The features of the dataset in `folder`. Raises ValueError naming what is missing or of another version."""
    path = folder / "meta" / "info.json"
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
        version, found, fps = info["codebase_version"], info["features"], int(info["fps"])
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{folder} is not a LeRobotDataset ({path.name}: {error!r}): give its root folder") from error
    if version != VERSION:
        raise ValueError(
            f"{folder} is of format {version}, LeRobot 0.4 reads {VERSION}: convert it with lerobot's "
            "datasets/v30/convert_dataset_v21_to_v30.py"
        )
    cameras = {_name(key): key for key, feature in found.items() if feature["dtype"] in ("image", "video")}
    lacking = [key for key in (STATE, ACTION) if key not in found] + ["a camera"] * (not cameras)
    if lacking:
        raise ValueError(f"{folder} lacks {', '.join(lacking)}: it has {', '.join(found)}")
    state, actions = (_names(found[key], word) for key, word in ((STATE, "state"), (ACTION, "action")))
    return Layout(fps, cameras, state, actions)


def recording_of(layout: Layout, still: bool, sidecar: Mapping[str, Any]) -> RecordingConfig:
    """What is what in the bags. still: the base never moves. Sizes of images are the sidecar's, else the defaults.

    The tick period is the shortest whole number of milliseconds that is a whole number of frames.
    """
    seen = sidecar.get("recording", {}).get("observation", {})
    period_ms = 1000 // gcd(1000, layout.fps)
    stale_ms = max(250.0, 2.5 * period_ms)
    joints = SensorConfig("joint_states", "joint_states", stale_ms, select={"position": layout.joints})
    odom = SensorConfig("odom", "odom", stale_ms, type=fields.ODOMETRY)
    base = (BASES[1] if still else BASE) if layout.base else ()
    state = (*base, *joints.channels)
    observation = ObservationConfig(
        cameras=tuple(CameraConfig(name, f"camera/{name}/image_raw", stale_ms) for name in layout.cameras),
        streams=(joints,) if still else (joints, odom),
        state=state,
        path=state if layout.base else (),
        tick_period_ms=period_ms,
        deadline_ms=max(ObservationConfig.deadline_ms, deadline_ms([period_ms])),
        **{key: seen[key] for key in ("image_px", "thumbnail_px") if key in seen},
    )
    branched = any(episode["branches"] for episode in sidecar.get("episodes", []))
    return RecordingConfig(
        observation,
        ActionConfig.of_trajectory("command", layout.actions),
        branches=BranchConfig(topic="branch") if branched else None,
    )


def _write_episode(
    dataset: Any, index: int, bag: Path, layout: Layout, recording: RecordingConfig, about: Mapping[str, Any]
) -> Path:
    episode = dataset.meta.episodes[index]
    rows = range(episode["dataset_from_index"], episode["dataset_to_index"])
    columns = dataset.hf_dataset.select_columns([STATE, ACTION])[rows.start : rows.stop]
    state, actions = (np.stack([row.numpy() for row in columns[key]]) for key in (STATE, ACTION))
    pictures = {name: _pictures(dataset, index, key, rows) for name, key in layout.cameras.items()}
    branches = {branch["tick"]: branch["label"] for branch in about.get("branches", [])}
    first_ns = about.get("first_stamp_ns", START_NS)
    topics = {f"camera/{name}/image_raw": fields.IMAGE for name in layout.cameras}
    topics |= {"joint_states": fields.JOINTS, "command": fields.TRAJECTORY, "task": fields.TEXT}
    topics |= {"odom": fields.ODOMETRY} if _moves(recording) else {}
    topics |= {} if recording.branches is None else {"branch": fields.TEXT}
    with BagFileWriter(bag, topics, compression="chunk") as writer:
        writer.write("task", messages.text(" / ".join(episode["tasks"])), first_ns)
        for k in range(len(rows)):
            stamp_ns = first_ns + round(k * SECOND_NS / layout.fps)
            _write_frame(writer, layout, recording, {n: next(p) for n, p in pictures.items()}, state[k], stamp_ns)
            if k in branches:
                writer.write("branch", messages.text(branches[k]), stamp_ns + _TOLD_NS)
            command = messages.trajectory(layout.actions, actions[k], stamp_ns, recording.observation.period_ns)
            writer.write("command", command, stamp_ns + _ANSWERED_NS)
    return bag


def _write_frame(
    writer: BagFileWriter,
    layout: Layout,
    recording: RecordingConfig,
    pictures: Mapping[str, NDArray[np.uint8]],
    state: NDArray[np.float32],
    stamp_ns: int,
) -> None:
    log_ns = stamp_ns + _SENSED_NS
    for name, picture in pictures.items():
        writer.write(f"camera/{name}/image_raw", messages.image(picture, stamp_ns, f"{name}_camera"), log_ns)
    joints = state[3:] if layout.base else state
    writer.write("joint_states", messages.joint_state(layout.joints, joints, stamp_ns), log_ns)
    if _moves(recording):
        writer.write("odom", messages.odometry(state[:3], stamp_ns), log_ns)


def _moves(recording: RecordingConfig) -> bool:
    """Whether the robot has a base that moves."""
    return len(recording.observation.streams) > 1


def _pictures(dataset: Any, index: int, key: str, rows: range) -> Iterator[NDArray[np.uint8]]:
    """The images of one camera and episode, `(H, W, 3)`, in order."""
    if key in dataset.meta.video_keys:
        start_s = dataset.meta.episodes[index][f"videos/{key}/from_timestamp"]
        path = dataset.root / dataset.meta.get_video_file_path(index, key)
        yield from video_frames(path, start_s, len(rows), dataset.fps)
        return
    column = dataset.hf_dataset.select_columns([key])
    for row in rows:
        pixels = column[row][key].permute(1, 2, 0) * 255.0
        yield pixels.round().numpy().astype(np.uint8)


def _base_still(dataset: Any) -> bool:
    least, most = (np.asarray(dataset.meta.stats[STATE][end])[:3] for end in ("min", "max"))
    return not (least.any() or most.any())


def _sidecar(folder: Path) -> dict[str, Any]:
    path = folder / SIDECAR
    return dict(yaml.safe_load(path.read_text(encoding="utf-8"))) if path.exists() else {}


def _name(key: str) -> str:
    """A camera's name as a topic can hold it."""
    return re.sub(r"\W", "_", key.removeprefix(IMAGES).removeprefix("observation."))


def _names(feature: Mapping[str, Any], word: str) -> tuple[str, ...]:
    """Names of a vector's numbers: LeRobot has them in a list, in a list by group, or not at all."""
    names: Any = feature.get("names")
    if isinstance(names, Mapping):
        names = [name for group in names.values() for name in (group if isinstance(group, Sequence) else [group])]
    count = int(feature["shape"][0])
    return tuple(names) if names and len(names) == count else tuple(f"{word}_{i}" for i in range(count))
