"""Which controllers a robot has, as one YAML file says it: names, types, joints, topics, tolerances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import yaml

from trace_memory_ros.files.home import opened
from trace_memory_ros.files.strict import ConfigError, check_keys, require_choice, require_positive, require_text

TRAJECTORY = "joint_trajectory_controller"
FORWARD = "forward_command_controller"
TYPES = (TRAJECTORY, FORWARD)
TOPICS = {TRAJECTORY: "joint_trajectory", FORWARD: "commands"}


@dataclass(frozen=True)
class ControllerConfig:
    """One controller; options are called as ros2_controllers calls them, tolerances hold for every joint, 0 is none.

    topic: empty for the usual one below its name. path_tolerance, goal_tolerance: unit of the joints. goal_time: s.
    """

    name: str
    type: str
    joints: tuple[str, ...]
    topic: str = ""
    allow_partial_joints_goal: bool = False
    allow_nonzero_velocity_at_trajectory_end: bool = False
    interpolate_from_desired_state: bool = False
    path_tolerance: float = 0.0
    goal_tolerance: float = 0.0
    goal_time: float = 0.0

    def __post_init__(self) -> None:
        where = f"controller {self.name!r}"
        require_text(self.name, "a controller's name")
        require_choice(self.type, TYPES, f"{where}: type")
        if not self.joints or len(set(self.joints)) != len(self.joints):
            raise ConfigError(f"{where}: joints = {list(self.joints)}: give at least one, each once")
        for key in ("path_tolerance", "goal_tolerance", "goal_time"):
            require_positive(getattr(self, key), f"{where}: {key}", zero=True)

    @property
    def command_topic(self) -> str:
        """Where it takes its commands."""
        return self.topic or f"{self.name}/{TOPICS[self.type]}"

    @classmethod
    def from_dict(cls, data: object, where: str) -> ControllerConfig:
        """Raises ConfigError naming key, value and remedy."""
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = dict(check_keys(data, known, ("name", "type", "joints"), where))
        if not isinstance(values["joints"], list):
            raise ConfigError(f"{where}: joints = {values['joints']!r}: must be a list of names")
        values["joints"] = tuple(map(str, values["joints"]))
        return cls(**values)


def read_controllers(path: str) -> tuple[ControllerConfig, ...]:
    """The `controllers` of a YAML file, whatever else is in it. Raises ConfigError."""
    try:
        data = yaml.safe_load(opened(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"controllers_file = {path}: cannot be read: {error}; correct path or file") from error
    if not isinstance(data, dict) or not isinstance(data.get("controllers"), list) or not data["controllers"]:
        raise ConfigError(f"{path}: needs a list 'controllers' of {{name: ..., type: ..., joints: [...]}}")
    found = tuple(
        ControllerConfig.from_dict(one, f"{path}: controllers[{i}]") for i, one in enumerate(data["controllers"])
    )
    check_apart(found, path)
    return found


def check_apart(controllers: Sequence[ControllerConfig], where: str) -> None:
    """Raise ConfigError where two controllers have a name, a topic or a joint in common."""
    for what, named in (
        ("name", [one.name for one in controllers]),
        ("topic", [one.command_topic for one in controllers]),
        ("joint", [joint for one in controllers for joint in one.joints]),
    ):
        twice = [name for name, count in Counter(named).items() if count > 1]
        if twice:
            raise ConfigError(f"{where}: {what} {', '.join(twice)} of two controllers: each needs its own")


def plain(controllers: Sequence[ControllerConfig]) -> list[dict[str, Any]]:
    """For YAML."""
    return [{**asdict(one), "joints": list(one.joints)} for one in controllers]
