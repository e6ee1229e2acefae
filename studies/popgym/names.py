"""POPGym's environments by name; imported under either Python."""

from __future__ import annotations

LEVELS = ("Easy", "Medium", "Hard")
FAMILIES = {
    "diagnostic": ("RepeatFirst", "RepeatPrevious", "Autoencode", "CountRecall"),
    "control": (
        "PositionOnlyCartPole",
        "VelocityOnlyCartPole",
        "NoisyPositionOnlyCartPole",
        "PositionOnlyPendulum",
        "NoisyPositionOnlyPendulum",
    ),
    "games": ("HigherLower", "MultiarmedBandit", "Concentration", "Battleship", "MineSweeper"),
    "mazes": ("LabyrinthEscape", "LabyrinthExplore"),
}
"""Kinds of environments; each comes in three levels. Families are by what has to be remembered."""
TASKS = {family: tuple(f"{kind}{level}" for level in LEVELS for kind in kinds) for family, kinds in FAMILIES.items()}
GROUPS = TASKS | {
    f"{family}, {level}": tuple(f"{kind}{level}" for kind in kinds)
    for family, kinds in FAMILIES.items()
    for level in LEVELS
}
"""Of which means are taken: the families, and each level of them."""
ALL = tuple(task for tasks in TASKS.values() for task in tasks)


def environment_id(task: str) -> str:
    """What gymnasium calls a task. Raises ValueError for a name that is no task."""
    kind(task)
    return f"popgym-{task.replace('VelocityOnlyCartPole', 'VelocityOnlyCartpole')}-v0"


def kind(task: str) -> str:
    """A task without its level. Raises ValueError for a name that is no task."""
    for level in LEVELS:
        if task in ALL and task.endswith(level):
            return task.removesuffix(level)
    raise ValueError(f"{task!r} is no environment of POPGym: choose from {', '.join(ALL)}")
