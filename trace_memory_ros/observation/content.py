"""What a message holds, on its way from whatever carried it to `SampleReader`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from numpy.typing import ArrayLike

from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.images import Buffer, Image
from trace_memory_ros.streams.cdr import Cdr


class RawImage(NamedTuple):
    """The fields of a sensor_msgs/Image."""

    data: Buffer
    encoding: str
    height: int
    width: int
    step: int
    is_bigendian: int


class CompressedImage(NamedTuple):
    """The fields of a sensor_msgs/CompressedImage."""

    data: Buffer
    format: str


class VideoPacket(NamedTuple):
    """One packet of a compressed video, and the codec that it names."""

    data: Buffer
    format: str


class Pixels(NamedTuple):
    """An RGB image `(h, w, 3)` uint8 of the same process."""

    rgb: Image


class Live(NamedTuple):
    """A message with attributes by field name, as rclpy and rosbags make them."""

    message: Any


class Recorded(NamedTuple):
    """A payload, behind its header where its type has one."""

    cdr: Cdr


class JointPositions(NamedTuple):
    """As a JointState message has them: joint angles in rad, of the same process."""

    name: Sequence[str]
    position: ArrayLike


Content = RawImage | CompressedImage | VideoPacket | Pixels | Live | Recorded


class Sink(Protocol):
    """Where message contents go: `Observer`, or what else takes them, such as a store of samples."""

    def push(self, stream: str, stamp_ns: int, arrival_ns: int, content: Content) -> Verdict:
        """Offer a sample by its stamp and its arrival on the caller's wall clock, ns. Raises CdrError."""
        ...
