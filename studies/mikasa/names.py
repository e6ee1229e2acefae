"""MIKASA-Robo-VLA's tasks that load here and whose expert was seen to solve them; imported under either Python."""

from __future__ import annotations

SHORT = (
    *(f"RememberColor{n}" for n in (3, 5, 9)),
    *(f"RememberShape{n}" for n in (3, 5, 9)),
    *(f"RememberShapeAndColor{n}" for n in ("3x2", "3x3", "5x3")),
    *(f"FindImposterColor{n}" for n in (3, 5, 9)),
    *(f"FindImposterShape{n}" for n in (3, 5, 9)),
    *(f"FindImposterShapeAndColor{n}" for n in ("3x2", "3x3", "5x3")),
)
"""25 steps, the last of them 40: a cue of 1 to 5, nothing for 1 to 5, then the choices."""
LONG = ("RememberColor3-Long", "RememberColor5-Long", "RememberColor9-Long", "RememberShape3-Long")
"""600 steps: a cue of 10 to 100, nothing for 50 to 450."""
IN_TURN = tuple(f"{kind}OfColors{n}" for kind in ("Bunch", "Seq", "Chain") for n in (3, 5, 7))
"""Colours are shown, together or one after another, 1 to 5 ticks each; then nine cubes, of which those are to be
touched, in the order in which they were shown but for the bunch, and a button to be pressed."""
COUNTED = tuple(f"BlinkCountButtonPress{size}" for size in ("Easy", "Medium", "Hard"))
"""A lamp blinks one to three, five or seven times; a red button is to be pressed as often, then a black one once."""
STEP_BY_STEP = (*IN_TURN, *COUNTED)
"""What is to be done next is decided several times an episode, and what was shown is shown for a few ticks."""
TASKS = (*SHORT, *LONG, *STEP_BY_STEP)
CAMERAS = ("base", "wrist")
PROPRIO = ("x", "y", "z", "roll", "pitch", "yaw", "gripper")
"""What the benchmark shows of the robot: the hand's place (m), its angles (rad), the fingers' opening (m)."""
ACTIONS = ("delta_x", "delta_y", "delta_z", "delta_roll", "delta_pitch", "delta_yaw", "gripper_target")
"""`pd_ee_delta_pose`, each from -1 to 1; 1 is 0.1 m along an axis."""
PX = 128
RATE_HZ = 20
FIRST_SEED = 4_242_424_242
"""The canonical episodes' first seed; the others follow it."""
EPISODES = 50
RECORDED = 2
"""How a recording is told: those told otherwise are made anew."""


def asked_of(task: str) -> int:
    """How many things are to be touched in a task of `IN_TURN`."""
    return int(task[-1])


def environment_id(task: str) -> str:
    """What gymnasium calls a task."""
    return f"{task}-VLA-v0"
