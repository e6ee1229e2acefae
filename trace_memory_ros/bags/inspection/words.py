"""What the names of topics and joints say, by whole words: `human_interaction` is no action, `rightArmCmd` is one."""

from __future__ import annotations

import re
from collections.abc import Collection

_PUBLISHER = re.compile(r"_?(broadcaster|controller|cmd|command|commands)$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _any(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMMANDS = _any("command commands commanded cmd cmds target targets goal goals action actions ctrl")
LEADERS = _any("leader leaders master masters teleop teleoperation teleoperated gello")
SETPOINTS = _any("desired reference references ref setpoint setpoints equilibrium")
SHOWN_ONLY = _any("fake planned plan preview ghost display displayed ideal")
"""Of joints that are drawn, not measured."""
MEASURED = _any("feedback measured actual")
GRIPPERS = _any("gripper grippers finger fingers jaw jaws claw hand width opening aperture")
WIDTHS = _any("width opening aperture")
OF_A_HAND = _any("servo hand ee eef tcp tool delta arm cartesian endpoint")
"""Of velocities and poses that are a hand's and not the base's."""
ANNOTATIONS = _any("branch branches annotation annotations label labels")
SIDES = _any("left right l r lh rh")
_OF_CAMERAS = _any("image images raw color colour rgb bgr mono gray grey rect compressed jpeg jpg png webp")
_OF_STATES = _any("joint joints state states data raw measured actual feedback action topic value values stamped")
_OF_COMMANDS = COMMANDS | _any("joint joints trajectory controller feedback forward position positions state states")


def words(name: str) -> tuple[str, ...]:
    """The words of a name in lower case, parted by signs, digits and capitals; numbers are words too."""
    return tuple(word.lower() for word in _WORD.findall(name))


def has(name: str, known: Collection[str]) -> bool:
    """Whether one of its words is known."""
    return not set(words(name)).isdisjoint(known)


def is_setpoint(topic: str) -> bool:
    """Whether a topic tells where something shall be, and is neither a leader nor a command by name."""
    return has(topic, SETPOINTS) and not has(topic, LEADERS | COMMANDS)


def is_commanded(topic: str) -> bool:
    """Whether the name says that it commands, or tells where something shall be."""
    last = topic.rpartition("/")[2]
    return has(topic, COMMANDS | LEADERS | SETPOINTS) and not has(last, MEASURED)


def is_shown_only(topic: str) -> bool:
    """Whether a topic carries what is drawn and not measured."""
    return has(topic, SHOWN_ONLY)


def camera_name(topic: str) -> str:
    """A camera's name: its topic without what every image topic is called."""
    parts = [part for part in topic.split("/") if not _OF_CAMERAS.issuperset(words(part))]
    if len(parts) > 1 and parts[0] in ("camera", "cameras"):
        parts = parts[1:]
    return "_".join(parts) or "camera"


def is_picture_word(part: str) -> bool:
    """Whether a part of a topic says nothing but that there are pictures."""
    return _OF_CAMERAS.issuperset(words(part))


def stream_name(topic: str, usual: str) -> str:
    """A stream's name: its topic without what every such topic is called; `usual` where nothing is left."""
    return _without(topic, _OF_STATES) or usual


def part_name(topic: str, usual: str) -> str:
    """The name of a command's numbers: its topic without what every command is called."""
    return _without(topic, _OF_COMMANDS) or usual


def _without(topic: str, usual: Collection[str]) -> str:
    parts = [_PUBLISHER.sub("", part) for part in topic.split("/")]
    return "_".join(dict.fromkeys(part.strip("_") for part in parts if part and not set(words(part)) <= set(usual)))


def listed(names: Collection[str], most: int = 4) -> str:
    """Some of the names, and how many more there are."""
    shown = list(names)[:most]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
