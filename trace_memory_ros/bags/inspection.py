"""Proposes a recording configuration from what a bag, or a folder of them, holds, and names what is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.differences import differences
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.bags.survey import TopicSurvey, merged, survey
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.runtime.actions import ActionConfig

TICK_MS = 100
LEAST_STALE_MS = 100
EPISODE_GAP_MS = 2000.0
COMMAND_WORDS = re.compile(r"command|cmd|target|desired|goal|leader|action|reference")
BRANCH_WORDS = re.compile(r"branch|annotation|label")
GENERIC = {"image", "image_raw", "image_color", "image_rect", "image_rect_color", "compressed", "raw", "color", "rgb"}
DEPTHS = ("16UC1", "32FC1")

Surveys = Mapping[str, TopicSurvey]


@dataclass
class Proposal:
    """What `inspect` found. recording: None where no observation can be made. uses: topic -> what it is taken for.

    missing: what an imitation learner needs and the bag lacks. notes: what a person should decide. differences: of
    several bags, bag -> in what it is not as the proposal says.
    """

    bag: str
    topics: Surveys
    recording: RecordingConfig | None = None
    uses: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    faults: list[BagFault] = field(default_factory=list)
    differences: dict[str, list[str]] = field(default_factory=dict)

    def yaml(self) -> str:
        """The proposal as a file that `RecordingConfig.load` reads; empty where there is none."""
        if self.recording is None:
            return ""
        comments = [f"# missing: {text}" for text in self.missing] + [f"# {text}" for text in self.notes]
        comments += [f"# {bag}: {text}" for bag, texts in self.differences.items() for text in texts]
        head = [f"# Proposed from {Path(self.bag).name}; docs/how-to/bags.md explains every key.", *comments]
        plain: dict[str, Any] = self.recording.to_dict()
        body: str = yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=110)
        return "\n".join(head) + "\n" + body


def inspect(bag: str | Path) -> Proposal:
    """Propose a configuration for bags like this one. Raises BagFault for a bag that cannot be read."""
    with BagReader(bag) as reader:
        topics = survey(reader)
        proposal = Proposal(str(bag), topics, faults=reader.faults)
    _fill(proposal)
    return proposal


def inspect_bags(folder: str | Path, bags: Sequence[Path]) -> Proposal:
    """Propose one configuration for all `bags` of `folder`, and say what is otherwise in which of them.

    A topic counts where at least half of the bags hold it. A bag that cannot be read is left out and in `faults`.
    Raises BagFault where none can.
    """
    surveys: dict[str, Surveys] = {}
    faults: list[BagFault] = []
    for bag in bags:
        try:
            with BagReader(bag) as reader:
                surveys[str(bag.relative_to(folder))] = survey(reader)
                faults += reader.faults
        except BagFault as fault:
            faults += [*fault.also, fault]
    if not surveys:
        raise BagFault(folder, f"holds {len(bags)} bags of which none can be read", "folder", faults[0].remedy)
    proposal = Proposal(f"{folder} ({len(surveys)} bags)", merged(list(surveys.values())), faults=faults)
    rare = _drop_rare(proposal, surveys)
    _fill(proposal)
    proposal.differences = {
        name: found
        for name, topics in surveys.items()
        if (found := differences(topics, proposal.topics, proposal.uses, rare))
    }
    return proposal


def _drop_rare(proposal: Proposal, surveys: Mapping[str, Surveys]) -> set[str]:
    """Leave out topics that less than half of the bags hold; returns those that could have been used."""
    holders = {name: sum(name in topics for topics in surveys.values()) for name in proposal.topics}
    rare = {name for name, count in holders.items() if 2 * count < len(surveys)}
    used = {name for name in rare if proposal.topics[name].readable}
    for name in sorted(used):
        proposal.notes.append(f"{name} is in {holders[name]} of {len(surveys)} bags and left out")
    proposal.topics = {name: found for name, found in proposal.topics.items() if name not in rare}
    return used


def _fill(proposal: Proposal) -> None:
    """Propose from the topics, and say what is missing and what a person should decide."""
    topics = proposal.topics
    cameras = _cameras(proposal)
    streams = _joints(proposal)
    base = _base(proposal)
    actions = _actions(proposal)
    if not cameras:
        proposal.missing.append("a camera: no sensor_msgs/Image or CompressedImage topic of colour or grey images")
    if not streams:
        proposal.missing.append("joint positions: no sensor_msgs/JointState topic with a position per name")
    if actions is None:
        proposal.missing.append(
            "commands: no trajectory_msgs/JointTrajectory topic, nor a JointState topic named like a command; "
            "without them a bag can be replayed and evaluated, not learned from"
        )
    if not cameras or not streams:
        return
    period_ms = _tick_period(proposal)
    observation = ObservationConfig(
        cameras=tuple(CameraConfig(n, t, _stale_ms(topics["/" + t], period_ms), transport=k) for n, t, k in cameras),
        streams=(
            *(
                SensorConfig(name, topic, _stale_ms(topics["/" + topic], period_ms), select={"position": given})
                for name, topic, given in streams
            ),
            *(
                ()
                if base is None
                else (SensorConfig(*base[:2], _stale_ms(topics["/" + base[1]], period_ms), type=base[2]),)
            ),
        ),
        tick_period_ms=period_ms,
        deadline_ms=2 * period_ms,
    )
    proposal.recording = RecordingConfig(observation, actions, _episodes(proposal, cameras[0][1]), _branches(proposal))


def _relative(topic: str) -> str:
    return topic.lstrip("/")


def _of_type(proposal: Proposal, *types: str) -> dict[str, TopicSurvey]:
    """Topics of these types that hold readable messages, most messages first."""
    chosen = {n: s for n, s in proposal.topics.items() if s.info.type_name in types and s.readable}
    return dict(sorted(chosen.items(), key=lambda item: -item[1].info.messages))


def _cameras(proposal: Proposal) -> list[tuple[str, str, str]]:
    """Name, relative topic and transport of every colour or grey camera, raw where both are recorded."""
    found: list[tuple[str, str, str]] = []
    images = _of_type(proposal, fields.IMAGE, fields.COMPRESSED)
    for topic in sorted(images, key=lambda name: (images[name].info.type_name != fields.IMAGE, name)):
        compressed = images[topic].info.type_name == fields.COMPRESSED
        layout = images[topic].main_format
        if layout.startswith(DEPTHS) or "compressedDepth" in layout:
            proposal.notes.append(f"{topic} is depth and left out: add it as a camera if the policy shall see it")
        elif compressed and topic.removesuffix("/compressed") in images:
            proposal.notes.append(f"{topic} repeats {topic.removesuffix('/compressed')} and is left out")
        else:
            name = _unique(_camera_name(topic), [other for other, _, _ in found])
            found.append((name, _relative(topic), "compressed" if compressed else "raw"))
            proposal.uses[topic] = f"camera {name}"
    return sorted(found, key=lambda camera: camera[1])


def _camera_name(topic: str) -> str:
    parts = [part for part in topic.split("/") if part and part not in GENERIC]
    if len(parts) > 1 and parts[0] in ("camera", "cameras"):
        parts = parts[1:]
    return "_".join(parts) or "camera"


def _unique(name: str, taken: list[str]) -> str:
    count = 2
    chosen = name
    while chosen in taken:
        chosen, count = f"{name}_{count}", count + 1
    return chosen


def _joints(proposal: Proposal) -> list[tuple[str, str, tuple[str, ...]]]:
    """Name, relative topic and joints of the topics that give them; topics of most joints first."""
    joints: list[str] = []
    streams: list[tuple[str, str, tuple[str, ...]]] = []
    states = {t: s for t, s in _of_type(proposal, fields.JOINTS).items() if not COMMAND_WORDS.search(t)}
    for topic, found in sorted(states.items(), key=lambda item: (-len(item[1].main_names), item[0])):
        names = found.main_names
        new = tuple(name for name in names if name not in joints)
        if not new:
            proposal.notes.append(f"{topic} gives no joint that another topic does not give: left out")
            continue
        if len(found.names) > 1:
            proposal.notes.append(
                f"{topic} carries {len(found.names)} different sets of joints, as from several publishers: a message "
                "without the configured joints makes its tick unusable; republish them as one"
            )
        joints += new
        name = _unique(_relative(topic).replace("/", "_"), [other for other, _, _ in streams])
        streams.append((name, _relative(topic), new))
        proposal.uses[topic] = f"{len(new)} joints"
    return streams


def _base(proposal: Proposal) -> tuple[str, str, str] | None:
    """Name, relative topic and kind of a base that moves; None for a fixed one."""
    for topic, found in _of_type(proposal, fields.ODOMETRY, fields.TWIST).items():
        if COMMAND_WORDS.search(topic):
            continue
        kind = found.info.type_name
        if found.moves:
            proposal.uses[topic] = f"base velocity ({kind})"
            return _relative(topic).replace("/", "_"), _relative(topic), kind
        proposal.notes.append(f"{topic} never moves: the base is taken for fixed")
    return None


def _actions(proposal: Proposal) -> ActionConfig | None:
    commands = {t: s for t, s in _of_type(proposal, fields.TRAJECTORY).items() if s.main_names}
    kind = "joint_trajectory"
    if not commands:
        states = _of_type(proposal, fields.JOINTS).items()
        commands = {t: s for t, s in states if COMMAND_WORDS.search(t) and s.main_names}
        kind = "joint_state"
    if not commands:
        return None
    topic, *others = commands
    for other in others:
        proposal.notes.append(f"{other} carries commands too and is left out: one topic must name every actuator")
    proposal.uses[topic] = "actions"
    return ActionConfig.of_kind(_relative(topic), kind, commands[topic].main_names)


def _tick_period(proposal: Proposal) -> int:
    """100 ms, or the period of the slowest stream that is used where that is longer."""
    used = [proposal.topics[t] for t, use in proposal.uses.items() if use != "actions"]
    slowest = max((found.period_ms or 0.0 for found in used), default=0.0)
    return TICK_MS if slowest < 1.05 * TICK_MS else math.ceil(slowest / 10 - 1e-6) * 10


def _stale_ms(found: TopicSurvey, tick_ms: int) -> int:
    """Two and a half periods of the stream or the ticks, and above what its own jitter reaches."""
    period = max(found.period_ms or 0.0, 0.0)
    limit = max(2.5 * period, tick_ms, LEAST_STALE_MS, 1.5 * min(found.longest_ms, 4 * period))
    return math.ceil(limit / 10 - 1e-6) * 10


def _episodes(proposal: Proposal, clock: str) -> EpisodeRule:
    for topic, found in proposal.topics.items():
        if found.info.type_name == fields.STATUS and found.info.messages:
            proposal.uses[topic] = "episodes"
            return EpisodeRule("topic", _relative(topic))
    gaps = int((proposal.topics["/" + clock].gaps_ms > EPISODE_GAP_MS).sum())
    if gaps:
        proposal.notes.append(f"the first camera pauses {gaps} times for over 2 s: the bag is cut there")
        return EpisodeRule("gap", gap_s=EPISODE_GAP_MS / 1e3)
    return EpisodeRule()


def _branches(proposal: Proposal) -> BranchConfig | None:
    for topic, found in proposal.topics.items():
        text = found.info.type_name in (fields.TEXT, *fields.INTEGERS)
        if text and BRANCH_WORDS.search(topic) and found.info.messages:
            proposal.uses[topic] = "branches"
            return BranchConfig(topic=_relative(topic))
    return None
