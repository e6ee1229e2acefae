"""The answer follows the numbers, and where there is none it says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence.evidence_examples import decided, evaluation

from trace_memory_ros.evidence.results import AttributionEvidence, Evaluation
from trace_memory_ros.evidence.verdict import Answer, matters, verdict


def of(changed: int, count: int) -> Evaluation:
    """`count` decisions, all right, of which `changed` become another branch without earlier evidence."""
    episodes = tuple(decided(f"bag_{i}", "left", "left", "right" if i < changed else "left") for i in range(count))
    return replace(evaluation(), episodes=episodes)


@pytest.mark.parametrize(
    ("changed", "count", "answer"),
    [
        (20, 20, Answer.EARLIER),
        (10, 20, Answer.EARLIER),
        (3, 3, Answer.EARLIER),
        (0, 20, Answer.CURRENT),
        (1, 20, Answer.CURRENT),
        (0, 11, Answer.UNKNOWN),
        (1, 4, Answer.UNKNOWN),
        (3, 20, Answer.UNKNOWN),
    ],
)
def test_the_answer_is_only_given_when_sure(changed: int, count: int, answer: Answer) -> None:
    found = verdict(of(changed, count))
    assert (found.answer, found.decisions, found.changed) == (answer, count, changed)
    assert f"{changed} of {count} decisions" in found.sentence


def test_the_sentence_says_how_many_are_right_and_the_details_which_moment_matters() -> None:
    found = verdict(of(10, 20))
    assert found.sentence == (
        "The policy uses earlier evidence: a memory that begins 2 s before a decision turns 10 of 20 decisions "
        "(95 % CI 0.30–0.70) to another branch; 20 of 20 are right with all of the past, 10 with that little."
    )
    assert found.details == ("the moment that matters most lies 3.0 s before the decision (median)",)


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
    assert verdict(replace(made, episodes=episodes)).details == (
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
    nothing = tuple(replace(e, branches=(), attributions=()) for e in made.episodes)
    for episodes, model, told in (
        ((), made.model, "all 1 bags failed"),
        (nothing, memory_only, "without a policy"),
        (nothing, made.model, "no branch frame is annotated"),
        (undecided, made.model, "only 'left'"),
    ):
        found = verdict(replace(made, episodes=episodes, model=model))
        assert found.answer is Answer.UNKNOWN
        assert told in found.sentence
        assert found.figures()["changed_ci95"] is None
