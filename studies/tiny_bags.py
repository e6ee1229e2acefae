"""Recordings of a robot with thumb-nail cameras: what the bag fuzzer mutates, and what tests begin from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.streams.twist import BASE_MOTION

BEGIN_NS = 1_700_000_000_000_000_000
PERIOD_NS = 100_000_000
JOINTS = ("shoulder", "elbow", "wrist")
ACTIONS = ("shoulder", "elbow", "wrist", "gripper")
HEIGHT, WIDTH, IMAGE_PX = 6, 8, 4

OBSERVATION = ObservationConfig(
    cameras=(CameraConfig("front", "front/image", 250), CameraConfig("hand", "hand/image", 250)),
    streams=(
        SensorConfig("joints", "joint_states", 250, select={"position": JOINTS}),
        SensorConfig("odom", "odom", 250, type=fields.ODOMETRY),
    ),
    state=(*(f"odom.{name}" for name in BASE_MOTION), *(f"joints.position.{joint}" for joint in JOINTS)),
    image_px=IMAGE_PX,
    thumbnail_px=2,
)
RECORDING = RecordingConfig(OBSERVATION, ActionConfig.of_trajectory("command", ACTIONS))
BY_STATUS = RecordingConfig(
    OBSERVATION, RECORDING.actions, EpisodeRule("topic", "episode"), BranchConfig(topic="branch")
)


@dataclass
class Entry:
    """A message to be recorded; `message` is one of the typestore's, or CDR bytes."""

    topic: str
    type_name: str
    log_ns: int
    message: Any

    @property
    def data(self) -> bytes:
        """Its CDR."""
        if isinstance(self.message, bytes):
            return self.message
        return bytes(typestore().serialize_cdr(self.message, self.type_name))


def stamp_of(tick: int) -> int:
    """Header stamp of a tick's samples, ns."""
    return BEGIN_NS + tick * PERIOD_NS


def pixels(tick: int, camera: int) -> np.ndarray:
    """An image that tells its tick and camera."""
    rng = np.random.default_rng((tick, camera))
    return rng.integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)


def positions(tick: int) -> np.ndarray:
    """Joint angles of a tick, rad."""
    return np.array([0.1, 0.2, 0.3]) * (tick + 1)


def targets(tick: int) -> np.ndarray:
    """The command that answers a tick: rad, and 0 or 1 of the gripper."""
    return np.array([*positions(tick + 1), float(tick % 2)])


def tick_entries(tick: int) -> list[Entry]:
    """All that is recorded of one tick."""
    ns = stamp_of(tick)
    log = ns + 3_000_000
    images = [
        Entry(camera.topic, fields.IMAGE, log, make.image(pixels(tick, c), ns))
        for c, camera in enumerate(OBSERVATION.cameras)
    ]
    return [
        Entry("joint_states", fields.JOINTS, ns + 1_000_000, make.joint_state(JOINTS, positions(tick), ns)),
        Entry("odom", fields.ODOMETRY, ns + 1_000_000, make.odometry((0.1, -0.1, 0.01 * tick), ns)),
        *images,
        Entry("command", fields.TRAJECTORY, ns + 9_000_000, make.trajectory(ACTIONS, targets(tick), ns, PERIOD_NS)),
    ]


def recording_of(ticks: int = 12) -> list[Entry]:
    """A sound recording of `ticks` ticks in log order."""
    return [entry for tick in range(ticks) for entry in tick_entries(tick)]


def episode_entries(ticks: int, begin: int, number: int) -> list[Entry]:
    """EpisodeStatus from tick `begin` to the end of `ticks` ticks, and one branch annotation in the middle."""
    entries = []
    for k in range(ticks):
        ns = stamp_of(begin + k)
        phase = 2 if k == ticks - 1 else 1
        status = make.episode_status(ns, task="tiny", episode=number, phase=phase, success=phase == 2)
        entries.append(Entry("episode", fields.STATUS, ns, status))
    middle = stamp_of(begin + ticks // 2) + 5_000_000
    return [*entries, Entry("branch", fields.TEXT, middle, make.text("left" if number % 2 else "right"))]


def compress(entries: Iterable[Entry], topic: str, layout: str = "jpeg") -> list[Entry]:
    """The recording with one camera's images as CompressedImage of `jpeg` or `png`."""
    out = []
    for entry in entries:
        if entry.topic == topic:
            message = entry.message
            rgb = message.data.reshape(message.height, message.width, 3)
            found, data = cv2.imencode(f".{layout}", cv2.cvtColor(rgb, cv2.COLOR_RGB2BGR))
            assert found
            stamp = make.compressed_image(data.tobytes(), 0, f"rgb8; {layout} compressed bgr8")
            stamp.header = message.header
            entry = Entry(topic, fields.COMPRESSED, entry.log_ns, stamp)  # noqa: PLW2901
        out.append(entry)
    return out


def write(folder: Path, entries: Sequence[Entry], storage: str = "mcap", compression: str = "none") -> Path:
    """Record `entries` in the order of their log times; returns `folder`."""
    topics = {entry.topic: entry.type_name for entry in entries}
    with BagFileWriter(folder, topics, storage, compression) as bag:
        for entry in sorted(entries, key=lambda entry: entry.log_ns):
            bag.write_raw(entry.topic, entry.data, entry.log_ns)
    return folder
