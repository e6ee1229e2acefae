"""The newest k writes, against a list that keeps them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.memory.last_k import LastKConfig, LastKMemory

DIMS = MemoryDims(content=5, signature=7, width=4, slots=3)


def test_holds_what_was_written_last(inputs: Callable[..., MemoryInput]) -> None:
    torch.manual_seed(0)
    memory = LastKMemory(DIMS, LastKConfig(frames=3))
    xs = inputs(2, 7)
    mask = torch.tensor([[1, 1, 0, 1, 1, 0, 1], [0, 1, 0, 0, 1, 0, 0]], dtype=torch.bool)
    begun = memory.initial_state(2)
    for start in (0, 1):
        # Once from nothing, once from what the first scan left.
        readout, begun, records = memory(xs, begun, mask)
        for b in range(2):
            kept = [] if start == 0 else [xs.content[b, t] for t in range(7) if mask[b, t]]
            for t in range(7):
                kept += [xs.content[b, t]] * bool(mask[b, t])
                newest = [*kept[::-1][:3], *[torch.zeros(5)] * (3 - len(kept))]
                expected = torch.cat(newest) @ memory.stacked.weight.T + memory.stacked.bias
                torch.testing.assert_close(readout.vector[b, t], expected)
                held = min(len(kept), 3)
                weights = [1 / max(held, 1)] * held + [0.0] * (3 - held)
                assert readout.read_weights[b, t].tolist() == pytest.approx(weights)
                for age in range(3):
                    token = memory.to_width(newest[age]) + memory.ages[age] if age < held else torch.zeros(4)
                    torch.testing.assert_close(readout.tokens[b, t, age], token)
                assert records.write_strength[b, t].tolist() == [float(mask[b, t]), 0.0, 0.0]


def test_an_older_write_leaves_no_trace(inputs: Callable[..., MemoryInput]) -> None:
    memory, xs = LastKMemory(DIMS, LastKConfig(frames=2)), inputs(1, 4)
    other = xs._replace(content=xs.content.clone())
    other.content[:, 0] += 1.0
    mask = torch.ones(1, 4, dtype=torch.bool)
    (one, _, _), (two, _, _) = (memory(given, memory.initial_state(1), mask) for given in (xs, other))
    differs = [not torch.equal(one.vector[:, t], two.vector[:, t]) for t in range(4)]
    assert differs == [True, True, False, False]


def test_no_frames_are_named() -> None:
    with pytest.raises(ValueError, match=r"LastKConfig\.frames = 0"):
        LastKConfig(frames=0)
