"""Joint limits of a URDF file; nothing else of it is read."""

from __future__ import annotations

from math import inf, isfinite
from typing import NamedTuple
from xml.etree import ElementTree

from trace_memory_ros.files.home import opened
from trace_memory_ros.files.strict import ConfigError

MOST_BYTES = 64 * 2**20
LIMITED = ("revolute", "prismatic")


class UrdfJoint(NamedTuple):
    """lower, upper: rad or m. velocity: per second. Infinite where the file says nothing."""

    lower: float
    upper: float
    velocity: float


def joints_of(path: str) -> dict[str, UrdfJoint]:
    """Joints that move, by name. Raises ConfigError for what is no expanded URDF."""
    file = opened(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ConfigError(f"urdf = {path}: larger than {MOST_BYTES} bytes: give a URDF file")
        root = ElementTree.fromstring(file.read_bytes())
    except (OSError, ElementTree.ParseError) as error:
        raise ConfigError(f"urdf = {path}: cannot be read as XML: {error}; give the path of a URDF file") from error
    if root.tag != "robot":
        raise ConfigError(f"urdf = {path}: its outermost element is <{root.tag}>, not <robot>: give a URDF file")
    moving = [joint for joint in root.iter("joint") if joint.get("type") in (*LIMITED, "continuous")]
    return {joint.get("name", ""): _joint(joint, path) for joint in moving}


def _joint(joint: ElementTree.Element, path: str) -> UrdfJoint:
    limit = joint.find("limit")
    given = {} if limit is None else limit.attrib
    numbers = {}
    for key in ("lower", "upper", "velocity"):
        text = given.get(key)
        try:
            numbers[key] = None if text is None else float(text)
        except ValueError as error:
            raise ConfigError(
                f"{path}: joint {joint.get('name')!r}: {key} = {text!r} is no number: expand a xacro file with "
                "`xacro FILE > robot.urdf` first"
            ) from error
    if any(value is not None and not isfinite(value) for value in numbers.values()):
        raise ConfigError(f"{path}: joint {joint.get('name')!r}: a limit of {given} is not finite: correct it")
    lower, upper, velocity = numbers["lower"], numbers["upper"], numbers["velocity"]
    # The format takes a bound that is left out as 0; where both are, nothing was meant to bound the joint.
    bounded = joint.get("type") in LIMITED and (lower is not None or upper is not None)
    return UrdfJoint(
        (lower or 0.0) if bounded else -inf,
        (upper or 0.0) if bounded else inf,
        velocity if velocity is not None and velocity > 0 else inf,
    )
