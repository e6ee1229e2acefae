"""The hour of a live graph: lost ticks, gaps, percentiles and growth are found where they are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from studies.grid import HERE, Figures, Store, do
from studies.soak import study
from studies.soak.decisions import Question
from studies.soak.endure import gained
from studies.soak.heard import MS_NS, TENTHS, Heard, Hour, Sayings, latencies, tenths_of, ticks_of

PERIOD_NS = 50 * MS_NS
BEGIN_NS = 1_700_000_000_000_000_000


def heard(tick: int, status: str = "OK", episode: int = 2, instance: int = 7, gap_ticks: int = 0) -> Heard:
    stamp_ns = BEGIN_NS + tick * PERIOD_NS
    return Heard(instance, episode, tick, stamp_ns, status, gap_ticks, stamp_ns + 20 * MS_NS)


GOOD = [heard(tick) for tick in range(100)]
LAST_NS = GOOD[-1].stamp_ns


def test_nothing_is_lost_where_all_came() -> None:
    found = ticks_of(GOOD, LAST_NS, PERIOD_NS)
    assert (found["expected"], found["received"], found["lost"], found["gaps"]) == (100, 100, 0, [])
    assert found["by_status"] == {"OK": 100}
    assert not any(found[key] for key in ("twice", "disordered", "off_the_grid", "gap_ticks", "other_memories"))


def test_lost_ticks_and_their_gaps_are_counted() -> None:
    some = [one for one in GOOD if one.tick not in (7, 8, 9, 40, 98, 99)]
    found = ticks_of(some, LAST_NS, PERIOD_NS)
    assert found["lost"] == 6
    assert found["gaps"] == [[7, 3], [40, 1], [98, 2]]
    assert ticks_of(GOOD, LAST_NS + PERIOD_NS, PERIOD_NS)["gaps"] == [[100, 1]]


def test_a_tick_that_came_twice_hides_no_lost_one() -> None:
    found = ticks_of([*GOOD[:10], GOOD[5], *GOOD[11:]], LAST_NS, PERIOD_NS)
    assert (found["received"], found["lost"], found["twice"], found["disordered"]) == (100, 1, 1, 1)


def test_another_memory_and_what_came_before_the_episode_do_not_count() -> None:
    before = [heard(tick, episode=1) for tick in range(30, 35)]
    assert ticks_of([*before, *GOOD], LAST_NS, PERIOD_NS)["lost"] == 0
    other = [*GOOD[:60], *(heard(one.tick, instance=8) for one in GOOD[60:])]
    found = ticks_of(other, LAST_NS, PERIOD_NS)
    assert (found["lost"], found["gaps"], found["other_memories"]) == (40, [[60, 40]], 1)


def test_conditions_beyond_the_last_sample_do_not_count() -> None:
    found = ticks_of([*GOOD, heard(100, "STALE")], LAST_NS + 1, PERIOD_NS)
    assert (found["expected"], found["by_status"]) == (100, {"OK": 100})


def test_statuses_gaps_of_the_memory_and_strange_stamps_are_told() -> None:
    stale = [one if one.tick < 90 else heard(one.tick, "STALE", gap_ticks=3) for one in GOOD]
    stale[4] = stale[4]._replace(stamp_ns=stale[4].stamp_ns + 1)
    found = ticks_of(stale, LAST_NS, PERIOD_NS)
    assert found["by_status"] == {"OK": 90, "STALE": 10}
    assert (found["gap_ticks"], found["off_the_grid"]) == (3, 1)


def test_without_a_first_tick_nothing_is_expected() -> None:
    assert ticks_of(GOOD[1:], LAST_NS, PERIOD_NS)["first_stamp_ns"] is None


def test_latencies_are_those_of_each_tenth() -> None:
    values = [(one.stamp_ns, float(one.tick)) for one in GOOD]
    found = latencies([*values, (BEGIN_NS, float("nan"))], BEGIN_NS, LAST_NS + PERIOD_NS)
    assert found["whole"] == {"count": 100, "p50_ms": 49.5, "p99_ms": pytest.approx(98.01), "max_ms": 99.0}
    assert [part["max_ms"] for part in found["tenths"]] == [9.0 + 10 * tenth for tenth in range(TENTHS)]
    assert latencies(values[:10], BEGIN_NS, LAST_NS + PERIOD_NS)["tenths"][1:] == [None] * 9


def test_growth_is_found_beyond_what_a_process_takes_at_first() -> None:
    noise = np.random.default_rng(0).normal(0, 1e4, 3_600)
    looks = [(at, 4e8 + min(at, 300) * 1e5 + 1_000 * at + noise[at]) for at in range(3_600)]
    found = gained(looks, 300)
    assert found is not None
    assert found.ci95.low < 1_000 < found.ci95.high < 2_000
    assert gained(looks[:320], 300) is None
    assert tenths_of([(0, 10), (1, 20), (99, 30)]) == [15, *[None] * 8, 30]
    assert tenths_of([]) == [None] * TENTHS


def test_what_diagnostics_said_is_counted_without_its_numbers() -> None:
    sayings = Sayings()
    for level, text in ((0, "working"), (1, "12 messages were lost"), (1, "14.5 messages were lost"), (2, "silent")):
        sayings.said("eye", level, text)
    assert sayings.figures()["levels"] == {"eye": {"OK": 1, "WARN": 2, "ERROR": 1}}
    assert sayings.figures()["said"] == {"eye WARN: # messages were lost": 2, "eye ERROR: silent": 1}


def test_the_live_graph_is_of_the_memory_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lived: list[Hour] = []

    def live(hour: Hour, store: Store) -> str:
        lived.append(hour)
        return "lived"

    monkeypatch.setattr(study, "_lived", live)
    monkeypatch.setattr(study, "_answered", lambda demos, question, store: "answered")
    monkeypatch.setattr(study, "drift", lambda ticks, seed: {})
    study.run(tmp_path, True, rows=(), asked=("origin_gru", "colour_trace"), memory="prism")
    assert lived == [Hour("prism", study.QUICK_MINUTES)]


def test_a_quick_answer_stands_beside_the_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(question: Question, demos: Path) -> Figures:
        return {"held": {str(question.idle): {"share": 1.0}}, "asked": question.pairs}

    monkeypatch.setattr(study, "answer", answer)
    # Without workers nothing is pickled.
    monkeypatch.setattr(study, "do", lambda measure, jobs, folder_of, _: do(measure, jobs, folder_of, HERE))
    quick, both = (
        study.run(tmp_path, quick, rows=(), asked=("origin_gru",), part="decisions")["decisions"]
        for quick in (True, False)
    )
    assert {name: one["asked"] for name, one in quick.items()} == {"origin_gru": 1}
    assert sorted(one["asked"] for one in both.values()) == [1, study.PAIRS]
    assert all(name.startswith("origin_gru-") for name in both)


def test_weights_that_were_trained_anew_are_asked_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question, asked = Question("origin", "gru", 1, 2, 3), []

    def answer(question: Question, demos: Path) -> Figures:
        asked.append(question)
        return {"held": {"2": {"share": 1.0}}}

    monkeypatch.setattr(study, "answer", answer)
    for model_id in ("a", "a", "b"):
        monkeypatch.setattr(study, "load", lambda path, model_id=model_id: SimpleNamespace(model_id=model_id))
        study._answered(tmp_path, question, Store(tmp_path))
    assert asked == [question] * 2
