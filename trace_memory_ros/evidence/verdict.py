"""Does the policy use earlier evidence, or only the current view? The answer of an evaluation, with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Any

from trace_memory_ros.evidence.results import AttributionEvidence, EarlierLeftOut, Evaluation, WriteAttribution
from trace_memory_ros.measure.statistics import wilson_interval

USES_ABOVE = 0.1
"""Earlier evidence is used when surely more than this share of decisions changes without it. Not half of them need to:
a policy that falls back on one branch decides half of a balanced set as before."""
IGNORES_BELOW = 0.25
"""Earlier evidence is not used when surely less than this share changes, and not surely more than `USES_ABOVE`."""
PART = 0.25
"""A moment matters by itself when it changes the action by more than this part of what all earlier ones change."""
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
    """sentence: the answer for people. decisions: tried without earlier evidence; changed: became another branch.

    details: where and when the evidence lies, each in half a sentence.
    """

    answer: Answer
    sentence: str
    decisions: int = 0
    changed: int = 0
    details: tuple[str, ...] = ()

    def figures(self) -> dict[str, Any]:
        """The verdict in `summary.json`."""
        interval = list(wilson_interval(self.changed, self.decisions)) if self.decisions else None
        return {
            "answer": self.answer.value,
            "sentence": self.sentence,
            "decisions": self.decisions,
            "changed_without_earlier_evidence": self.changed,
            "changed_ci95": interval,
            "details": list(self.details),
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
    without = (
        f"a memory that begins {tried[0].earlier.present_s:g} s before a decision turns {shares} to another branch"
    )
    if low > USES_ABOVE:
        sentence = f"The policy uses earlier evidence: {without}{_rightness(tried)}."
        return Verdict(Answer.EARLIER, sentence, count, changed, _details(tried))
    if high < IGNORES_BELOW:
        sentence = f"Decisions follow the current view only: {without}{_rightness(tried)}."
        return Verdict(Answer.CURRENT, sentence, count, changed)
    few = f"{count} decisions are too few: {without}; evaluate more episodes"
    return Verdict(Answer.UNKNOWN, f"{_UNKNOWN}, because {few}.", count, changed, _details(tried))


def _details(tried: Sequence[Tried]) -> tuple[str, ...]:
    return tuple(line for line in (_held(tried), _moment(tried)) if line)


def _rightness(tried: Sequence[Tried]) -> str:
    """How many decisions are right with and without earlier evidence, where the right ones are known."""
    known = [t for t in tried if t.attribution.label is not None]
    if not known:
        return ""
    right, without = sum(t.right for t in known), sum(t.right_without for t in known)
    return f"; {right} of {len(known)} are right with all of the past, {without} with that little"


def flips_without(write: WriteAttribution) -> bool:
    """Whether the decision becomes another without what a moment wrote, or without the path it drove."""
    return bool(write.flipped or write.window_flipped or write.path_flipped)


def change_without(write: WriteAttribution) -> float:
    """How much the action changes without what a moment wrote, or the readout without a policy.

    Without the path it drove as well, where that changes the decision: any displacement changes the action somewhat.
    """
    if write.window_delta_action is None:
        return write.window_delta_readout
    return max(write.window_delta_action, (write.path_delta_action or 0.0) if write.path_flipped else 0.0)


def matters(attribution: AttributionEvidence) -> bool:
    """Whether the strongest moment counts by itself: it changes the decision, or a good part of what all earlier do.

    Evidence that many moments hold survives the loss of any of them, and a branch that would be taken anyway needs
    none; then none is the moment of the decision.
    """
    strongest, earlier = attribution.strongest, attribution.earlier
    if strongest is None or earlier is None:
        return strongest is not None
    every = earlier.delta_readout if earlier.delta_action is None else earlier.delta_action
    return flips_without(strongest) or (earlier.flipped is not False and change_without(strongest) > PART * every)


def _moment(tried: Sequence[Tried]) -> str:
    """How long before the decision the moment lies that changes it most, over decisions that have one."""
    changed = [t.attribution for t in tried if t.earlier.flipped]
    strongest = [(a, a.strongest) for a in changed if matters(a)]
    ages_s = [(a.branch_stamp_ns - s.stamp_ns) / 1e9 for a, s in strongest if s is not None]
    if not ages_s:
        return "no single moment matters by itself: many hold the evidence" if changed else ""
    some = "" if len(ages_s) == len(changed) else f", in the {len(ages_s)} that have one"
    return f"the moment that matters most lies {median(ages_s):.1f} s before the decision (median{some})"


def _held(tried: Sequence[Tried]) -> str:
    """Which of the two places of a memory that follows signatures holds the evidence."""
    known = [t.earlier for t in tried if t.earlier.flipped_without_path is not None]
    if not known:
        return ""
    path = sum(bool(e.flipped_without_path) for e in known)
    writes = sum(bool(e.flipped_without_writes) for e in known)
    return (
        f"without the earlier writes alone {writes} of {len(known)} decisions change, without the earlier path in the "
        f"address {path}"
    )


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
