"""What a robot's streams are called, carried by and allowed to lag: said once, kept in the checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError, check_keys, nearest, require_int, require_text
from trace_memory_ros.observation.images import Image
from trace_memory_ros.observation.schema1 import is_schema1, upgraded
from trace_memory_ros.observation.stream_config import STAMPS, TRANSPORTS, CameraConfig, SensorConfig, StreamConfig
from trace_memory_ros.streams.select import Selected

__all__ = [
    "MASKED",
    "STAMPS",
    "TRANSPORTS",
    "CameraConfig",
    "ObservationConfig",
    "SensorConfig",
    "StreamConfig",
    "default_arm",
]

MASKED = "masked."
"""Channels that begin so are always 0: places that a checkpoint's networks have, and the robot has nothing for."""
POSITION_UNITS = ("rad", "m")

S = TypeVar("S", bound="StreamConfig")


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
    whose unit is not their message type's. image_px: side of images, where a camera says no other. thumbnail_px:
    side of what the memory sees of them. tick_period_ms: grid on stamps. deadline_ms: wall time a tick waits for the
    slower streams. Raises ConfigError.
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
        for name in self.camera_names:
            if self.thumbnail_px > self.px_of(name):
                raise ConfigError(
                    f"ObservationConfig.thumbnail_px = {self.thumbnail_px}: what the memory sees is made from "
                    f"images of image_px = {self.px_of(name)} (camera {name!r}) and cannot be larger; raise image_px"
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

    def px_of(self, camera: str) -> int:
        """The side that a camera's images are kept at."""
        own = next(one.image_px for one in self.cameras if one.name == camera)
        return self.image_px if own is None else own

    def black_images(self) -> dict[str, Image]:
        """An image of each camera as a tick holds it, black."""
        return {name: np.zeros((self.px_of(name),) * 2 + (3,), dtype=np.uint8) for name in self.camera_names}

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
