"""geometry_msgs/WrenchStamped: a force/torque sensor, N and N m."""

from __future__ import annotations

from trace_memory_ros.streams.doubles import DoublesType, Numbers, paths, vectors

WRENCH_STAMPED = DoublesType(
    "geometry_msgs/msg/WrenchStamped",
    True,
    vectors(("force", "N", False), ("torque", "N m", False)),
    Numbers(paths("wrench.", "force", "torque"), tuple(range(6)), 6),
    usual=("force", "torque"),
)
