"""Two answers of an evaluation, each with its numbers: are decisions made from earlier evidence, and are they right?

A policy can use the past and be wrong, and be right without it; so neither answer stands for the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import Any

from trace_memory_ros.evidence.results import (
    AttributionEvidence,
    BranchEvidence,
    EarlierLeftOut,
    Evaluation,
    WriteAttribution,
)
from trace_memory_ros.measure.statistics import wilson_interval

FEWEST = 20
"""Fewer decisions than this claim nothing, whatever they are."""
USES_ABOVE = 0.1
"""Earlier evidence is used when surely more than this share of decisions changes without it. Not half of them need to:
a policy that falls back on one branch decides half of a balanced set as before."""
IGNORES_BELOW = 0.25
"""Earlier evidence is not used when surely less than this share changes, and not surely more than `USES_ABOVE`."""
PART = 0.25
"""A moment matters by itself when it changes the action by more than this part of what all earlier ones change."""
_DECIDING = ("attributions", "flipped", "delta_action", "earlier", "writes")
"""Fields whose absence leaves no decision to compare."""
_UNKNOWN = "It cannot be told whether earlier evidence is used"
_RIGHT_UNKNOWN = "It cannot be told whether decisions are right"


class Answer(Enum):
    """What decisions are made from."""

    EARLIER = "earlier evidence"
    CURRENT = "current view"
    UNKNOWN = "cannot be told"


class Accuracy(Enum):
    """How often decisions are right.

    Chance: always taking the branch that most of the decisions call for, at the first, second, ... branch of an episode
    the most frequent one there. Knowing which decision it is takes no memory of what came before.
    """

    ABOVE = "above chance"
    CHANCE = "as by chance"
    BELOW = "below chance"
    UNKNOWN = "cannot be told"


@dataclass(frozen=True)
class Rightness:
    """sentence: the answer for people. right: of `decisions`, how many took the branch that is annotated.

    most_frequent: how many of them the branch is right for that most episodes call for there.
    """

    answer: Accuracy
    sentence: str
    right: int = 0
    decisions: int = 0
    most_frequent: int = 0

    def figures(self) -> dict[str, Any]:
        """Its part of the verdict in `summary.json`."""
        return {
            "answer": self.answer.value,
            "sentence": self.sentence,
            "right": self.right,
            "decisions": self.decisions,
            "ci95": list(wilson_interval(self.right, self.decisions)) if self.decisions else None,
            "chance": self.most_frequent / self.decisions if self.decisions else None,
        }


@dataclass(frozen=True)
class Verdict:
    """sentence: whether earlier evidence is used, for people. rightness: whether decisions are right.

    decisions: tried without earlier evidence; changed: became another branch. details: where and when the evidence
    lies, each in half a sentence.
    """

    answer: Answer
    sentence: str
    rightness: Rightness
    decisions: int = 0
    changed: int = 0
    details: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, str]:
        """Both answers for people."""
        return self.sentence, self.rightness.sentence

    def figures(self) -> dict[str, Any]:
        """The verdict in `summary.json`."""
        interval = list(wilson_interval(self.changed, self.decisions)) if self.decisions else None
        return {
            "answer": self.answer.value,
            "sentence": self.sentence,
            "decisions": self.decisions,
            "changed_without_earlier_evidence": self.changed,
            "changed_ci95": interval,
            "right": self.rightness.figures(),
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
    """The answers of an evaluation; where one cannot be told, its sentence says why and what would tell."""
    tried, right = tried_decisions(evaluation), rightness(evaluation)
    if not tried:
        return Verdict(Answer.UNKNOWN, f"{_UNKNOWN}, because {_obstacle(evaluation)}.", right)
    count = len(tried)
    changed = sum(bool(t.earlier.flipped) for t in tried)
    low, high = wilson_interval(changed, count)
    begins = f"a memory that begins {tried[0].earlier.present_s:g} s before a decision"
    without = f"{begins} turns {share_of(changed, count)} to another branch"
    details = tuple(line for line in (_with_and_without(tried), _held(tried), _moment(tried)) if line)
    if count < FEWEST:
        answer, sentence = Answer.UNKNOWN, f"{_UNKNOWN}: {without}; {_too_few(count)}"
    elif low > USES_ABOVE:
        answer, sentence = Answer.EARLIER, f"The policy uses earlier evidence: {without}"
    elif high < IGNORES_BELOW:
        answer, sentence = Answer.CURRENT, f"Decisions follow the current view only: {without}"
    else:
        answer, sentence = Answer.UNKNOWN, f"{_UNKNOWN}: {without}, which is between both; evaluate more episodes"
    return Verdict(answer, f"{sentence}.", right, count, changed, details)


def rightness(evaluation: Evaluation) -> Rightness:
    """Whether the policy decides as annotated more often than one that always takes the most frequent branch."""
    places: dict[int, list[BranchEvidence]] = {}
    for episode in evaluation.episodes:
        for found, branch in enumerate(episode.branches):
            if branch.correct is not None:
                # A branch that could not be used is not among them, and moves none to another place.
                places.setdefault(found if branch.place is None else branch.place, []).append(branch)
    known = [branch for at_place in places.values() for branch in at_place]
    if not known:
        return Rightness(Accuracy.UNKNOWN, f"{_RIGHT_UNKNOWN}: no branch has both a label and a decision.")
    count, right = len(known), sum(bool(branch.correct) for branch in known)
    frequent = sum(max(Counter(branch.label for branch in at_place).values()) for at_place in places.values())
    low, high = wilson_interval(right, count)
    chance = frequent / count
    there = " of each place" if len(places) > 1 else ""
    shares = f"{share_of(right, count)} are right, {chance:.2f} by always taking the most frequent branch{there}"
    if count < FEWEST:
        answer, sentence = Accuracy.UNKNOWN, f"{_RIGHT_UNKNOWN}: {shares}; {_too_few(count)}"
    elif low > chance:
        answer, sentence = Accuracy.ABOVE, f"Its decisions are right more often than by chance: {shares}"
    elif high < chance:
        answer, sentence = Accuracy.BELOW, f"Its decisions are right less often than by chance: {shares}"
    else:
        answer, sentence = Accuracy.CHANCE, f"Its decisions are not right more often than by chance: {shares}"
    return Rightness(answer, f"{sentence}.", right, count, frequent)


def share_of(successes: int, trials: int) -> str:
    """`7 of 20 decisions (0.35, 95 % CI 0.18–0.57)`."""
    low, high = wilson_interval(successes, trials)
    return f"{successes} of {trials} decisions ({successes / trials:.2f}, 95 % CI {low:.2f}–{high:.2f})"


def _too_few(count: int) -> str:
    return f"{count} decisions are too few to claim anything: evaluate {FEWEST} or more"


def _with_and_without(tried: Sequence[Tried]) -> str:
    """How many decisions are right with and without earlier evidence, where the right ones are known."""
    known = [t for t in tried if t.attribution.label is not None]
    if not known:
        return ""
    right, without = sum(t.right for t in known), sum(t.right_without for t in known)
    return (
        f"right with all of the past: {share_of(right, len(known))}; with a memory that begins "
        f"{known[0].earlier.present_s:g} s before the decision: {share_of(without, len(known))}"
    )


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
        lost = evaluation.bags_that_failed
        return f"all {lost} bags failed; their list says why" if lost else "there was no bag to evaluate"
    if not evaluation.model.has_policy:
        return "the checkpoint holds a memory without a policy, so no action can be compared; train it with one"
    if not any(episode.branches for episode in evaluation.episodes):
        return (
            "no branch frame is annotated in these bags; `trace-memory bags moments --annotate branches.yaml` finds "
            "them, and `branches: {file: branches.yaml}` in the recording config names them"
        )
    if not evaluation.settings.get("attribution", True):
        return "no write was left out; evaluate with attribution"
    parts = [episode.reasons for episode in evaluation.episodes]
    parts += [attribution.reasons for episode in evaluation.episodes for attribution in episode.attributions]
    given = [part[name] for part in parts for name in _DECIDING if name in part]
    if given:
        return max(given, key=given.count)
    return "no write lies early enough before a branch"
