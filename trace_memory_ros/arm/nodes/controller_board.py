"""All controllers of a robot: commands in by controller, what the joints are told out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.controllers.config import TRAJECTORY, ControllerConfig
from trace_memory_ros.arm.controllers.following import FORGET_NS, Following, Held, place_of
from trace_memory_ros.arm.controllers.rules import Refusal, Trajectory, forward_refusal, trajectory_refusal

Values = NDArray[np.float64]


@dataclass
class Controller:
    """One controller's state. told_ns: when it last accepted a command, -1 before. refused: counts by rule.

    newest: what is wrong with the newest command, empty where it was accepted. told: since the last lock-step command.
    """

    config: ControllerConfig
    following: Following
    numbers: Values | None = None
    told_ns: int = -1
    told: bool = False
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    newest: str = ""

    def desired(self, now_ns: int, positions: Mapping[str, float]) -> Values | None:
        """What its joints are told at `now_ns` `(J,)`: what it was commanded last, else where they are."""
        if self.config.type == TRAJECTORY:
            desired = self.following.desired(now_ns)
            return place_of(self.config.joints, positions) if desired is None else desired
        return self.numbers


class ControllerBoard:
    """Controllers by name; times in ns. positions: of the joints, by name, as last measured."""

    def __init__(self, configs: Sequence[ControllerConfig]) -> None:
        self.controllers = {one.name: Controller(one, Following(one)) for one in configs}
        self.joints = tuple(joint for one in configs for joint in one.joints)
        self.positions: dict[str, float] = {}
        self._refused: Controller | None = None
        self._refused_ns = 0

    def trajectory(self, name: str, trajectory: Trajectory, now_ns: int) -> Refusal | None:
        """Take a trajectory; returns why it is refused, and what is executed then goes on."""
        one = self.controllers[name]
        refusal = trajectory_refusal(one.config, trajectory, now_ns)
        place = place_of(one.config.joints, self.positions)
        if refusal is None and place is None:
            refusal = Refusal("no_state", "no joint state of all its joints came yet: start joint_state_broadcaster")
        if refusal is None and place is not None:
            one.following.take(trajectory, now_ns, place)
        return self._noted(one, refusal, now_ns)

    def numbers(self, name: str, values: Sequence[float], now_ns: int) -> Refusal | None:
        """Take a forward command; returns why it is refused."""
        one = self.controllers[name]
        refusal = forward_refusal(one.config, values)
        if refusal is None:
            one.numbers = np.array(values, dtype=np.float64)
        return self._noted(one, refusal, now_ns)

    def update(self, now_ns: int) -> dict[str, Held]:
        """Watch the tolerances of what is executed; returns who gave up, and why."""
        held = {}
        for name, one in self.controllers.items():
            if why := one.following.update(now_ns, place_of(one.config.joints, self.positions)):
                one.refused[why.value] += 1
                one.newest = f"{why.value}: the joints are further from the trajectory, their place is held"
                held[name] = why
        return held

    def busy(self, now_ns: int) -> bool:
        """Whether a trajectory runs, or a forward command is new."""
        new = any(one.numbers is not None and now_ns - one.told_ns < FORGET_NS for one in self.controllers.values())
        return new or any(one.following.running for one in self.controllers.values())

    def desired(self, at_ns: int) -> Values | None:
        """What all joints are told for a time `(J,)`; None while one of them has no command and no place."""
        parts = [one.desired(at_ns, self.positions) for one in self.controllers.values()]
        return None if any(part is None for part in parts) else np.concatenate([p for p in parts if p is not None])

    def complete(self) -> Values | None:
        """In lock-step: the ends of what all were told `(J,)`, once every controller was told anew; None before."""
        controllers = self.controllers.values()
        if not all(one.told for one in controllers):
            return None
        for one in controllers:
            one.told = False
        ends = [one.following.end if one.numbers is None else one.numbers for one in controllers]
        return np.concatenate(ends)

    def _noted(self, one: Controller, refusal: Refusal | None, now_ns: int) -> Refusal | None:
        if refusal is None:
            one.accepted += 1
            if one is self._refused:
                self._refused = None
            one.told = self._refused is None or now_ns != self._refused_ns
            one.told_ns, one.newest = now_ns, ""
            return None
        one.refused[refusal.rule] += 1
        one.newest = f"{refusal.rule}: {refusal.text}"
        # A tick whose command is not whole gives none: what others are told for it, then too, is not of the next.
        self._refused, self._refused_ns = one, now_ns
        for other in self.controllers.values():
            other.told = False
        return refusal
