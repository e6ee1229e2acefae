"""Two evaluations of recorded episodes side by side, and their difference on the episodes that both have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.evidence.results import AttributionEvidence, EpisodeEvidence, Evaluation, ModelFacts
from trace_memory_ros.evidence.verdict import FEWEST, Verdict, verdict
from trace_memory_ros.measure.statistics import Interval, bootstrap_interval, sign_test, wilson_interval

Values = Mapping[str, float]
_TRANSFORM = ("route_similarity", "branch_consistency", "readout_cosine", "action_agreement", "chunk_distance")
_STABILITY = ("slot_churn_per_tick", "write_entropy", "slot_occupancy", "readout_cosine", "decision_agreement")
_EPISODE = ("writes", "slot_churn", "write_entropy", "slot_occupancy")


_SHARES = ("decisions_right", "changed_without_earlier_evidence", "action_agreement", "decision_agreement")
"""Last parts of the names of figures that are shares of decisions."""
_ASKED = {"present_s": "--present-seconds", "window": "--window"}
"""Settings that say what a figure is of, and the options of `trace-memory evaluate` that give them."""


class CompareError(ValueError):
    """Two evaluations that have nothing to compare; the message names both sides and the remedy."""


class Side(NamedTuple):
    """A figure of one evaluation: the mean over the episodes that have it, and its 95 % interval.

    The interval is Wilson's where every episode is one decision, right or not, and a bootstrap elsewhere.
    """

    mean: float
    ci95: Interval
    episodes: int


@dataclass(frozen=True)
class Difference:
    """mean: of second minus first, episode by episode, over `episodes` that both have. ci95: bootstrap interval.

    enough: whether so many episodes may claim a difference; of a share of decisions it takes `verdict.FEWEST`, and so
    many that differ, one way rather than the other, that a sign test tells them from chance: of a few a bootstrap alone
    makes sure what is not.
    """

    mean: float
    ci95: Interval
    episodes: int
    enough: bool = True

    @property
    def sure(self) -> bool:
        """Whether there are enough episodes and the interval leaves out 0."""
        return self.enough and not self.ci95.low <= 0 <= self.ci95.high


@dataclass(frozen=True)
class Row:
    """One figure on both sides; None where a side has no episode with it, or no episode is shared."""

    name: str
    first: Side | None
    second: Side | None
    difference: Difference | None

    @property
    def is_share(self) -> bool:
        """Whether it is a share of decisions."""
        return is_share(self.name)


@dataclass(frozen=True)
class Comparison:
    """Both sides. shared: names of the episodes that both have, recorded alike."""

    first: ModelFacts
    second: ModelFacts
    verdicts: tuple[Verdict, Verdict]
    episodes: tuple[int, int]
    shared: tuple[str, ...]
    rows: tuple[Row, ...]

    def figures(self) -> dict[str, Any]:
        """The `figures` of `summary.json`."""
        return {
            "task": self.first.task,
            "models": [asdict(self.first), asdict(self.second)],
            "verdicts": [found.figures() for found in self.verdicts],
            "episodes": list(self.episodes),
            "shared_episodes": len(self.shared),
            "rows": {row.name: _row_figures(row) for row in self.rows},
        }


def compare(first: Evaluation, second: Evaluation) -> Comparison:
    """Every figure that one of the sides has.

    Raises CompareError for other tasks, for other settings of what was asked, and for a side without episodes.
    """
    _check_alike(first, second)
    one, other = _by_name(first, second)
    shared = tuple(name for name, episode in one.items() if name in other and same_recording(episode, other[name]))
    values = [{name: values_of(episode) for name, episode in side.items()} for side in (one, other)]
    names = dict.fromkeys(name for side in values for found in side.values() for name in found)
    return Comparison(
        first.model,
        second.model,
        (verdict(first), verdict(second)),
        (len(one), len(other)),
        shared,
        tuple(_row(name, values[0], values[1], shared) for name in names),
    )


def _check_alike(first: Evaluation, second: Evaluation) -> None:
    if first.model.task != second.model.task:
        raise CompareError(
            f"the first evaluation is of task {first.model.task!r}, the second of {second.model.task!r}: "
            "compare evaluations of one task"
        )
    for name, option in _ASKED.items():
        asked = [side.settings[name] for side in (first, second) if name in side.settings]
        if len(set(asked)) > 1:
            raise CompareError(
                f"the first evaluation was asked with {option} {asked[0]:g}, the second with {asked[1]:g}: a "
                f"difference would be that of the questions; evaluate one of them again with the other's {option}"
            )
    for place, side in (("first", first), ("second", second)):
        if not side.episodes:
            raise CompareError(
                f"the {place} evaluation ({side.model.checkpoint}) has no episode, {side.bags_that_failed} bags "
                "failed: repair them and evaluate again"
            )


def _by_name(first: Evaluation, second: Evaluation) -> tuple[dict[str, EpisodeEvidence], dict[str, EpisodeEvidence]]:
    """Episodes of both sides; those of one bag under one name, though among others of its name it got a longer one."""
    known = {(episode.bag, episode.episode): episode.name for episode in first.episodes}
    named = {known.get((episode.bag, episode.episode), episode.name): episode for episode in second.episodes}
    return {episode.name: episode for episode in first.episodes}, named


def same_recording(one: EpisodeEvidence, other: EpisodeEvidence) -> bool:
    """Whether two episodes of one name are one recording, seen at the same ticks, asked at the same branches."""
    asked = [[(b.stamp_ns, b.label) for b in episode.branches] for episode in (one, other)]
    return asked[0] == asked[1] and (one.ticks, one.period_ms) == (other.ticks, other.period_ms)


def values_of(episode: EpisodeEvidence) -> dict[str, float]:
    """Every figure that an episode has, by dotted name; several branches of an episode count as their mean."""
    found: dict[str, float | bool | None] = {
        "decisions_right": _mean([b.correct for b in episode.branches]),
        "changed_without_earlier_evidence": _mean([a.earlier and a.earlier.flipped for a in episode.attributions]),
        "strongest_moment_age_s": _mean([_age_s(a) for a in episode.attributions]),
        **{name: getattr(episode, name) for name in _EPISODE},
    }
    for transform in episode.transforms:
        found |= {f"{transform.name}.{name}": getattr(transform, name) for name in _TRANSFORM}
    for extension in episode.stability:
        found |= {f"{extension.name}.{name}": getattr(extension, name) for name in _STABILITY}
    found |= {f"latency_ms.{stage}.p50": figures["p50"] for stage, figures in episode.latency_ms.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def _mean(values: list[Any]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _age_s(attribution: AttributionEvidence) -> float | None:
    strongest = attribution.strongest
    return None if strongest is None else (attribution.branch_stamp_ns - strongest.stamp_ns) / 1e9


def _row(name: str, first: Mapping[str, Values], second: Mapping[str, Values], shared: tuple[str, ...]) -> Row:
    pairs = [(first[e][name], second[e][name]) for e in shared if name in first[e] and name in second[e]]
    difference = None
    if pairs:
        by_episode = np.array([b - a for a, b in pairs])
        enough = not is_share(name) or (len(pairs) >= FEWEST and _told_apart(by_episode))
        difference = Difference(float(by_episode.mean()), bootstrap_interval(by_episode), len(pairs), enough)
    return Row(name, _side(name, first), _side(name, second), difference)


def _told_apart(by_episode: NDArray[np.float64]) -> bool:
    return sign_test(int((by_episode > 0).sum()), int((by_episode < 0).sum())) < 0.05


def _side(name: str, side: Mapping[str, Values]) -> Side | None:
    values = [found[name] for found in side.values() if name in found]
    if not values:
        return None
    if is_share(name) and set(values) <= {0.0, 1.0}:
        interval = wilson_interval(round(sum(values)), len(values))
    else:
        interval = bootstrap_interval(values)
    return Side(float(np.mean(values)), interval, len(values))


def is_share(name: str) -> bool:
    """Whether the figure called `name` is a share of decisions."""
    return name.rpartition(".")[2] in _SHARES


def _row_figures(row: Row) -> dict[str, Any]:
    def plain(part: Side | Difference | None) -> dict[str, Any] | None:
        if part is None:
            return None
        return {"mean": part.mean, "ci95": list(part.ci95), "episodes": part.episodes}

    return {"first": plain(row.first), "second": plain(row.second), "difference": plain(row.difference)}
