"""One stream that never resets, stepped live: what the state weighs, and whether it still answers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from studies.recall.learning.model import SymbolModel
from studies.recall.streams.stream import SymbolTask

CHECKPOINTS = 500


class GrowingCache:
    """What attention keeps: a key and a value row per step, here d_k + d_v float32 numbers, never dropped."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.rows: list[np.ndarray] = []

    def append(self, content: torch.Tensor) -> None:
        """Keep a row made of `content` `(d,)`."""
        self.rows.append(np.resize(content.numpy(), self.width).astype(np.float32))

    @property
    def state_bytes(self) -> int:
        """Bytes of all rows."""
        return sum(row.nbytes for row in self.rows)


@torch.no_grad()
def walk(model: SymbolModel, task: SymbolTask, cache_width: int, seed: int) -> dict[str, Any]:
    """Step `Memory.step` through one stream of `task`, reading in the order the model was trained in.

    State bytes are counted from the tensors at 500 checkpoints.
    """
    stream = task.sample(np.random.default_rng([seed, 2]), 1)
    steps = stream.asked.shape[1]
    model.eval()
    state, cache, every = model.memory.initial_state(1), GrowingCache(cache_width), max(1, steps // CHECKPOINTS)
    xs = model.inputs(torch.from_numpy(stream.symbols))
    write = torch.ones(1, dtype=torch.bool)
    right, wrote, weights = [], 0, set()
    started = time.process_time()
    for t in range(steps):
        before = state
        readout, state, record = model.memory.step(xs.at(t), state, write)
        cache.append(xs.content[0, t])
        wrote += int(record.wrote)
        if stream.asked[0, t]:
            read = model.memory.read(model.memory.embed(xs.at(t)), before) if model.read_first else readout
            right.append(int(model.head(read.vector).argmax()) == stream.answers[0, t])
        if t % every == 0 or t == steps - 1:
            weights.add(sum(part.element_size() * part.nelement() for part in state))
    tenth = max(1, len(right) // 10)
    return {
        "steps": steps,
        "state_bytes": sorted(weights),
        "cache_bytes": cache.state_bytes,
        "cache_ratio": cache.state_bytes / max(weights),
        "write_rate": wrote / steps,
        "success_first_tenth": float(np.mean(right[:tenth])),
        "success_last_tenth": float(np.mean(right[-tenth:])),
        "us_per_step": 1e6 * (time.process_time() - started) / steps,
    }
