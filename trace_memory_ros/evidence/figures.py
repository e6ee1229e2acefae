"""Evidence of many episodes as figures: task-balanced means, bootstrap errors (TRACE A.6), and what chance gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.evidence import diagnostics
from trace_memory_ros.evidence.history.transforms import ORDER_PRESERVING
from trace_memory_ros.evidence.results import EpisodeEvidence, StabilityEvidence, TransformEvidence
from trace_memory_ros.measure.statistics import wilson_interval

RESAMPLES = 2_000
ByTask = Mapping[str, Sequence[EpisodeEvidence]]
Figure = dict[str, Any]
Value = Callable[[EpisodeEvidence], float | bool | None]

TRANSFORM_FIGURES = (
    "route_similarity",
    "route_similarity_at_writes",
    "readout_cosine",
    "action_agreement",
    "branch_consistency",
    "chunk_distance",
    "writes_moved",
)
STABILITY_FIGURES = (
    "slot_churn",
    "slot_churn_per_tick",
    "write_entropy",
    "slot_occupancy",
    "readout_cosine",
    "decision_agreement",
    "writes",
    "extension",
)


EPISODE_FIGURES = ("writes", "slot_churn", "write_entropy", "slot_occupancy")
SUMMARY_FIGURES = ("route_similarity", "branch_consistency")


def figures_of(episodes: Iterable[EpisodeEvidence]) -> dict[str, Any]:
    """Figures of the episodes, of as many tasks as they have; None where nothing was measured.

    A figure is {mean, se, ci95, episodes}: the mean over tasks of the means over episodes, its bootstrap standard
    error and percentile interval from resampling episodes within each task.
    """
    by_task: dict[str, list[EpisodeEvidence]] = {}
    for episode in episodes:
        by_task.setdefault(episode.task, []).append(episode)

    def figure(name: str) -> Figure | None:
        return balanced(by_task, lambda e: getattr(e, name))

    def summary(name: str) -> Figure | None:
        return balanced(by_task, lambda e: _order_preserving(e, name))

    return {
        "episodes": {task: len(some) for task, some in by_task.items()},
        "branch_accuracy": _accuracy(by_task),
        **{name: figure(name) for name in EPISODE_FIGURES},
        "transforms": {name: _transform(by_task, name) for name in _names(e.transforms for e in _all(by_task))},
        "order_preserving": {name: summary(name) for name in SUMMARY_FIGURES},
        "chance": chance_figures(by_task),
        "stability": {name: _stability(by_task, name) for name in _names(e.stability for e in _all(by_task))},
        "attribution": attribution_figures(by_task),
    }


def balanced(by_task: ByTask, value: Value, seed: int = 0) -> Figure | None:
    """The task-balanced mean of what `value` says of each episode; episodes of which it says None are left out."""
    samples = []
    for episodes in by_task.values():
        found = [value(episode) for episode in episodes]
        known = np.array([float(v) for v in found if v is not None])
        if known.size:
            samples.append(known)
    if not samples:
        return None
    rng = np.random.default_rng(seed)
    resampled = np.mean([s[rng.integers(s.size, size=(RESAMPLES, s.size))].mean(axis=1) for s in samples], axis=0)
    low, high = np.quantile(resampled, (0.025, 0.975))
    return {
        "mean": float(np.mean([s.mean() for s in samples])),
        "se": float(resampled.std()),
        "ci95": [float(low), float(high)],
        "episodes": sum(s.size for s in samples),
    }


def chance_figures(by_task: ByTask) -> dict[str, Any]:
    """What the measures give where nothing is remembered in order.

    route_similarity: between unrelated ticks of a history. readout_cosine, branch_consistency: between the recorded
    histories of episodes with different labels, whose decisions ought to differ.
    """
    cosines, consistencies = [], []
    for episodes in by_task.values():
        pairs = [_unlike(one, other) for i, one in enumerate(episodes) for other in episodes[i + 1 :]]
        found = [pair for pair in pairs if pair is not None]
        if found:
            cosines.append(np.mean([cosine for cosine, _ in found]))
            known = [diagnostics.branch_consistency(cosine, same) for cosine, same in found if same is not None]
            consistencies += [np.mean(known)] if known else []
    return {
        "route_similarity": balanced(by_task, lambda e: e.route_by_chance),
        "readout_cosine_of_other_label": float(np.mean(cosines)) if cosines else None,
        "branch_consistency_of_other_label": float(np.mean(consistencies)) if consistencies else None,
    }


def attribution_figures(by_task: ByTask) -> dict[str, Any]:
    """How many decisions hang on earlier evidence: shares of the decisions that change, and where they come from.

    flipped_by_a_window, flipped_by_a_stretch: without some moment's writes, or its path. flipped_without_earlier:
    without anything earlier; *_writes, *_path: without the earlier writes alone, or the earlier path. strongest_age_s:
    median time from the strongest moment to the decision; strongest_through_path: share of those that count by path.
    """
    found = [a for episode in _all(by_task) for a in episode.attributions]
    earlier = [a.earlier for a in found if a.earlier is not None]
    known = [a for a in found if "flipped" not in a.reasons]
    ages = [(a.branch_stamp_ns - a.strongest.stamp_ns) * 1e-9 for a in found if a.strongest is not None]
    return {
        "decisions": len(found),
        "flipped_by_a_window": _share(any(bool(w.window_flipped) for w in a.writes) for a in known),
        "flipped_by_a_stretch": _share(
            any(bool(w.path_flipped) for w in a.writes) for a in known if "path_delta_action" not in a.reasons
        ),
        "flipped_without_earlier": _share(e.flipped for e in earlier),
        "flipped_without_earlier_writes": _share(e.flipped_without_writes for e in earlier),
        "flipped_without_earlier_path": _share(e.flipped_without_path for e in earlier),
        "strongest_age_s": float(np.median(ages)) if ages else None,
        "strongest_through_path": _share(a.through_path for a in found if a.strongest is not None),
    }


def _share(flags: Iterable[bool | None]) -> float | None:
    """Share of true among those that are known."""
    known = [flag for flag in flags if flag is not None]
    return float(np.mean(known)) if known else None


def _transform(by_task: ByTask, name: str) -> dict[str, Any]:
    def value(field: str) -> Value:
        def read(episode: EpisodeEvidence) -> float | bool | None:
            found = episode.transform(name)
            return None if found is None else getattr(found, field)

        return read

    figures: dict[str, Any] = {field: balanced(by_task, value(field)) for field in TRANSFORM_FIGURES}
    means = {task: _mean_readout(episodes) for task, episodes in by_task.items()}

    def centred(episode: EpisodeEvidence) -> float | None:
        found, mean = episode.transform(name), means[episode.task]
        if found is None or mean is None or not found.readout or not episode.branches:
            return None
        return diagnostics.cosine(np.array(found.readout) - mean, np.array(episode.branches[0].readout) - mean)

    return {**figures, "readout_cosine_centred": balanced(by_task, centred)}


def _mean_readout(episodes: Sequence[EpisodeEvidence]) -> NDArray[np.float64] | None:
    """What all recorded readouts have in common; None for fewer than two."""
    readouts = [episode.branches[0].readout for episode in episodes if episode.branches]
    return np.mean(np.array(readouts), axis=0) if len(readouts) > 1 else None


def _stability(by_task: ByTask, name: str) -> dict[str, Any]:
    def value(field: str) -> Value:
        def read(episode: EpisodeEvidence) -> float | bool | None:
            found = next((row for row in episode.stability if row.name == name), None)
            return None if found is None else getattr(found, field)

        return read

    return {field: balanced(by_task, value(field)) for field in STABILITY_FIGURES}


def _order_preserving(episode: EpisodeEvidence, field: str) -> float | None:
    """Mean of a transform's figure over the transforms that keep the order."""
    values = [getattr(t, field) for t in episode.transforms if t.name in ORDER_PRESERVING]
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _unlike(one: EpisodeEvidence, other: EpisodeEvidence) -> tuple[float, bool | None] | None:
    """Cosine of the readouts and whether the decisions are the same, for two episodes with different labels."""
    if not one.branches or not other.branches:
        return None
    a, b = one.branches[0], other.branches[0]
    cosine = diagnostics.cosine(np.array(a.readout), np.array(b.readout))
    if cosine is None or a.label is None or b.label is None or a.label == b.label:
        return None
    return cosine, None if a.decision is None or b.decision is None else a.decision == b.decision


def _accuracy(by_task: ByTask) -> dict[str, Any] | None:
    """Share of right decisions over all branches, with Wilson's interval."""
    known = [branch.correct for e in _all(by_task) for branch in e.branches if branch.correct is not None]
    if not known:
        return None
    low, high = wilson_interval(sum(known), len(known))
    return {"mean": sum(known) / len(known), "ci95": [low, high], "right": sum(known), "decisions": len(known)}


def _all(by_task: ByTask) -> list[EpisodeEvidence]:
    return [episode for episodes in by_task.values() for episode in episodes]


def _names(rows: Iterable[Sequence[TransformEvidence] | Sequence[StabilityEvidence]]) -> list[str]:
    return list(dict.fromkeys(row.name for some in rows for row in some))
