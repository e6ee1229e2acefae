"""How many ticks of memory a second of training goes through."""

from __future__ import annotations

import time

import torch

from studies.grid import Figures
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.sizes import memory_options
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims, MemoryInput

DIMS = MemoryDims(content=96, signature=210, width=64, slots=8)
"""Those of a robot of 14 joints at signature depth 2."""
EPISODES, WRITES = 16, 30
REPEATS = 5


def ticks_per_s(name: str, hardware: Hardware = CPU, repeats: int = REPEATS) -> Figures:
    """Writes scanned a second, forward and backward, of the fastest of some repeats; on a CPU by one thread."""
    torch.manual_seed(0)
    device = hardware.device
    memory = registry.build(name, DIMS, memory_options(name)).train().to(device)
    sizes = (DIMS.content, DIMS.signature, DIMS.signature, DIMS.content)
    xs = MemoryInput(*(torch.randn(EPISODES, WRITES, size).to(device) for size in sizes))
    mask = torch.ones(EPISODES, WRITES, dtype=torch.bool, device=device)
    found = []
    for _ in range(repeats + 1):
        content = xs.content.clone().requires_grad_()
        hardware.wait()
        begun = time.perf_counter()
        readout, _, records = memory(xs._replace(content=content), memory.initial_state(EPISODES), mask)
        hardware.wait()
        forward = time.perf_counter()
        loss = readout.vector.square().mean() + records.gate.mean()
        if loss.requires_grad:
            loss.backward()
            hardware.wait()
        found.append((forward - begun, time.perf_counter() - begun))
    ticks = EPISODES * WRITES
    # The first one compiles.
    return {
        "forward": ticks / min(f for f, _ in found[1:]),
        "forward_and_backward": ticks / min(both for _, both in found[1:]),
        "parameters": sum(p.numel() for p in memory.parameters()),
    }
