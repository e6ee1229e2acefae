"""What a checkpoint calls its streams and commands, and how a launch gives them other topics without editing it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.files.home import opened
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.shipped import find_checkpoint
from trace_memory_ros.streams.served import ServedType

CONFIG = "config.yaml"
COMMAND = "command"
COMMANDS = "commands"
TOPIC = re.compile(r"~?/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*", re.ASCII)
Remaps = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RobotTopics:
    """Name -> topic, as the checkpoint says them; a command without a name of its own goes by its topic.

    served: of those topics that are actions and services, their types.
    """

    observation: ObservationConfig
    streams: Mapping[str, str]
    commands: Mapping[str, str]
    served: Mapping[str, ServedType] = field(default_factory=dict)

    @classmethod
    def of_checkpoint(cls, checkpoint: str) -> RobotTopics:
        """Of a folder or a shipped name; only `config.yaml` is looked at. Raises ValueError where it can't be read."""
        file = Path(find_checkpoint(checkpoint)) / CONFIG
        try:
            config = yaml.safe_load(file.read_text(encoding="utf-8"))
            observation = ObservationConfig.from_dict(config["observation"], f"{file}: observation")
            given = config.get("actions")
            actions = ActionConfig.from_dict(given, f"{file}: actions") if given else None
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise ValueError(f"{file} tells no topics ({error}): copy both files of the checkpoint again") from error
        streams = {stream.name: stream.topic for stream in observation.inputs}
        return cls(observation, streams, command_topics(actions))

    def commanding(self, actions_file: str) -> RobotTopics:
        """With the commands of policy_node's actions_file, if one is given. Raises ConfigError."""
        if not actions_file:
            return self
        actions = actions_in(actions_file)
        served = {part.topic: part.kind for part in actions.parts if isinstance(part.kind, ServedType)}
        return replace(self, commands=command_topics(actions), served=served)

    def remaps(self, text: str) -> Remaps:
        """(topic in the checkpoint, topic on this robot) of a YAML file, or of YAML text: {STREAM: TOPIC, commands:
        {COMMAND: TOPIC}}. Raises ConfigError for a name that the checkpoint has not, for two topics of one, and for one
        topic of two cameras or commands.
        """
        given, where = _read(text)
        commands = given.pop(COMMANDS, {}) if isinstance(given.get(COMMANDS, {}), Mapping) else {}
        found: dict[str, str] = {}
        for kind, named, known in (("stream", given, self.streams), ("command", commands, self.commands)):
            for name, topic in named.items():
                if name not in known:
                    raise ConfigError(f"{where}: {kind} {name!r} is none of the checkpoint's: {self._all()}")
                if not isinstance(topic, str) or not TOPIC.fullmatch(topic):
                    raise ConfigError(f"{where}: {kind} {name!r}: {topic!r} is no topic; give one such as /arm/image")
                if found.setdefault(known[name], topic) != topic:
                    raise ConfigError(
                        f"{where}: {kind} {name!r}: what the checkpoint has on {known[name]!r} is given two topics, "
                        f"{found[known[name]]} and {topic}: give it one"
                    )
        cameras = {camera.topic: camera.name for camera in self.observation.cameras}
        _check_apart("cameras", cameras, found, where)
        _check_apart("commands", {topic: name for name, topic in self.commands.items()}, found, where)
        return tuple(found.items())

    def _all(self) -> str:
        return f"streams {', '.join(self.streams)}; {COMMANDS} {', '.join(self.commands)}"


def _check_apart(kind: str, names: Mapping[str, str], found: Mapping[str, str], where: str) -> None:
    """Raise ConfigError where two topics of the checkpoint are one on this robot. names: by the checkpoint's topics."""
    taken: dict[str, str] = {}
    for topic, name in names.items():
        other = taken.setdefault(found.get(topic, topic), name)
        if other != name:
            raise ConfigError(f"{where}: {kind} {other!r} and {name!r} have one topic: each needs its own")


def command_topics(actions: ActionConfig | None) -> dict[str, str]:
    """Command -> topic; several of one name, as an arm and its gripper may be, go by their topics."""
    parts = actions.parts if actions else ()
    counts = Counter(part.name for part in parts)
    named = {part.name if part.name and counts[part.name] == 1 else part.topic: part.topic for part in parts}
    return named or {COMMAND: COMMAND}


def actions_in(path: str) -> ActionConfig:
    """The actions of policy_node's actions_file. Raises ConfigError."""
    try:
        data = yaml.safe_load(opened(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"actions_file = {path}: cannot be read: {error}; correct the path or the file") from error
    if not isinstance(data, dict) or "actions" not in data:
        raise ConfigError(f"{path}: key 'actions' is missing; add it, as docs/how-to/describe_your_robot.md says")
    return ActionConfig.from_dict(data["actions"], f"{path}: actions")


def _read(text: str) -> tuple[dict[str, Any], str]:
    """What `streams` says, and what errors call it."""
    where = f"streams = {text}"
    try:
        file = opened(text) if text and "\n" not in text and ":" not in text else None
        content = file.read_text(encoding="utf-8") if file else text
        given = yaml.safe_load(content) if content.strip() else {}
    except (OSError, ConfigError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{where}: cannot be read: {error}; give a YAML file or {{STREAM: TOPIC}}") from error
    if given is None:
        return {}, where
    if not isinstance(given, dict):
        raise ConfigError(f"{where}: must be a mapping, {{STREAM: TOPIC, {COMMANDS}: {{COMMAND: TOPIC}}}}")
    return dict(given), where
