"""geometry_msgs/TwistStamped and Twist: velocities in the base frame, m/s and rad/s."""

from __future__ import annotations

from trace_memory_ros.streams.doubles import DoublesCommand, Numbers, paths, vectors

FIELDS = vectors(("linear", "m/s", True), ("angular", "rad/s", True))
BASE_MOTION = ("linear.x", "linear.y", "angular.z")
"""What a base on wheels does."""

TWIST_STAMPED = DoublesCommand(
    "geometry_msgs/msg/TwistStamped",
    True,
    FIELDS,
    Numbers(paths("twist.", "linear", "angular"), tuple(range(6)), 6),
    usual=BASE_MOTION,
)
TWIST = DoublesCommand(
    "geometry_msgs/msg/Twist",
    False,
    FIELDS,
    Numbers(paths("", "linear", "angular"), tuple(range(6)), 6),
    usual=BASE_MOTION,
)
