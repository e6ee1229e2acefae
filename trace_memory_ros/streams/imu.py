"""sensor_msgs/Imu: rad/s and m/s^2, and an orientation where the driver has one."""

from __future__ import annotations

import numpy as np

from trace_memory_ros.streams import rotation
from trace_memory_ros.streams.base import Values
from trace_memory_ros.streams.doubles import DoublesType, Numbers, paths, vectors

RATE_AT, ACCELERATION_AT, TOTAL = 13, 25, 37
"""After an orientation (4) and its covariance (9), and a rate (3) and its (9); the last covariance ends the message."""
COVARIANCES_AT = (4, RATE_AT + 3, ACCELERATION_AT + 3)
UNKNOWN = -1.0
"""The first number of the covariance of what the sensor has no estimate of."""
MEASURED = ("orientation", "angular_velocity", "linear_acceleration")


def _with_columns(numbers: Values) -> Values:
    """What the sensor does not have is NaN, whatever lies in its place: an identity, as ROS 2 begins a quaternion with,
    or zeros. What is not selected must not be in the way.
    """
    quaternion, rate, acceleration = numbers[:4], numbers[4:7], numbers[7:10]
    lacks = numbers[10:] == UNKNOWN
    known = rotation.is_one(quaternion) and not lacks[0]
    parts = [rotation.columns_of(quaternion) if known else np.full(len(rotation.FIELDS), np.nan)]
    parts += [np.full(3, np.nan) if lack else part for part, lack in zip((rate, acceleration), lacks[1:], strict=True)]
    return np.concatenate(parts)


IMU = DoublesType(
    "sensor_msgs/msg/Imu",
    True,
    (*rotation.FIELDS, *vectors(("angular_velocity", "rad/s", False), ("linear_acceleration", "m/s^2", False))),
    Numbers(
        (
            *(f"orientation.{axis}" for axis in "xyzw"),
            *paths("", "angular_velocity", "linear_acceleration"),
            *(f"{name}_covariance.0" for name in MEASURED),
        ),
        (*range(4), *range(RATE_AT, RATE_AT + 3), *range(ACCELERATION_AT, ACCELERATION_AT + 3), *COVARIANCES_AT),
        TOTAL,
    ),
    _with_columns,
    ("angular_velocity", "linear_acceleration"),
    remedy="check the sensor or its driver, or select what it has: a covariance of -1 says that there is no estimate",
)
