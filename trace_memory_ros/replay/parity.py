"""How far two runs over the same inputs are apart, condition by condition."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trace_memory_ros.runtime.condition import Condition, FloatArray

ARRAYS = ("tokens", "vector", "read_weights", "address")
FACTS = ("status", "reason", "wrote", "mechanism", "model_id", "input_stamps_ns")


@dataclass
class Parity:
    """Conditions of two runs, matched by stamp.

    live, replayed: conditions on each side. compared: with the same stamp. within: between the first and the last
    common one, those that one side lacks; what lies before and after is where a recording begins and ends. max_abs:
    per array the largest absolute difference, infinite where shapes or NaNs differ. differ: per fact the conditions in
    which it does. bits_differ: conditions of which any array differs in any bit. first_differing_tick: of the live run;
    None without a difference.
    """

    live: int = 0
    replayed: int = 0
    compared: int = 0
    within: int = 0
    max_abs: dict[str, float] = field(default_factory=lambda: dict.fromkeys(ARRAYS, 0.0))
    differ: dict[str, int] = field(default_factory=lambda: dict.fromkeys(FACTS, 0))
    bits_differ: int = 0
    first_differing_tick: int | None = None

    @property
    def largest(self) -> float:
        """The largest difference of all arrays."""
        return max(self.max_abs.values())

    @property
    def identical(self) -> bool:
        """Whether, from the first common tick to the last, both have the same ones, equal in all bits and facts."""
        return self.compared > 0 and not self.within and not self.bits_differ and not any(self.differ.values())

    @property
    def beyond(self) -> int:
        """Ticks of one side before the first or after the last common one."""
        return self.live + self.replayed - 2 * self.compared - self.within

    def add(self, live: Condition, replayed: Condition) -> None:
        """Compare two conditions of one stamp."""
        facts = [name for name in FACTS if getattr(live, name) != getattr(replayed, name)]
        for name in facts:
            self.differ[name] += 1
        bits = 0
        for name in ARRAYS:
            one, other = getattr(live, name), getattr(replayed, name)
            bits += one.shape != other.shape or one.tobytes() != other.tobytes()
            self.max_abs[name] = max(self.max_abs[name], distance(one, other))
        self.bits_differ += bits > 0
        self.compared += 1
        if (facts or bits) and self.first_differing_tick is None:
            self.first_differing_tick = live.tick

    def figures(self) -> dict[str, Any]:
        """For a summary; an infinite difference is None."""
        finite = {name: value if math.isfinite(value) else None for name, value in self.max_abs.items()}
        return {
            "ticks_live": self.live,
            "ticks_replayed": self.replayed,
            "ticks_compared": self.compared,
            "ticks_unmatched_within": self.within,
            "ticks_beyond_ends": self.beyond,
            "identical": self.identical,
            "max_abs": self.largest if math.isfinite(self.largest) else None,
            "max_abs_of": finite,
            "bits_differ": self.bits_differ,
            "facts_differ": {name: count for name, count in self.differ.items() if count},
            "first_differing_tick": self.first_differing_tick,
        }


def distance(one: FloatArray, other: FloatArray) -> float:
    """Largest absolute difference; infinite for other shapes or a NaN on one side alone."""
    if one.shape != other.shape:
        return math.inf
    if not one.size:
        return 0.0
    with np.errstate(invalid="ignore"):
        gaps = np.abs(one.astype(np.float64) - other.astype(np.float64))
    gaps[(one == other) | (np.isnan(one) & np.isnan(other))] = 0.0
    return float(np.where(np.isnan(gaps), math.inf, gaps).max())


def compare(live: Iterable[Condition], replayed: Iterable[Condition]) -> Parity:
    """Match two runs by episode, counted from each one's first, and stamp; instances may differ."""
    ones, others = _by_key(live), _by_key(replayed)
    parity = Parity(live=len(ones), replayed=len(others))
    common = sorted(ones.keys() & others.keys())
    for key in common:
        parity.add(ones[key], others[key])
    if common:
        parity.within = sum(common[0] < key < common[-1] for key in ones.keys() ^ others.keys())
    return parity


def _by_key(conditions: Iterable[Condition]) -> dict[tuple[int, int], Condition]:
    """By number of the episode, which a restored memory goes on with, and stamp."""
    found: dict[tuple[int, int], Condition] = {}
    episodes: dict[tuple[int, int], int] = {}
    number = 0
    for condition in conditions:
        new = number if condition.restored else len(set(episodes.values()))
        number = episodes.setdefault((condition.instance, condition.episode), new)
        found[number, condition.stamp_ns] = condition
    return found
