"""Temporal ensembling against the weighted mean written out."""

import numpy as np
import pytest

from trace_memory_ros.policies.act.ensemble import TemporalEnsemble


def test_overlapping_chunks_are_averaged_with_the_oldest_weighing_most() -> None:
    ensemble = TemporalEnsemble(chunk=3, decay=0.5)
    chunks = [np.full((3, 1), float(i), np.float32) + np.array([[0.0], [0.1], [0.2]], np.float32) for i in range(5)]
    actions = [ensemble.push(chunk)[0] for chunk in chunks]
    # At tick 4 the chunks of ticks 2, 3, 4 say 2.2, 3.1, 4.0.
    weights = np.exp(-0.5 * np.arange(3))
    assert actions[0] == pytest.approx(0.0)
    assert actions[4] == pytest.approx((weights * [2.2, 3.1, 4.0]).sum() / weights.sum(), rel=1e-6)


def test_reset_forgets_earlier_chunks() -> None:
    ensemble = TemporalEnsemble(chunk=2, decay=0.1)
    ensemble.push(np.full((2, 1), 9.0, np.float32))
    ensemble.reset()
    assert ensemble.push(np.zeros((2, 1), np.float32))[0] == 0.0


def test_a_chunk_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="chunk of 3 ticks given to an ensemble of 2"):
        TemporalEnsemble(chunk=2, decay=0.1).push(np.zeros((3, 1), np.float32))
