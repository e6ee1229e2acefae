"""The answer follows the numbers, and where there is none it says why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evaluation.evidence_examples import decided, evaluation

from trace_memory_ros.evaluation.bag_verdict import Answer, verdict
from trace_memory_ros.evaluation.evidence import Evaluation


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


def test_the_sentence_says_how_many_are_right_and_which_moment_matters() -> None:
    sentence = verdict(of(10, 20)).sentence
    assert sentence.startswith("The policy uses earlier evidence: leaving out what was written more than 2 s before")
    assert "(95 % CI 0.30–0.70)" in sentence
    assert "20 of 20 are right with it, 10 without" in sentence
    assert "3.0 s before the decision (median)" in sentence


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
