"""What the study of moments counts."""

from dataclasses import replace

import numpy as np
import pytest
from learning.synthetic import pair

from studies.few_demonstrations.study import WINDOW
from studies.moments import study
from studies.moments.memoryless import peaks
from studies.moments.scenes import fresh, shown, without_twins
from studies.moments.training import MEMORIES, compare


def test_decisions_that_were_found_are_compared_with_annotated_ones() -> None:
    demos = [demo for seed in range(3) for demo in pair(seed)]
    moved = [replace(d, decision_ticks=(d.decision_ticks[0] + 4,), answers=(7 + d.answers[0],)) for d in demos]
    moved[0] = replace(moved[0], decision_ticks=(2, 18), answers=(7, 7))
    moved[1] = replace(moved[1], answers=(7,))
    moved[2] = replace(moved[2], decision_ticks=(), answers=())
    found = compare(moved, demos, 100)
    assert (found["annotated"], found["within"], found["extra"], found["agree"]) == (6, 5, 1, 4)


def test_a_window_is_that_of_the_other_studies() -> None:
    assert MEMORIES["trace_window"].window == WINDOW


def test_no_two_episodes_are_of_one_scene() -> None:
    seeds = [scenario.seed for scenario in [*without_twins("colour", 6), *fresh("colour", 4)]]
    assert len(set(seeds)) == 10
    assert all(scenario.cue_stays for scenario in shown(3))


def test_peaks_stand_out_and_lie_apart() -> None:
    rows = [0.01 * np.random.default_rng(seed).random(60) for seed in range(2)]
    rows[0][20:24] = 5.0
    rows[0][50:54] = 4.0
    found = peaks(rows, 100)
    assert found[1] == [] and [abs(a - b) <= 3 for a, b in zip(found[0], (22, 52), strict=True)] == [True, True]


def test_bags_that_several_seeds_decide_are_no_more_bags() -> None:
    run = {"right": 38, "decisions": 40, "training_cpu_s": 1.0}
    once, thrice = study._pooled([run]), study._pooled([run] * 3)
    assert (thrice["right"], thrice["decisions"], thrice["share"]) == (114, 120, 0.95)
    assert thrice["ci95"] == pytest.approx(once["ci95"])
