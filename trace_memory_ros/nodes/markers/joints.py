"""How far each arm has moved away from the pose it began the episode in, from joint_states."""

from __future__ import annotations

import math
from collections.abc import Mapping

from sensor_msgs.msg import JointState

UNKNOWN = math.nan


class ArmDistances:
    """Joint-space distance per arm, rad: the Euclidean norm of its joints' angles minus their angles at the start.

    An arm's joints are those whose names begin with its prefix; their order and other joints don't matter.
    """

    def __init__(self, left_prefix: str, right_prefix: str) -> None:
        self._prefixes = (left_prefix, right_prefix)
        self._held: Mapping[str, float] = {}
        self._start: Mapping[str, float] = {}
        self.fault = "joint_states: no message yet"

    def take(self, message: JointState) -> None:
        """Hold a joint state; a bad one is refused and named in `fault`, and the last good one stays."""
        if len(message.name) != len(message.position):
            self.fault = f"joint_states: {len(message.name)} names but {len(message.position)} positions"
            return
        angles = {
            name: float(angle)
            for name, angle in zip(message.name, message.position, strict=True)
            if name.startswith(self._prefixes)
        }
        bad = sorted(name for name, angle in angles.items() if not math.isfinite(angle))
        missing = sorted(set(self._start) - set(angles))
        if bad:
            self.fault = f"joint_states: {bad[0]} is {angles[bad[0]]}"
        elif missing:
            self.fault = f"joint_states: {missing[0]} is missing"
        elif not angles:
            self.fault = f"joint_states: no joint begins with {' or '.join(map(repr, self._prefixes))}"
        else:
            self.fault = ""
            self._held = angles
            self._start = self._start or angles

    def restart(self) -> None:
        """Measure from the pose held now."""
        self._start = dict(self._held)

    def distances_rad(self) -> tuple[float, float]:
        """(left, right), NaN for an arm without joints."""
        left, right = (self._distance(prefix) for prefix in self._prefixes)
        return left, right

    def _distance(self, prefix: str) -> float:
        joints = [name for name in self._start if name.startswith(prefix)]
        if not joints:
            return UNKNOWN
        return math.hypot(*(self._held[name] - self._start[name] for name in joints))
