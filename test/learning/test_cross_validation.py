"""Cross-validation over scenes: folds, pooled counts, and a strength of noise that reports nothing it was chosen by."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_memory_ros.learning.decisions.cross_validation import (
    FOLDS,
    LEAST_SCENES,
    KeptTrials,
    Trial,
    cross_validate,
    deal,
)
from trace_memory_ros.measure.accuracy import Accuracy


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

    def trial(fold: int, _noise: float) -> Trial:
        right = [int(scene) % 2 == 0 for scene in folds[fold]]
        return Trial(Accuracy.of(8, 8), Accuracy.of(sum(right), len(right)))

    found = cross_validate(len(folds), (1.0,), trial)
    assert found is not None
    assert (found.accuracy.right, found.accuracy.count, found.folds) == (5, 10, 5)
    assert found.train == Accuracy.of(40, 40)
    assert found.to_dict()["accuracy"]["ci95"] == list(Accuracy.of(5, 10).interval)


def test_the_best_noise_is_kept_and_of_equal_ones_the_first() -> None:
    right = {1.0: 2, 3.0: 3, 10.0: 3}
    found = cross_validate(3, (1.0, 3.0, 10.0), lambda _, noise: Trial(None, Accuracy.of(right[noise], 4)))
    assert found is not None and found.noise == 3.0
    assert (found.accuracy.right, found.by_noise[1.0].right, found.train) == (9, 6, None)


def test_no_stronger_noise_is_tried_where_all_is_right() -> None:
    right = {1.0: 2, 3.0: 4}
    found = cross_validate(3, (1.0, 3.0, 10.0), lambda _, noise: Trial(None, Accuracy.of(right[noise], 4)))
    assert found is not None and found.accuracy.right == 12
    assert list(found.by_noise) == [1.0, 3.0]


def test_no_decision_is_reported_with_the_noise_that_it_chose() -> None:
    # Chance alone: whatever is best on one fold is worst on the other. Choosing by all would report 4 of 8.
    right = {(0, 1.0): 4, (0, 3.0): 0, (1, 1.0): 0, (1, 3.0): 4}
    found = cross_validate(2, (1.0, 3.0), lambda fold, noise: Trial(None, Accuracy.of(right[fold, noise], 4)))
    assert found is not None and found.accuracy.right == 0


def test_folds_that_cannot_be_judged_are_left_out() -> None:
    found = cross_validate(3, (1.0,), lambda fold, _: Trial(None, Accuracy.of(1, 2) if fold else None))
    assert found is not None and found.accuracy.count == 4
    assert cross_validate(2, (1.0,), lambda *_: Trial(None, None)) is None
    with pytest.raises(ValueError, match="one source"):
        cross_validate(2, (1.0,), lambda fold, _: Trial(None, Accuracy.of(1, 2, ("found", "twins")[fold])))


def test_an_interrupted_one_goes_on_and_another_run_begins_anew(tmp_path: Path) -> None:
    done: list[tuple[int, float]] = []

    def trial(fold: int, noise: float) -> Trial:
        done.append((fold, noise))
        return Trial(Accuracy({(0, 1): (2, 3), (0, 0): (1, 1)}), None)

    file = tmp_path / "run" / "kept.json"
    first = KeptTrials(file, {"seed": (0, 1)}, reuse=False).get(0, 1.0, trial)
    again = KeptTrials(file, {"seed": (0, 1)}, reuse=True)
    assert again.get(0, 1.0, trial) == first == trial(0, 1.0)
    assert again.get(1, 1.0, trial) == first
    assert done == [(0, 1.0), (0, 1.0), (1, 1.0)]
    for reuse, other in ((False, (0, 1)), (True, (0, 2))):
        KeptTrials(file, {"seed": other}, reuse).get(0, 1.0, trial)
    assert len(done) == 5
    file.write_text("cut o")
    KeptTrials(file, {"seed": (0, 2)}, reuse=True).get(0, 1.0, trial)
    assert len(done) == 6
