"""Where reversing a history acts: on what is written or on the address that is read with; early or late in it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from trace_memory_ros.evidence import diagnostics
from trace_memory_ros.evidence.attribution.leave_out import recall_without
from trace_memory_ros.evidence.branch_moment import BranchMoment, BranchOutcome
from trace_memory_ros.evidence.fleet import FleetPlan, evaluator_of
from trace_memory_ros.evidence.history.scan import ScannedHistory
from trace_memory_ros.evidence.history.transforms import identity, transforms
from trace_memory_ros.policies.references import BranchReferences

QUARTERS = 4


def reversal_figures(plan: FleetPlan, bags: Sequence[Path]) -> dict[str, Any]:
    """Means over the bags' first branches.

    agreement and consistency where only the writes, or only the read, went along the reversed path, where both did, and
    where the branch tick is reversed along with its history; route_similarity of each quarter of the history.
    """
    evaluator = evaluator_of(plan)
    episodes = [episode for bag in bags for episode in plan.episodes(bag)[0]]
    references = BranchReferences(actions for e in episodes for actions in evaluator.branch_actions(e))
    reverse = transforms(plan.recording.observation.tick_period_ms)["order_reversal"]
    nothing = np.random.default_rng(0)
    found: dict[str, list[tuple[bool, float]]] = {}
    quarters = []
    for episode in episodes:
        moment = evaluator.moments(episode, episode.usable, references)[0][0]
        recorded = moment.recorded()
        contents, states = moment.history
        back = evaluator.scanner.scan(contents, reverse(states, evaluator.scanner.spread, nothing))
        whole = evaluator.scanner.scan(contents, identity(states[::-1].copy()))
        variants = {
            "both": back,
            "writes_alone": _read_with(moment, back, recorded.scanned),
            "read_alone": _read_with(moment, recorded.scanned, back),
            "with_the_branch_tick": whole,
        }
        for name, scanned in variants.items():
            found.setdefault(name, []).append(_against(moment, recorded, scanned))
        quarters.append(_by_quarter(back, recorded.scanned, moment.before))
    figures: dict[str, Any] = {
        name: {
            "action_agreement": float(np.mean([agrees for agrees, _ in some])),
            "branch_consistency": float(np.mean([consistency for _, consistency in some])),
        }
        for name, some in found.items()
    }
    return {**figures, "route_similarity_by_quarter": np.mean(quarters, axis=0).tolist()}


def _read_with(moment: BranchMoment, written: ScannedHistory, read: ScannedHistory) -> ScannedHistory:
    """What one history wrote, asked with the address of another."""
    mixed = written._replace(now=read.now)
    everything = np.ones((1, len(written.due)), dtype=np.bool_)
    return mixed._replace(readout=recall_without(moment.scanner.model.memory, mixed, everything))


def _against(moment: BranchMoment, recorded: BranchOutcome, scanned: ScannedHistory) -> tuple[bool, float]:
    found = moment.outcome(scanned)
    agrees = found.label == recorded.label
    cosine = diagnostics.cosine(found.vector, recorded.vector)
    return agrees, diagnostics.branch_consistency(0.0 if cosine is None else cosine, agrees)


def _by_quarter(one: ScannedHistory, other: ScannedHistory, before: int) -> list[float]:
    parts = np.array_split(np.arange(before), QUARTERS)
    routes = [[diagnostics.routes_at(ticks, h.writes, h.routes) for h in (one, other)] for ticks in parts]
    return [diagnostics.route_similarity(*pair) or 0.0 for pair in routes]
