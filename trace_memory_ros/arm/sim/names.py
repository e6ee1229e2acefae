"""Names and rates that every room agrees on: joints, actions, cameras, control period."""

from __future__ import annotations

ARMS = ("left", "right")
JOINTS_PER_ARM = 7
JOINT_NAMES: tuple[str, ...] = tuple(f"{arm}_joint_{i}" for arm in ARMS for i in range(1, JOINTS_PER_ARM + 1))
SUCTION_NAMES: tuple[str, ...] = tuple(f"{arm}_suction" for arm in ARMS)
ACTION_NAMES: tuple[str, ...] = JOINT_NAMES + SUCTION_NAMES
CAMERA_NAMES: tuple[str, ...] = ("overhead", "left_wrist", "right_wrist")
ONE_CUE_TASKS: tuple[str, ...] = ("origin", "colour")
"""Pick a part, remember one cue, place it left or right; checkpoints of these are shipped."""
DETAIL_TASKS: tuple[str, ...] = ("small_colour", "glyph")
"""As `colour`, with a cue that is small in the image."""
WATCHED_TASKS: tuple[str, ...] = ("cups", "when", "count", "match", "put_back")
"""The cue is not in the first frame: nothing tells before it is shown, and nothing afterwards."""
LIVE_TASKS: tuple[str, ...] = (*ONE_CUE_TASKS, *WATCHED_TASKS)
"""What the demo and the simulated arm's node play."""
TASK_NAMES: tuple[str, ...] = (*ONE_CUE_TASKS, "sequence", *DETAIL_TASKS, *WATCHED_TASKS)
"""A task's place is part of its seeding: append only."""
MOST_CHOICES = 6
"""Counterfactual twins that a scene has at most."""
PERIOD_S = 0.1
