"""What a robot's streams are called, carried by and allowed to lag: said once, kept in the checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, TypeVar

from trace_memory_ros.files.strict import (
    ConfigError,
    check_keys,
    nearest,
    require_choice,
    require_int,
    require_positive,
    require_text,
)

BASE_CHANNELS = ("base_vx", "base_vy", "base_yaw_rate")
"""Leading state channels: m/s, m/s, rad/s."""

S = TypeVar("S", bound="StreamConfig")


@dataclass(frozen=True)
class StreamConfig:
    """One input stream. topic: relative ROS name. stale_after_ms: oldest sample, on header stamps, a tick may hold."""

    name: str
    topic: str
    stale_after_ms: float

    def __post_init__(self) -> None:
        kind = type(self).__name__
        require_text(self.name, f"{kind}.name")
        require_text(self.topic, f"{kind} {self.name!r}: topic")
        require_positive(self.stale_after_ms, f"{kind} {self.name!r}: stale_after_ms")


@dataclass(frozen=True)
class CameraConfig(StreamConfig):
    """A camera. transport: `raw` (sensor_msgs/Image) or `compressed` (sensor_msgs/CompressedImage)."""

    transport: str = "raw"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.transport, ("raw", "compressed"), f"CameraConfig {self.name!r}: transport")


@dataclass(frozen=True)
class JointStreamConfig(StreamConfig):
    """A sensor_msgs/JointState topic. joints: the ones to take from it; empty means all of the observation's."""

    joints: tuple[str, ...] = ()


@dataclass(frozen=True)
class BaseStreamConfig(StreamConfig):
    """Base velocity. kind: `odometry` (nav_msgs/Odometry) or `twist` (geometry_msgs/TwistStamped)."""

    kind: str = "odometry"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.kind, ("odometry", "twist"), f"BaseStreamConfig {self.name!r}: kind")


