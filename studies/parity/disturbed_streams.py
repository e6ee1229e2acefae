"""A robot's streams as a bad network delivers them: jittered, dropped, repeated, reordered, damaged, by a seed."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig, StreamConfig

START_NS = 1_000_000_000_000
MS = 1_000_000
_PICTURES = 64
_STAMP_AT = 4


@dataclass(frozen=True)
class Disturbance:
    """How the streams are disturbed; shares are of a stream's messages.

    camera_hz: of all cameras, or of each in turn. jitter_ms, latency_ms: largest shift of a stamp, and of the time on
    the way, across streams. burst_every_s: seconds between dropouts of `burst_s` of one stream after the other.
    damaged: images of an unknown encoding or another size, JPEG that is cut off or cannot be unpacked, joints that are
    NaN or missing. late_every_s: seconds between spells of `late_s` in which the last camera comes late by that much.
    recorder_only, node_only: shares that one side alone receives.
    """

    camera_hz: float | Sequence[float] = 30.0
    joint_hz: float = 50.0
    image_px: int = 64
    jitter_ms: float = 8.0
    latency_ms: float = 40.0
    dropped: float = 0.02
    repeated: float = 0.01
    reordered: float = 0.01
    damaged: float = 0.002
    burst_every_s: float = 30.0
    burst_s: float = 0.5
    late_every_s: float = 0.0
    late_s: float = 1.2
    recorder_only: float = 0.0
    node_only: float = 0.0


@dataclass(frozen=True)
class Event:
    """One message on its way. at_ns: when it is handed over, on the stamps' axis. fault: damaged how, else empty."""

    at_ns: int
    stream: StreamConfig
    stamp_ns: int
    number: int
    fault: str = ""
    to_node: bool = True
    to_recorder: bool = True


