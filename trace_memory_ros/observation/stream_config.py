"""One input stream of a robot: a camera, or numbers selected from a topic."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from trace_memory_ros.files.strict import ConfigError, require_choice, require_int, require_positive, require_text
from trace_memory_ros.observation.images import Crop
from trace_memory_ros.streams.base import Reader, StreamType
from trace_memory_ros.streams.registry import stream_type
from trace_memory_ros.streams.select import Select, Selected, frozen, selected

STAMPS = ("header", "received")
TRANSPORTS = {
    "raw": "sensor_msgs/msg/Image",
    "compressed": "sensor_msgs/msg/CompressedImage",
    "video": "foxglove_msgs/msg/CompressedVideo",
    "ffmpeg": "ffmpeg_image_transport_msgs/msg/FFMPEGPacket",
}
"""How a camera's pictures come, and the message type of each way."""


@dataclass(frozen=True)
class StreamConfig:
    """One input stream. topic: relative ROS name. stale_after_ms: oldest sample, on stamps, that a tick may hold.

    stamp: `header`, or `received` for the time at which the transport took the message: a recording's log time.
    """

    name: str
    topic: str
    stale_after_ms: float
    stamp: str = field(default="header", kw_only=True)

    def __post_init__(self) -> None:
        kind = type(self).__name__
        require_text(self.name, f"{kind}.name")
        if "." in self.name:
            raise ConfigError(f"{kind}.name = {self.name!r}: a dot parts a stream from its field; use another sign")
        require_text(self.topic, f"{kind} {self.name!r}: topic")
        require_positive(self.stale_after_ms, f"{kind} {self.name!r}: stale_after_ms")
        require_choice(self.stamp, STAMPS, f"{kind} {self.name!r}: stamp")

    @property
    def message_type(self) -> str:
        """The ROS type of its messages."""
        raise NotImplementedError


@dataclass(frozen=True)
class CameraConfig(StreamConfig):
    """A camera. transport: a key of `TRANSPORTS`. range_m: depths that become black and white; None for 0 to 4 m.

    image_px: side that its images are kept at; None for the observation's. crop: left, top, right and bottom of what is
    kept of an image, as shares of its sides; None for all of it.
    """

    transport: str = "raw"
    range_m: tuple[float, float] | None = None
    image_px: int | None = None
    crop: Crop | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"CameraConfig {self.name!r}"
        require_choice(self.transport, TRANSPORTS, f"{where}: transport")
        if self.range_m is not None:
            object.__setattr__(self, "range_m", _depths(self.range_m, f"{where}: range_m"))
        if self.image_px is not None:
            require_int(self.image_px, f"{where}: image_px", 1)
        if self.crop is not None:
            object.__setattr__(self, "crop", _crop(self.crop, f"{where}: crop"))

    @property
    def message_type(self) -> str:
        return TRANSPORTS[self.transport]


@dataclass(frozen=True)
class SensorConfig(StreamConfig):
    """Numbers from a topic. type: ROS name of its messages. select: which of their fields, see `streams.select`."""

    type: str = "sensor_msgs/msg/JointState"
    select: Select = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"stream {self.name!r}"
        require_text(self.type, f"{where}: type")
        if not self.kind.stamped and self.stamp == "header":
            raise ConfigError(
                f"{where}: {self.type} has no header, so nothing says when it was true: set stamp: received to take "
                "the time at which a message comes in"
            )
        object.__setattr__(self, "select", frozen(self.select))
        _ = self.selected

    @property
    def message_type(self) -> str:
        return self.type

    @property
    def kind(self) -> StreamType:
        """What its message type offers. Raises ConfigError for an unknown one."""
        return stream_type(self.type)

    @cached_property
    def selected(self) -> tuple[Selected, ...]:
        """The numbers that are taken from each message, in order."""
        return selected(self.kind, self.select, f"stream {self.name!r}")

    def reader(self) -> Reader:
        """A reader of these numbers, for the messages of one run."""
        return self.kind.reader([one.field.name for one in self.selected])

    @property
    def channels(self) -> tuple[str, ...]:
        """The numbers' names as state channels, `stream.field`."""
        return tuple(f"{self.name}.{one.name}" for one in self.selected)


def _depths(data: object, where: str) -> tuple[float, float]:
    if not isinstance(data, (list, tuple)) or len(data) != 2:
        raise ConfigError(f"{where} = {data!r}: give the nearest and the farthest depth in m")
    near, far = data
    require_positive(near, f"{where}, nearest", zero=True)
    require_positive(far, f"{where}, farthest")
    if near >= far:
        raise ConfigError(f"{where} = {list(data)}: the first must be smaller")
    return float(near), float(far)


def _crop(data: object, where: str) -> Crop:
    if not isinstance(data, (list, tuple)) or len(data) != 4:
        raise ConfigError(f"{where} = {data!r}: give left, top, right and bottom as shares, such as [0.25, 0, 0.75, 1]")
    for share in data:
        require_positive(share, where, zero=True)
    left, top, right, bottom = map(float, data)
    if not (left < right <= 1.0 and top < bottom <= 1.0):
        raise ConfigError(f"{where} = {list(data)}: left must be less than right, top than bottom, and none above 1")
    return left, top, right, bottom
