"""sensor_msgs/Imu: rad/s and m/s^2, and an orientation where the driver has one."""

from __future__ import annotations

import numpy as np

from trace_memory_ros.streams import rotation
from trace_memory_ros.streams.base import Values
from trace_memory_ros.streams.doubles import DoublesType, Numbers, paths, vectors

RATE_AT, ACCELERATION_AT, TOTAL = 13, 25, 37
"""After an orientation (4) and its covariance (9), and a rate (3) and its (9); the last covariance ends the message."""


def _with_columns(numbers: Values) -> Values:
    """An Imu without orientation sends zeros for it."""
    known = numbers[:4].any()
    turn = rotation.columns_of(numbers[:4]) if known else np.full(len(rotation.FIELDS), np.nan)
    return np.concatenate([turn, numbers[4:]])


IMU = DoublesType(
    "sensor_msgs/msg/Imu",
    True,
    (*rotation.FIELDS, *vectors(("angular_velocity", "rad/s", False), ("linear_acceleration", "m/s^2", False))),
    Numbers(
        (*(f"orientation.{axis}" for axis in "xyzw"), *paths("", "angular_velocity", "linear_acceleration")),
        (*range(4), *range(RATE_AT, RATE_AT + 3), *range(ACCELERATION_AT, ACCELERATION_AT + 3)),
        TOTAL,
    ),
    _with_columns,
    ("angular_velocity", "linear_acceleration"),
)
