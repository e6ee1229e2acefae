"""Longer histories are made of recorded ticks, have the asked length and end as the recorded one did."""

import numpy as np
import pytest
import torch

from trace_memory_ros.evidence.history.longer import Extension, History, extended, extensions, repaced
from trace_memory_ros.evidence.history.transforms import TransformStrength

TICKS = 41


def history(first: float, ticks: int = TICKS) -> History:
    """Contents and states that tell which tick they are of."""
    count = np.arange(first, first + ticks)
    return History(torch.from_numpy(count)[:, None].float(), count[:, None] * np.ones(2))


def made(extension: Extension, donor: History | None) -> tuple[np.ndarray, np.ndarray]:
    contents, path = extended(history(0), extension, donor, np.random.default_rng(0))
    return contents[:, 0].numpy(), np.concatenate(path)[:, 0]


@pytest.mark.parametrize("extension", extensions(100), ids=lambda e: e.name)
def test_length_ends_and_pieces(extension: Extension) -> None:
    contents, states = made(extension, history(1000))
    before = TICKS - 1
    assert len(contents) == len(states) == round(extension.factor * before) + 1
    np.testing.assert_array_equal(contents[:before], np.arange(before))
    assert contents[-1] == states[-1] == TICKS - 1
    # Contents are of the recorded tick nearest to where the arm is.
    assert np.abs(contents - states).max() <= 0.5
    added = contents[before:-1]
    if extension.needs_donor:
        assert added.min() >= 1000 + before // 2
        assert added[-1] == 1000 + before - 1
    else:
        assert before // 2 <= added.min()
        assert added.max() <= before


def test_a_distractor_is_the_same_short_segment_over_and_over() -> None:
    (distractor,) = (e for e in extensions(100) if e.name == "distractor_1.5")
    contents, _ = made(distractor, None)
    assert contents[40:-1].tolist() == [28.0, 29.0, 30.0, 31.0] * 5


def test_a_quarter_more_is_the_newest_quarter_again() -> None:
    (quarter,) = (e for e in extensions(100, TransformStrength(jitter=0.0)) if e.name == "extended_1.25")
    contents, _ = made(quarter, None)
    assert contents[40:-1].tolist() == list(range(30, 40))


def test_another_pace_keeps_to_the_segment() -> None:
    segment = history(0).part(0.5, 1.0)
    found = repaced(segment, TransformStrength(), 100, np.random.default_rng(1))
    assert found.states[0, 0] == 20
    assert found.states.max() <= 39
    assert (np.diff(found.states[:, 0]) > 0).all()


def test_too_short_a_history_or_no_donor_is_refused() -> None:
    shared = extensions(100)[-1]
    assert shared.needs_donor
    for recorded, donor in ((history(0), None), (history(0), history(0, 3)), (history(0, 4), history(0))):
        with pytest.raises(ValueError, match="at least 4 ticks"):
            extended(recorded, shared, donor, np.random.default_rng(0))
