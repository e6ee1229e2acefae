"""Memory and time of PRISM's hierarchy beside full attention over all local tokens, with equal parameters.

Three uses: a training step and whole-sequence inference over n ticks of k tokens, and one streaming tick with the
caches of n ticks full. Attention is PyTorch's fused kernel everywhere, which never holds a matrix of scores.

Bytes are counted by PyTorch's own record of every allocation and release, weights, input and caches added, because
the resident set never shrinks and Python's tracers do not see tensors; the resident set of a process of its own is
reported beside it. Time is CPU time of one thread, the two models taking turns.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from studies.recall.tasks.long_context_models import FullAttention, Hierarchy, parameter_count
from trace_memory_ros.memory.prism.layers import GatedLayer, split
from trace_memory_ros.memory.prism.ring import GlobalEncoder

MIB = 2.0**20
PAPER = {"memory_ratio": 0.20, "time_ratio": 0.60}
"""PRISM, section 5, Q5: n = 512, evaluation on a GPU, 398 local tokens per tick."""


@dataclass(frozen=True)
class CostSizes:
    """ticks n, tokens k per tick, width, heads; blocks: of full attention; the hierarchy has one local and the rest."""

    ticks: int = 512
    tokens: int = 16
    width: int = 64
    heads: int = 4
    blocks: int = 4
    hidden: int = 128

    def hierarchy(self) -> Hierarchy:
        """One local block with resampler, `blocks - 1` global ones."""
        return Hierarchy(self.width, self.heads, self.blocks - 1, self.hidden, "feature", self.ticks)

    def full(self) -> FullAttention:
        """`blocks` blocks, their feed-forward layers wider by the resampler's parameters."""
        spare = parameter_count(self.hierarchy()) - parameter_count(self._full(self.hidden))
        return self._full(self.hidden + round(spare / (self.blocks * (2 * self.width + 1))))

    def _full(self, hidden: int) -> FullAttention:
        return FullAttention(self.width, self.heads, self.blocks, hidden, "feature", self.ticks * self.tokens)

    def both(self) -> dict[str, nn.Module]:
        """The two models, by name."""
        torch.manual_seed(0)
        return {"hierarchy": self.hierarchy(), "full": self.full()}


