"""What a robot's streams are called, carried by and allowed to lag: said once, kept in the checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray

from trace_memory_ros.files.strict import (
    ConfigError,
    check_keys,
    nearest,
    require_choice,
    require_int,
    require_positive,
    require_text,
)
from trace_memory_ros.observation.schema1 import is_schema1, upgraded
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
MASKED = "masked."
"""Channels that begin so are always 0: places that a checkpoint's networks have, and the robot has nothing for."""
POSITION_UNITS = ("rad", "m")

S = TypeVar("S", bound="StreamConfig")


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
    """A camera. transport: a key of `TRANSPORTS`. range_m: depths that become black and white; None for 0 to 4 m."""

    transport: str = "raw"
    range_m: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        where = f"CameraConfig {self.name!r}"
        require_choice(self.transport, TRANSPORTS, f"{where}: transport")
        if self.range_m is not None:
            if not isinstance(self.range_m, (list, tuple)) or len(self.range_m) != 2:
                raise ConfigError(f"{where}: range_m = {self.range_m!r}: give the nearest and the farthest depth in m")
            near, far = self.range_m
            require_positive(near, f"{where}: range_m, nearest", zero=True)
            require_positive(far, f"{where}: range_m, farthest")
            if near >= far:
                raise ConfigError(f"{where}: range_m = {list(self.range_m)}: the first must be smaller")
            object.__setattr__(self, "range_m", (float(near), float(far)))

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


class _Given(NamedTuple):
    """A number that a stream gives, and its name as a state channel."""

    channel: str
    stream: str
    number: Selected


@dataclass(frozen=True)
class ObservationConfig:
    """Streams, state layout and tick grid of one robot.

    state: channels in order, each `stream.field`, or `masked.NAME` for one that is always 0; empty for all that streams
    select. path: the channels whose signature routes writes; empty for positions and base motion. units: of channels
    whose unit is not their message type's. image_px, thumbnail_px: side of policy images and of memory thumbnails.
    tick_period_ms: grid on stamps. deadline_ms: wall time a tick waits for the slower streams. Raises ConfigError.
    """

    cameras: tuple[CameraConfig, ...]
    streams: tuple[SensorConfig, ...]
    state: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    image_px: int = 48
    thumbnail_px: int = 16
    tick_period_ms: int = 100
    deadline_ms: int = 200

    def __post_init__(self) -> None:
        if not self.cameras:
            raise ConfigError("ObservationConfig.cameras is empty: the first camera is the tick clock; configure one")
        if not self.streams:
            raise ConfigError("ObservationConfig.streams is empty: name a topic that tells the robot's state")
        for name in ("image_px", "thumbnail_px", "tick_period_ms", "deadline_ms"):
            require_int(getattr(self, name), f"ObservationConfig.{name}", 1)
        if self.thumbnail_px > self.image_px:
            raise ConfigError(
                f"ObservationConfig.thumbnail_px = {self.thumbnail_px}: thumbnails are made from policy images of "
                f"image_px = {self.image_px} and cannot be larger"
            )
        _refuse_repeats((stream.name for stream in self.inputs), "stream name")
        self._check_channels()

    def _check_channels(self) -> None:
        given = [one.channel for one in self._given]
        for name in self.state:
            require_text(name, "ObservationConfig.state entry")
            if name not in given and not name.startswith(MASKED):
                raise ConfigError(f"state channel {name!r} is given by no stream; {nearest(name, given)}")
        object.__setattr__(self, "state", tuple(self.state) or tuple(given))
        _refuse_repeats(self.state, "state channel")
        for stream in self.streams:
            if not set(stream.channels) & set(self.state):
                raise ConfigError(f"stream {stream.name!r} gives no state channel: add one to state, or leave it out")
        for name in (*self.path, *self.units):
            if name not in self.state:
                raise ConfigError(f"{name!r} of path or units is no state channel; {nearest(str(name), self.state)}")
        for name, unit in self.units.items():
            require_text(unit, f"ObservationConfig.units of {name!r}")
        _refuse_repeats(self.path, "path channel")
        object.__setattr__(self, "path", tuple(self.path) or self._usual_path())

    def _usual_path(self) -> tuple[str, ...]:
        """Positions and base motion; of a robot that tells none of these, everything."""
        moving = {channel for channel, _, one in self._given if one.field.path} | {
            name for name, unit in self.units.items() if unit in POSITION_UNITS
        }
        return tuple(name for name in self.state if name in moving) or self.state

    @cached_property
    def _given(self) -> tuple[_Given, ...]:
        return tuple(
            _Given(channel, stream.name, one)
            for stream in self.streams
            for channel, one in zip(stream.channels, stream.selected, strict=True)
        )

    @property
    def inputs(self) -> tuple[StreamConfig, ...]:
        """What a tick needs, in published order: cameras, then the other streams."""
        return (*self.cameras, *self.streams)

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Cameras in configured order; the first is the tick clock."""
        return tuple(camera.name for camera in self.cameras)

    @property
    def state_dim(self) -> int:
        """d_s, channels of the state."""
        return len(self.state)

    @cached_property
    def state_units(self) -> tuple[str, ...]:
        """The channels' units; empty for a plain number."""
        own = {channel: one.field.unit for channel, _, one in self._given} | dict(self.units)
        return tuple(own.get(name, "") for name in self.state)

    @property
    def masked(self) -> tuple[bool, ...]:
        """Which channels are always 0."""
        return tuple(name.startswith(MASKED) for name in self.state)

    @cached_property
    def path_rows(self) -> tuple[int, ...] | None:
        """Where the path's channels stand in the state; None where it is the state itself."""
        rows = tuple(self.state.index(name) for name in self.path)
        return None if rows == tuple(range(self.state_dim)) else rows

    def channels_of(self, output: str, field: str = "") -> tuple[str, ...]:
        """State channels that a policy's output of that name can mean, as `left.elbow` means `left.position.elbow`.

        Those of the stream that the output names, else all; of these, those of that `field` of a message, else
        positions and base motion, else any.
        """
        alike = [given for given in _alike(output, self._given) if given.channel in self.state]
        groups = (
            [given for given in alike if given.number.field.name == field],
            [given for given in alike if given.number.field.path],
            alike,
        )
        return tuple(given.channel for given in next((group for group in groups if group), []))

    def channel_moved_by(self, output: str) -> int | None:
        """The state channel that a policy's output moves: the position of that name; None where none or several are.

        Of several, the one whose stream the output names: `left.elbow` moves `left.position.elbow`.
        """
        moving = [given for given in self._given if given.number.field.path]
        names = [given.channel for given in _alike(output, moving) if given.channel in self.state]
        return self.state.index(names[0]) if len(names) == 1 else None

    def path_of(self, states: NDArray[Any]) -> NDArray[Any]:
        """The path's channels `(..., d_p)` of standardised states `(..., d_s)`."""
        return states if self.path_rows is None else states[..., list(self.path_rows)]

    @property
    def path_dim(self) -> int:
        """d_p, channels of the path."""
        return len(self.path)

    @property
    def period_ns(self) -> int:
        """Tick period, ns."""
        return self.tick_period_ms * 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """Plain YAML-ready mapping without what is left at its default; `from_dict` inverts it."""
        plain: dict[str, Any] = _plain(asdict(self))
        plain["cameras"] = [_without_defaults(one, CameraConfig) for one in plain["cameras"]]
        plain["streams"] = [_without_defaults(one, SensorConfig) for one in plain["streams"]]
        if self.state == tuple(channel for stream in self.streams for channel in stream.channels):
            del plain["state"]
        if self.path == self._usual_path():
            del plain["path"]
        if not self.units:
            del plain["units"]
        return plain

    @classmethod
    def from_dict(cls, data: object, where: str = "observation") -> ObservationConfig:
        """Read a mapping strictly, of this schema or the first. Raises ConfigError naming what is wrong."""
        data = upgraded(data, where) if is_schema1(data) else data
        values = dict(check_keys(data, _names(cls), ("cameras", "streams"), where))
        values["cameras"] = _streams(CameraConfig, values["cameras"], f"{where}.cameras")
        values["streams"] = _streams(SensorConfig, values["streams"], f"{where}.streams")
        for key in ("state", "path"):
            values[key] = _sequence(values.get(key) or (), f"{where}.{key}")
        if not isinstance(values.get("units", {}), Mapping):
            raise ConfigError(f"{where}.units = {values['units']!r}: must be a mapping of channels to units")
        return cls(**values)


