"""Inputs and mechanisms shared by the memory tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput

DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)

VARIANTS = {
    "trace with anchor": ("trace", {"anchor": True}),
    "trace without delta": ("trace", {"use_delta": False, "slot_identity": 0.5}),
    "trace with norms": ("trace", {"read_norm": True, "address_norm": True, "temperature": 0.3}),
    "trace with other sizes": ("trace", {"address_width": 4, "routing_width": 8, "hidden": 9}),
    "trace by prototypes": ("trace", {"routing": "prototypes", "temperature": 0.2}),
    "trace with a gate": ("trace+gate", {"inner": {"read_norm": True}, "hidden": 4}),
    "gru with a gate": ("gru+gate", {"gate": "gumbel", "hidden": 4}),
    "aura without unit keys": ("aura", {"unit_keys": False, "key_width": 4, "value_width": 8, "action_ib": False}),
    "aura writing always": ("aura", {"gate": "always", "key_width": 5}),
    "aura by a token gate": ("aura", {"gate_signal": "token", "gate": "gumbel", "key_width": 6}),
    "elmur with short segments": ("elmur", {"segment": 2, "blend": 0.3, "gradient_segments": 2, "hidden": 5}),
    "elmur with one write a segment": ("elmur", {"segment": 1, "layers": 3, "heads": 3, "gradient_segments": 0}),
    "prism with a short ring": ("prism", {"window": 3, "layers": 3, "local_tokens": 2}),
    "prism with a blind gate": ("prism", {"window": 2, "gate": "blind", "heads": 1, "width": 4}),
    "prism without gates": ("prism", {"window": 5, "gate": "none", "hidden": 3, "layers": 1}),
    "transformer with a short ring": ("transformer", {"window": 3, "layers": 2, "heads": 3, "hidden": 4}),
    "lru with more slots": ("lru", {"slots": 5, "match_bias": -1.0, "decay": 0.5, "hidden": 4}),
    "retrieval from a small store": ("retrieval", {"capacity": 3, "top_k": 2, "hidden": 4}),
    "retrieval by age": ("retrieval", {"capacity": 3, "top_k": 1, "evict": "oldest"}),
}
CASES = {**{name: (name, {}) for name in registry.names()}, **VARIANTS}


@pytest.fixture(params=list(CASES))
def memory(request: pytest.FixtureRequest) -> Memory:
    """Every registered mechanism, and variants whose settings change the computation, as deployed.

    In evaluation mode: some draw noise and keep running statistics in training.
    """
    torch.manual_seed(0)
    name, options = CASES[request.param]
    return registry.build(name, DIMS, options).eval()


@pytest.fixture
def inputs() -> Callable[..., MemoryInput]:
    """Random `(B, T, ...)` inputs."""

    def make(
        batch: int, steps: int, dims: MemoryDims = DIMS, dtype: torch.dtype = torch.float32, grad: bool = False
    ) -> MemoryInput:
        generator = torch.Generator().manual_seed(batch * 100 + steps)
        widths = (dims.content, dims.signature, dims.signature, dims.content)
        return MemoryInput(
            *(
                torch.randn(batch, steps, width, generator=generator, dtype=dtype).requires_grad_(grad)
                for width in widths
            )
        )

    return make
