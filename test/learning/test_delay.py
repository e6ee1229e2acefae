"""Delays longer than any demonstrated: what is gone through again, what a read then sees, how it is trained."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learning.synthetic import BRANCH_TICK, design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.data.batches import NO_PICTURES, BatchBuilder, EpisodeBatch, Wanted
from trace_memory_ros.learning.data.dataset import TrainingSet
from trace_memory_ros.learning.data.delay import MOST_WRITES, Delay, draw_delays, lengthened, travelled
from trace_memory_ros.learning.engine.optimise import Sampling
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.memory_first import _suited, delay_stages, learn_memory
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import Progress
from trace_memory_ros.memory.base import MemoryInput

WRITES = np.arange(0, 40, 2)
SHOWN = np.isin(np.arange(40), (0, 1, 2, 3, 4, 5, 6, 14, 15))
"""Writes 0 to 3 and 7 show something; the longest stretch that does not, before a decision at tick 30, is 8 to 14."""


@pytest.fixture(scope="module")
def builder() -> BatchBuilder:
    return build.prepare(design("gru"), [pair(0), pair(1)], [pair(2)])[0]


def test_the_longest_stretch_that_shows_nothing_comes_again() -> None:
    order = lengthened(WRITES, SHOWN, 30, Delay(4.0))
    assert order.tolist() == [*range(8), *[8, 9, 10, 11, 12, 13, 14] * 7, *range(15, 20)]
    part = lengthened(WRITES, SHOWN, 30, Delay(2.0, 0.3, 0.6))
    assert part.tolist() == [*range(10), *[10, 11] * 9, *range(12, 20)]


def test_without_shows_all_but_the_first_write_may_come_again() -> None:
    assert lengthened(WRITES, None, 10, Delay(3.0)).tolist() == [0, *[1, 2, 3, 4] * 3, *range(5, 20)]


@pytest.mark.parametrize(
    ("shown", "decision"), [(SHOWN, None), (np.ones(40, bool), 30), (np.arange(40) % 4 < 2, 30), (SHOWN, 0)]
)
def test_where_nothing_can_come_again_each_write_comes_once(shown: np.ndarray, decision: int | None) -> None:
    assert lengthened(WRITES, shown, decision, Delay(8.0)).tolist() == list(range(20))


@given(st.integers(2, 60), st.floats(1.0, 20.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 2**31))
def test_what_is_shown_comes_once_and_what_follows_a_decision_too(
    count: int, factor: float, one: float, other: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    writes = np.sort(rng.choice(4 * count, count, replace=False))
    shown, decision = rng.random(4 * count) < 0.3, int(rng.integers(4 * count))
    order = lengthened(writes, shown, decision, Delay(factor, min(one, other), max(one, other)))
    often = np.bincount(order, minlength=count)
    assert often.min() >= 1
    again = writes[often > 1]
    assert not shown[again].any() and (again < decision).all()
    assert set(np.diff(order).tolist()) <= {1, int(np.diff(order).min())}
    before = int((writes < decision).sum())
    if len(again):
        assert abs(often[:before].sum() - min(factor * before, MOST_WRITES)) <= 0.5 * len(again) + 1e-9


def test_drawn_delays_are_those_that_were_asked_for_and_nothing_is_drawn_without() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert draw_delays(rng, 1.0, 3) == [Delay()] * 3
    assert rng.bit_generator.state == before
    drawn = draw_delays(rng, 16.0, 400)
    assert all(1.0 <= delay.factor <= 16.0 and delay.begin <= delay.end for delay in drawn)
    assert 0.4 < np.mean([delay.factor < 4.0 for delay in drawn]) < 0.6


def test_a_longer_delay_is_the_scan_of_the_writes_in_that_order(builder: BatchBuilder) -> None:
    agent = build.build_agent(design("gru"), builder).eval()
    reads = [np.array([0, 5, BRANCH_TICK]), np.array([0, 5, BRANCH_TICK])]
    delays = [Delay(5.0), Delay(2.0, 0.2, 0.7)]
    batch = builder.build([0, 1], [1.0, 1.0], reads, delays=delays)
    assert batch.order is not None and batch.steps.shape == batch.order.shape
    assert batch.ticks == int(batch.steps.sum()) + 6 > int(batch.mask.sum()) + 6
    with torch.no_grad():
        found = agent.read(batch)
        for row in range(2):
            expected = _one_by_one(agent, batch, row)
            torch.testing.assert_close(found.vector.unflatten(0, (2, 3))[row], expected)


def _one_by_one(agent: Agent, batch: EpisodeBatch, row: int) -> torch.Tensor:
    """What is read at each read of an episode whose writes are done step by step."""
    xs, order = agent.memory_inputs(batch), batch.order
    assert order is not None
    state, read = agent.memory.initial_state(1), {}
    for step, write in enumerate(order[row].tolist()):
        if write < 0:
            break
        one = xs.map(lambda field, write=write: field[row, write][None])
        state, _ = agent.memory.write(one, state)
        read[step] = agent.memory.read(one, state).vector[0]
    return torch.stack([read[step] for step in batch.last_write[row].tolist()])


def test_a_read_comes_after_the_last_time_its_write_is_done(builder: BatchBuilder) -> None:
    reads = [np.arange(builder.data.episodes[0].demo.ticks)]
    plain, longer = (builder.build([0], [1.0], reads, delays=[Delay(factor)]) for factor in (1.0, 6.0))
    assert plain.order is None and longer.order is not None
    assert torch.equal(longer.order[0, longer.last_write[0]], plain.last_write[0])
    assert (longer.last_write.diff() >= 0).all()
    assert longer.last_write[0, BRANCH_TICK] > 4 * plain.last_write[0, BRANCH_TICK]


def test_a_memory_is_told_what_was_demonstrated_however_long_the_delay(builder: BatchBuilder) -> None:
    agent = build.build_agent(design("gru+gate"), builder)
    demos, reads = [builder.data.episodes[i].demo for i in (0, 1)], [np.array([3])] * 2
    plain, longer = (
        builder.build([0, 1], [1.0, 2.0], reads, NO_PICTURES, delays=[Delay(factor)] * 2) for factor in (1.0, 6.0)
    )
    agent.recall(longer)
    updates, seconds = agent.memory.shown
    assert updates == plain.mask.sum() < longer.steps.sum() / 2
    assert float(seconds) == pytest.approx(sum(demo.stamps_ns[-1] - demo.stamps_ns[0] for demo in demos) / 1e9)


def test_a_batch_of_one_process_is_its_share_of_the_whole(builder: BatchBuilder) -> None:
    builder = replace(builder, delay=16.0)
    sampling = Sampling(builder, Recipe(), 1.0, 2, 4, MemoryFirst().shares, pictures=False)
    drawn = sampling.draw(np.random.default_rng(3))
    whole = sampling.build(drawn).batch
    longest = builder.longest(drawn.indices, drawn.factors, drawn.delays)
    mine = (part[1:2] for part in drawn[:3])
    share = builder.build(*mine, Wanted(pictures=False, raw=True), longest, (), drawn.delays[1:2])
    assert whole.order is not None and share.order is not None
    assert torch.equal(share.order[0], whole.order[1])
    assert torch.equal(share.last_write[0], whole.last_write[1])


def test_going_back_makes_the_path_a_longer_one() -> None:
    writes, order = np.array([1, 3, 4, 7]), np.array([0, 1, 2, 1, 2, 3])
    reads, last = np.array([0, 4, 6, 9]), np.array([-1, 4, 4, 5])
    way = travelled(writes, order, reads, last)
    assert way.ticks.tolist() == [0, 1, 2, 3, 4, 3, 4, 5, 6, 7, 8, 9]
    assert way.steps.tolist() == [1, 3, 4, 5, 6, 9]
    assert way.reads.tolist() == [0, 6, 8, 11]


@given(st.integers(2, 40), st.floats(1.0, 9.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(0, 2**31))
def test_writes_and_reads_lie_on_the_longer_path(
    count: int, factor: float, one: float, other: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    writes = np.sort(rng.choice(4 * count, count, replace=False))
    order = lengthened(writes, None, int(rng.integers(4 * count)), Delay(factor, min(one, other), max(one, other)))
    reads = np.sort(rng.integers(0, 4 * count, 6))
    newest = np.searchsorted(writes, reads, side="right") - 1
    last = np.array([-1 if n < 0 else int(np.flatnonzero(order == n)[-1]) for n in newest])
    way = travelled(writes, order, reads, last)
    assert (way.ticks[way.steps] == writes[order]).all() and (way.ticks[way.reads] == reads).all()
    assert way.ticks[0] == 0 and (np.diff(way.steps) > 0).all() and (np.diff(way.reads) >= 0).all()
    # Ticks follow one another but where a stretch begins again.
    assert (np.diff(way.ticks) != 1).sum() == (np.diff(order) != 1).sum()
    assert ((way.reads >= np.where(last < 0, 0, way.steps[np.maximum(last, 0)])) | (last < 0)).all()


def test_addresses_of_the_whole_path_are_those_of_the_longer_one() -> None:
    iisignature = pytest.importorskip("iisignature", reason="pip install --no-build-isolation iisignature")
    depth = 2
    builder = build.prepare(replace(design("trace"), depth=depth), [pair(0)]).training
    assert builder.whole_depth == depth
    episode, reads = builder.data.episodes[0], [np.array([0, 5, BRANCH_TICK]), np.array([0, 5, BRANCH_TICK])]
    plain, longer = (builder.build([0, 1], [1.0, 1.0], reads, delays=[Delay(factor)] * 2) for factor in (1.0, 4.0))
    assert longer.order is None and longer.mask.shape[1] > 2 * plain.mask.shape[1]
    writes = np.flatnonzero(episode.write_mask(builder.clock))
    order = lengthened(writes, None, BRANCH_TICK, Delay(4.0))
    way = travelled(writes, order, reads[0], longer.last_write[0].numpy())
    assert builder.statistics.xi is not None
    for place, found in ((way.reads[2], longer.reads.xi[0, 2]), (way.steps[-1], longer.writes.xi[0, len(order) - 1])):
        expected = iisignature.sig(episode.path[way.ticks[: place + 1]].astype(np.float64), depth)
        torch.testing.assert_close(found, torch.from_numpy(builder.statistics.xi.apply(expected)), rtol=1e-3, atol=1e-3)
    assert not torch.allclose(longer.reads.xi[0, 2], plain.reads.xi[0, 2], atol=1e-2)
    assert torch.equal(longer.reads.xi[:, 0], plain.reads.xi[:, 0])


def test_a_longer_whole_path_is_scanned_step_by_step() -> None:
    plan = design("trace")
    builder = build.prepare(plan, [pair(0)]).training
    agent = build.build_agent(plan, builder).eval()
    reads = [np.array([3, BRANCH_TICK])] * 2
    batch = builder.build([0, 1], [1.0, 1.0], reads, delays=[Delay(5.0), Delay(1.0)])
    with torch.no_grad():
        found = agent.read(batch).vector.unflatten(0, (2, 2))
        xs = agent.memory.embed(agent.memory_inputs(batch))
        seen = MemoryInput(
            agent._seen(batch.reads)[:1, 1], batch.reads.xi[:1, 1], batch.reads.delta[:1, 1], xs.anchor[:1, 0]
        )
        state = agent.memory.initial_state(1)
        for step in range(int(batch.last_write[0, 1]) + 1):
            state, _ = agent.memory.write(xs.map(lambda field, step=step: field[:1, step]), state)
        torch.testing.assert_close(found[0, 1], agent.memory.read(seen, state).vector[0], rtol=1e-4, atol=1e-5)


def test_stages_of_longer_delays_follow_the_final_clock(builder: BatchBuilder) -> None:
    first = MemoryFirst(clock_factors=(4.0, 1.0), delay_factors=(2.0, 8.0))
    stages = delay_stages(builder, None, first)
    assert [stage.clock_factor for stage in stages] == [4.0, 1.0, 1.0, 1.0]
    assert [stage.training.delay for stage in stages] == [1.0, 1.0, 2.0, 8.0]
    assert (first.delays, MemoryFirst(delay_factors=()).delays) == ((1.0, 2.0, 8.0), (1.0,))
    episodes = builder.data.episodes
    undecided = [replace(one, demo=replace(one.demo, decision_ticks=(), answers=())) for one in episodes]
    other = replace(builder, data=TrainingSet(undecided))
    assert [stage.training.delay for stage in delay_stages(other, None, first)] == [1.0, 1.0]
    with pytest.raises(ValueError, match="delay_factors"):
        MemoryFirst(delay_factors=(0.5,))


def test_no_delay_is_learned_that_a_memory_does_not_reach_over() -> None:
    plan = design("last_k")
    data = build.prepare(plan, [pair(0), pair(1)], [pair(2)])
    longer = data.training.delayed(4.0)
    writes = longer.longest([0], [1.0], ())[1]
    assert longer.within(None) and longer.within(4 * writes) and not longer.within(2)
    assert data.training.within(2), "what was demonstrated is learned as far as it goes"
    first = MemoryFirst((1.0,), (2.0, 4.0), stage_steps=2, check_steps=1, batch_pairs=2, settle_steps=0, attempts=1)

    def delays(frames: int) -> list[float]:
        log: list[Progress] = []
        agent = new_agent(replace(plan, options={"frames": frames}), data, 0)
        learn_memory(agent, *data[:2], Recipe(memory_first=first), 0, log.append)
        return sorted({line.delay for line in log})

    assert delays(2) == [1.0] and delays(4 * writes) == [1.0, 2.0, 4.0]


def test_what_looks_back_over_single_writes_is_trained_with_more_noise_over_states() -> None:
    data = build.prepare(design("last_k"), [pair(0)])
    for memory, times in (("last_k", 10.0), ("gru", 1.0)):
        agent = new_agent(design(memory), data, 0)
        first = _suited(MemoryFirst(), agent.memory)
        assert (first.state_noise_times, first.partners) == (times, 0)
        assert _suited(MemoryFirst(state_noise_times=20.0), agent.memory).state_noise_times == 20.0


@pytest.mark.parametrize(
    ("memory", "factors", "delays", "steps"),
    [
        ("first_frame", (4.0, 1.0), (2.0,), 4),
        ("gru", (4.0, 1.0), (2.0,), 6),
        ("first_frame", (1.0,), (), 2),
        ("gru", (1.0,), (), 2),
    ],
)
def test_what_no_delay_changes_is_learned_in_one_stage(
    memory: str, factors: tuple[float, ...], delays: tuple[float, ...], steps: int
) -> None:
    plan = design(memory)
    data = build.prepare(plan, [pair(0), pair(1)], [pair(2)])
    first = MemoryFirst(factors, delays, stage_steps=2, check_steps=1, batch_pairs=2, settle_steps=0, attempts=1)
    log: list[Progress] = []
    learn_memory(new_agent(plan, data, 0), *data[:2], Recipe(memory_first=first), 0, log.append)
    assert {line.clock_factor for line in log} == ({1.0} if memory == "first_frame" else set(factors))
    assert log[-1].step == steps
