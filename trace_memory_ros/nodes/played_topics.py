"""Which topics of a bag go to a live memory: those that its checkpoint observes, and never a recorded command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.shipped import find_checkpoint

CONFIG = "config.yaml"


def sensor_topics(checkpoint: str, namespace: str = "", renamed: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Absolute names of the topics that memory_node subscribes to with `checkpoint`, a folder or a shipped name.

    namespace: that of the node. renamed: name in the checkpoint -> name that the node was remapped to.
    Raises ValueError for a checkpoint that is not there or cannot be read. Only its `config.yaml` is looked at.
    """
    file = Path(find_checkpoint(checkpoint)) / CONFIG
    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
        observation = ObservationConfig.from_dict(config["observation"], f"{file}: observation")
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise ValueError(f"{file} tells no topics ({error}): copy both files of the checkpoint again") from error
    topics = (stream.topic for stream in observation.inputs)
    return tuple(dict.fromkeys(absolute((renamed or {}).get(topic, topic), namespace) for topic in topics))


def absolute(topic: str, namespace: str = "") -> str:
    """A topic as it stands in a bag: `/namespace/topic`; one that begins with a slash is absolute already."""
    if topic.startswith("/"):
        return topic
    space = namespace.strip("/")
    return f"/{space}/{topic}" if space else f"/{topic}"
