"""Rows of the page's table of episodes: what went in, what was written, what was decided, and from which moment."""

from __future__ import annotations

from typing import NamedTuple

from trace_memory_ros.evidence.results import AttributionEvidence, BranchEvidence, EpisodeEvidence
from trace_memory_ros.evidence.verdict import matters

NOTHING = "–"
SHOWN_FAULTS = 3


class BranchRow(NamedTuple):
    """A branch. without: the decision without earlier evidence. moment: when the one lies that matters most."""

    label: str
    decision: str
    correct: bool | None
    without: str
    moment: str


class EpisodeRow(NamedTuple):
    """An episode. unusable: ticks without usable inputs. faults: the first of them, in a line."""

    name: str
    ticks: int
    unusable: int
    faults: str
    writes: int
    branches: list[BranchRow]


def episode_row(episode: EpisodeEvidence) -> EpisodeRow:
    """What the table says of an episode."""
    by_tick = {attribution.branch_tick: attribution for attribution in episode.attributions}
    return EpisodeRow(
        name=episode.name,
        ticks=episode.ticks,
        unusable=episode.ticks_stale + episode.ticks_invalid,
        faults="; ".join(episode.faults[:SHOWN_FAULTS]),
        writes=episode.writes,
        branches=[_branch_row(branch, by_tick.get(branch.tick)) for branch in episode.branches],
    )


def _branch_row(branch: BranchEvidence, attribution: AttributionEvidence | None) -> BranchRow:
    without = attribution.earlier.decision if attribution and attribution.earlier else None
    return BranchRow(
        label=branch.label or NOTHING,
        decision=branch.decision or NOTHING,
        correct=branch.correct,
        without=without or NOTHING,
        moment=NOTHING if attribution is None else _moment(attribution),
    )


def _moment(attribution: AttributionEvidence) -> str:
    strongest = attribution.strongest
    if strongest is None:
        return NOTHING
    if not matters(attribution):
        return "no single one"
    return f"{(attribution.branch_stamp_ns - strongest.stamp_ns) / 1e9:.1f} s before"
