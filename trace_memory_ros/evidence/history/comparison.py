"""Transformed and longer histories of one branch, measured against the recorded one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.evidence import diagnostics
from trace_memory_ros.evidence.branch_moment import NO_READOUT, BranchMoment, BranchOutcome
from trace_memory_ros.evidence.history.longer import Extension, History, extended
from trace_memory_ros.evidence.history.transforms import Path
from trace_memory_ros.evidence.results import (
    BranchEvidence,
    StabilityEvidence,
    TransformEvidence,
)
from trace_memory_ros.policies.references import chunk_distance

ONE_SLOT = "a memory of fewer than two slots has nothing to route"
_PARTS = ("readout_cosine", "action_agreement")
CLOCK_ALONE = "the memory takes no signature: a transform of the path can change when it writes, and nothing else"
NO_WRITE = "no write fell before the branch"
FEW_WRITES = "fewer than two writes fell before the branch"


def branch_evidence(moment: BranchMoment, recorded: BranchOutcome) -> BranchEvidence:
    """What is decided at a branch."""
    decision, readout = recorded.decision, recorded.scanned.readout
    reasons = {} if decision else dict.fromkeys(("decision", "correct", "margin"), moment.undecided)
    if decision and not moment.label:
        reasons["correct"] = "the annotation does not say which branch is right"
    return BranchEvidence(
        **moment.facts(),
        decision=recorded.label,
        correct=decision.label == moment.label if decision and moment.label else None,
        margin=decision.margin if decision else None,
        read_weights=tuple(readout.read_weights[0].tolist()),
        readout=tuple(recorded.vector.tolist()),
        reasons=reasons,
        place=moment.place,
    )


def route_by_chance(moment: BranchMoment, recorded: BranchOutcome) -> float | None:
    """`diagnostics.chance_similarity` of the ticks before the branch. None for fewer than two slots, and no write."""
    scanned = recorded.scanned
    if scanned.routes.shape[1] < 2:
        return None
    return diagnostics.chance_similarity(
        diagnostics.routes_at(np.arange(moment.before), scanned.writes, scanned.routes)
    )


def transform_evidence(moment: BranchMoment, recorded: BranchOutcome, name: str, path: Path) -> TransformEvidence:
    """Eq. 14-20 of the history along `path` against `recorded`, the outcome along the recorded path."""
    found = moment.outcome(moment.scanner.scan(moment.history.contents, path))
    branch = len(path) - 1
    before, reference = _before(found, branch), _before(recorded, branch)
    reasons = {} if moment.scanner.model.uses_signature else {"path": CLOCK_ALONE}
    similarity, at_writes = (_similarity(found, recorded, at) for at in (np.arange(branch), reference))
    for measure, value in (("route_similarity", similarity), ("route_similarity_at_writes", at_writes)):
        if value is None:
            reasons[measure] = ONE_SLOT if recorded.scanned.routes.shape[1] < 2 else NO_WRITE
    cosine, agrees = _against(moment, found, recorded, reasons, "action_agreement")
    if cosine is None or agrees is None:
        reasons["branch_consistency"] = "; ".join(dict.fromkeys(reasons[k] for k in _PARTS if k in reasons))
    return TransformEvidence(
        name=name,
        route_similarity=similarity,
        route_similarity_at_writes=at_writes,
        readout_cosine=cosine,
        action_agreement=agrees,
        branch_consistency=None if cosine is None or agrees is None else diagnostics.branch_consistency(cosine, agrees),
        decision=found.label,
        chunk_distance=_distance(found, recorded),
        writes=len(before),
        writes_moved=diagnostics.moved(reference, before),
        path_points=sum(len(points) for points in path),
        readout=tuple(found.vector.tolist()),
        reasons=reasons,
    )


def recorded_stability(moment: BranchMoment, recorded: BranchOutcome) -> StabilityEvidence:
    """The first row of table 12: the history as it was recorded."""
    return _stability(moment, recorded, recorded, "reported", 1.0, "the recorded history", moment.before)


def stability_evidence(
    moment: BranchMoment,
    recorded: BranchOutcome,
    extension: Extension,
    donor: History | None,
    rng: np.random.Generator,
) -> StabilityEvidence:
    """A further row of table 12. Raises ValueError for too short a history, and for a donor that is not there."""
    contents, path = extended(moment.history, extension, donor, rng)
    found = moment.outcome(moment.scanner.scan(contents, path))
    before = len(path) - 1
    factor = before / moment.before
    return _stability(moment, found, recorded, extension.name, factor, extension.source, before)


def _stability(
    moment: BranchMoment,
    found: BranchOutcome,
    recorded: BranchOutcome,
    name: str,
    factor: float,
    source: str,
    ticks: int,
) -> StabilityEvidence:
    scanned = found.scanned
    routes = scanned.routes[scanned.writes < ticks]
    reasons: dict[str, str] = {}
    figures = {
        "slot_churn": diagnostics.churn(routes),
        "slot_churn_per_tick": diagnostics.churn_per_tick(routes, ticks),
        "write_entropy": diagnostics.write_entropy(routes),
        "slot_occupancy": diagnostics.occupancy(routes),
    }
    one_slot = routes.shape[1] < 2
    reasons |= {name: ONE_SLOT if one_slot else FEW_WRITES for name, value in figures.items() if value is None}
    cosine, agrees = _against(moment, found, recorded, reasons, "decision_agreement")
    return StabilityEvidence(
        name=name,
        extension=factor,
        source=source,
        ticks=ticks,
        writes=len(routes),
        **figures,
        readout_cosine=cosine,
        decision_agreement=agrees,
        decision=found.label,
        reasons=reasons,
    )


def _before(outcome: BranchOutcome, branch: int) -> NDArray[np.int64]:
    """Ticks of the writes before the branch."""
    return outcome.scanned.writes[outcome.scanned.writes < branch]


def _similarity(one: BranchOutcome, other: BranchOutcome, at: NDArray[np.int64]) -> float | None:
    if other.scanned.routes.shape[1] < 2:
        return None
    routes = (diagnostics.routes_at(at, outcome.scanned.writes, outcome.scanned.routes) for outcome in (one, other))
    return diagnostics.route_similarity(*routes)


def _against(
    moment: BranchMoment, found: BranchOutcome, recorded: BranchOutcome, reasons: dict[str, str], agreement: str
) -> tuple[float | None, bool | None]:
    """Cosine of the readouts and whether the same branch is decided, with reasons for what is unknown."""
    cosine = diagnostics.cosine(found.vector, recorded.vector)
    if cosine is None:
        reasons["readout_cosine"] = NO_READOUT
    if moment.undecided:
        reasons[agreement] = moment.undecided
        return cosine, None
    return cosine, found.label == recorded.label


def _distance(found: BranchOutcome, recorded: BranchOutcome) -> float | None:
    if found.chunk is None or recorded.chunk is None:
        return None
    return chunk_distance(found.chunk, recorded.chunk)
