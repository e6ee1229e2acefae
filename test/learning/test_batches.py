"""Whole-episode batches: what is written, which write a read sees, increments, padding, augmentation."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from learning.synthetic import BRANCH_TICK, TICKS, design, pair
from numpy.typing import NDArray

from trace_memory_ros.learning import build
from trace_memory_ros.learning.data.augment import augment, shift
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import Episode, TrainingSet, UnpairedSet, increments
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.reads import sample_reads
from trace_memory_ros.learning.memory_first import delay_stages, usual_stages
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, ReadShares


@pytest.fixture(scope="module")
def builder() -> BatchBuilder:
    return build.prepare(design("trace"), [pair(0), pair(1)], [pair(2)])[0]


def test_a_read_sees_the_newest_write_at_or_before_it(builder: BatchBuilder) -> None:
    batch = builder.build([0], [2.0], [np.array([0, 3, 4, 5, 23])])
    assert batch.mask.sum() == 6  # ticks 0, 4, 8, ... at twice every second tick
    assert batch.last_write.tolist() == [[0, 0, 1, 1, 5]]


def test_early_writes_are_those_before_the_first_decision(builder: BatchBuilder) -> None:
    one = builder.data.episodes[0]
    episodes = [
        replace(one, demo=replace(one.demo, decision_ticks=ticks, answers=answers))
        for ticks, answers in (((5, 9), (0, 1)), ((), ()))
    ]
    batch = replace(builder, data=UnpairedSet(episodes)).build([0, 1], [1.0, 2.0], [np.array([3])] * 2)
    # Ticks 0, 2, 4, ... and 0, 4, 8, ..., of which there are half as many.
    assert batch.early[0].nonzero().flatten().tolist() == [0, 1, 2]
    assert batch.early[1].tolist() == batch.mask[1].tolist() and not batch.mask[1].all()


def test_a_coarse_clock_writes_what_is_shown_as_finely_as_the_final_one(builder: BatchBuilder) -> None:
    class Shown:
        def of(self, demo: Demonstration) -> NDArray[np.bool_]:
            return (np.arange(demo.ticks) >= 9) & (np.arange(demo.ticks) < 15)

    shown = replace(builder, shows=Shown())  # type: ignore[arg-type]
    episode = builder.data.episodes[0]
    coarse, fine = (builder._due(episode, factor).tolist() for factor in (4.0, 1.0))
    assert shown._due(episode, 4.0).tolist() == sorted({*coarse, *(tick for tick in fine if 9 <= tick < 15)})
    assert len(coarse) < len(shown._due(episode, 4.0)) < len(fine)
    assert shown._due(episode, 1.0).tolist() == fine


def test_episodes_with_few_decisions_come_first_where_there_are_enough(builder: BatchBuilder) -> None:
    one = builder.data.episodes[0]

    def deciding(times: int) -> Episode:
        ticks = tuple(range(BRANCH_TICK, BRANCH_TICK + times))
        return replace(one, demo=replace(one.demo, decision_ticks=ticks, answers=(0,) * times))

    some = [deciding(times) for times, count in ((0, 3), (1, 10), (2, 4), (3, 8), (4, 6)) for _ in range(count)]
    mixed, first = replace(builder, data=UnpairedSet(some)), MemoryFirst(clock_factors=(4.0, 1.0), delay_factors=())
    stages = usual_stages(mixed, None, first)
    assert [len(stage.training.data.episodes) for stage in stages] == [10, 22, len(some), len(some)]
    assert [stage.clock_factor for stage in stages] == [4.0, 4.0, 4.0, 1.0]
    assert usual_stages(builder, None, first) == delay_stages(builder, None, first)


def test_scenes_with_short_shows_come_first_where_there_are_enough(builder: BatchBuilder) -> None:
    one = builder.data.episodes[0]

    def showing(ticks: int) -> Episode:
        return replace(one, demo=replace(one.demo, shown=np.arange(one.demo.ticks) < ticks))

    # Twins of a scene need not be shown the same for as long: the longer show counts.
    some = [showing(ticks - twin) for ticks in (4, 12, 4, 6, 12, 4, 8, 12, 4, 6, 12) for twin in (0, 1)]
    first = MemoryFirst(clock_factors=(4.0, 1.0), delay_factors=())
    stages = usual_stages(replace(builder, data=TrainingSet(some)), builder, first)
    assert [len(stage.training.data.episodes) for stage in stages] == [12, len(some), len(some)]
    assert [stage.clock_factor for stage in stages] == [4.0, 4.0, 1.0]
    assert all(stage.validation is builder for stage in stages)
    shown = stages[0].training.data.episodes
    assert [int(episode.demo.shown.sum()) for episode in shown] == [4, 3, 4, 3, 6, 5, 4, 3, 4, 3, 6, 5]
    assert len(usual_stages(replace(builder, data=TrainingSet(some[:4])), None, first)) == 2


def test_increments_run_from_the_write_before(builder: BatchBuilder) -> None:
    xi, standardiser = builder.data.episodes[0].xi, builder.statistics.delta
    assert standardiser is not None
    batch = builder.build([0], [2.0], [np.array([0, 3, 4, 5])])
    expected = [xi[0] - xi[0], xi[3] - xi[0], xi[4] - xi[0], xi[5] - xi[4]]
    np.testing.assert_allclose(batch.reads.delta[0], standardiser.apply(np.stack(expected)), atol=1e-6)
    np.testing.assert_array_equal(batch.writes.delta[0, 1], batch.reads.delta[0, 2])


def test_chunks_end_with_the_episode(builder: BatchBuilder) -> None:
    batch = builder.build([1], [1.0], [np.array([TICKS - 2])])
    assert batch.valid.tolist() == [[[True, True, False, False]]]
    assert batch.actions[0, 0, :, 0].tolist() == [1.0] * 4


def test_pairs_differ_in_nothing_but_cue_and_branch(builder: BatchBuilder) -> None:
    reads = [np.array([10, BRANCH_TICK])] * 2
    batch = builder.build([0, 1], [1.0, 1.0], reads)
    assert torch.equal(batch.images[0], batch.images[1])
    assert torch.equal(batch.writes.thumbnails[0, 2:], batch.writes.thumbnails[1, 2:])
    assert not torch.equal(batch.writes.thumbnails[0, :2], batch.writes.thumbnails[1, :2])
    assert not torch.equal(batch.actions[0, 1], batch.actions[1, 1])


def test_augmentation_keeps_shapes_targets_and_the_unit_range(builder: BatchBuilder) -> None:
    batch = builder.build([0, 1], [1.0, 1.0], [np.array([5, 6])] * 2)
    changed = augment(batch, torch.Generator().manual_seed(0), Augmentation())
    assert changed.images.shape == batch.images.shape
    assert not torch.equal(changed.images, batch.images)
    assert 0.0 <= changed.images.min() and changed.images.max() <= 1.0
    assert torch.equal(changed.actions, batch.actions)
    assert torch.equal(changed.last_write, batch.last_write)


def test_an_episode_is_shifted_as_one() -> None:
    images = torch.arange(2 * 3 * 1 * 3 * 8 * 8, dtype=torch.float32).reshape(2, 3, 1, 3, 8, 8)
    moved = shift(images, torch.Generator().manual_seed(3), 2)
    for episode, result in zip(images, moved, strict=True):
        offsets = (result - episode)[..., 3:5, 3:5]
        assert (offsets == offsets.flatten()[0]).all()


def test_near_reads_lie_where_memory_decides(builder: BatchBuilder) -> None:
    reads = sample_reads(np.random.default_rng(0), builder.data.episodes[0], 200, ReadShares(near_branch=1.0), reach=3)
    assert reads.min() == BRANCH_TICK - 2
    assert reads.max() == BRANCH_TICK + 2


def test_rare_reads_are_found_from_the_actions_alone() -> None:
    one, other = pair(0)
    parted = one.actions.copy()
    parted[3:9, 1] = 0.5  # the twins act apart from tick 3 on, long before the branch
    parted[9:12, 1] = np.linspace(0.4, 0.0, 3)
    changed = replace(one, actions=parted)
    training = build.prepare(design("gru"), [(changed, other)]).training
    first, second = training.data.episodes
    assert first.apart.tolist() == second.apart.tolist() == [3, 4, 5, 6]
    assert {5, 8, 14}.issubset(first.pauses.tolist())


def test_a_decision_without_an_answer_is_refused() -> None:
    one, _ = pair(0)
    with pytest.raises(ValueError, match="0 0: decision ticks .*one answer to each"):
        replace(one, decision_ticks=(3, BRANCH_TICK))


def test_a_joint_that_stood_still_in_training_may_move() -> None:
    still = [tuple(replace(d, state=d.state * [1, 1, 1, 1, 1, 1e-5]) for d in pair(seed)) for seed in range(3)]
    training = build.prepare(design("trace"), still[:2], still[2:])[0]
    moved = replace(pair(0)[0], state=pair(0)[0].state * [1, 1, 1, 1, 1, 0.02])
    assert training.data.path is not None
    episode = training.data.path.episode(moved, {}, np.zeros(0, int), np.zeros(0, int))
    changes = increments(episode.xi, np.flatnonzero(episode.write_mask(training.clock)))
    for standardiser, seen in ((training.statistics.xi, episode.xi), (training.statistics.delta, changes)):
        assert standardiser is not None and standardiser.clipped_share(np.asarray(seen)) == 0.0