@dataclass(frozen=True)
class ObservationConfig:
    """Streams, state layout and tick grid of one robot.

    joints: state channels 3 and up, in this order, rad. base_masked: a fixed base, whose three channels are 0 and
    whose stream is not needed. image_px, thumbnail_px: side of policy images and of memory thumbnails. tick_period_ms:
    grid on header stamps. deadline_ms: wall time a tick waits for the slower streams. Raises ConfigError.
    """

    cameras: tuple[CameraConfig, ...]
    joints: tuple[str, ...]
    joint_streams: tuple[JointStreamConfig, ...]
    base: BaseStreamConfig | None = None
    base_masked: bool = False
    image_px: int = 48
    thumbnail_px: int = 16
    tick_period_ms: int = 100
    deadline_ms: int = 200

    def __post_init__(self) -> None:
        if not self.cameras:
            raise ConfigError("ObservationConfig.cameras is empty: the first camera is the tick clock; configure one")
        if not isinstance(self.base_masked, bool):
            raise ConfigError(f"ObservationConfig.base_masked = {self.base_masked!r}: must be true or false")
        if not self.base_masked and self.base is None:
            raise ConfigError("ObservationConfig.base is missing: name the base stream, or set base_masked: true")
        for name in ("image_px", "thumbnail_px", "tick_period_ms", "deadline_ms"):
            require_int(getattr(self, name), f"ObservationConfig.{name}", 1)
        if self.thumbnail_px > self.image_px:
            raise ConfigError(
                f"ObservationConfig.thumbnail_px = {self.thumbnail_px}: thumbnails are made from policy images of "
                f"image_px = {self.image_px} and cannot be larger"
            )
        _refuse_repeats((s.name for s in (*self.cameras, *self.joint_streams, *self._bases())), "stream name")
        self._check_joints()

    def _check_joints(self) -> None:
        if not self.joints:
            raise ConfigError("ObservationConfig.joints is empty: list the arm joints in state order")
        for joint in self.joints:
            require_text(joint, "ObservationConfig.joints entry")
        _refuse_repeats(self.joints, "joint")
        given: list[str] = []
        for stream in self.joint_streams:
            for joint in stream.joints:
                if joint not in self.joints:
                    raise ConfigError(
                        f"joint stream {stream.name!r}: joint {joint!r} is not in ObservationConfig.joints; "
                        f"{nearest(joint, self.joints)}"
                    )
            given += stream.joints or self.joints
        _refuse_repeats(given, "joint given by the joint streams")
        absent = [joint for joint in self.joints if joint not in given]
        if absent:
            raise ConfigError(f"no joint stream gives {', '.join(absent)}: add them to a joint stream's joints")

    def _bases(self) -> tuple[BaseStreamConfig, ...]:
        return () if self.base is None else (self.base,)

    @property
    def streams(self) -> tuple[StreamConfig, ...]:
        """The streams a tick needs, in published order: cameras, joint streams, and the base unless masked."""
        return (*self.cameras, *self.joint_streams, *(() if self.base_masked else self._bases()))

    @property
    def camera_names(self) -> tuple[str, ...]:
        """Cameras in configured order; the first is the tick clock."""
        return tuple(camera.name for camera in self.cameras)

    @property
    def state_names(self) -> tuple[str, ...]:
        """State channels in order: three base velocities, then the joints."""
        return (*BASE_CHANNELS, *self.joints)

    @property
    def state_dim(self) -> int:
        """d_s, channels of the state."""
        return len(BASE_CHANNELS) + len(self.joints)

    @property
    def period_ns(self) -> int:
        """Tick period, ns."""
        return self.tick_period_ms * 1_000_000

    def to_dict(self) -> dict[str, Any]:
        """Plain YAML-ready mapping; `from_dict` inverts it."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    @classmethod
    def from_dict(cls, data: object, where: str = "observation") -> ObservationConfig:
        """Read a mapping strictly. Raises ConfigError naming unknown, missing or invalid keys."""
        values = dict(check_keys(data, _names(cls), ("cameras", "joints", "joint_streams"), where))
        values["cameras"] = _streams(CameraConfig, values["cameras"], f"{where}.cameras")
        values["joint_streams"] = _streams(JointStreamConfig, values["joint_streams"], f"{where}.joint_streams")
        values["joints"] = _sequence(values["joints"], f"{where}.joints")
        if values.get("base") is not None:
            (values["base"],) = _streams(BaseStreamConfig, [values["base"]], f"{where}.base")
        return cls(**values)


def default_arm(base_masked: bool = True) -> ObservationConfig:
    """Two 7-DoF arms on a base, three 96x96 cameras: the robot of the arm tasks."""
    cameras = ("overhead", "left_wrist", "right_wrist")
    return ObservationConfig(
        cameras=tuple(CameraConfig(name, f"camera/{name}/image_raw", 250) for name in cameras),
        joints=tuple(f"{side}_joint_{i}" for side in ("left", "right") for i in range(1, 8)),
        joint_streams=(JointStreamConfig("joint_states", "joint_states", 250),),
        base=BaseStreamConfig("odom", "odom", 250),
        base_masked=base_masked,
    )


def _names(cls: type) -> tuple[str, ...]:
    return tuple(f.name for f in fields(cls))


def _sequence(data: object, where: str) -> tuple[Any, ...]:
    if not isinstance(data, (list, tuple)):
        raise ConfigError(f"{where} = {data!r}: must be a list")
    return tuple(data)


def _streams(cls: type[S], data: object, where: str) -> tuple[S, ...]:
    found: list[S] = []
    for i, item in enumerate(_sequence(data, where)):
        values = dict(check_keys(item, _names(cls), ("name", "topic", "stale_after_ms"), f"{where}[{i}]"))
        if "joints" in values:
            values["joints"] = _sequence(values["joints"], f"{where}[{i}].joints")
        found.append(cls(**values))
    return tuple(found)


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
