"""Mechanisms and inputs that the contract is tested with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput

DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)
Inputs = Callable[..., MemoryInput]


def mechanisms(asked: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The names to be tested, and those behind the write gate: of the mechanisms `asked` for, or of all there are."""
    bare = list(dict.fromkeys(registry.bare_name(name) for name in asked or registry.names()))
    return bare, [name + registry.GATED for name in bare]


def fresh(name: str, options: Mapping[str, Any] | None = None) -> Memory:
    """A mechanism with the same weights every time, as deployed: some draw noise and keep statistics in training."""
    torch.manual_seed(0)
    return registry.build(name, DIMS, options).eval()


def random_inputs(
    batch: int, steps: int, dims: MemoryDims = DIMS, dtype: torch.dtype = torch.float32, grad: bool = False
) -> MemoryInput:
    """Random `(B, T, ...)` inputs, the same for the same sizes."""
    generator = torch.Generator().manual_seed(batch * 100 + steps)
    widths = (dims.content, dims.signature, dims.signature, dims.content)
    return MemoryInput(
        *(torch.randn(batch, steps, width, generator=generator, dtype=dtype).requires_grad_(grad) for width in widths)
    )
