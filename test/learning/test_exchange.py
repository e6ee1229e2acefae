"""Episodes with one's way and another's sights: what is whose, and that a memory then goes by what was seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning.synthetic import BRANCH_TICK as TWIN_BRANCH
from learning.synthetic import design, pair
from learning.tiny_bags import BRANCH_TICK, TICKS, recording, write_bag

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning import build
from trace_memory_ros.learning.bags.data import Split
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.training import Prepared, prepare_split, read_bags
from trace_memory_ros.learning.data import dataset
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import Episode, TrainingSet, UnpairedSet
from trace_memory_ros.learning.data.exchange import exchanged, obstacle, way_tells, with_exchanges
from trace_memory_ros.learning.data.path_signatures import PathSignatures
from trace_memory_ros.learning.decisions.by_heart import probe_address
from trace_memory_ros.learning.memory_first import _stages_of, learn_memory, usual_stages
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, Recipe
from trace_memory_ros.observation.frames import stacked
from trace_memory_ros.runtime.clock import EveryTicks

SCENES = 16
OPTIONS = BagOptions("trace", depth=2, chunk=4, clock=EveryTicks(2), width=24, slots=2)
ELBOW, ELBOW_CHANNEL = 0, 4
"""The first action, and the state channel that it moves."""


def prepared(folder: Path, config: RecordingConfig) -> Prepared:
    """One side of each scene, so that no two episodes are alike."""
    for scene in range(SCENES):
        write_bag(folder / f"{scene:02d}", scene, scene % 2, config)
    data, failed = read_bags([folder / f"{scene:02d}" for scene in range(SCENES)], config, folder / "cache")
    assert not failed
    return prepare_split(data, config, OPTIONS, Recipe(), Split(list(range(SCENES)), [], []))


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(tmp_path_factory.mktemp("bags"), recording())


def made(builder: BatchBuilder, way: int, sight: int) -> tuple[Episode, Episode, Episode]:
    """Two episodes, and one with the way of the first and the sights of the second."""
    data = builder.data
    assert isinstance(data, UnpairedSet) and data.path is not None
    one, other = data.episodes[way], data.episodes[sight]
    return one, other, exchanged(one, other, data.path, builder.moved, builder.brief(other))


def test_the_way_is_one_episodes_and_what_is_seen_and_done_is_the_others(plan: Prepared) -> None:
    way, sight, both = made(plan.training, 0, 3)
    before, after = slice(0, BRANCH_TICK), slice(BRANCH_TICK, TICKS)
    np.testing.assert_array_equal(both.demo.state[before], way.demo.state[before])
    np.testing.assert_array_equal(both.xi[before], way.xi[before])
    np.testing.assert_array_equal(both.demo.actions[before], way.demo.actions[before])
    ticks = np.arange(TICKS)
    np.testing.assert_array_equal(stacked(both.thumbnails, ticks), stacked(sight.thumbnails, ticks))
    assert (both.demo.decision_ticks, both.demo.answers) == (sight.demo.decision_ticks, sight.demo.answers)
    assert way.demo.answers != sight.demo.answers
    moved = both.demo.state[after] - both.demo.state[BRANCH_TICK]
    np.testing.assert_allclose(moved, sight.demo.state[after] - sight.demo.state[BRANCH_TICK])
    # The chunk is the other's, from where this one stands: seen from the state, both are the same.
    for channel, action in ((ELBOW_CHANNEL, ELBOW), (None, 3)):
        ours, theirs = (
            one.demo.actions[after, action] - (0.0 if channel is None else one.demo.state[BRANCH_TICK, channel])
            for one in (both, sight)
        )
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert (np.diff(both.demo.stamps_ns) > 0).all()


def test_an_exchange_with_itself_changes_nothing(plan: Prepared) -> None:
    way, _, both = made(plan.training, 2, 2)
    for one, other in ((both.demo.state, way.demo.state), (both.demo.actions, way.demo.actions), (both.xi, way.xi)):
        np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_array_equal(both.pauses, way.pauses)
    assert both.demo.decision_ticks == way.demo.decision_ticks


def test_ways_of_unlike_length_keep_the_sights_in_order(plan: Prepared) -> None:
    data = plan.training.data
    assert isinstance(data, UnpairedSet) and data.path is not None
    one, other = data.episodes[0], data.episodes[1]
    late = replace(other.demo, decision_ticks=(BRANCH_TICK - 5,))
    later = data.path.episode(late, other.thumbnails, other.apart, other.pauses)
    both = exchanged(one, later, data.path, [-1] * 4, None)
    assert both.demo.ticks == TICKS + 5 and both.demo.decision_ticks == (BRANCH_TICK,)
    index = next(iter(both.demo.images.values())).index
    assert (np.diff(index) >= 0).all() and index[BRANCH_TICK] - index[0] == BRANCH_TICK - 5
    lost = np.ones(TICKS, bool)
    lost[[3, BRANCH_TICK - 4]] = False
    gaps = replace(later, demo=replace(late, usable=lost))
    usable = exchanged(one, gaps, data.path, [-1] * 4, None).demo.usable
    assert usable is not None and not usable[BRANCH_TICK + 1] and not usable[index == 3].any()


def test_each_episode_gets_so_many_partners_and_none_is_its_own(plan: Prepared) -> None:
    more = with_exchanges(plan.training, 3)
    names = [episode.demo.name for episode in more.data.episodes[SCENES:]]
    assert len(more.data.episodes) == SCENES * 4 and len(set(names)) == SCENES * 3
    assert all(way != sight for way, sight in (name.split(", sights of ") for name in names))
    assert with_exchanges(plan.training, 3).data.episodes[-1].demo.name == names[-1]
    # What is looked at to tell whether a stage is mastered stays what was demonstrated.
    assert isinstance(more.data, UnpairedSet) and max(more.data.some(SCENES)) < SCENES


def test_signatures_that_find_no_room_are_computed_when_they_are_asked_for(
    plan: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = with_exchanges(plan.training, 2).data.episodes
    monkeypatch.setattr(dataset, "HELD_BYTES", sum(one.xi.nbytes for one in held[:-1]))
    computed = with_exchanges(plan.training, 2).data.episodes
    assert isinstance(held[-1].xi, np.ndarray) and isinstance(computed[-1].xi, PathSignatures)
    for one, other in zip(held, computed, strict=True):
        np.testing.assert_array_equal(one.xi[:], other.xi[:])


def test_nothing_is_exchanged_among_few_or_where_it_is_not_asked_for(plan: Prepared) -> None:
    builder = plan.training
    assert isinstance(builder.data, UnpairedSet) and with_exchanges(builder, 0) is builder
    few = replace(builder, data=UnpairedSet(builder.data.episodes[:7], builder.data.path))
    assert with_exchanges(few, 4) is few and "7 episodes have a decision" in str(obstacle(few))
    assert obstacle(builder) is None


def test_a_way_that_tells_the_answers_is_noticed(plan: Prepared, tmp_path: Path) -> None:
    assert not way_tells(plan.training)
    # The wheels turn on one side alone.
    told = prepared(tmp_path, recording(base=True)).training
    assert way_tells(told)
    first = MemoryFirst((2.0,), (), partners=2, attempts=3)
    sizes = [
        [len(_stages_of(attempt, one, None, first)[0].training.data.episodes) // SCENES for attempt in (1, 2, 3)]
        for one in (plan.training, told)
    ]
    assert sizes == [[3, 3, 1], [3, 1, 1]]


def test_the_last_attempt_is_made_with_what_was_demonstrated(plan: Prepared) -> None:
    first = MemoryFirst(clock_factors=(2.0, 1.0), delay_factors=(), enough=0.0)
    with_, without = (usual_stages(plan.training, None, replace(first, partners=partners)) for partners in (2, 0))
    assert {len(stage.training.data.episodes) for stage in with_} == {3 * SCENES}
    assert {len(stage.training.data.episodes) for stage in without} == {SCENES}
    lines: list[tuple[int, int]] = []
    never = replace(first, stage_steps=1, check_steps=1, attempts=2, least=1.1, partners=2, batch_pairs=2, reads=2)
    agent = build.build_agent(plan.design, plan.training)
    learn_memory(agent, plan.training, None, Recipe(memory_first=never), 0, lambda p: lines.append((p.attempt, p.step)))
    assert [attempt for attempt, _ in lines] == [1, 1, 2, 2]


def test_a_memory_without_an_address_learns_from_what_was_demonstrated(plan: Prepared) -> None:
    first = MemoryFirst((2.0,), (), stage_steps=3, check_steps=1, settle_steps=0, attempts=1, batch_pairs=2, reads=2)
    gru = replace(plan.design, memory="gru", options={}, depth=0)
    found = []
    for partners in (0, 4):
        torch.manual_seed(0)
        agent = build.build_agent(gru, plan.training)
        losses: list[float] = []
        recipe = Recipe(memory_first=replace(first, partners=partners))
        learn_memory(
            agent, plan.training, None, recipe, 0, lambda p, losses=losses: losses.append(p.losses["chunk_l1"])
        )
        found.append(losses)
    assert found[0] == found[1] and len(found[0]) == 3


def twins(count: int, apart: float) -> BatchBuilder:
    """Scenes of twins; until the branch every other one's first joint is so far apart in every scene but the last."""
    scenes = []
    for seed in range(6):
        ways = []
        for number, demo in enumerate(pair(seed, count)):
            state = demo.state.copy()
            state[2:TWIN_BRANCH, -1] += apart * number * (seed < 5)
            ways.append(replace(demo, state=state))
        scenes.append(tuple(ways))
    return build.prepare(design("trace"), scenes).training


