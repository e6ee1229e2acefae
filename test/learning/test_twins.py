"""Scenes of more than two counterfactual twins: drawn whole, judged against every other answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from learning.synthetic import BRANCH_TICK, design, pair
from torch import Tensor

from trace_memory_ros.learning import build
from trace_memory_ros.learning.data.batches import BatchBuilder, EpisodeBatch
from trace_memory_ros.learning.data.dataset import TrainingSet
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, decisions_right

SCENES = 4


@pytest.fixture(scope="module")
def three() -> BatchBuilder:
    return build.prepare(design("none"), [pair(seed, 3) for seed in range(SCENES)]).training


def test_scenes_are_drawn_with_all_their_twins(three: BatchBuilder) -> None:
    data = three.data
    assert (data.pairs, [data.episodes[i].demo.name for i in (3, 4, 5)]) == (SCENES, ["1 0", "1 1", "1 2"])
    for pairs, episodes in ((1, 3), (3, 6), (100, 3 * SCENES)):
        drawn = data.draw(np.random.default_rng(0), pairs)
        assert len(drawn) == len(set(drawn)) == episodes
        assert [i % 3 for i in drawn] == [0, 1, 2] * (episodes // 3)
    two = build.prepare(design("none"), [pair(seed) for seed in range(SCENES)]).training.data
    assert [len(two.draw(np.random.default_rng(0), pairs)) for pairs in (1, 3, 100)] == [2, 6, 2 * SCENES]


class Expert:
    """Predicts the chunks that other rows of the batch have: `rows[i]` for twin i."""

    def __init__(self, builder: BatchBuilder, rows: tuple[int, ...]) -> None:
        self.statistics, self.rows = builder.statistics, list(rows)

    def __call__(self, batch: EpisodeBatch) -> Tensor:
        return self.statistics.normalise_actions(batch.actions)[self.rows]


@pytest.mark.parametrize(
    ("rows", "right"), [((0, 1, 2), [1, 1, 1]), ((1, 2, 0), [0, 0, 0]), ((2, 2, 2), [0, 0, 1]), ((0, 2, 1), [1, 0, 0])]
)
def test_right_is_nearer_than_every_other_answer(
    three: BatchBuilder, rows: tuple[int, ...], right: list[float]
) -> None:
    assert decisions_right(Expert(three, rows), three, 1)[:, 0].tolist() == right
    found = branch_accuracy(Expert(three, rows), three)
    assert found is not None
    assert (found.right, found.count) == (SCENES * sum(right), SCENES * 3)


def test_a_decision_at_which_all_twins_answer_alike_is_not_counted() -> None:
    def asked(seed: int, last: tuple[int, ...]) -> tuple[Demonstration, ...]:
        ticks = (BRANCH_TICK - 4, BRANCH_TICK)
        twins = zip(pair(seed, 3), last, strict=True)
        return tuple(replace(demo, decision_ticks=ticks, answers=(7, answer)) for demo, answer in twins)

    builder = build.prepare(design("none"), [asked(seed, (0, 0, 1)) for seed in range(2)]).training
    verdicts = decisions_right(Expert(builder, (1, 0, 2)), builder, 0)
    # Who acts as a twin of the same answer does is right.
    assert torch.equal(verdicts.nan_to_num(-1), torch.tensor([[-1.0, 1.0]] * 3))
    found = branch_accuracy(Expert(builder, (2, 2, 0)), builder)
    assert found is not None
    assert (found.right, found.count) == (0, 6)


def test_a_look_at_some_scenes_takes_them_from_all(monkeypatch: pytest.MonkeyPatch) -> None:
    builder = build.prepare(design("none"), [pair(seed) for seed in range(30)]).training
    looked: list[int] = []

    def decided(_model: object, _builder: BatchBuilder, scene: int, _factor: float) -> Tensor:
        looked.append(scene)
        return torch.ones(2, 1)

    monkeypatch.setattr("trace_memory_ros.learning.decisions.branch_accuracy.decisions_right", decided)
    for _ in range(2):
        branch_accuracy(Expert(builder, (0, 1)), builder, pairs=6)
    first, again = looked[:6], looked[6:]
    assert first == again == sorted(set(first))
    assert first[-1] > 15, "the last scenes are never looked at"


def test_scenes_that_are_not_whole_are_refused(three: BatchBuilder) -> None:
    with pytest.raises(ValueError, match="11 episodes: scenes of 3"):
        TrainingSet(three.data.episodes[:11], 3)
    with pytest.raises(ValueError, match=r"scenes of \[2, 3\]"):
        build.prepare(design("none"), [pair(0, 3), pair(1)])
