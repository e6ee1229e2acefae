"""The answer follows the numbers, and where there is none it says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence.evidence_examples import decided, evaluation

from trace_memory_ros.evidence.results import AttributionEvidence, Evaluation
from trace_memory_ros.evidence.verdict import Accuracy, Answer, matters, verdict


def of(changed: int, count: int) -> Evaluation:
    """`count` decisions, all right, of which `changed` become another branch without earlier evidence."""
    episodes = tuple(decided(f"bag_{i}", "left", "left", "right" if i < changed else "left") for i in range(count))
    return replace(evaluation(), episodes=episodes)


def answered(right: int, count: int) -> Evaluation:
    """`count` decisions, half of them for either branch, of which `right` are right; all change without the past."""
    labels = [("left", "right")[i % 2] for i in range(count)]
    other = {"left": "right", "right": "left"}
    decisions = [label if i < right else other[label] for i, label in enumerate(labels)]
    episodes = tuple(
        decided(f"bag_{i}", label, decision, other[decision])
        for i, (label, decision) in enumerate(zip(labels, decisions, strict=True))
    )
    return replace(evaluation(), episodes=episodes)


@pytest.mark.parametrize(
    ("changed", "count", "answer"),
    [
        (20, 20, Answer.EARLIER),
        (10, 20, Answer.EARLIER),
        (0, 20, Answer.CURRENT),
        (1, 20, Answer.CURRENT),
        (3, 20, Answer.UNKNOWN),
        (19, 19, Answer.UNKNOWN),
        (0, 19, Answer.UNKNOWN),
        (1, 4, Answer.UNKNOWN),
    ],
)
def test_whether_earlier_evidence_is_used_is_only_claimed_when_sure(changed: int, count: int, answer: Answer) -> None:
    found = verdict(of(changed, count))
    assert (found.answer, found.decisions, found.changed) == (answer, count, changed)
    assert f"{changed} of {count} decisions" in found.sentence
    assert ("too few" in found.sentence) == (count < 20)


@pytest.mark.parametrize(
    ("right", "count", "answer"),
    [
        (20, 20, Accuracy.ABOVE),
        (15, 20, Accuracy.ABOVE),
        (14, 20, Accuracy.CHANCE),
        (10, 20, Accuracy.CHANCE),
        (5, 20, Accuracy.BELOW),
        (18, 18, Accuracy.UNKNOWN),
        (0, 2, Accuracy.UNKNOWN),
    ],
)
def test_whether_decisions_are_right_is_only_claimed_when_sure(right: int, count: int, answer: Accuracy) -> None:
    found = verdict(answered(right, count)).rightness
    assert (found.answer, found.right, found.decisions, found.most_frequent) == (answer, right, count, count // 2)
    assert f"{right} of {count} decisions" in found.sentence
    assert ("too few" in found.sentence) == (count < 20)


def test_using_earlier_evidence_and_being_right_are_two_sentences() -> None:
    """Ten of twenty decisions are right, and all hang on earlier evidence."""
    found = verdict(answered(10, 20))
    assert found.sentences == (
        (
            "The policy uses earlier evidence: a memory that begins 2 s before a decision turns 20 of 20 decisions "
            "(1.00, 95 % CI 0.84–1.00) to another branch."
        ),
        (
            "Its decisions are not right more often than by chance: 10 of 20 decisions (0.50, 95 % CI 0.30–0.70) are "
            "right, 0.50 by always taking the most frequent branch."
        ),
    )
    figures = found.figures()
    assert figures["answer"] == "earlier evidence"
    assert figures["right"] == {
        "answer": "as by chance",
        "sentence": found.rightness.sentence,
        "right": 10,
        "decisions": 20,
        "ci95": [pytest.approx(0.299, abs=1e-3), pytest.approx(0.701, abs=1e-3)],
        "chance": 0.5,
    }


def test_one_label_alone_is_no_feat() -> None:
    assert verdict(of(20, 20)).rightness.answer is Accuracy.CHANCE


def test_of_several_decisions_in_an_episode_each_has_a_chance_of_its_own() -> None:
    """Always the first answer of two at either of two places is half of them right, and no feat."""
    episodes = []
    for i in range(20):
        parts = [decided(f"e{i}", label, always, always) for label, always in (("AB"[i % 2], "A"), ("CD"[i % 2], "C"))]
        episodes.append(replace(parts[0], branches=(*parts[0].branches, *parts[1].branches)))
    found = verdict(replace(evaluation(), episodes=tuple(episodes))).rightness
    assert (found.right, found.decisions, found.most_frequent) == (20, 40, 20)
    assert found.answer is Accuracy.CHANCE
    assert "0.50 by always taking the most frequent branch of each place" in found.sentence


def test_a_decision_whose_predecessor_could_not_be_used_has_the_chance_of_its_own_place() -> None:
    """One answer is right at either place: who always gives it does no more than by chance."""
    episodes = []
    for i in range(20):
        first, second = (decided(f"e{i}", label, label, label).branches[0] for label in "AC")
        both = (replace(first, place=0), replace(second, place=1))
        episodes.append(replace(decided(f"e{i}", "A", "A", "A"), branches=both if i % 2 else both[1:]))
    found = verdict(replace(evaluation(), episodes=tuple(episodes))).rightness
    assert (found.right, found.decisions, found.most_frequent) == (30, 30, 30)
    assert found.answer is Accuracy.CHANCE


def test_the_details_say_what_the_past_is_worth_and_which_moment_matters() -> None:
    assert verdict(of(20, 20)).details == (
        (
            "right with all of the past: 20 of 20 decisions (1.00, 95 % CI 0.84–1.00); with a memory that begins 2 s "
            "before the decision: 0 of 20 decisions (0.00, 95 % CI 0.00–0.16)"
        ),
        "the moment that matters most lies 3.0 s before the decision (median)",
    )


def test_a_moment_only_matters_when_it_changes_a_good_part_of_the_action() -> None:
    (attribution,) = decided("bag", "left", "left", "right").attributions
    assert attribution.earlier is not None
    weak = tuple(
        replace(w, flipped=False, window_flipped=False, window_delta_action=0.2 / (1 + w.tick))
        for w in attribution.writes
    )
    for whole, expected in ((0.7, True), (0.81, False)):
        earlier = replace(attribution.earlier, delta_action=whole)
        assert matters(replace(attribution, writes=weak, earlier=earlier)) is expected
    driven = (replace(weak[0], path_delta_action=0.5), *weak[1:])
    earlier = replace(attribution.earlier, delta_action=0.81)
    assert not matters(replace(attribution, writes=driven, earlier=earlier))
    assert not matters(replace(attribution, writes=weak, earlier=replace(earlier, delta_action=0.1, flipped=False)))
    assert matters(replace(attribution, writes=(replace(weak[0], path_flipped=True),)))


def test_it_is_told_whether_the_evidence_was_written_or_is_in_the_address() -> None:
    made = of(10, 20)

    def placed(attribution: AttributionEvidence) -> AttributionEvidence:
        assert attribution.earlier is not None
        flipped = attribution.earlier.flipped
        weak = replace(
            attribution.earlier, delta_action=9.0, flipped_without_writes=False, flipped_without_path=flipped
        )
        return replace(attribution, earlier=weak, writes=attribution.writes[1:])

    episodes = tuple(replace(e, attributions=tuple(map(placed, e.attributions))) for e in made.episodes)
    assert verdict(replace(made, episodes=episodes)).details[1:] == (
        "without the earlier writes alone 0 of 20 decisions change, without the earlier path in the address 10",
        "no single moment matters by itself: many hold the evidence",
    )


def test_an_obstacle_is_named() -> None:
    made = of(5, 5)
    memory_only = replace(made.model, has_policy=False)
    undecided = tuple(
        replace(
            e, attributions=tuple(replace(a, earlier=None, reasons={"flipped": "only 'left'"}) for a in e.attributions)
        )
        for e in made.episodes
    )
    early = tuple(
        replace(
            e, attributions=tuple(replace(a, earlier=None, reasons={"earlier": "no tick lies"}) for a in e.attributions)
        )
        for e in made.episodes
    )
    nothing = tuple(replace(e, branches=(), attributions=()) for e in made.episodes)
    for episodes, model, told in (
        ((), made.model, "all 1 bags failed"),
        (nothing, memory_only, "without a policy"),
        (nothing, made.model, "no branch frame is annotated"),
        (undecided, made.model, "only 'left'"),
        (early, made.model, "no tick lies"),
    ):
        # A bag of two faults is one bag.
        found = verdict(replace(made, episodes=episodes, model=model, failed=2 * made.failed))
        assert found.answer is Answer.UNKNOWN
        assert told in found.sentence
        assert found.figures()["changed_ci95"] is None
