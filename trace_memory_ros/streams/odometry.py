"""nav_msgs/Odometry: the base's velocity in its own frame, and its pose in the frame of the odometry."""

from __future__ import annotations

import numpy as np

from trace_memory_ros.streams import pose, rotation, twist
from trace_memory_ros.streams.base import Values
from trace_memory_ros.streams.doubles import DoublesType, Numbers, paths

POSE_DOUBLES, COVARIANCE_DOUBLES, TWIST_DOUBLES = 7, 36, 6
TWIST_AT = POSE_DOUBLES + COVARIANCE_DOUBLES


def _pose_and_twist(numbers: Values) -> Values:
    """Many bases publish no pose, all zeros or NaN: what is not selected must not be in the way."""
    velocity = numbers[POSE_DOUBLES:]
    if not rotation.is_one(numbers[3:POSE_DOUBLES]):
        return np.concatenate([np.full(len(pose.FIELDS), np.nan), velocity])
    return np.concatenate([pose.with_columns(numbers[:POSE_DOUBLES]), velocity])


ODOMETRY = DoublesType(
    "nav_msgs/msg/Odometry",
    True,
    (*pose.FIELDS, *twist.FIELDS),
    Numbers(
        (*(f"pose.{path}" for path in pose.POSE_PATHS), *paths("twist.twist.", "linear", "angular")),
        (*range(POSE_DOUBLES), *range(TWIST_AT, TWIST_AT + TWIST_DOUBLES)),
        TWIST_AT + TWIST_DOUBLES + COVARIANCE_DOUBLES,
        texts=1,
    ),
    _pose_and_twist,
    twist.BASE_MOTION,
)
