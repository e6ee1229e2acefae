"""Does the policy use earlier evidence, or only the current view? The answer of an evaluation, with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Any

from trace_memory_ros.evaluation.evidence import AttributionEvidence, EarlierLeftOut, Evaluation
from trace_memory_ros.evaluation.statistics import wilson_interval

USES_ABOVE = 0.1
"""Earlier evidence is used when surely more than this share of decisions changes without it. Not half of them need to:
a policy that falls back on one branch decides half of a balanced set as before."""
IGNORES_BELOW = 0.25
"""Earlier evidence is not used when surely less than this share changes, and not surely more than `USES_ABOVE`."""
_DECIDING = ("attributions", "flipped", "delta_action", "writes")
"""Fields whose absence leaves no decision to compare."""
_UNKNOWN = "It cannot be told whether earlier evidence is used"


class Answer(Enum):
    """What can be said."""

    EARLIER = "earlier evidence"
    CURRENT = "current view"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True)
class Verdict:
    """sentence: the answer for people. decisions: tried without earlier evidence; changed: became another branch."""

    answer: Answer
    sentence: str
    decisions: int = 0
    changed: int = 0

    def figures(self) -> dict[str, Any]:
        """The verdict in `summary.json`."""
        interval = list(wilson_interval(self.changed, self.decisions)) if self.decisions else None
        return {
            "answer": self.answer.value,
            "sentence": self.sentence,
            "decisions": self.decisions,
            "changed_without_earlier_evidence": self.changed,
            "changed_ci95": interval,
        }


@dataclass(frozen=True)
class Tried:
    """A decision that was also made without what was written earlier."""

    attribution: AttributionEvidence
    earlier: EarlierLeftOut

    @property
    def right(self) -> bool:
        return self.attribution.decision == self.attribution.label

    @property
    def right_without(self) -> bool:
        return self.earlier.decision == self.attribution.label


def tried_decisions(evaluation: Evaluation) -> tuple[Tried, ...]:
    """Decisions of all episodes that were made with and without earlier evidence."""
    return tuple(
        Tried(attribution, attribution.earlier)
        for episode in evaluation.episodes
        for attribution in episode.attributions
        if attribution.earlier is not None and attribution.earlier.flipped is not None
    )


def verdict(evaluation: Evaluation) -> Verdict:
    """The answer of an evaluation; where it cannot be told, the sentence says why and what would tell."""
    tried = tried_decisions(evaluation)
    if not tried:
        return Verdict(Answer.UNKNOWN, f"{_UNKNOWN}, because {_obstacle(evaluation)}.")
    count = len(tried)
    changed = sum(bool(t.earlier.flipped) for t in tried)
    low, high = wilson_interval(changed, count)
    shares = f"{changed} of {count} decisions (95 % CI {low:.2f}–{high:.2f})"
    without = f"leaving out what was written more than {tried[0].earlier.present_s:g} s before a decision turns"
    known = _rightness(tried)
    if low > USES_ABOVE:
        sentence = f"The policy uses earlier evidence: {without} {shares} to another branch{known}{_moment(tried)}."
        return Verdict(Answer.EARLIER, sentence, count, changed)
    if high < IGNORES_BELOW:
        sentence = f"Decisions follow the current view only: {without} {shares} to another branch{known}."
        return Verdict(Answer.CURRENT, sentence, count, changed)
    few = f"{count} decisions are too few: {without} {shares} to another branch; evaluate more episodes"
    return Verdict(Answer.UNKNOWN, f"{_UNKNOWN}, because {few}.", count, changed)


def _rightness(tried: Sequence[Tried]) -> str:
    """How many decisions are right with and without earlier evidence, where the right ones are known."""
    known = [t for t in tried if t.attribution.label is not None]
    if not known:
        return ""
    right, without = sum(t.right for t in known), sum(t.right_without for t in known)
    return f"; {right} of {len(known)} are right with it, {without} without"


def _moment(tried: Sequence[Tried]) -> str:
    """How long before the decision the moment lies that changes it most, where leaving a moment out changes it."""
    ages_s = []
    for attribution in (t.attribution for t in tried if t.earlier.flipped):
        strongest = attribution.strongest
        if strongest is not None:
            ages_s.append((attribution.branch_stamp_ns - strongest.stamp_ns) / 1e9)
    return f"; the moment that matters most lies {median(ages_s):.1f} s before the decision (median)" if ages_s else ""


def _obstacle(evaluation: Evaluation) -> str:
    """Why no decision was tried."""
    if not evaluation.episodes:
        lost = len(evaluation.failed)
        return f"all {lost} bags failed; the list below says why" if lost else "there was no bag to evaluate"
    if not evaluation.model.has_policy:
        return "the checkpoint holds a memory without a policy, so no action can be compared; train it with one"
    if not any(episode.branches for episode in evaluation.episodes):
        return "no branch frame is annotated in these bags; name an annotation topic or file in the recording config"
    if not evaluation.settings.get("attribution", True):
        return "no write was left out; evaluate with attribution"
    parts = [episode.reasons for episode in evaluation.episodes]
    parts += [attribution.reasons for episode in evaluation.episodes for attribution in episode.attributions]
    given = [part[name] for part in parts for name in _DECIDING if name in part]
    if given:
        return max(given, key=given.count)
    return "no write lies early enough before a branch"
