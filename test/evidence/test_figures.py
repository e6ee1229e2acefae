"""Figures of many episodes against sums by hand."""

from dataclasses import replace

import numpy as np
import pytest
from evidence.evidence_examples import episode, transform

from trace_memory_ros.evidence.figures import balanced, figures_of
from trace_memory_ros.evidence.results import EpisodeEvidence


def of_task(task: str, similarities: list[float]) -> list[EpisodeEvidence]:
    return [
        replace(episode(f"{task}_{i}"), task=task, transforms=(transform("time_resampling", value),))
        for i, value in enumerate(similarities)
    ]


def test_means_are_balanced_over_tasks_however_many_episodes_each_has() -> None:
    figures = figures_of(of_task("origin", [100.0]) + of_task("colour", [40.0, 60.0, 80.0]))
    found = figures["transforms"]["time_resampling"]["route_similarity"]
    assert found["mean"] == (100 + 60) / 2
    assert found["episodes"] == 4
    assert figures["episodes"] == {"origin": 1, "colour": 3}


def test_the_error_is_that_of_resampling_within_tasks() -> None:
    values = {"origin": [0.0, 1.0, 1.0, 0.0, 1.0], "colour": [2.0, 3.0, 7.0]}
    by_task = {task: of_task(task, some) for task, some in values.items()}

    def value(e: EpisodeEvidence) -> float | None:
        return e.transforms[0].route_similarity

    found = balanced(by_task, value)
    assert found is not None
    # The bootstrap's standard error of a mean is the population deviation over the root of n; tasks are independent.
    expected = np.sqrt(sum(np.var(v) / len(v) for v in values.values())) / 2
    assert found["se"] == pytest.approx(expected, rel=0.05)
    assert found["ci95"][0] < found["mean"] < found["ci95"][1]


def test_what_an_episode_cannot_tell_is_left_out_and_what_none_can_is_none() -> None:
    by_task = {"origin": of_task("origin", [10.0, 20.0])}
    known = balanced(by_task, lambda e: 20.0 if e.name.endswith("1") else None)
    assert known is not None
    assert (known["mean"], known["episodes"]) == (20.0, 1)
    assert balanced(by_task, lambda e: None) is None


def test_chance_is_between_episodes_of_other_labels() -> None:
    left, right = episode("a", "left", "left"), episode("b", "right", "right")
    right = replace(right, branches=(replace(right.branches[0], readout=(0.0, 1.0)),))
    chance = figures_of([left, right, episode("c", "left", "left")])["chance"]
    assert chance["readout_cosine_of_other_label"] == 0
    assert chance["branch_consistency_of_other_label"] == 25
    assert chance["route_similarity"]["mean"] == 50


def test_centred_readouts_lack_what_all_have_in_common() -> None:
    readouts = [(10.0, 1.0), (10.0, -1.0)]
    found = []
    for i, readout in enumerate(readouts):
        one = episode(f"e{i}")
        moved = replace(transform("order_reversal"), readout=readouts[1 - i])
        found.append(replace(one, branches=(replace(one.branches[0], readout=readout),), transforms=(moved,)))
    assert figures_of(found)["transforms"]["order_reversal"]["readout_cosine_centred"]["mean"] == pytest.approx(-1)


def test_accuracy_and_attribution_are_counted() -> None:
    figures = figures_of([episode("a", "left", "left"), episode("b", "right", "left")])
    assert figures["branch_accuracy"]["mean"] == 0.5
    assert figures["attribution"]["decisions"] == 2
    assert figures["attribution"]["flipped_by_a_window"] == 1
    assert figures["attribution"]["strongest_age_s"] == pytest.approx(3.0)
    assert figures["stability"]["reported"]["readout_cosine"]["mean"] == 1
