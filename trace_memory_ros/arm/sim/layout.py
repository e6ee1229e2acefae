"""Where things are, in metres: table top at z = 0, robot at the origin looking along +x, left is +y."""

from __future__ import annotations

SHOULDER_Y = 0.16
SHOULDER_Z = 0.36
UPPER_ARM = 0.40
FOREARM = 0.38
HAND = 0.11
PART_HALF = 0.036

BIN_XY = ((0.66, 0.15), (0.66, -0.15))
TRAY_XY = (0.66, 0.0)
BIN_HALF = 0.07
PARKED_XY = (0.80, 0.42)
"""Where the part stands in tasks that have no use for it."""

STATION_XYZ = ((0.68, -0.36, 0.17), (0.40, -0.50, 0.17), (0.34, -0.14, 0.46))
STATION_ZONE_RADIUS = 0.07
BRANCH_XYZ = (0.46, 0.0, 0.20)
MERGE_XYZ = (0.62, 0.0, 0.21)
START_XYZ = (0.62, 0.0, 0.24)

TARGET_XY = ((0.40, 0.28), (0.40, -0.28))
TARGET_RADIUS = 0.12
TARGET_HEIGHT = 0.15

PANEL_XY = (1.0, 0.0)
PANEL_HALF = (0.12, 0.15)
SMALL_PANEL_HALF = (0.016, 0.016)
"""A fortieth of what the overhead camera sees across."""
SMALL_CUE_REACH = (0.06, 0.16)
"""How far off the panel's place a small cue may lie."""
DECOY_PANEL_XY = (0.195, -0.505)
LAMP_XY = (1.0, -0.42)
LAMP_RADIUS = 0.11

MERGED_Y = 0.06

SUCTION_RANGE = 0.05
