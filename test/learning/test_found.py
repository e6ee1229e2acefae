"""Decisions that nobody annotated, from demonstrations to what a training reports."""

from dataclasses import replace

import numpy as np
import pytest
from moments.made_up import LEAST_ACTION, LEAST_STATE, PERIOD_MS, episode

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.found import find_decisions, recorded, without_decisions
from trace_memory_ros.learning.run_config import BagsSection
from trace_memory_ros.moments.find import Search
from trace_memory_ros.observation.frames import Frames

NAMES = ("reach", "turn", "lift", "spin")


def demonstration(seed: int, answer: int) -> Demonstration:
    """A made-up episode with two cameras of unlike sizes, annotated."""
    made, begins = episode(seed, [answer])
    rng = np.random.default_rng(seed)
    cameras = {
        name: Frames.of(rng.integers(90, 130, (made.ticks, px, px, 3)).astype(np.uint8))
        for name, px in (("top", 24), ("wrist", 8))
    }
    stamps_ns = np.arange(made.ticks) * PERIOD_MS * 1_000_000
    arrays = stamps_ns, cameras, made.state, made.actions
    return Demonstration(str(seed), str(seed), *arrays, decision_ticks=tuple(begins), answers=(answer,))


def test_cameras_of_unlike_sizes_are_seen_together() -> None:
    demo = demonstration(0, 1)
    seen = recorded(replace(demo, usable=np.arange(demo.ticks) != 3), PERIOD_MS)
    assert seen.pictures.shape == (demo.ticks, 3 * (16 * 16 + 8 * 8)) and seen.pictures.dtype == np.uint8
    assert not seen.usable[3]


def test_decisions_of_every_side_are_found_and_agree_with_what_was_annotated() -> None:
    demos = [demonstration(seed, seed % 2) for seed in range(36)]
    sides = [demos[:30], demos[30:], []]
    found = find_decisions(sides, PERIOD_MS, LEAST_STATE, LEAST_ACTION, NAMES, Search(rotations=4))
    assert len(found.labels) == 2 and all("turn" in label for label in found.labels)
    pairs = [
        (true.answers[0], mine.answers[0])
        for of_side, true_side in zip(found.sides, sides, strict=True)
        for mine, true in zip(of_side, true_side, strict=True)
        if mine.answers
    ]
    assert len(pairs) >= 32 and len(set(pairs)) == 2
    assert [len(side) for side in found.sides] == [30, 6, 0]


def test_too_few_episodes_have_no_decisions_and_no_annotated_ones_either() -> None:
    demos = [demonstration(seed, seed % 2) for seed in range(4)]
    found = find_decisions([demos, []], PERIOD_MS, LEAST_STATE, LEAST_ACTION, NAMES)
    assert found == without_decisions([demos, []]) or found.moments is None
    assert not any(demo.decision_ticks for demo in found.sides[0])


def test_which_decisions_are_learned_from_is_one_of_four() -> None:
    with pytest.raises(ConfigError, match="bags.decisions is 'guessed': use auto, annotated, found, none"):
        BagsSection(decisions="guessed")