def _alike(output: str, given: Sequence[_Given]) -> list[_Given]:
    """Those that are called like an output: of the stream that it names, else of all."""
    alike = [one for one in given if output == one.number.output or output.endswith(f".{one.number.output}")]
    return [one for one in alike if output == f"{one.stream}.{one.number.output}"] or alike


def default_arm(base_masked: bool = True) -> ObservationConfig:
    """Two 7-DoF arms on a base, three 96x96 cameras: the robot of the arm tasks.

    base_masked: the base stands, and its three channels, which the shipped checkpoints have, are 0.
    """
    cameras = ("overhead", "left_wrist", "right_wrist")
    joints = tuple(f"{side}_joint_{i}" for side in ("left", "right") for i in range(1, 8))
    arms = SensorConfig("joint_states", "joint_states", 250, select={"position": joints})
    odom = SensorConfig("odom", "odom", 250, type="nav_msgs/msg/Odometry")
    base = tuple(f"{MASKED}{one.field.name}" for one in odom.selected) if base_masked else odom.channels
    state = (*base, *arms.channels)
    return ObservationConfig(
        cameras=tuple(CameraConfig(name, f"camera/{name}/image_raw", 250) for name in cameras),
        streams=(arms,) if base_masked else (arms, odom),
        state=state,
        path=state,
    )


def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _sequence(data: object, where: str) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        raise ConfigError(f"{where} = {data!r}: must be a list")
    return tuple(data)


def _streams(cls: type[S], data: object, where: str) -> tuple[S, ...]:
    required = (
        ("name", "topic", "stale_after_ms") if cls is CameraConfig else ("name", "topic", "type", "stale_after_ms")
    )
    return tuple(
        cls(**check_keys(item, _names(cls), required, f"{where}[{i}]")) for i, item in enumerate(_sequence(data, where))
    )


def _without_defaults(item: dict[str, Any], cls: type) -> dict[str, Any]:
    """A stream's mapping; what it is and where its pictures come from is said even where it is the default."""
    said = {"name", "topic", "type", "transport", "stale_after_ms"}
    usual = {f.name: _plain(f.default) for f in fields(cls)}
    return {key: value for key, value in item.items() if key in said or value != usual[key]}


def _refuse_repeats(names: Any, what: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise ConfigError(f"{what} {name!r} is used {count} times: it must be unique")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
