"""A LeRobotDataset (format v3.0) on disk as rosbag2 bags, one per episode, and what is what in them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.layout import METADATA, author_of
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.writer import COMMAND, BagFileWriter, replace_bag
from trace_memory_ros.learning.lerobot.dataset import Dataset
from trace_memory_ros.learning.lerobot.frames import Unreadable
from trace_memory_ros.learning.lerobot.layout import BRANCH, Layout, proposed
from trace_memory_ros.learning.lerobot.source import SECOND_NS, START_NS

_SENSED_NS, _TOLD_NS, _ANSWERED_NS = 1_000_000, 3_000_000, 5_000_000
CONFIG, EPISODE = "observation.yaml", "episode_"


def import_dataset(folder: str | Path, out: Path, left_out: list[str] | None = None) -> Iterator[Path]:
    """Write each episode of the dataset in `folder` as a bag under `out`, and `observation.yaml` beside them first.

    Frame k is stamped its episode's first stamp + k / fps, to the nanosecond; the dataset's own timestamps are float32.
    Images, state, actions and task strings are carried over as they are; other features are not. left_out: takes the
    episodes whose files cannot be read, and why; without it the first one raises Unreadable. Raises ValueError where
    the folder is no dataset of this version, or has no cameras, state or actions.
    """
    dataset = Dataset(Path(folder))
    recording = proposed(dataset.folder)
    out.mkdir(parents=True, exist_ok=True)
    (out / CONFIG).write_text(yaml.safe_dump(recording.to_dict(), sort_keys=False), encoding="utf-8")
    for index in dataset.episodes:
        try:
            bag = _write_episode(dataset, index, out / f"{EPISODE}{index:06d}", recording)
        except Unreadable as error:
            if left_out is None:
                raise
            left_out.append(f"episode {index}: {error}")
            continue
        yield bag


def remove_others(out: Path, written: Collection[Path]) -> list[str]:
    """Remove the bags that an earlier import left in `out` beside those `written`, and name them.

    A folder of two datasets' episodes would be read as one, by the configuration of the newer.
    """
    old = [bag for bag in sorted(out.glob(f"{EPISODE}*")) if bag not in written and (bag / METADATA).exists()]
    ours = [bag for bag in old if author_of(bag) == COMMAND]
    for bag in ours:
        replace_bag(bag, COMMAND)
    return [bag.name for bag in ours]


def _write_episode(dataset: Dataset, index: int, bag: Path, recording: RecordingConfig) -> Path:
    layout, about, count = dataset.layout, dataset.about(index), dataset.frames(index)
    table = dataset.table(index)
    pictures = {name: dataset.pictures(index, name) for name in layout.cameras}
    branches = dict(enumerate(table.labels or ())) or {one["tick"]: one["label"] for one in about.get("branches", [])}
    first_ns = about.get("first_stamp_ns", START_NS)
    topics = dict.fromkeys(layout.topics.values(), fields.IMAGE)
    topics |= {"joint_states": fields.JOINTS, "command": fields.TRAJECTORY, "task": fields.TEXT}
    topics |= {"odom": fields.ODOMETRY} if _moves(recording) else {}
    topics |= {} if recording.branches is None else {BRANCH: fields.TEXT}
    with BagFileWriter(bag, topics, compression="chunk", whole=True) as writer:
        writer.write("task", messages.text(" / ".join(dataset.tasks(index))), first_ns)
        for k in range(count):
            stamp_ns = first_ns + round(k * SECOND_NS / layout.fps)
            seen = {name: next(found) for name, found in pictures.items()}
            _write_frame(writer, layout, recording, seen, table.state[k], stamp_ns)
            if branches.get(k) and branches[k] != branches.get(k - 1):
                writer.write(BRANCH, messages.text(branches[k]), stamp_ns + _TOLD_NS)
            command = messages.trajectory(layout.actions, table.actions[k], stamp_ns, recording.observation.period_ns)
            writer.write("command", command, stamp_ns + _ANSWERED_NS)
    return bag


def _write_frame(
    writer: BagFileWriter,
    layout: Layout,
    recording: RecordingConfig,
    pictures: Mapping[str, NDArray[np.uint8]],
    state: NDArray[np.float64],
    stamp_ns: int,
) -> None:
    log_ns = stamp_ns + _SENSED_NS
    for name, picture in pictures.items():
        writer.write(layout.topics[name], messages.image(picture, stamp_ns, f"{name}_camera"), log_ns)
    joints = state[3:] if layout.base else state
    writer.write("joint_states", messages.joint_state(layout.joints, joints, stamp_ns), log_ns)
    if _moves(recording):
        writer.write("odom", messages.odometry(state[:3], stamp_ns), log_ns)


def _moves(recording: RecordingConfig) -> bool:
    """Whether the robot has a base that moves."""
    return len(recording.observation.streams) > 1
