"""How a recording divides into episodes, and where its branch annotations stand."""

from __future__ import annotations

from collections.abc import Callable

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.inspection.proposal import Proposal
from trace_memory_ros.bags.inspection.words import ANNOTATIONS, has
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule
from trace_memory_ros.bags.survey import TopicSurvey

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
