"""Messages of rosbags' typestore, made without ROS: what the nodes' `conversion` makes with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rosbags.interfaces import Nodetype
from rosbags.typesys.store import Typestore

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.message_fields import SECOND_NS, TickReport, condition_fields, diagnostics_fields
from trace_memory_ros.runtime.shipped import PACKAGE

CONDITION = f"{PACKAGE}/msg/MemoryCondition"
DIAGNOSTICS = f"{PACKAGE}/msg/MemoryDiagnostics"


def make(type_name: str, **values: Any) -> Any:
    """A message of the typestore. Raises KeyError for an unknown type, TypeError for missing fields."""
    return typestore().types[type_name](**values)


def header(ns: int, frame_id: str = "") -> Any:
    """A std_msgs/Header stamped `ns`."""
    return make("std_msgs/msg/Header", stamp=_time(ns), frame_id=frame_id)


def image(pixels: NDArray[np.uint8], ns: int, frame_id: str = "camera", encoding: str = "rgb8") -> Any:
    """A sensor_msgs/Image of 8-bit pixels `(H, W, channels)` or `(H, W)`."""
    height, width = pixels.shape[:2]
    data = np.ascontiguousarray(pixels).reshape(-1)
    return make(
        fields.IMAGE,
        header=header(ns, frame_id),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=0,
        step=data.size // height,
        data=data,
    )


def compressed_image(data: bytes, ns: int, layout: str = "jpeg", frame_id: str = "camera") -> Any:
    """A sensor_msgs/CompressedImage of a whole JPEG or PNG file."""
    content = np.frombuffer(data, dtype=np.uint8)
    return make(fields.COMPRESSED, header=header(ns, frame_id), format=layout, data=content)


def joint_state(names: Sequence[str], positions: Sequence[float] | NDArray[Any], ns: int) -> Any:
    """A sensor_msgs/JointState; positions in rad."""
    return make(
        fields.JOINTS,
        header=header(ns),
        name=list(names),
        position=np.ascontiguousarray(positions, dtype=np.float64),
        velocity=np.zeros(0),
        effort=np.zeros(0),
    )


def odometry(velocity: Sequence[float] | NDArray[Any], ns: int) -> Any:
    """A nav_msgs/Odometry of vx, vy (m/s) and yaw rate (rad/s)."""
    pose = make(
        "geometry_msgs/msg/PoseWithCovariance",
        pose=make(
            "geometry_msgs/msg/Pose",
            position=make("geometry_msgs/msg/Point", x=0.0, y=0.0, z=0.0),
            orientation=make("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0),
        ),
        covariance=np.zeros(36),
    )
    twist = make("geometry_msgs/msg/TwistWithCovariance", twist=_twist(velocity), covariance=np.zeros(36))
    return make(fields.ODOMETRY, header=header(ns, "odom"), child_frame_id="base_link", pose=pose, twist=twist)


def twist_stamped(velocity: Sequence[float] | NDArray[Any], ns: int) -> Any:
    """A geometry_msgs/TwistStamped of vx, vy (m/s) and yaw rate (rad/s)."""
    return make(fields.TWIST, header=header(ns, "base_link"), twist=_twist(velocity))


def trajectory(names: Sequence[str], targets: Sequence[float] | NDArray[Any], ns: int, period_ns: int) -> Any:
    """A trajectory_msgs/JointTrajectory of one point; `ns` is the stamp of the tick that it answers."""
    seconds, nanoseconds = divmod(period_ns, SECOND_NS)
    point = {"positions": targets, "time_from_start": {"sec": seconds, "nanosec": nanoseconds}}
    values = {"joint_names": list(names), "points": [point]}
    return filled(fields.TRAJECTORY, {"header": _plain_header(ns), **values})


def commands(
    actions: ActionConfig,
    outputs: Sequence[float] | NDArray[Any],
    ns: int,
    period_ns: int,
    store: Typestore | None = None,
) -> list[Any]:
    """A message per part of a policy's outputs `(A,)`, as policy_node publishes them; `ns` as of `trajectory`.

    store: where another knows the parts' types. Raises KeyError for an unknown type.
    """
    plain = actions.compose(outputs, ns, period_ns)
    return [filled(part.type, values, store) for part, values in zip(actions.parts, plain, strict=True)]


def filled(type_name: str, values: Mapping[str, Any], store: Typestore | None = None) -> Any:
    """A message of nested plain values; what is not given is zero or empty.

    Raises KeyError for an unknown type or field.
    """
    store = store or typestore()
    kinds = dict(store.fielddefs[type_name][1])
    if unknown := sorted(set(values) - set(kinds)):
        raise KeyError(f"{type_name} has no field {unknown[0]!r}; it has {', '.join(kinds)}")
    return store.types[type_name](**{name: _filled(kind, values.get(name), store) for name, kind in kinds.items()})


def _filled(kind: Any, value: Any, store: Typestore) -> Any:
    """A field's value, as rosbags wants it; None for zero or empty."""
    node, about = kind
    if node == Nodetype.NAME:
        return filled(about, value or {}, store)
    if node == Nodetype.BASE:
        plain = {"string": str, "wstring": str, "bool": bool, "float32": float, "float64": float}.get(about[0], int)
        return plain() if value is None else plain(value)
    (inner, inner_about), count = about
    items = [None] * (count if node == Nodetype.ARRAY else 0) if value is None else list(value)
    found = [_filled((inner, inner_about), item, store) for item in items]
    if inner == Nodetype.NAME or inner_about[0] in ("string", "wstring"):
        return found
    return np.array(found, dtype={"byte": "uint8", "char": "uint8"}.get(inner_about[0], inner_about[0]))


def episode_status(ns: int, **values: Any) -> Any:
    """An EpisodeStatus; fields that are not given are zero, `branch` -1."""
    start: dict[str, Any] = {
        "task": "",
        "episode": 0,
        "seed": 0,
        "cue": 0,
        "phase": 0,
        "elapsed_s": 0.0,
        "cue_visible": False,
        "branch": -1,
        "success": False,
        "progress": 0.0,
        "ticks_expected": 0,
    }
    return make(fields.STATUS, header=header(ns), **(start | values))


def text(value: str) -> Any:
    """A std_msgs/String."""
    return make(fields.TEXT, data=value)


def condition_to_message(condition: Condition, streams: Sequence[str]) -> Any:
    """The MemoryCondition of a condition; `streams` in configured order, those without a held sample get stamp -1."""
    return make(CONDITION, header=header(condition.stamp_ns), **condition_fields(condition, streams))


def report_to_message(
    report: TickReport, streams: Sequence[str], counters: Mapping[str, StreamCounters], faults: Sequence[str] = ()
) -> Any:
    """The MemoryDiagnostics of a tick; `streams` in configured order."""
    values = diagnostics_fields(report, streams, counters, faults)
    return make(DIAGNOSTICS, header=header(report.condition.stamp_ns), **values)


def _plain_header(ns: int) -> dict[str, Any]:
    return {"stamp": {"sec": ns // SECOND_NS, "nanosec": ns % SECOND_NS}}


def _time(ns: int) -> Any:
    return make("builtin_interfaces/msg/Time", sec=ns // SECOND_NS, nanosec=ns % SECOND_NS)


def _twist(velocity: Sequence[float] | NDArray[Any]) -> Any:
    vx, vy, yaw_rate = (float(value) for value in velocity)
    vector = "geometry_msgs/msg/Vector3"
    return make(
        "geometry_msgs/msg/Twist",
        linear=make(vector, x=vx, y=vy, z=0.0),
        angular=make(vector, x=0.0, y=0.0, z=yaw_rate),
    )
