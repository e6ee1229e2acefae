"""Sizes that a robot's memory and policy have unless others are asked for.

A mechanism is as wide as `WIDTH` says and otherwise at its own defaults, so that one number scales all its parts: 20
to 180 thousand parameters, a state of a few kB. `SLOTS` are enough for a handful of things to hold at once; an unused
one costs `WIDTH` numbers. Only what a mechanism was seen not to learn without is set besides.
"""

from __future__ import annotations

from typing import Any

WIDTH = 64
SLOTS = 8
OPTIONS: dict[str, dict[str, Any]] = {
    # Signatures grow with an episode, and with them what is read: without norms a long one drowns the rest.
    "trace": {"read_norm": True, "address_norm": True},
    # The paper's information bottleneck and fast-weight step are for another scale of loss: its gate stays shut.
    "aura": {"step_size": 0.1, "rate_of": "writes", "ramp_from": 0.6, "ramp": 0.8, "ib_weight": 1e-5},
}
"""Options of mechanisms, by registry name."""
GATED = "+gate"


def memory_options(name: str) -> dict[str, Any]:
    """The options of a mechanism, those of one behind a write gate as its inner ones."""
    inner = name.removesuffix(GATED)
    options = dict(OPTIONS.get(inner, {}))
    return {"inner": options} if inner != name else options
