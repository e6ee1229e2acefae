"""The fuzzer finds what it is for: crashes, deaths, hangs, silent losses and unclear verdicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.fuzz_bags import study as fuzz_bags
from studies.fuzz_bags.mutations import BYTES, FIELDS, KINDS, TICKS, files_of, mutated
from studies.fuzz_bags.study import CRASH, HANG, SILENT, UNCLEAR, Decoder, judge, write_files
from studies.tiny_bags import BEGIN_NS
from trace_memory_ros.bags import build
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.bags.faults import BagFault, Grade, verdict_of


def test_the_same_seed_breaks_the_same_bag() -> None:
    for index in range(12):
        one, other = (mutated(np.random.default_rng((3, index))) for _ in range(2))
        assert one[:2] == other[:2]
        if one[1] in BYTES and one[0].storage == "mcap":
            assert one[2] == other[2]


@pytest.mark.parametrize("name", FIELDS)
def test_mutations_change_something(name: str) -> None:
    kind = KINDS[0]
    changed = 0
    for seed in range(5):
        entries = kind.entries()
        FIELDS[name](entries, np.random.default_rng(seed))
        changed += files_of(entries, kind) != files_of(kind.entries(), kind)
    assert changed >= 3


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_bags_are_sound_before_they_are_broken(tmp_path: Path, kind) -> None:  # type: ignore[no-untyped-def]
    bag = write_files(tmp_path / "bag", files_of(kind.entries(), kind))
    outcome = judge(0, "none", bag, kind.recording)
    assert (outcome.grade, outcome.failure) == (Grade.OK.value, "")


class FakeEpisode:
    ticks, unfinished, usable = TICKS - 1, 0, np.ones(TICKS - 1, bool)
    stamps_ns = np.array([BEGIN_NS])
    span = EpisodeSpan("bag", 0, 0, 1)


def test_failures_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(result: object) -> str:
        def decode(bag: Path, recording: object) -> object:
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr(build, "decode_bag", decode)
        return judge(0, "none", tmp_path, KINDS[0].recording).failure

    assert answer(KeyError("x")) == CRASH
    assert answer(RecursionError()) == CRASH
    assert answer(([FakeEpisode], verdict_of("b", []))) == SILENT
    assert answer(([], verdict_of("b", [], usable=False))) == UNCLEAR
    assert answer(([], verdict_of("b", [BagFault("b", "what", "where", "")]))) == UNCLEAR
    assert answer(([], verdict_of("b", [BagFault("b", "what", "where", "remedy")]))) == ""


def test_a_process_that_hangs_or_dies_is_replaced() -> None:
    with Decoder(0) as decoder:
        good = decoder.decode(1)
        assert good.failure == ""
        decoder._deadline_s = 0.0
        assert decoder.decode(2).failure == HANG
        decoder._deadline_s = 60.0
        decoder._process.kill()
        decoder._process.join()
        assert decoder.decode(3).failure == CRASH
        again = decoder.decode(1)
        assert (again.grade, again.mutation) == (good.grade, good.mutation)


def test_no_bag_gets_the_better_of_the_decoder(tmp_path: Path) -> None:
    figures = fuzz_bags.run(tmp_path, quick=True, bags=60, seed=11)
    assert figures["bags"] == 60 == sum(figures["grades"].values())
    assert sum(figures["failures"].values()) == 0


@pytest.mark.parametrize("index", [0, 206, 267, 2915, 4513, 6761, 8530, 9054, 9095])
def test_bags_that_once_lost_a_tick_without_a_word_are_named(tmp_path: Path, index: int) -> None:
    kind, mutation, files = mutated(np.random.default_rng((0, index)))
    outcome = judge(index, mutation, write_files(tmp_path / "bag", files), kind.recording)
    assert (outcome.failure, outcome.text) == ("", "")
    assert outcome.grade == Grade.DEGRADED.value
