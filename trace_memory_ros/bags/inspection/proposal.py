"""What an inspection comes to: a configuration, what it takes every topic for, and what it passes over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.survey import TopicSurvey

Surveys = Mapping[str, TopicSurvey]
Plain = dict[str, Any]
KEYS = ("name", "topic", "type", "transport", "select", "range_m", "stamp", "stale_after_ms")
"""In the order in which a person reads them; others come behind."""
SECTIONS = ("observation.cameras", "observation.streams", "actions")
"""Where a line of a topic that was passed over can be added."""
GUIDED = "guided by hand, what was measured teaches"
"""Where nothing commands."""
FEW = 3
"""So many topics that differ by numbers alone are listed one by one."""


@dataclass
class PassedOver:
    """A topic that is not used. section: of `SECTIONS`, where `entry` would stand; no entry where none would do."""

    topic: str
    why: str
    section: str = ""
    entry: Plain | None = None

    @property
    def line(self) -> str:
        """The entry as a line of YAML, why it was passed over behind it; empty where there is none."""
        return "" if self.entry is None else f"- {one_line(self.entry)}  # {self.why}"


@dataclass
class Proposal:
    """What `inspect` found. recording: None where no observation can be made. uses: topic -> what it is taken for.

    namespace: what all topics that are used begin with. passed_over: topics that could be used, or are of types that
    nothing reads. missing: what an imitation learner needs and the bag lacks. measured: where those are commands, what
    was measured as parts of actions, as of a robot that was guided by hand. notes: what a person should decide.
    faults: what is wrong with the bag, as far as it was read. differences: of several bags, bag -> in what it is not as
    the proposal says.
    """

    bag: str
    topics: Surveys
    recording: RecordingConfig | None = None
    namespace: str = ""
    uses: dict[str, str] = field(default_factory=dict)
    passed_over: list[PassedOver] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    measured: list[Plain] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[BagFault] = field(default_factory=list)
    differences: dict[str, list[str]] = field(default_factory=dict)

    def named(self, topic: str) -> str:
        """A topic as the configuration names it: without the namespace; absolute where it is outside."""
        begin = f"/{self.namespace}/" if self.namespace else "/"
        return topic.removeprefix(begin) if topic.startswith(begin) else topic

    def yaml(self) -> str:
        """The proposal as a file that `RecordingConfig.load` reads; empty where there is none."""
        if self.recording is None:
            return ""
        comments = [f"# missing: {text}" for text in self.missing] + [f"# {text}" for text in self.notes]
        comments += [f"# {bag}: {text}" for bag, texts in self.differences.items() for text in texts]
        head = [f"# Proposed from {Path(self.bag).name}; docs/how-to/describe_your_robot.md explains every key."]
        tail = [f"# {text}".rstrip() for text in self.others()]
        return "\n".join([*head, *comments, *_body(self.recording.to_dict()), *tail]) + "\n"

    def others(self) -> list[str]:
        """What can be added, by section: measurements as commands, what was passed over; then what nothing reads."""
        taught = ["", f"If the robot was {GUIDED}:", "actions:"] if self.measured else []
        lines = [*taught, *(f"- {one_line(part)}" for part in self.measured)]
        for section in SECTIONS:
            entries = [one for one in self.passed_over if one.section == section and one.entry is not None]
            if entries:
                lines += ["", f"Not used; to use one, add its line to {section}:", *_families(entries)]
        return lines + self._unread()

    def _unread(self) -> list[str]:
        """Topics without an entry, one line for each reason."""
        reasons: dict[str, list[str]] = {}
        for one in self.passed_over:
            if one.entry is None:
                reasons.setdefault(one.why, []).append(one.topic)
        if not reasons:
            return []
        found = [f"  {why}: {_some(topics)}" for why, topics in sorted(reasons.items())]
        return ["", "Not used, and not to be used as recorded:", *found]


def _families(entries: list[PassedOver]) -> list[str]:
    """A line for each entry; of topics that differ by numbers alone one line for all."""
    families: dict[tuple[object, ...], list[PassedOver]] = {}
    for one in entries:
        kind = one.entry.get("type") if one.entry else None
        families.setdefault((re.sub(r"\d+", "#", one.topic), kind), []).append(one)
    lines = []
    for family in families.values():
        shown = family if len(family) <= FEW else family[:1]
        lines += [f"  {one.line}" for one in shown]
        if shown != family:
            lines.append(f"    # {len(family) - 1} alike: {_some([one.topic for one in family[1:]])}")
    return lines


def one_line(entry: Plain) -> str:
    """A mapping as one line of YAML."""
    known = {key: entry[key] for key in KEYS if key in entry}
    text: str = yaml.safe_dump(known | entry, sort_keys=False, default_flow_style=True, width=2**31, allow_unicode=True)
    return text.strip()


def _body(plain: Plain) -> list[str]:
    """The configuration with a line for every camera, stream and command."""
    lines = []
    for key, value in plain.items():
        if key == "observation":
            lines.append("observation:")
            lines += [line for name, part in value.items() for line in _lines(name, part, "  ")]
        else:
            lines += _lines(key, value, "")
    return lines


def _lines(key: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return [f"{indent}{key}:", *(f"{indent}- {one_line(item)}" for item in value)]
    return [f"{indent}{one_line({key: value})[1:-1]}"]


def _some(topics: list[str], most: int = 6) -> str:
    more = len(topics) - most
    return ", ".join(topics[:most]) + (f" and {more} more" if more > 0 else "")
