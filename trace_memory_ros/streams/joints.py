"""Numbers by joint name: what JointState, JointTrajectory and the controllers' states have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from trace_memory_ros.files.strict import ConfigError, nearest
from trace_memory_ros.streams.base import Field, ReadError, Values
from trace_memory_ros.streams.cdr import Cdr

UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N m"}
"""Of revolute joints; the configuration's `units` says otherwise for others."""


def field_of(name: str, type_name: str) -> Field:
    """`position.JOINT`, `velocity.JOINT`, `effort.JOINT`; a name without one of these groups is a position."""
    group, _, joint = name.partition(".")
    if group not in UNITS or not joint:
        group, joint = "position", name
    if joint in UNITS:
        raise ConfigError(f"{type_name}: {name!r} names no joint: select {{{name}: [JOINT, ...]}}")
    return Field(f"{group}.{joint}", UNITS[group], group == "position", joint)


def of_every_joint(targets: Mapping[str, float], group: str, joints: Sequence[str]) -> list[float]:
    """A group's values in the joints' order; none where it is not commanded. Raises ConfigError for some of it."""
    given = {joint: targets[f"{group}.{joint}"] for joint in joints if f"{group}.{joint}" in targets}
    if given and len(given) < len(joints):
        lacking = [joint for joint in joints if joint not in given]
        raise ConfigError(f"{group} is commanded for some joints and not for {', '.join(lacking)}: select it for all")
    return list(given.values())


class ByName:
    """Finds the numbers of selected fields in messages that name their joints, in any order, with any extras."""

    def __init__(self, fields: Sequence[str]) -> None:
        self.fields = tuple(fields)
        self._joints: dict[str, list[str]] = {}
        self._rows: dict[str, list[int]] = {}
        for row, field in enumerate(fields):
            group, _, joint = field.partition(".")
            self._joints.setdefault(group, []).append(joint)
            self._rows.setdefault(group, []).append(row)
        self.groups = tuple(self._joints)
        self._known: dict[str, tuple[tuple[str, ...], list[int]]] = {}

    def read(self, names: Sequence[str], arrays: dict[str, ArrayLike]) -> Values:
        """The selected numbers `(F,)`; arrays: those of the groups, as long as `names`. Raises ReadError."""
        out = np.empty(len(self.fields))
        for group in self.groups:
            values = np.asarray(arrays[group], dtype=np.float64)
            if values.ndim != 1 or len(values) != len(names):
                plural = "velocities" if group == "velocity" else f"{group}s"
                raise ReadError(f"{len(names)} joint names with {values.size} {plural}: publish a {group} per name")
            found = values[self._columns(group, names)]
            if not np.isfinite(found).all():
                bad = [j for j, value in zip(self._joints[group], found, strict=True) if not np.isfinite(value)]
                raise ReadError(f"{group} of {', '.join(bad)} is not finite: check the joint's encoder or driver")
            out[self._rows[group]] = found
        return out

    def _columns(self, group: str, names: Sequence[str]) -> list[int]:
        known = self._known.get(group)
        if known is None or known[0] != tuple(names):
            known = (tuple(names), self._find(group, names))
            self._known[group] = known
        return known[1]

    def _find(self, group: str, names: Sequence[str]) -> list[int]:
        index = {name: i for i, name in enumerate(names)}
        joints = self._joints[group]
        absent = [joint for joint in joints if joint not in index]
        if absent:
            raise ReadError(
                f"joint {', '.join(absent)} is missing from the message's {len(names)} joints "
                f"({nearest(absent[0], names)}): publish it, or correct the configured joint names"
            )
        if len(index) != len(names):
            twice = [joint for joint in joints if list(names).count(joint) > 1]
            if twice:
                raise ReadError(f"joint {', '.join(twice)} is named more than once in a message: publish each once")
        return [index[joint] for joint in joints]


class SameTexts:
    """Reads a sequence of strings that hardly ever changes: by comparing its bytes with the last one's."""

    def __init__(self) -> None:
        self._order = ""
        self._block = b""
        self._texts: tuple[str, ...] = ()

    def read(self, cdr: Cdr) -> tuple[str, ...]:
        """As `Cdr.texts`."""
        begin = -(-cdr.at // 4) * 4
        end = begin + len(self._block)
        if self._block and cdr.order == self._order and cdr.data[begin:end] == self._block:
            cdr.at = end
        else:
            self._texts = cdr.texts()
            self._order, self._block = cdr.order, bytes(cdr.data[begin : cdr.at])
        return self._texts