class DisturbedStreams:
    """Every message of `seconds` of a robot's streams, in the order in which they are published.

    counts: messages by what became of them.
    """

    def __init__(self, config: ObservationConfig, seconds: float, disturbance: Disturbance, seed: int = 0) -> None:
        self.config = config
        self.disturbance = disturbance
        self.counts = dict.fromkeys(
            ("published", "dropped", "repeated", "reordered", "damaged", "late", "recorder_only", "node_only"), 0
        )
        self._rng = np.random.default_rng(seed)
        self._seconds = seconds
        pictures = self._rng.integers(0, 256, (_PICTURES, 8, 8, 3), dtype=np.uint8)
        scale = -(-disturbance.image_px // 8)
        self._pictures = pictures.repeat(scale, axis=1).repeat(scale, axis=2)
        self._images: dict[tuple[int, str, str], bytes] = {}
        self._joints = [name for stream in config.streams if _of_joints(stream) for name in stream.channels]
        self._phases = self._rng.uniform(0.0, 2.0 * np.pi, (len(self._joints), 3))
        self.events = sorted(
            (event for i, stream in enumerate(config.inputs) for event in self._stream(i, stream)),
            key=lambda event: event.at_ns,
        )
        self.counts["published"] = len(self.events)

    def payload(self, event: Event) -> tuple[str, bytes]:
        """Type name and serialised message of an event, a function of stream, number and fault alone."""
        if not isinstance(event.stream, CameraConfig):
            type_name, message = self._state_message(event)
            return type_name, bytes(typestore().serialize_cdr(message, type_name))
        picture = (event.number + 21 * self.config.cameras.index(event.stream)) % _PICTURES
        kind = fields.COMPRESSED if event.stream.transport == "compressed" else fields.IMAGE
        data = bytearray(self._image(picture, event.fault, kind))
        struct.pack_into("<iI", data, _STAMP_AT, *divmod(event.stamp_ns, 1_000_000_000))
        return kind, bytes(data)

    def _state_message(self, event: Event) -> tuple[str, Any]:
        stream, seconds = event.stream, 1e-9 * (event.stamp_ns - START_NS)
        if not _of_joints(stream):
            velocity = 0.2 * np.sin(seconds * np.array([0.31, 0.17, 0.23]))
            if stream.message_type == fields.TWIST:
                return fields.TWIST, messages.twist_stamped(velocity, event.stamp_ns)
            return fields.ODOMETRY, messages.odometry(velocity, event.stamp_ns)
        assert isinstance(stream, SensorConfig)
        names = [one.output for one in stream.selected]
        positions = self.posture(seconds)[[self._joints.index(channel) for channel in stream.channels]]
        if event.fault == "nan":
            positions[event.number % len(positions)] = np.nan
        elif event.fault == "missing":
            names, positions = names[1:], positions[1:]
        return fields.JOINTS, messages.joint_state(names, positions, event.stamp_ns)

    def posture(self, seconds: float) -> NDArray[np.float64]:
        """Joint angles, rad: slow sweeps, and a pause of three seconds in every twenty."""
        moved = seconds - 3.0 * (seconds // 20.0) - min(max(seconds % 20.0 - 17.0, 0.0), 3.0)
        return np.asarray((0.4 * np.sin(moved * np.array([0.37, 0.83, 1.7]) + self._phases)).sum(axis=1))

    def _image(self, picture: int, fault: str, kind: str) -> bytes:
        """A serialised image stamped 0."""
        key = (picture, fault, kind)
        if key not in self._images:
            px = self.disturbance.image_px
            pixels = self._pictures[picture][: px // 2 if fault == "size" else px, :px]
            if kind == fields.COMPRESSED:
                file = _broken(_jpeg(pixels), picture) if fault == "encoding" else _jpeg(pixels)
                message = messages.compressed_image(file, 0)
            else:
                message = messages.image(pixels, 0, encoding="8SC3" if fault == "encoding" else "rgb8")
            self._images[key] = bytes(typestore().serialize_cdr(message, kind))
        return self._images[key]

    def _stream(self, index: int, stream: StreamConfig) -> Iterator[Event]:
        """A stream's messages with their disturbances; each keeps its place unless it is reordered."""
        how, rng = self.disturbance, self._rng
        step_ns = round(1e9 / self._rate(index, stream))
        jitter = min(how.jitter_ms * MS, 0.4 * step_ns)
        newest_ns = 0
        overtaken: Event | None = None
        for number in range(int(self._seconds * 1e9) // step_ns):
            stamp_ns = START_NS + number * step_ns + int(rng.uniform(-jitter, jitter))
            fate = rng.random(6)
            seconds = 1e-9 * (stamp_ns - START_NS)
            if fate[0] < how.dropped or self._in_burst(index, seconds):
                self.counts["dropped"] += 1
                continue
            late = self._late(stream, seconds)
            self.counts["late"] += late
            delay_ns = round(rng.uniform(0.0, how.latency_ms) * MS) + (round(how.late_s * 1e9) if late else 0)
            newest_ns = max(newest_ns + 1, stamp_ns + delay_ns)
            event = self._event(newest_ns, stream, stamp_ns, number, fate)
            if overtaken is None and fate[3] < how.reordered:
                self.counts["reordered"] += 1
                overtaken = event
                continue
            again = [event] if fate[2] < how.repeated else []
            self.counts["repeated"] += len(again)
            for message in (event, *again, *([overtaken] if overtaken else [])):
                yield replace(message, at_ns=newest_ns)
                newest_ns += 1
            overtaken = None

    def _rate(self, index: int, stream: StreamConfig) -> float:
        """Hz. Cameras are the first streams."""
        hz = self.disturbance.camera_hz if isinstance(stream, CameraConfig) else self.disturbance.joint_hz
        return hz[index] if isinstance(hz, Sequence) else hz

    def _event(self, at_ns: int, stream: StreamConfig, stamp_ns: int, number: int, fate: NDArray[np.float64]) -> Event:
        how, fault = self.disturbance, ""
        if fate[1] < how.damaged and (isinstance(stream, CameraConfig) or _of_joints(stream)):
            self.counts["damaged"] += 1
            kinds = ("encoding", "size") if isinstance(stream, CameraConfig) else ("nan", "missing")
            # The first image of a camera tells its size.
            fault = kinds[0] if number < 10 else kinds[number % 2]
        recorder_only = bool(fate[4] < how.recorder_only)
        node_only = bool(fate[5] < how.node_only) and not recorder_only
        self.counts["recorder_only"] += recorder_only
        self.counts["node_only"] += node_only
        return Event(at_ns, stream, stamp_ns, number, fault, not recorder_only, not node_only)

    def _in_burst(self, index: int, seconds: float) -> bool:
        every, streams = self.disturbance.burst_every_s, len(self.config.inputs)
        if not every or seconds < every:
            return False
        return int(seconds // every) % streams == index and seconds % every < self.disturbance.burst_s

    def _late(self, stream: StreamConfig, seconds: float) -> bool:
        every = self.disturbance.late_every_s
        if not every or stream is not self.config.cameras[-1] or seconds < every:
            return False
        return seconds % every < self.disturbance.late_s


def _of_joints(stream: StreamConfig) -> bool:
    return stream.message_type == fields.JOINTS


def _jpeg(rgb: NDArray[np.uint8]) -> bytes:
    return cv2.imencode(".jpg", np.ascontiguousarray(rgb[..., ::-1]))[1].tobytes()


def _broken(jpeg: bytes, number: int) -> bytes:
    """Cut off, which shows at once, or with tables of nonsense, which shows when it is unpacked."""
    tables_at = jpeg.index(b"\xff\xc4") + 5
    return jpeg[: len(jpeg) // 2] if number % 2 else jpeg[:tables_at] + b"\xff" * 16 + jpeg[tables_at + 16 :]
