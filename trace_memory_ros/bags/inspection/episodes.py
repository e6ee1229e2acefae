"""How a recording divides into episodes, and where its branch annotations stand."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.inspection.proposal import Proposal, Surveys
from trace_memory_ros.bags.inspection.words import ANNOTATIONS, has
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule
from trace_memory_ros.bags.survey import TopicSurvey, times

EPISODE_GAP_MS = 2000.0
Test = Callable[[str, TopicSurvey], bool]


def episode_topic(proposal: Proposal) -> str:
    """The topic that tells of episodes; empty where none does."""
    return _first(proposal, "episodes", lambda topic, found: found.info.type_name == fields.STATUS)


def branch_topic(proposal: Proposal) -> str:
    """The topic of branch annotations; empty where there is none."""
    types = (fields.TEXT, *fields.INTEGERS)
    return _first(proposal, "branches", lambda topic, found: found.info.type_name in types and has(topic, ANNOTATIONS))


def _first(proposal: Proposal, use: str, test: Test) -> str:
    for topic, found in sorted(proposal.topics.items()):
        if found.info.messages and topic not in proposal.uses and test(topic, found):
            proposal.uses[topic] = use
            return topic
    return ""


def clock_of(camera: str, found: TopicSurvey, bags: Mapping[Path, Surveys]) -> TopicSurvey:
    """`found`, of the clock camera, with the stamps of all its messages: a survey ends after a minute.

    Where nothing can have happened in the rest of a bag, those of the survey will do: to read all takes seconds.
    """
    stamps: list[array[int]] = []
    logs: list[array[int]] = []
    for bag, topics in bags.items():
        one = topics.get(camera)
        if one is not None and one.info.type_name == found.info.type_name:
            seen = one.looked_at >= one.info.messages
            stamp_ns, log_ns = (one.stamps_ns[0], one.logs_ns[0]) if seen else _times(bag, camera, one)
            stamps.append(stamp_ns)
            logs.append(log_ns)
    return replace(found, stamps_ns=stamps, logs_ns=logs)


def _times(bag: Path, topic: str, found: TopicSurvey) -> tuple[array[int], array[int]]:
    """Header stamps and log times of all messages, or of those surveyed if no pause or fall can be in the rest."""
    if _goes_on(found):
        return found.stamps_ns[0], found.logs_ns[0]
    stamps, logs = array("q"), array("q")
    with BagReader(bag) as reader:
        for _, stamp_ns, log_ns in times(reader.messages({topic})):
            stamps.append(stamp_ns)
            logs.append(log_ns)
    return stamps, logs


def _goes_on(found: TopicSurvey) -> bool:
    """Whether the bag ends when as many messages as it holds have come at their pace, and the last is stamped so."""
    gaps, (stamps, logs), end = found.gaps_ms, (found.stamps_ns[0], found.logs_ns[0]), found.end
    if end is None or not len(gaps) or gaps.max() > EPISODE_GAP_MS:
        return False
    pace_ms = min(float(gaps.mean()), float(np.median(gaps)))
    lost_ms = (end.bag_ns - logs[-1]) / 1e6 - pace_ms * (found.info.messages - len(stamps))
    moved_ms = ((end.stamp_ns - stamps[-1]) - (end.log_ns - logs[-1])) / 1e6 if found.stamped else 0.0
    return lost_ms <= EPISODE_GAP_MS and abs(moved_ms) <= EPISODE_GAP_MS


def episode_rule(proposal: Proposal, topic: str, clock: TopicSurvey) -> EpisodeRule:
    """By that topic where there is one, else by pauses of the clock camera, else each bag is one."""
    if topic:
        return EpisodeRule("topic", topic)
    gaps = int((clock.gaps_ms > EPISODE_GAP_MS).sum())
    if gaps:
        proposal.notes.append(f"the first camera pauses {gaps} times for over 2 s: the bag is cut there")
    falls = clock.falls(EPISODE_GAP_MS)
    if falls:
        proposal.notes.append(f"the first camera's stamps fall {falls} times by over 2 s: the bag is cut there")
    if gaps or falls:
        return EpisodeRule("gap", gap_s=EPISODE_GAP_MS / 1e3)
    return EpisodeRule()


def branch_rule(topic: str) -> BranchConfig | None:
    """By that topic; None where there is none."""
    return BranchConfig(topic=topic) if topic else None
