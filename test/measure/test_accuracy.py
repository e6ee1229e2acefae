"""A share of right decisions: its interval, what too few of them say, and pooling."""

import pytest

from trace_memory_ros.measure.accuracy import FOUND, LEAST, TWINS, Accuracy
from trace_memory_ros.measure.statistics import wilson_interval


def test_decisions_of_one_kind_are_a_proportion_with_wilsons_interval() -> None:
    found = Accuracy.of(19, 20)
    assert (found.value, found.right, found.count) == (0.95, 19, 20)
    assert found.interval == pytest.approx(wilson_interval(19, 20))
    assert str(found) == "0.95 (19/20, 0.76 to 0.99)"
    assert found.to_dict() == {
        "value": 0.95,
        "right": 19,
        "count": 20,
        "ci95": [found.low, found.high],
        "claimed": True,
        "labels": "annotated",
        "repeats": 1,
    }


def test_every_kind_counts_alike_however_rare() -> None:
    # Who always says 0 is right in 90 of 100, which is chance.
    found = Accuracy({(0, 0): (90, 90), (0, 1): (0, 10)})
    assert found.value == 0.5
    # Ten rare decisions make it less sure than a hundred of equal kinds would be.
    even = Accuracy({(0, 0): (50, 50), (0, 1): (0, 50)})
    assert found.low < even.low < 0.5 < even.high < found.high
    assert even.interval == pytest.approx(wilson_interval(50, 100))


def test_too_few_decisions_claim_nothing() -> None:
    assert not Accuracy.of(LEAST - 1, LEAST - 1).tells
    assert str(Accuracy.of(4, 4)) == "4/4 right, too few to tell"
    assert "1.00" not in str(Accuracy.of(LEAST - 1, LEAST - 1))


def test_where_labels_were_found_it_says_so_and_they_are_not_pooled_with_annotated_ones() -> None:
    assert str(Accuracy.of(18, 20, FOUND)) == "0.90 (18/20 found, 0.70 to 0.97)"
    parts = [Accuracy({(0, 0): (1, 2), (0, 1): (2, 2)}), Accuracy({(0, 0): (1, 1)})]
    assert Accuracy.pooled(parts) == Accuracy({(0, 0): (2, 3), (0, 1): (2, 2)})
    with pytest.raises(ValueError, match="one source"):
        Accuracy.pooled([Accuracy.of(1, 1), Accuracy.of(1, 1, TWINS)])


def test_decisions_asked_again_add_answers_and_no_sureness() -> None:
    # Twelve decisions, right after each of three delays, are no 36.
    once, longer = Accuracy.of(12, 12), Accuracy.asked_again([Accuracy.of(11, 12), Accuracy.of(10, 12)])
    found = Accuracy.asked_again([once, longer])
    assert (found.right, found.count, found.repeats) == (33, 36, 3)
    assert found.interval == pytest.approx(wilson_interval(11, 12))
    assert not found.tells
    assert found.all_right().low == pytest.approx(once.low)
    assert Accuracy.from_plain(found.to_plain()) == found
    both = Accuracy.pooled([found, found])
    assert both.interval == pytest.approx(wilson_interval(22, 24))
    assert str(both) == "0.92 (66/72, each asked 3 times, 0.74 to 0.98)"
    with pytest.raises(ValueError, match="equally often"):
        Accuracy.pooled([found, once])


@pytest.mark.parametrize("groups", [{}, {(): (2, 1)}, {(): (0, 0)}, {(): (-1, 1)}])
def test_counts_that_are_no_proportion_are_refused(groups: dict[tuple[int, ...], tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="needs 0 <= right <= count"):
        Accuracy(groups)


def test_labels_come_from_a_known_source() -> None:
    with pytest.raises(ValueError, match="'guessed': must be one of annotated, found, twins"):
        Accuracy.of(1, 1, "guessed")
