"""What is what in a bag, said once: streams, actions, episodes, branch annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.files import atomic
from trace_memory_ros.files.strict import (
    ConfigError,
    check_keys,
    require_choice,
    require_positive,
    require_text,
)
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.streams.served import not_recorded

BESIDE_CHECKPOINT = "recording.yaml"
"""Kept in the folder of a checkpoint that learned from bags; no part of it, and not needed on a robot."""

EPISODE_KINDS = ("bag", "topic", "gap")


@dataclass(frozen=True)
class EpisodeRule:
    """How a bag divides into episodes.

    kind: `bag` (each bag is one), `topic` (cut by `topic`: EpisodeStatus or std_msgs Bool, integer, String), or `gap`
    (cut where the first camera pauses for more than `gap_s` seconds of header stamps, or its stamps fall by as much).
    """

    kind: str = "bag"
    topic: str = ""
    gap_s: float = 2.0

    def __post_init__(self) -> None:
        require_choice(self.kind, EPISODE_KINDS, "episodes.kind")
        require_positive(self.gap_s, "episodes.gap_s")
        if self.kind == "topic":
            require_text(self.topic, "episodes.topic")


@dataclass(frozen=True)
class BranchConfig:
    """Where branch annotations stand: a `topic` (EpisodeStatus, or std_msgs String or integer) or a YAML `file`.

    A relative `file` lies in the bag's folder.
    """

    topic: str = ""
    file: str = ""

    def __post_init__(self) -> None:
        if bool(self.topic) == bool(self.file):
            raise ConfigError(
                f"branches has topic = {self.topic!r} and file = {self.file!r}: give one of them, or leave branches out"
            )
        require_text(self.topic or self.file, "branches.topic" if self.topic else "branches.file")


@dataclass(frozen=True)
class RecordingConfig:
    """A kind of bag. namespace: put before the relative topics of all parts. Raises ConfigError.

    log_offset_ms: the recorder's clock less the clock of the header stamps; taken off the log time of what is stamped
    when received.
    """

    observation: ObservationConfig
    actions: ActionConfig | None = None
    episodes: EpisodeRule = EpisodeRule()
    branches: BranchConfig | None = None
    namespace: str = ""
    log_offset_ms: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.log_offset_ms, bool) or not isinstance(self.log_offset_ms, int):
            raise ConfigError(f"log_offset_ms = {self.log_offset_ms!r}: must be a whole number of milliseconds")
        if self.actions is not None:
            self.actions.relative_rows(self.observation)
            for part in self.actions.parts:
                if part.is_served:
                    raise ConfigError(f"{part.where}: {not_recorded(part.type)}")

    @property
    def log_offset_ns(self) -> int:
        """`log_offset_ms` in ns."""
        return self.log_offset_ms * 1_000_000

    @property
    def received(self) -> tuple[str, ...]:
        """Topics whose messages count from when they were received, those of streams first."""
        streams = [(stream.topic, stream.stamp) for stream in self.observation.inputs]
        parts = [] if self.actions is None else [(part.topic, part.stamp) for part in self.actions.parts]
        return tuple(self.topic(topic) for topic, stamp in (*streams, *parts) if stamp == "received")

    @property
    def clock_note(self) -> str:
        """What a report has to say of these; empty where every message has a stamp of its own."""
        if not self.received:
            return ""
        offset = f", less {self.log_offset_ms} ms" if self.log_offset_ms else ""
        return f"without stamps of their own, taken from when they were recorded{offset}: {', '.join(self.received)}"

    def topic(self, name: str) -> str:
        """The bag's name of a configured topic: absolute, in the namespace unless it is absolute already."""
        return name if name.startswith("/") else "/" + "/".join(p for p in (self.namespace.strip("/"), name) if p)

    def to_dict(self) -> dict[str, Any]:
        """Plain YAML-ready mapping without what is left at its default; `from_dict` inverts it."""
        out: dict[str, Any] = {"namespace": self.namespace} if self.namespace else {}
        out["observation"] = self.observation.to_dict()
        if self.actions is not None:
            out["actions"] = self.actions.to_dict()
        out["episodes"] = _shallow(self.episodes)
        if self.log_offset_ms:
            out["log_offset_ms"] = self.log_offset_ms
        if self.branches is not None:
            out["branches"] = {key: value for key, value in _shallow(self.branches).items() if value}
        return out

    @classmethod
    def from_dict(cls, data: object, where: str = "recording") -> RecordingConfig:
        """Read a mapping strictly. Raises ConfigError naming unknown, missing or invalid keys."""
        values = dict(check_keys(data, [f.name for f in fields(cls)], ("observation",), where))
        values["observation"] = ObservationConfig.from_dict(values["observation"], f"{where}.observation")
        if values.get("actions") is not None:
            values["actions"] = ActionConfig.from_dict(values["actions"], f"{where}.actions")
        if values.get("episodes") is None:
            values.pop("episodes", None)
        else:
            values["episodes"] = EpisodeRule(**_part(EpisodeRule, values["episodes"], (), f"{where}.episodes"))
        if values.get("branches") is not None:
            values["branches"] = BranchConfig(**_part(BranchConfig, values["branches"], (), f"{where}.branches"))
        if not isinstance(values.get("namespace", ""), str):
            raise ConfigError(f"{where}.namespace = {values['namespace']!r}: must be text")
        return cls(**values)

    def keep_beside(self, checkpoint: Path) -> None:
        """Write down in a checkpoint's folder what was what in the bags that it learned from, for `beside`."""
        text = yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True)
        atomic.write(checkpoint / BESIDE_CHECKPOINT, text)

    @staticmethod
    def forget_beside(checkpoint: Path) -> None:
        """Remove what a checkpoint that lay in this folder before said of its bags: the new one learned from others."""
        (checkpoint / BESIDE_CHECKPOINT).unlink(missing_ok=True)

    @classmethod
    def beside(cls, checkpoint: Path) -> RecordingConfig | None:
        """What was what in the bags that a checkpoint learned from; None where it does not say. Raises ConfigError."""
        path = checkpoint / BESIDE_CHECKPOINT
        return cls.load(path) if path.is_file() else None

    @classmethod
    def load(cls, path: str | Path) -> RecordingConfig:
        """Read a YAML file such as `config/observation.yaml`. Raises ConfigError naming the file."""
        try:
            data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{path} cannot be read ({error}): give a file as config/observation.yaml is") from error
        except yaml.YAMLError as error:
            raise ConfigError(f"{path} is not YAML ({error}): correct it") from error
        return cls.from_dict(data, str(path))


def _part(cls: type, data: object, required: tuple[str, ...], where: str) -> dict[str, Any]:
    known = [f.name for f in fields(cls)]
    values: Mapping[str, Any] = check_keys(data, known, required, where)
    return dict(values)


def _shallow(part: Any) -> dict[str, Any]:
    return {f.name: getattr(part, f.name) for f in fields(part)}
