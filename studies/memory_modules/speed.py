"""Milliseconds of one memory step at batch 1, all rows taking turns in one process."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from trace_memory_ros.memory.base import Memory, MemoryInput
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.model import MemoryModel, one_thread

ROUNDS = 300
WARM_UP = 20


@torch.inference_mode()
def step_times_ms(checkpoints: Mapping[str, Path], rounds: int = ROUNDS) -> dict[str, float]:
    """Median time of a step that writes and reads, per row, by row -> checkpoint."""
    one_thread()
    memories = {row: MemoryModel.from_checkpoint(load(folder)).memory for row, folder in checkpoints.items()}
    states = {row: memory.initial_state(1) for row, memory in memories.items()}
    inputs = {row: _input(memory) for row, memory in memories.items()}
    times: dict[str, list[float]] = {row: [] for row in memories}
    write = torch.ones(1, dtype=torch.bool)
    for _ in range(WARM_UP + rounds):
        for row, memory in memories.items():
            begun = time.perf_counter()
            _, states[row], _ = memory.step(inputs[row], states[row], write)
            times[row].append(1e3 * (time.perf_counter() - begun))
    return {row: float(np.median(taken[WARM_UP:])) for row, taken in times.items()}


def _input(memory: Memory) -> MemoryInput:
    dims, noise = memory.dims, torch.Generator().manual_seed(0)
    content, anchor = (torch.randn(1, dims.content, generator=noise) for _ in range(2))
    xi, delta = (torch.randn(1, dims.signature, generator=noise) for _ in range(2))
    return MemoryInput(content, xi, delta, anchor)
