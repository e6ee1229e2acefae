"""Mechanisms shared by the memory tests, and the inputs of the contract suite."""

from __future__ import annotations

import pytest

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory
from trace_memory_ros.memory.gate import GatedMemory
from trace_memory_ros.testing.inputs import Inputs, fresh, random_inputs

VARIANTS = {
    "trace with anchor": ("trace", {"anchor": True}),
    "trace without delta": ("trace", {"use_delta": False, "slot_identity": 0.5}),
    "trace with norms": ("trace", {"read_norm": True, "address_norm": True, "temperature": 0.3}),
    "trace with other sizes": ("trace", {"address_width": 4, "routing_width": 8, "hidden": 9}),
    "trace by prototypes": ("trace", {"routing": "prototypes", "temperature": 0.2}),
    "trace with a gate": ("trace+gate", {"inner": {"read_norm": True}, "hidden": 4}),
    "gru with a gate": ("gru+gate", {"gate": "gumbel", "hidden": 4}),
    "aura with rows as tokens": ("aura", {"tokens": "rows", "key_width": 4}),
    "aura without unit keys": ("aura", {"unit_keys": False, "key_width": 4, "value_width": 8, "action_ib": False}),
    "aura writing always": ("aura", {"tokens": "rows", "gate": "always", "key_width": 5}),
    "aura by a token gate": ("aura", {"gate_signal": "token", "gate": "gumbel", "key_width": 6}),
    "elmur with short segments": ("elmur", {"segment": 2, "blend": 0.3, "gradient_segments": 2, "hidden": 5}),
    "elmur with one write a segment": ("elmur", {"segment": 1, "layers": 3, "heads": 3, "gradient_segments": 0}),
    "prism with a short ring": ("prism", {"window": 3, "layers": 3, "local_tokens": 2}),
    "prism with a blind gate": ("prism", {"window": 2, "gate": "blind", "heads": 1, "width": 4}),
    "prism without gates": ("prism", {"window": 5, "gate": "none", "hidden": 3, "layers": 1}),
    "transformer with a short ring": ("transformer", {"window": 3, "layers": 2, "heads": 3, "hidden": 4}),
    "gru with a short cache": ("gru+cache", {"window": 3, "first": 1, "key": 4, "value": 5, "heads": 2, "counters": 0}),
    "gru with a cache and a gate": ("gru+cache+gate", {"inner": {"window": 4, "first": 1, "key": 4}, "hidden": 4}),
    "lru with more slots": ("lru", {"slots": 5, "match_bias": -1.0, "decay": 0.5, "hidden": 4}),
    "retrieval from a small store": ("retrieval", {"capacity": 3, "top_k": 2, "hidden": 4}),
    "retrieval by age": ("retrieval", {"capacity": 3, "top_k": 1, "evict": "oldest"}),
}
NAMES = [name + behind for behind in ("", registry.CACHED, registry.GATED) for name in registry.names()]
CASES = {**{name: (name, {}) for name in NAMES}, **VARIANTS}


@pytest.fixture(params=list(CASES))
def memory(request: pytest.FixtureRequest) -> Memory:
    """Every registered mechanism, bare and gated, and variants whose settings change the computation, as deployed."""
    return fresh(*CASES[request.param])


@pytest.fixture(params=[name for name, (mechanism, _) in CASES.items() if mechanism.endswith(registry.GATED)])
def gated(request: pytest.FixtureRequest) -> GatedMemory:
    """Every mechanism behind the write gate, and variants of the gate, as deployed."""
    built = fresh(*CASES[request.param])
    assert isinstance(built, GatedMemory)
    return built


@pytest.fixture
def inputs() -> Inputs:
    """Random `(B, T, ...)` inputs."""
    return random_inputs