@pytest.mark.parametrize(("count", "partners", "shifts"), [(2, 4, 1), (3, 1, 1), (3, 4, 2)])
def test_twins_go_the_ways_of_each_other(count: int, partners: int, shifts: int) -> None:
    builder = twins(count, 0.5)
    more = with_exchanges(builder, partners).data
    assert isinstance(more, TrainingSet) and more.pairs == 6 + 5 * shifts
    for number in range(6, more.pairs):
        of_scene = [more.episodes[i] for i in more.scene(number)]
        names = [one.demo.name.split(", sights of ") for one in of_scene]
        assert len({name for both in names for name in both}) == count
        for place, (one, (way, sight)) in enumerate(zip(of_scene, names, strict=True)):
            assert one.demo.answers == (place,) and sight.endswith(f" {place}") and way != sight
            found = {episode.demo.name: episode for episode in builder.data.episodes}
            np.testing.assert_array_equal(one.state[:TWIN_BRANCH], found[way].state[:TWIN_BRANCH])
            np.testing.assert_array_equal(one.xi[:TWIN_BRANCH], found[way].xi[:TWIN_BRANCH])
            ticks = np.arange(one.demo.ticks)
            np.testing.assert_array_equal(stacked(one.thumbnails, ticks), stacked(found[sight].thumbnails, ticks))


def test_twins_that_go_one_way_have_nothing_to_exchange() -> None:
    alike = twins(2, 0.0)
    assert with_exchanges(alike, 4) is alike and obstacle(alike) == "their twins go the same way"
    assert obstacle(twins(2, 0.5)) is None


@pytest.mark.timeout(120)
def test_a_memory_with_an_address_goes_by_what_was_seen(plan: Prepared) -> None:
    first = MemoryFirst(clock_factors=(4.0, 1.0), delay_factors=(), stage_steps=150, batch_pairs=8, reads=6, attempts=1)
    recipe = Recipe(memory_first=first, augmentation=Augmentation(clock_jitter=0.0))
    found = {}
    for partners in (0, 4):
        torch.manual_seed(0)
        agent = build.build_agent(plan.design, plan.training)
        asked = replace(recipe, memory_first=replace(first, partners=partners))
        model = learn_memory(agent, plan.training, None, asked, 0, lambda _: None).eval()
        probe = probe_address(model, agent.memory, plan.training, recipe)
        assert probe is not None
        found[partners] = probe.by_sight.right - probe.by_path.right
    assert found[4] >= SCENES - 4
    assert found[4] > found[0]
