"""The long_context streams: what is asked can be answered from what was shown, and from nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from studies.recall.streams.long_context import (
    DECOY,
    DISTRACTOR,
    FILLER,
    NOTHING,
    QUERY,
    RELEVANT,
    TARGET,
    LongContext,
)


@pytest.mark.parametrize("task", [LongContext(), LongContext(keys=2, values=3, decoy_marks=1, steps=9)], ids=str)
def test_answers_follow_from_the_symbols(task: LongContext) -> None:
    stream = task.sample(np.random.default_rng(0), 20)
    assert stream.symbols.shape == (20, task.steps, len(task.fields))
    assert stream.asked.all()
    for symbols, answers in zip(stream.symbols.tolist(), stream.answers.tolist(), strict=True):
        bound: dict[int, int] = {}
        for (mark, key, value, scene), answer in zip(symbols, answers, strict=True):
            if mark == TARGET:
                assert key not in bound
                bound[key] = value
            asked = mark == DECOY + task.decoy_marks
            assert answer == (bound[key] - 1 if asked else scene)


def test_kinds_look_as_they_are_said_to() -> None:
    task = LongContext(distractors=0.5, steps=200)
    stream = task.sample(np.random.default_rng(1), 10)
    mark, key, value, _ = np.moveaxis(stream.symbols, -1, 0)
    assert ((stream.kind == RELEVANT) == (mark == TARGET)).all()
    assert ((stream.kind == FILLER) == (mark == NOTHING)).all()
    decoy = stream.kind == DISTRACTOR
    assert set(np.unique(mark[decoy])) == set(range(DECOY, DECOY + task.decoy_marks))
    assert (key[decoy] > 0).all()
    assert (value[decoy] > 0).all()
    assert not value[stream.kind == QUERY].any()
    assert not (key[stream.kind == FILLER].any() or value[stream.kind == FILLER].any())
    assert (np.sort(key[:, -task.keys :], axis=1) == np.arange(1, task.keys + 1)).all()
    assert abs(decoy[:, : -task.keys].mean() - 0.5) < 0.05


def test_symbols_stay_in_their_vocabularies() -> None:
    task = LongContext(values=3, decoy_marks=2)
    stream = task.sample(np.random.default_rng(2), 200)
    assert (stream.symbols.max(axis=(0, 1)) == np.array(task.fields) - 1).all()
    assert stream.symbols.min() == 0
    assert set(np.unique(stream.answers)) == set(range(task.classes))


def test_a_distractor_tells_nothing_about_the_answer() -> None:
    """The newest distractor with the key in question agrees with the answer as often as chance."""
    task = LongContext(distractors=1.0)
    stream = task.sample(np.random.default_rng(3), 500)
    agreed = []
    for symbols, kind, answers in zip(stream.symbols, stream.kind, stream.answers, strict=True):
        last = {key: value for (_, key, value, _), k in zip(symbols, kind, strict=True) if k == DISTRACTOR}
        agreed += [last[s[1]] - 1 == a for s, a in zip(symbols[-4:], answers[-4:], strict=True) if s[1] in last]
    assert abs(np.mean(agreed) - 1 / task.values) < 0.03


def test_the_generator_decides_the_streams() -> None:
    first, again, other = (LongContext().sample(np.random.default_rng(seed), 3) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.symbols, other.symbols)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keys": 0}, "keys = 0: must be at least 1"),
        ({"values": 1}, "values = 1: must be at least 2"),
        ({"distractors": 1.5}, "distractors = 1.5: a share"),
        ({"steps": 7}, "steps = 7: 4 relevant ticks and as many queries need 8"),
    ],
)
def test_impossible_settings_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LongContext(**options)
