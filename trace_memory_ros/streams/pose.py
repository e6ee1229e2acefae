"""geometry_msgs/PoseStamped: position in m, orientation as six numbers."""

from __future__ import annotations

import numpy as np

from trace_memory_ros.streams import rotation
from trace_memory_ros.streams.base import Values
from trace_memory_ros.streams.doubles import DoublesCommand, Numbers, paths, vectors

POSE_PATHS = (*paths("pose.", "position"), *(f"pose.orientation.{axis}" for axis in "xyzw"))
FIELDS = (*vectors(("position", "m", True)), *rotation.FIELDS)


def with_columns(numbers: Values) -> Values:
    """Position `(3,)` and quaternion `(4,)` to position and rotation columns `(9,)`.

    A sensor of positions alone sends no rotation: its columns are NaN. Raises ReadError for zeros only, which drivers
    send before they know a pose.
    """
    if numbers.any() and not rotation.is_one(numbers[3:]):
        return np.concatenate([numbers[:3], np.full(len(rotation.FIELDS), np.nan)])
    return np.concatenate([numbers[:3], rotation.columns_of(numbers[3:])])


def with_quaternion(values: Values) -> Values:
    """The inverse of `with_columns`; columns of zeros, which nobody commanded, are no turn. Raises ReadError."""
    turn = rotation.quaternion_of(values[3:]) if values[3:].any() else np.array([0.0, 0.0, 0.0, 1.0])
    return np.concatenate([values[:3], turn])


POSE_STAMPED = DoublesCommand(
    "geometry_msgs/msg/PoseStamped",
    True,
    FIELDS,
    Numbers(POSE_PATHS, tuple(range(7)), 7),
    with_columns,
    ("position", "rotation"),
    with_quaternion,
    remedy="check the sensor or its driver, or select `position` alone: its orientation may be no rotation",
)
