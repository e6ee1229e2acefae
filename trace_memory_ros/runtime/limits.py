"""How far and how fast each of a policy's outputs may be commanded: from a YAML file, a URDF and the message types."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf, isnan
from typing import Any

import yaml

from trace_memory_ros.files.home import opened
from trace_memory_ros.files.strict import ConfigError, check_keys, nearest, require_positive
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.urdf import UrdfJoint, joints_of
from trace_memory_ros.streams.base import Bounded

VELOCITY_UNITS = ("m/s", "rad/s")
POSITION_UNITS = ("rad", "m", "")
"""A plain number, such as those of a Float64MultiArray, counts as the position of what it is called."""
RAW = "raw"
"""What a LeRobot dataset's state is in where it is no radians; its actions are then too, without saying so."""
NO_UNIT = ("", RAW)
EFFORT_UNITS = ("N", "N m")
"""Limits of a joint's position and velocity say nothing of these."""


@dataclass(frozen=True)
class OutputLimit:
    """Bounds of one output in its own unit, infinite where nothing bounds it. Raises ConfigError.

    max_step: from one command to the next. max_velocity: per second. max_acceleration: per second squared.
    """

    min: float = -inf
    max: float = inf
    max_step: float = inf
    max_velocity: float = inf
    max_acceleration: float = inf

    def __post_init__(self) -> None:
        for name in ("min", "max"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or isnan(value):
                raise ConfigError(f"{name} = {value!r}: must be a number")
        if self.min >= self.max:
            raise ConfigError(f"min = {self.min:g}, max = {self.max:g}: min must be below max")
        for name in ("max_step", "max_velocity", "max_acceleration"):
            if getattr(self, name) != inf:
                require_positive(getattr(self, name), name)

    def tightened(self, other: OutputLimit) -> OutputLimit:
        """What satisfies both. Raises ConfigError where nothing does."""
        least = {f.name: min(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)}
        return OutputLimit(**{**least, "min": max(self.min, other.min)})


UNLIMITED = OutputLimit()


def is_place(unit: str, of: str) -> bool:
    """Whether a number in `unit` tells where an output in the unit `of` is: no velocity or force, and no conversion.

    Types say rad of joints that slide, so that rad and m are no contradiction; nor is a number of no known unit.
    """
    if any(is_velocity(one) or one in EFFORT_UNITS for one in (unit, of)):
        return False
    return unit == of or not {unit, of}.isdisjoint(NO_UNIT) or {unit, of} <= {*POSITION_UNITS}


def is_velocity(unit: str) -> bool:
    """Whether a number is a velocity, by its unit: whatever is per second, so that degrees are told to stop, too."""
    return unit.endswith("/s")


def velocity_columns(actions: ActionConfig) -> tuple[bool, ...]:
    """Which outputs are velocities."""
    return tuple(map(is_velocity, actions.units))


def limits_of(actions: ActionConfig, limits_file: str = "", urdf: str = "") -> tuple[OutputLimit, ...]:
    """A limit per output; where two sources say one, the tighter holds. Raises ConfigError naming file and output."""
    found = dict(zip(actions.names, _of_types(actions), strict=True))
    listed = _of_file(actions, limits_file) if limits_file else {}
    for where, source in ((urdf, _of_urdf(actions, urdf, listed) if urdf else {}), (limits_file, listed)):
        for name, limit in source.items():
            try:
                found[name] = found[name].tightened(limit)
            except ConfigError as error:
                raise ConfigError(f"{where}: {name}, together with its other limits: {error}") from error
    return tuple(found.values())


def _of_types(actions: ActionConfig) -> list[OutputLimit]:
    return [
        OutputLimit(*part.kind.bounds(one.field.name)) if isinstance(part.kind, Bounded) else UNLIMITED
        for part in actions.parts
        for one in part.selected
    ]


def _of_file(actions: ActionConfig, path: str) -> dict[str, OutputLimit]:
    try:
        data: Any = yaml.safe_load(opened(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"limits_file = {path}: cannot be read: {error}; correct the path or the file") from error
    given = check_keys(data, ("limits",), ("limits",), path)["limits"]
    if not isinstance(given, Mapping):
        raise ConfigError(f"{path}: limits = {given!r}: must be a mapping, OUTPUT: {{min: ..., max: ...}}")
    known = [f.name for f in fields(OutputLimit)]
    limits = {}
    for name, entry in given.items():
        if name not in actions.names:
            raise ConfigError(f"{path}: limits of {name!r}, which is no output; {nearest(str(name), actions.names)}")
        try:
            limits[name] = OutputLimit(**check_keys(entry, known, (), "limits"))
        except ConfigError as error:
            raise ConfigError(f"{path}: limits of {name}: {error}") from error
    return limits


def _of_urdf(actions: ActionConfig, path: str, listed: Collection[str]) -> dict[str, OutputLimit]:
    """Of the joints that are called as outputs. `listed` are limited elsewhere, in whatever unit."""
    joints = joints_of(path)
    limits: dict[str, OutputLimit] = {}
    for part in actions.parts:
        for one, name in zip(part.selected, part.names, strict=True):
            joint = _joint(joints, (name, one.output, one.field.name.partition(".")[2]))
            unit = part.units.get(one.output, one.field.unit)
            if joint is None or unit in EFFORT_UNITS:
                continue
            try:
                limits[name] = _in_unit(joint, unit, name, name in listed)
            except ConfigError as error:
                raise ConfigError(f"{path}: joint of {name}: {error}") from error
    if not limits:
        raise ConfigError(
            f"{path}: none of its joints is called as an output that is a position or velocity, of "
            f"{', '.join(actions.names)}: give the URDF of the commanded robot; "
            f"{nearest(actions.names[0], list(joints))}"
        )
    return limits


def _in_unit(joint: UrdfJoint, unit: str, name: str, listed: bool) -> OutputLimit:
    """The joint's limit for an output in that unit. Raises ConfigError where it is in no unit of the joint's."""
    if unit in VELOCITY_UNITS:
        return OutputLimit(min=-joint.velocity, max=joint.velocity)
    if unit in POSITION_UNITS:
        return OutputLimit(joint.lower, joint.upper, max_velocity=joint.velocity)
    if not listed:
        raise ConfigError(
            f"its limits are in rad or m, the output is in {unit!r} and would have none: give limits of {name} in "
            f"{unit!r} in limits_file"
        )
    return UNLIMITED


def _joint(joints: Mapping[str, UrdfJoint], names: Sequence[str]) -> UrdfJoint | None:
    return next((joints[name] for name in names if name in joints), None)