class CachedStack:
    """Streaming through an encoder's blocks: `m` tokens per tick against cached keys and values, written in place.

    The caches hold `capacity` tokens, full of noise from the start, or empty with `full = False`; the newest tick's
    overwrite the oldest's.
    """

    def __init__(self, encoder: GlobalEncoder, capacity: int, full: bool = True) -> None:
        self.encoder, self.capacity = encoder, capacity
        self.layers = [layer for layer in encoder.layers if isinstance(layer, GatedLayer)]
        shape = (len(self.layers), 1, encoder.heads, capacity, encoder.width // encoder.heads)
        self.keys, self.values = torch.randn(shape), torch.randn(shape)
        self.count = capacity if full else 0

    @property
    def cache_bytes(self) -> int:
        """Of keys and values."""
        return sum(t.element_size() * t.nelement() for t in (self.keys, self.values))

    @torch.no_grad()
    def tick(self, tokens: Tensor) -> Tensor:
        """Outputs `(m, w)` of one tick's tokens `(m, w)`, each seeing those before it and itself."""
        steps = tokens.shape[0]
        position = torch.arange(self.count, self.count + steps)
        entry = position % self.capacity
        self.count += steps
        held = min(self.count, self.capacity)
        mask = None
        if steps > 1:
            mask = torch.ones(steps, held, dtype=torch.bool)
            mask[:, entry] = torch.ones(steps, steps, dtype=torch.bool).tril()
        h = tokens[None]
        for index, layer in enumerate(self.layers):
            query, key, value = (split(part, self.encoder.heads) for part in layer.project(h))
            self.keys[index].index_copy_(2, entry, layer.turn(key, position[None]))
            self.values[index].index_copy_(2, entry, value)
            found = functional.scaled_dot_product_attention(
                layer.turn(query, position[None]),
                self.keys[index, :, :, :held],
                self.values[index, :, :, :held],
                attn_mask=mask,
            )
            h = layer.finish(h, found)
        y: Tensor = self.encoder.norm(h)[0]
        return y


def streaming(model: nn.Module, sizes: CostSizes) -> tuple[Callable[[], object], int]:
    """One tick of `model` on its local tokens, with full caches, and the bytes of those."""
    tokens = torch.randn(sizes.tokens, sizes.width)
    if isinstance(model, Hierarchy):
        stack, local = CachedStack(model.encoder, sizes.ticks), model.local
        return torch.no_grad()(lambda: tokens + stack.tick(local(tokens)[None])), stack.cache_bytes
    assert isinstance(model, FullAttention)
    everything = CachedStack(model.encoder, sizes.ticks * sizes.tokens)
    return lambda: everything.tick(tokens), everything.cache_bytes


def training_step(model: nn.Module, sizes: CostSizes) -> Callable[[], object]:
    """Forward and backward over n ticks, after which the gradients are dropped."""
    tokens = torch.randn(1, sizes.ticks, sizes.tokens, sizes.width)

    def work() -> None:
        model(tokens).square().mean().backward()
        model.zero_grad(set_to_none=True)

    return work


def whole_inference(model: nn.Module, sizes: CostSizes) -> Callable[[], object]:
    """Forward over n ticks without gradients."""
    tokens = torch.randn(1, sizes.ticks, sizes.tokens, sizes.width)
    return torch.no_grad()(lambda: model(tokens))


def peak_bytes(work: Callable[[], object]) -> int:
    """The most that was allocated at once during one call, over what was there before."""
    work()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        work()
    live = most = 0
    for event in record.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            live += event.nbytes()
            most = max(most, live)
    return most


def resident_growth(use: str, name: str, sizes: CostSizes) -> int:
    """How many bytes the resident set grew by at most during one call in a fresh process (Linux)."""
    module = Path(__file__).stem
    code = f"from {__package__}.{module} import CostSizes, grow; print(grow({use!r}, {name!r}, {sizes!r}))"
    return int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def grow(use: str, name: str, sizes: CostSizes) -> int:
    """`resident_growth` in this process, which must not have called it before."""
    torch.set_num_threads(1)
    small = replace(sizes, ticks=8)
    USES[use](small.both()[name], small)()
    work = USES[use](sizes.both()[name], sizes)
    before = _resident_bytes("VmRSS")
    # Forget the peak of the imports: from here on VmHWM is that of the call.
    Path("/proc/self/clear_refs").write_text("5")
    work()
    return _resident_bytes("VmHWM") - before


def _resident_bytes(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


USES: dict[str, Callable[[nn.Module, CostSizes], Callable[[], object]]] = {
    "training_step": training_step,
    "whole_inference": whole_inference,
}


def compare(use: str, sizes: CostSizes, rounds: int) -> dict[str, Any]:
    """Peak MiB and milliseconds of both models in one use, and the hierarchy's shares of full attention's."""
    works, peaks, extra = {}, {}, {}
    for name, model in sizes.both().items():
        held = 4 * parameter_count(model)
        if use == "streaming_tick":
            works[name], cache = streaming(model, sizes)
            held += cache + 4 * sizes.tokens * sizes.width
            extra[f"{name}_cache_mib"] = cache / MIB
        else:
            works[name] = USES[use](model, sizes)
            held += 4 * sizes.ticks * sizes.tokens * sizes.width
        peaks[name] = (held + peak_bytes(works[name])) / MIB
    spent = take_turns(works, rounds)
    ratios = np.array(spent["hierarchy"]) / np.array(spent["full"])
    return {
        "memory_ratio": peaks["hierarchy"] / peaks["full"],
        "time_ratio": float(np.median(ratios)),
        "time_ratio_range": [float(ratios.min()), float(ratios.max())],
        **{f"{name}_peak_mib": peak for name, peak in peaks.items()},
        **{f"{name}_ms": 1e3 * float(np.median(times)) for name, times in spent.items()},
        **extra,
    }


def take_turns(works: dict[str, Callable[[], object]], rounds: int, least_s: float = 0.02) -> dict[str, list[float]]:
    """CPU seconds per call of each work in each round; a short one is called as often as fills `least_s`."""
    repeats = {}
    for name, work in works.items():
        work()
        repeats[name] = max(1, round(least_s / _cpu_seconds(work, 1)))
    spent: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            spent[name].append(_cpu_seconds(work, repeats[name]))
    return spent


def _cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    start = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - start) / repeats
