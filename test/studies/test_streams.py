"""Recall streams are what they say: sizes, answers by the plainest possible reader, and chances."""

import numpy as np
import pytest

from studies.recall.streams import noisy_long_recall, sparse_recall
from studies.recall.streams.noisy_long_recall import HARD, MAIN, NoisyLongRecall
from studies.recall.streams.sparse_recall import SparseRecall
from studies.recall.streams.stream import SymbolTask

TASKS: tuple[SymbolTask, ...] = (HARD, MAIN, SparseRecall())


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_symbols_fit_their_fields_and_streams_repeat(task: SymbolTask) -> None:
    stream = task.sample(np.random.default_rng(3), 32)
    again = task.sample(np.random.default_rng(3), 32)
    assert all((a == b).all() for a, b in zip(stream, again, strict=True))
    assert stream.symbols.shape == (*stream.answers.shape, len(task.fields))
    assert stream.symbols.min() >= 0
    assert (stream.symbols.max(axis=(0, 1)) == np.array(task.fields) - 1).all()
    assert set(np.unique(stream.kind)) == set(range(len(task.kinds)))
    assert set(np.unique(stream.answers[stream.asked])) == set(range(task.classes))
    assert (stream.answers[~stream.asked] == 0).all()


@pytest.mark.parametrize("task", [HARD, MAIN], ids=["hard", "main"])
def test_noisy_answers_are_the_newest_bindings(task: NoisyLongRecall) -> None:
    stream = task.sample(np.random.default_rng(0), 50)
    for symbols, answers in zip(stream.symbols, stream.answers, strict=True):
        bound: dict[int, int] = {}
        for (kind, key, value), answer in zip(symbols, answers, strict=True):
            if kind == noisy_long_recall.BINDING:
                assert bound.get(key) != value, "an overwrite that changes nothing"
                bound[key] = value
            elif kind == noisy_long_recall.QUERY:
                assert value == 0
                assert answer == bound[key] - 1
        assert len(bound) == task.bindings


@pytest.mark.parametrize("task", [HARD, MAIN], ids=["hard", "main"])
def test_noisy_streams_hold_the_share_of_everything(task: NoisyLongRecall) -> None:
    stream = task.sample(np.random.default_rng(1), 800)
    share = [float((stream.kind == kind).mean()) for kind in range(4)]
    assert share[noisy_long_recall.BINDING] == pytest.approx(task.needed_write_rate, abs=0.003)
    assert share[noisy_long_recall.QUERY] == task.queries / task.steps
    assert share[noisy_long_recall.DISTRACTOR] == pytest.approx(share[noisy_long_recall.BLANK], abs=0.01)
    asked_keys = stream.symbols[..., 1][stream.asked].reshape(800, task.queries)
    assert all(len(set(row)) == task.queries for row in asked_keys.tolist())
    # A query comes after every binding, wherever in the stream both lie.
    last_binding = task.steps - 1 - (stream.kind == noisy_long_recall.BINDING)[:, ::-1].argmax(axis=1)
    assert (stream.asked.argmax(axis=1) > last_binding).all()


def test_the_hard_task_leaves_room_for_five_times_fewer_writes() -> None:
    assert pytest.approx(0.175) == HARD.needed_write_rate
    assert pytest.approx(10.4 / 96) == MAIN.needed_write_rate


def test_sparse_answers_are_the_newest_event() -> None:
    task = SparseRecall()
    stream = task.sample(np.random.default_rng(0), 400)
    changes = 0
    for symbols, answers in zip(stream.symbols, stream.answers, strict=True):
        newest = 0
        for (kind, symbol), answer in zip(symbols, answers, strict=True):
            changes += kind == sparse_recall.EVENT and symbol != newest
            newest = symbol if kind == sparse_recall.EVENT else newest
            assert answer == (newest - 1 if kind == sparse_recall.QUERY else 0)
    assert changes / stream.kind.size == pytest.approx(task.needed_write_rate, abs=0.005)
    assert float((stream.kind[:, 1:] == sparse_recall.EVENT).mean()) == pytest.approx(0.1, abs=0.01)
    assert float(stream.asked[:, 1:].mean()) == pytest.approx(0.36, abs=0.01)


@pytest.mark.parametrize("wrong", [{"queries": 17}, {"values": 1}, {"overwrite": 1.5}, {"steps": 39}])
def test_impossible_noisy_sizes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        NoisyLongRecall(**wrong)


@pytest.mark.parametrize("wrong", [{"symbols": 1}, {"event": -0.1}, {"query": 2}, {"steps": 1}])
def test_impossible_sparse_sizes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SparseRecall(**wrong)
