"""Tasks whose cue is not in the first frame: twins are one picture at its beginning and at each decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import CAMERA_NAMES, MOST_CHOICES, TASK_NAMES, WATCHED_TASKS
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.sample import Outcome, RawSample
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks import cups
from trace_memory_ros.arm.sim.tasks.table import task_of

SEED = 3
EVERY = 5
"""Ticks between two pictures; every cue shows for longer."""


@dataclass
class Episode:
    """What was seen, by tick, at decisions and now and then before the first; and the end."""

    outcome: Outcome
    seen: dict[int, RawSample]
    decisions: list[int]
    cue_ticks: list[int]


def play(env: ArmEnv, scenario: Scenario, every: int = EVERY) -> Episode:
    seen, decisions, cue_ticks = {}, [], []
    for tick, step in enumerate(demonstrate(env, scenario, render=False)):
        if step.outcome.cue_visible:
            cue_ticks.append(tick)
        if step.decides:
            decisions.append(tick)
        if step.decides or (tick % every == 0 and not decisions):
            seen[tick] = env.observe()
    return Episode(env.outcome(), seen, decisions, cue_ticks)


@pytest.fixture(scope="module", params=WATCHED_TASKS)
def env(request: pytest.FixtureRequest) -> Iterator[ArmEnv]:
    arm_env = ArmEnv(request.param)
    yield arm_env
    arm_env.close()


@pytest.fixture(scope="module")
def twins(env: ArmEnv) -> dict[Scenario, Episode]:
    return {scenario: play(env, scenario) for scenario in Scenario(env.task, SEED, 0, decoys=2).twins()}


def same_pictures(one: RawSample, other: RawSample) -> bool:
    return all(np.array_equal(one.images[name], other.images[name]) for name in CAMERA_NAMES)


def test_tasks_have_their_names_and_a_word_for_each_answer() -> None:
    for name in TASK_NAMES:
        task = task_of(name)
        assert task.name == name
        assert len(task.words) == len(task.targets_xy)
        assert 2 <= task.choices <= MOST_CHOICES


def test_expert_with_the_answer_decides_rightly(twins: dict[Scenario, Episode]) -> None:
    answers = [scenario.answers for scenario in twins]
    assert len(set(answers)) == len(answers)
    for scenario, episode in twins.items():
        assert (episode.outcome.success, episode.outcome.progress) == (True, 1.0), (scenario, episode.outcome)
        assert episode.outcome.visits == scenario.answers
        assert len(episode.decisions) == len(scenario.answers)


def test_nothing_tells_twins_apart_in_the_first_frame_or_at_the_decision(twins: dict[Scenario, Episode]) -> None:
    first, *others = twins.values()
    for other in others:
        assert other.decisions[0] == first.decisions[0]
        for tick in (0, first.decisions[0]):
            assert other.seen[tick].joint_positions == first.seen[tick].joint_positions
            assert same_pictures(first.seen[tick], other.seen[tick])


def test_what_is_shown_tells_every_two_twins_apart(twins: dict[Scenario, Episode]) -> None:
    episodes = list(twins.values())
    for i, one in enumerate(episodes):
        for other in episodes[:i]:
            unlike = [t for t in one.seen if t in other.seen and not same_pictures(one.seen[t], other.seen[t])]
            assert unlike
            assert set(unlike) <= set(one.cue_ticks)


def test_longer_delays_and_pauses_leave_the_answer_as_it_is(env: ArmEnv) -> None:
    scenario = Scenario(env.task, SEED + 1, 1, laps=2, extra_pause_s=15.0, decoys=4)
    episode = play(env, scenario, every=10_000)
    assert episode.outcome.success, episode.outcome
    once = scenario.draws().speed, replace(scenario, laps=1).answers
    assert once == (Scenario(env.task, SEED + 1, 1).draws().speed, scenario.answers)
    assert episode.decisions[0] - max(episode.cue_ticks) > 250


def test_another_twin_s_visits_are_wrong(env: ArmEnv, twins: dict[Scenario, Episode]) -> None:
    truth = replace(next(iter(twins)), noise_std_rad=0.0, decoys=0)
    driven = truth.counterfactual()
    actions = [step.action for step in demonstrate(env, driven, render=False)]
    env.reset(truth)
    for action in actions:
        env.apply(action)
        env.advance(0.1)
    outcome = env.outcome()
    assert (outcome.decided, outcome.finished, outcome.success) == (True, True, False)
    assert outcome.visits == driven.answers


def test_a_cup_that_changes_places_takes_its_part_along() -> None:
    """By the show alone: a point that follows each shell ends where the answer says."""
    told = []
    for seed in range(40):
        show = cups.draw_show("cups", seed)
        way = np.array([show.shells_xy(time_s) for time_s in np.arange(0.0, show.length_s + 0.1, 0.02)])
        assert np.abs(np.diff(way, axis=0)).max() < 0.02
        ends = [int(np.argmin(np.abs(np.array(cups.PLACES_XY) - xy).sum(axis=1))) for xy in way[-1]]
        assert [show.before(place) for place in ends] == [0, 1, 2]
        between = np.linalg.norm(way[:, (0, 0, 1)] - way[:, (1, 2, 2)], axis=2)
        assert between.min() > 0.12
        told.append((len(show.swaps), ends[0]))
    assert {swaps for swaps, _ in told} == set(range(1, cups.MOST_SWAPS + 1))
    assert {place for _, place in told} == {0, 1, 2}
