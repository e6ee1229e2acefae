"""Which of several candidates is taken, what stops the search, and trials that are kept."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning.decisions.candidates import Candidate, KeptTrials, Trial, hardly_behind, select, simplest
from trace_memory_ros.learning.run_config import MemorySection
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.measure.summary import read_summary, write_summary

NONE, FIRST, GRU, CACHE = (Candidate(name) for name in ("none", "first_frame", "gru", "gru+cache"))


def decided(right: int, later: int | None = None) -> Trial:
    return Trial(None, Accuracy.of(right, 20), None if later is None else Accuracy.of(later, 20))


@pytest.mark.parametrize("right", [20, 19])
def test_what_would_be_taken_beside_a_perfect_one_ends_the_search(right: int) -> None:
    selection = select([FIRST, GRU, CACHE], {FIRST: decided(10), GRU: decided(right)}.__getitem__)
    assert selection.chosen == GRU and list(selection.tried) == [FIRST, GRU]
    assert selection.to_dict()["memory"] == "gru"
    assert [one["held_out"]["right"] for one in selection.to_dict()["tried"]] == [10, right]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=5))
def test_a_search_that_ends_early_takes_what_a_whole_one_would(rights: list[int]) -> None:
    found = {Candidate(f"memory_{k}"): Accuracy.of(right, 60) for k, right in enumerate(rights)}
    assert select(list(found), lambda one: Trial(None, found[one])).chosen == hardly_behind(found)


def test_of_equal_ones_the_first_is_taken_and_longer_delays_count() -> None:
    equal = {FIRST: decided(17), GRU: decided(19), CACHE: decided(19)}
    assert select(list(equal), equal.__getitem__).chosen == GRU
    beyond = {GRU: decided(20, later=12), CACHE: decided(19, later=19)}
    assert select(list(beyond), beyond.__getitem__).chosen == CACHE


def test_a_simpler_one_that_is_hardly_behind_is_taken() -> None:
    def trial(right: int, count: int) -> Trial:
        return Trial(None, Accuracy.of(right, count))

    def taken(first: Trial, gru: Trial) -> Candidate:
        return select([FIRST, GRU], {FIRST: first, GRU: gru}.__getitem__).chosen

    assert taken(trial(23, 24), trial(24, 24)) == FIRST
    assert taken(trial(22, 24), trial(24, 24)) == GRU
    # Of many decisions one in thirty is known to be fewer.
    assert taken(trial(417, 432), trial(431, 432)) == GRU
    assert taken(trial(429, 432), trial(431, 432)) == FIRST
    # The same 144 of them after three delays are known no better than 144 are.
    asked = Trial(None, Accuracy.of(144, 144), Accuracy.asked_again([Accuracy.of(144, 144)] * 2))
    behind = Trial(None, Accuracy.of(141, 144), Accuracy.asked_again([Accuracy.of(140, 144)] * 2))
    assert taken(behind, asked) == FIRST and taken(trial(421, 432), trial(432, 432)) == GRU


def test_a_choice_by_few_decisions_says_so() -> None:
    few = Trial(None, Accuracy.of(3, 3), Accuracy.of(60, 60))
    assert str(select([GRU], lambda _: few)).endswith("; 3 decisions are too few to know it by")
    assert "too few" not in str(select([GRU], lambda _: decided(20)))


def test_without_decisions_the_simplest_gains_nearly_all_that_the_best_does() -> None:
    errors = {NONE: 1.0, FIRST: 0.9, GRU: 0.46, CACHE: 0.4}
    assert select(list(errors), lambda one: Trial(None, None, chunk_error=errors[one])).chosen == GRU
    errors[CACHE] = 0.3
    assert select(list(errors), lambda one: Trial(None, None, chunk_error=errors[one])).chosen == CACHE
    errors = dict.fromkeys(errors, 0.97) | {NONE: 1.0}
    assert select(list(errors), lambda one: Trial(None, None, chunk_error=errors[one])).chosen == NONE
    assert (
        simplest([0.0, 0.0]) == 0
        and simplest([1.0, 1e-4, 1e-6]) == 1
        and simplest([1e-4, 1e-6]) == 0
        and simplest([1.0, 0.0, 0.0]) == 1
        and simplest([math.nan, 1.0, 1e-4]) == 2
        and simplest([1.0, math.inf, 1e-4]) == 2
        and simplest([math.nan, math.nan]) == 0
    )


@pytest.mark.parametrize("astray", [math.nan, math.inf])
def test_a_candidate_that_went_astray_does_not_keep_a_summary_from_being_written(tmp_path: Path, astray: float) -> None:
    errors = {NONE: 1.0, GRU: astray}
    selection = select(list(errors), lambda one: Trial(None, None, chunk_error=errors[one]))
    write_summary(tmp_path, "trace-memory train", {"selection": selection.to_dict()})
    tried = read_summary(tmp_path).figures["selection"]["tried"]
    assert [one["chunk_error"] for one in tried] == [1.0, None]


def test_where_nothing_is_judged_the_usual_memory_is_taken() -> None:
    for among, taken in (((FIRST, GRU, CACHE), GRU), ((NONE, FIRST), FIRST)):
        selection = select(among, lambda _: Trial(None, None))
        assert selection.chosen == taken and "raise bags.validation" in str(selection)
        assert list(selection.tried) == [among[0]]


def test_what_competes_is_named_and_has_no_options_of_its_own() -> None:
    assert MemorySection("auto").among == ("none", "first_frame", "gru+gate", "gru", "gru+cache")
    with pytest.raises(ConfigError, match="name it instead of auto"):
        MemorySection("auto", {"hidden": 3})
    for among in ((), ("gru", "auto")):
        with pytest.raises(ConfigError, match=r"memory\.among"):
            MemorySection("auto", among=among)


def test_an_interrupted_search_goes_on_and_another_run_begins_anew(tmp_path: Path) -> None:
    done: list[None] = []

    def trial() -> Trial:
        done.append(None)
        return Trial(Accuracy({(0, 1): (2, 3), (0, 0): (1, 1)}), None, chunk_error=0.25)

    file = tmp_path / "run" / "kept.json"
    first = KeptTrials(file, {"seed": (0, 1)}, reuse=False).get("fold 0, gru", trial)
    again = KeptTrials(file, {"seed": (0, 1)}, reuse=True)
    assert again.get("fold 0, gru", trial) == first == trial()
    assert again.get("fold 1, gru", trial) == first
    assert len(done) == 3
    for reuse, other in ((False, (0, 1)), (True, (0, 2))):
        KeptTrials(file, {"seed": other}, reuse).get("fold 0, gru", trial)
    assert len(done) == 5
    for damaged in ("cut o", '{"settings": {"seed": [0, 2]}, "trials": [1]}'):
        file.write_text(damaged)
        KeptTrials(file, {"seed": (0, 2)}, reuse=True).get("fold 0, gru", trial)
    assert len(done) == 7
