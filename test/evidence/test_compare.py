"""Two evaluations: means and paired differences as by hand, other tasks refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from evidence.evidence_examples import decided, evaluation

from trace_memory_ros.evidence.compare import CompareError, Comparison, Row, compare
from trace_memory_ros.evidence.results import EpisodeEvidence, Evaluation
from trace_memory_ros.evidence.verdict import Answer
from trace_memory_ros.measure.statistics import wilson_interval


def side(*episodes: EpisodeEvidence) -> Evaluation:
    return replace(evaluation(), episodes=episodes, figures={})


def made(name: str, decision: str = "left", writes: int = 3, churn: float | None = 0.5) -> EpisodeEvidence:
    return replace(decided(name, "left", decision, "right"), writes=writes, slot_churn=churn)


def row(found: Comparison, name: str) -> Row:
    return next(row for row in found.rows if row.name == name)


def test_figures_are_those_of_the_hand() -> None:
    first = side(made("a", "left", 1), made("b", "right", 2), made("c", "left", 9))
    second = side(made("b", "left", 5), made("a", "left", 2, churn=None), made("d", "right", 100))
    found = compare(first, second)
    assert (found.episodes, found.shared) == ((3, 3), ("a", "b"))
    writes = row(found, "writes")
    assert writes.first is not None and writes.second is not None and writes.difference is not None
    assert (writes.first.mean, writes.first.episodes) == (4.0, 3)
    assert writes.second.mean == pytest.approx(107 / 3)
    # Episode by episode: 2 - 1 and 5 - 2. A resample of two draws each of them, or one twice.
    assert (writes.difference.mean, writes.difference.episodes) == (2.0, 2)
    assert tuple(writes.difference.ci95) == (1.0, 3.0)
    assert writes.difference.sure
    right = row(found, "decisions_right")
    assert right.first is not None and right.second is not None and right.difference is not None
    assert (right.first.mean, right.second.mean) == (pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert right.difference.mean == 0.5
    assert not right.difference.sure
    churn = row(found, "slot_churn").difference
    assert churn is not None and churn.episodes == 1
    assert row(found, "time_resampling.route_similarity").difference is not None


@pytest.mark.parametrize(("name", "option"), [("present_s", "--present-seconds"), ("window", "--window")])
def test_answers_to_other_questions_are_not_compared(name: str, option: str) -> None:
    first, second = (replace(side(made("a")), settings={name: value}) for value in (3, 5.0))
    with pytest.raises(CompareError, match=f"first evaluation was asked with {option} 3, the second with 5"):
        compare(first, second)
    assert compare(first, replace(second, settings={name: 3.0})).shared == ("a",)


def test_a_bag_that_got_a_longer_name_among_others_is_the_same_bag() -> None:
    run, other = (replace(made("run"), bag=f"{day}/run") for day in ("monday", "tuesday"))
    both = side(replace(run, name="monday/run"), replace(other, name="tuesday/run"))
    assert compare(side(run), both).shared == ("run",)
    assert compare(both, side(run)).shared == ("monday/run",)
    assert compare(both, side(run)).episodes == (2, 1)


@pytest.mark.parametrize(("better", "sure"), [(4, False), (5, False), (6, True)])
def test_a_few_decisions_more_are_no_difference_that_is_sure(better: int, sure: bool) -> None:
    """Five that differ all go one way in one case of 16; a bootstrap of 20 leaves out 0 from four on."""
    first = side(*(made(f"{i}", "right" if i < better else "left") for i in range(20)))
    second = side(*(made(f"{i}") for i in range(20)))
    difference = row(compare(first, second), "decisions_right").difference
    assert difference is not None and difference.ci95.low > 0
    assert difference.sure == sure


def test_shares_of_decisions_have_wilsons_interval_and_claim_nothing_below_20() -> None:
    for count, sure in ((19, False), (20, True)):
        right, wrong = (side(*(made(f"{i}", way) for i in range(count))) for way in ("left", "right"))
        found = row(compare(wrong, right), "decisions_right")
        assert found.first is not None and found.second is not None and found.difference is not None
        assert tuple(found.first.ci95) == wilson_interval(0, count)
        assert tuple(found.second.ci95) == wilson_interval(count, count)
        assert (found.difference.mean, found.difference.sure, found.is_share) == (1.0, sure, True)


def test_a_recording_that_differs_is_not_paired() -> None:
    shorter = replace(made("a"), ticks=39)
    (branch,) = made("b").branches
    elsewhere = replace(made("b"), branches=(replace(branch, stamp_ns=branch.stamp_ns + 1),))
    found = compare(side(made("a"), made("b"), made("c")), side(shorter, elsewhere, made("c")))
    assert found.shared == ("c",)


def test_sides_without_a_common_episode_are_shown_without_a_difference() -> None:
    found = compare(side(made("a")), side(made("b")))
    assert found.shared == ()
    assert all(r.difference is None and r.first and r.second for r in found.rows)
    assert found.figures()["rows"]["writes"]["difference"] is None


def test_what_cannot_be_compared_is_refused() -> None:
    other = replace(side(made("a")), model=replace(evaluation().model, task="colour"))
    with pytest.raises(CompareError, match="first evaluation is of task 'origin', the second of 'colour'"):
        compare(side(made("a")), other)
    with pytest.raises(CompareError, match="second evaluation .* has no episode, 1 bags failed"):
        compare(side(made("a")), replace(side(), failed=2 * side().failed))


def test_both_verdicts_are_given() -> None:
    current = side(*(decided(f"e{i}", "left", "left", "left") for i in range(20)))
    earlier = side(*(decided(f"e{i}", "left", "left", "right") for i in range(20)))
    found = compare(current, earlier)
    assert [v.answer for v in found.verdicts] == [Answer.CURRENT, Answer.EARLIER]
    difference = row(found, "changed_without_earlier_evidence").difference
    assert difference is not None and difference.mean == 1.0 and difference.sure
