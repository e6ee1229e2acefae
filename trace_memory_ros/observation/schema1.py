"""Observation configurations of schema 1, three base velocities and joint positions, as those of schema 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trace_memory_ros.files.strict import ConfigError, check_keys, nearest, require_choice

BASE_FIELDS = ("linear.x", "linear.y", "angular.z")
BASE_TYPES = {"odometry": "nav_msgs/msg/Odometry", "twist": "geometry_msgs/msg/TwistStamped"}
KEYS = (
    "cameras",
    "joints",
    "joint_streams",
    "base",
    "base_masked",
    "image_px",
    "thumbnail_px",
    "tick_period_ms",
    "deadline_ms",
)


def is_schema1(data: object) -> bool:
    """Whether a mapping describes its streams as schema 1 did."""
    return isinstance(data, Mapping) and ("joints" in data or "joint_streams" in data)


def upgraded(data: object, where: str) -> dict[str, Any]:
    """The same observation in schema 2: the same channels in the same order, all of them part of the path.

    Raises ConfigError for what schema 1 refused too.
    """
    values = dict(check_keys(data, KEYS, ("cameras", "joints", "joint_streams"), where))
    joints = list(values.pop("joints"))
    streams, givers = [], {}
    for i, item in enumerate(values.pop("joint_streams")):
        keys = ("name", "topic", "stale_after_ms", "joints")
        stream = dict(check_keys(item, keys, keys[:3], f"{where}.joint_streams[{i}]"))
        own = list(stream.pop("joints", ())) or joints
        for joint in own:
            if joint not in joints:
                raise ConfigError(
                    f"joint stream {stream['name']!r}: joint {joint!r} is not in ObservationConfig.joints; "
                    f"{nearest(joint, joints)}"
                )
            givers[joint] = f"{stream['name']}.position.{joint}"
        streams.append({**stream, "type": "sensor_msgs/msg/JointState", "select": {"position": own}})
    absent = [joint for joint in joints if joint not in givers]
    if absent:
        raise ConfigError(f"no joint stream gives {', '.join(absent)}: add them to a joint stream's joints")
    base, masked = values.pop("base", None), values.pop("base_masked", False)
    if not masked and base is None:
        raise ConfigError("ObservationConfig.base is missing: name the base stream, or set base_masked: true")
    if masked:
        channels = [f"masked.{name}" for name in BASE_FIELDS]
    else:
        base = dict(check_keys(base, ("name", "topic", "stale_after_ms", "kind"), ("name", "topic"), f"{where}.base"))
        kind = base.pop("kind", "odometry")
        require_choice(kind, BASE_TYPES, f"{where}.base.kind")
        streams.append({**base, "type": BASE_TYPES[kind], "select": list(BASE_FIELDS)})
        channels = [f"{base['name']}.{name}" for name in BASE_FIELDS]
    state = [*channels, *(givers[joint] for joint in joints)]
    return {**values, "streams": streams, "state": state, "path": state}
