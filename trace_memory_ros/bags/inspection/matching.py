"""Whether two topics tell of the same joints: by what their numbers do, which names leave open."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from trace_memory_ros.bags.inspection.words import SIDES, words
from trace_memory_ros.bags.numbers import Range

LEAST_SPREAD = 0.05
"""Of a number that stands still, in rad or m: the scale that its differences are measured on."""
REPEATED = 0.25
COMMANDED = 0.35
"""A command leads its joint, so that their values differ by more than two copies of one message do."""


def distance(one: Range, other: Range) -> float:
    """How unlike two numbers behave, in parts of the narrower one's spread."""
    apart = np.abs(_behaviour(one) - _behaviour(other)).mean()
    return float(apart / max(min(one.spread, other.spread), LEAST_SPREAD))


def _behaviour(one: Range) -> np.ndarray:
    return np.array([one.low, one.high, one.mean, one.first, one.last])


def alike(one: Range, other: Range) -> bool:
    """Whether two numbers are copies of one."""
    return distance(one, other) < REPEATED


def assigned(numbers: Mapping[str, Range], joints: Mapping[str, Range]) -> dict[str, str]:
    """Number -> the joint that it commands the position of; empty unless each has one that behaves as it does."""
    pairs = sorted(
        # Joints that all stand still at one place are told apart by nothing: the order decides.
        (round(distance(number, joint), 3), abs(i - j), name, found)
        for i, (name, number) in enumerate(numbers.items())
        for j, (found, joint) in enumerate(joints.items())
    )
    chosen: dict[str, str] = {}
    for apart, _, name, joint in pairs:
        if apart < COMMANDED and name not in chosen and joint not in chosen.values():
            chosen[name] = joint
    return chosen if len(chosen) == len(numbers) else {}


def of_two_arms(one: str, other: str) -> bool:
    """Whether two topics are called alike but for a side or a number, as those of two arms are."""
    pairs = list(zip(words(one), words(other), strict=False))
    if len(words(one)) != len(words(other)):
        return False
    unlike = [pair for pair in pairs if pair[0] != pair[1]]
    return bool(unlike) and all(_is_mark(a) and _is_mark(b) for a, b in unlike)


def _is_mark(word: str) -> bool:
    return word in SIDES or word.isdigit() or len(word) == 1


def nearest_by_words(topic: str, others: list[str]) -> list[str]:
    """Those of `others` that share the most words with `topic`, of the words that they don't all have."""
    common = set.intersection(*(set(words(other)) for other in others)) if others else set()
    shared = {other: len((set(words(topic)) & set(words(other))) - common) for other in others}
    most = max(shared.values(), default=0)
    return [other for other in others if shared[other] == most]
