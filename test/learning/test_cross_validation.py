"""Cross-validation over scenes: folds, pooled counts, and a candidate that reports nothing it was chosen by."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_memory_ros.learning.decisions.candidates import Candidate, Trial
from trace_memory_ros.learning.decisions.cross_validation import FOLDS, LEAST_SCENES, cross_validate, deal
from trace_memory_ros.measure.accuracy import Accuracy

WEAK, STRONG, STRONGER = (Candidate("trace", noise) for noise in (1.0, 3.0, 10.0))


@settings(max_examples=50, deadline=None)
@given(counts=st.lists(st.integers(1, 30), min_size=1, max_size=4))
def test_folds_part_the_scenes_and_their_answers_evenly(counts: list[int]) -> None:
    kinds = [[f"{kind} {i}" for i in range(count)] for kind, count in enumerate(counts)]
    folds = deal(kinds)
    if sum(counts) < LEAST_SCENES:
        assert folds == []
        return
    assert len(folds) == min(FOLDS, sum(counts))
    assert sum(map(len, folds)) == len(set.union(*folds)) == sum(counts)
    for kind in kinds:
        shares = [len(fold & set(kind)) for fold in folds]
        assert max(shares) - min(shares) <= 1


def test_decisions_of_all_folds_are_pooled() -> None:
    # A learner that is right wherever the scene's number is even: of scenes 0 to 9 in five folds, 5 of 10.
    folds = deal([[str(i) for i in range(10)]])

    def trial(fold: int, _: Candidate) -> Trial:
        right = [int(scene) % 2 == 0 for scene in folds[fold]]
        return Trial(Accuracy.of(8, 8), Accuracy.of(sum(right), len(right)))

    found = cross_validate(len(folds), [WEAK], trial)
    assert found is not None
    assert (found.accuracy.right, found.accuracy.count, found.folds) == (5, 10, 5)
    # Ten decisions, each of which four of the five trainings were asked.
    assert found.train is not None
    assert (found.train.right, found.train.count, found.train.repeats) == (40, 40, 4)
    assert found.train.interval == Accuracy.of(10, 10).interval
    assert found.to_dict()["accuracy"]["ci95"] == list(Accuracy.of(5, 10).interval)


def test_the_best_noise_is_kept_and_of_equal_ones_the_first() -> None:
    right = {WEAK: 2, STRONG: 3, STRONGER: 3}
    found = cross_validate(3, list(right), lambda _, one: Trial(None, Accuracy.of(right[one], 4)))
    assert found is not None and found.chosen == STRONG
    assert (found.accuracy.right, found.tried[WEAK].right, found.train) == (9, 6, None)
    said = found.to_dict()
    assert (said["memory"], said["noise"], [one["right"] for one in said["tried"]]) == ("trace", 3.0, [6, 9, 9])


def test_decisions_after_longer_delays_choose_and_are_not_reported() -> None:
    later = {Candidate("first_frame"): 4, Candidate("gru"): 1}
    found = cross_validate(
        3, list(later), lambda _, one: Trial(None, Accuracy.of(3, 4), longer=Accuracy.of(later[one], 4))
    )
    assert found is not None and found.chosen == Candidate("first_frame")
    assert (found.accuracy.right, found.accuracy.count) == (9, 12)


def test_no_stronger_noise_is_tried_where_all_is_right() -> None:
    right = {WEAK: 2, STRONG: 4}
    found = cross_validate(3, [WEAK, STRONG, STRONGER], lambda _, one: Trial(None, Accuracy.of(right[one], 4)))
    assert found is not None and found.accuracy.right == 12
    assert list(found.tried) == [WEAK, STRONG]


def test_no_decision_is_reported_with_the_noise_that_it_chose() -> None:
    # Chance alone: whatever is best on one fold is worst on the other. Choosing by all would report 4 of 8.
    right = {(0, WEAK): 4, (0, STRONG): 0, (1, WEAK): 0, (1, STRONG): 4}
    found = cross_validate(2, [WEAK, STRONG], lambda fold, one: Trial(None, Accuracy.of(right[fold, one], 4)))
    assert found is not None and found.accuracy.right == 0


def test_folds_that_cannot_be_judged_are_left_out() -> None:
    found = cross_validate(3, [WEAK], lambda fold, _: Trial(None, Accuracy.of(1, 2) if fold else None))
    assert found is not None and found.accuracy.count == 4
    assert cross_validate(2, [WEAK], lambda *_: Trial(None, None)) is None
    with pytest.raises(ValueError, match="one source"):
        cross_validate(2, [WEAK], lambda fold, _: Trial(None, Accuracy.of(1, 2, ("found", "twins")[fold])))
