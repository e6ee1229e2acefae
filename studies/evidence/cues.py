"""Does attribution point at the cue? The bag holds until when it could be seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.evidence.attribution.cues import attribution_evidence
from trace_memory_ros.evidence.fleet import FleetPlan, evaluator_of
from trace_memory_ros.evidence.results import AttributionEvidence, Evaluation, WriteAttribution
from trace_memory_ros.policies.references import BranchReferences

EPISODE_TOPIC = "/episode"


def cues_hidden_ns(bag: Path) -> int:
    """Stamp of the last tick at which the cue could be seen; -1 where it never could."""
    last_ns = -1
    with BagReader(bag) as reader:
        for raw in reader.messages([EPISODE_TOPIC]):
            status: Any = typestore().deserialize_cdr(raw.data, raw.type_name)
            if status.cue_visible:
                stamp = status.header.stamp
                last_ns = stamp.sec * 1_000_000_000 + stamp.nanosec
    return last_ns


def cue_figures(evaluation: Evaluation, hidden_ns: Mapping[str, int]) -> dict[str, Any]:
    """Shares of decisions whose strongest moment lies where the cue was visible, by writes and by path.

    Of all decisions, and of those alone that change without that moment; per label too, as a policy may fall back on
    one branch when it remembers nothing. writes_then: share of writes that fell so early, which is what
    chance would give.
    """
    found = [(a, hidden_ns[e.bag]) for e in evaluation.episodes for a in e.attributions if a.writes]
    labels = sorted({a.label for a, _ in found if a.label})
    early = [w.stamp_ns <= until for a, until in found for w in a.writes]
    return {
        "writes_then": float(np.mean(early)) if early else None,
        "by_writes": _hits(found, _by_writes),
        "by_path": _hits(found, _by_path),
        "by_label": {
            label: {
                "by_writes": _hits([(a, until) for a, until in found if a.label == label], _by_writes),
                "by_path": _hits([(a, until) for a, until in found if a.label == label], _by_path),
            }
            for label in labels
        },
    }


def attribution_cpu_s(plan: FleetPlan, bags: Sequence[Path]) -> float:
    """Median processor time of attributing the first decision of an episode, s."""
    evaluator, spent = evaluator_of(plan), []
    for bag in bags:
        episode = plan.episodes(bag)[0][0]
        moment = evaluator.moments(episode, episode.usable, BranchReferences(evaluator.branch_actions(episode)))[0][0]
        recorded, begun = moment.recorded(), time.process_time()
        attribution_evidence(moment, recorded, plan.settings.window, plan.settings.present_s)
        spent.append(time.process_time() - begun)
    return median(spent)


def _hits(
    found: Sequence[tuple[AttributionEvidence, int]],
    strongest: Callable[[AttributionEvidence], tuple[WriteAttribution, bool] | None],
) -> dict[str, Any]:
    known = [(best, until) for a, until in found if (best := strongest(a)) is not None]
    hits = [write.stamp_ns <= until for (write, _), until in known]
    of_flipped = [hit for hit, ((_, flipped), _) in zip(hits, known, strict=True) if flipped]
    return {
        "decisions": len(hits),
        "at_the_cue": float(np.mean(hits)) if hits else None,
        "flipped": len(of_flipped),
        "flipped_at_the_cue": float(np.mean(of_flipped)) if of_flipped else None,
    }


def _by_writes(attribution: AttributionEvidence) -> tuple[WriteAttribution, bool] | None:
    """The window of writes that changes the chunk most, and whether it changes the decision."""
    known = [w for w in attribution.writes if w.window_delta_action is not None]
    best = max(known, key=lambda w: w.window_delta_action or 0.0, default=None)
    return None if best is None else (best, bool(best.window_flipped))


def _by_path(attribution: AttributionEvidence) -> tuple[WriteAttribution, bool] | None:
    """The stretches of path that change the chunk most, and whether they change the decision."""
    known = [w for w in attribution.writes if w.path_delta_action is not None]
    best = max(known, key=lambda w: w.path_delta_action or 0.0, default=None)
    return None if best is None else (best, bool(best.path_flipped))
