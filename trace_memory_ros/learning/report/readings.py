"""What a memory does in training, as a few numbers of the log."""

from __future__ import annotations

import torch

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.data.batches import EpisodeBatch


@torch.no_grad()
def readings(agent: Agent, batch: EpisodeBatch) -> dict[str, float]:
    """Of an agent in eval mode over a batch's writes: mean gate, share that wrote, and the size of its state.

    gate_rate: mean of the gate's probability, 1 without a gate. write_rate: share of the update clock's ticks that did
    write. state_rms: root mean square of the state's numbers after the last write.
    """
    if not any(True for _ in agent.memory.parameters()):
        return {}
    batch = batch.to(agent.hardware.device).floats()
    with agent.hardware.whole():
        _, states, records = agent.remember(batch)
    mask = batch.steps
    last = [part[:, -1].float() for part in states if part.is_floating_point()]
    numbers = sum(part.numel() for part in last)
    squares = sum(float(part.square().sum()) for part in last)
    return {
        "gate_rate": float(records.gate[mask].mean()),
        "write_rate": float(records.wrote[mask].float().mean()),
        "state_rms": (squares / max(numbers, 1)) ** 0.5,
    }
