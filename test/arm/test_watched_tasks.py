"""Tasks whose cue is not in the first frame: twins are one picture at its beginning and at each decision."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from trace_memory_ros.arm.design import arm_recipe
from trace_memory_ros.arm.sim.curriculum import default_scenario, lesson_scenario
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.events import MOST_SWAPS
from trace_memory_ros.arm.sim.names import CAMERA_NAMES, JOINT_NAMES, MOST_CHOICES, TASK_NAMES, WATCHED_TASKS
from trace_memory_ros.arm.sim.referee import GREY
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.sample import Outcome, RawSample
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks import count, cups, match, shells, when
from trace_memory_ros.arm.sim.tasks.table import task_of

SEED = 3
EVERY = 7
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
    """Of more than three the first, a middle one and the last."""
    all_twins = Scenario(env.task, SEED, 0, decoys=2).twins()
    some = {all_twins[i] for i in (0, len(all_twins) // 2, len(all_twins) - 1)}
    return {scenario: play(env, scenario) for scenario in sorted(some, key=lambda s: s.cue)}


def same_pictures(one: RawSample, other: RawSample) -> bool:
    return all(np.array_equal(one.images[name], other.images[name]) for name in CAMERA_NAMES)


def test_tasks_have_their_names_and_a_word_for_each_answer() -> None:
    for name in TASK_NAMES:
        task = task_of(name)
        assert task.name == name
        assert len(task.words) == len(task.targets_xy)
        assert 2 <= task.choices <= MOST_CHOICES


def test_expert_with_the_answer_decides_rightly(twins: dict[Scenario, Episode]) -> None:
    answers = [scenario.answers for scenario in next(iter(twins)).twins()]
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
    # `when` may show its cue at the end of the first lap.
    assert episode.decisions[0] - max(episode.cue_ticks) > 150


def test_visits_leave_no_trace_for_the_next_decision() -> None:
    """Without disturbance twins that went elsewhere differ by little more than the encoders' noise."""
    env = ArmEnv("put_back")
    one, other = (play(env, Scenario("put_back", SEED, cue, noise_std_rad=0.0), every=10_000) for cue in (0, 5))
    assert one.outcome.visits[0] != other.outcome.visits[0]
    for tick, of_other in zip(one.decisions, other.decisions, strict=True):
        a, b = one.seen[tick], other.seen[of_other]
        assert max(abs(a.joint_positions[n] - b.joint_positions[n]) for n in JOINT_NAMES) < 5e-3
        assert np.mean([np.any(a.images[n] != b.images[n], axis=2).mean() for n in CAMERA_NAMES]) < 0.01


def test_another_twin_s_visits_are_wrong() -> None:
    env = ArmEnv("count")
    truth = Scenario("count", SEED, 3, noise_std_rad=0.0)
    driven = truth.counterfactual()
    actions = [step.action for step in demonstrate(env, driven, render=False)]
    env.reset(truth)
    for action in actions:
        env.apply(action)
        env.advance(0.1)
    outcome = env.outcome()
    assert (outcome.decided, outcome.finished, outcome.success) == (True, True, False)
    assert (truth.answers, outcome.visits, outcome.visits_right) == ((0, 0, 0, 0, 1, 1), (0, 0, 0, 0, 0, 1), 5)


def test_one_light_counts_at_any_time_among_look_alikes() -> None:
    counts, voids = [], []
    for seed in range(60):
        lights = when.draw_lights("when", seed, 1)
        (real,) = (light for light in lights if light.side is None)
        counts.append((real.station, real.delay_s > 2.0))
        voids += [light.side for light in lights if light is not real]
        assert when.VOIDS[0] <= len(lights) - 1 <= when.VOIDS[1]
        longer = when.draw_lights("when", seed, 3)
        assert longer[: len(lights)] == lights
        assert all(light.side is not None and light.lap > 0 for light in longer[len(lights) :])
    assert {(when.START, False), *((station, late) for station in range(3) for late in (False, True))} == set(counts)
    assert 0.35 < np.mean(voids) < 0.65


def test_a_look_alike_is_told_by_its_frame_alone() -> None:
    env, frames = ArmEnv("when"), {}
    names = env.model.geom("panel_frame").id, env.model.geom("panel").id
    for seed in range(2):
        for step in demonstrate(env, Scenario("when", seed, 1), render=False):
            if step.showing:
                frame, panel = (tuple(env.model.geom_rgba[name]) for name in names)
                frames.setdefault(step.outcome.cue_visible, set()).add((frame, panel))
    ((counting, orange),) = frames[True]
    assert {frame for frame, _ in frames[False]} == {tuple(np.float32(when.VOID_RGBA))} != {counting}
    assert orange in {panel for _, panel in frames[False]}
    assert len({panel for _, panel in frames[False]}) == 2


def test_neither_colour_nor_shape_tells_the_symbol() -> None:
    for trait in (0, 1):
        alike = [sum(symbol[trait] == other[trait] for other in match.SYMBOLS) for symbol in match.SYMBOLS]
        assert sum(1 / count for count in alike) / len(alike) < 0.61


def test_blinks_are_counted_not_timed() -> None:
    beats = [count.draw_beats("count", seed) for seed in range(20)]
    assert {sorted(one.order) == list(range(count.BEATS)) for one in beats} == {True}
    assert len({one.order for one in beats}) > 15
    shows = [[env_blinks(seed, cue) for cue in range(count.BEATS)] for seed in range(2)]
    assert [[len(blinks) for blinks in twins] for twins in shows] == [[1, 2, 3, 4, 5, 6]] * 2


def env_blinks(seed: int, cue: int) -> list[float]:
    """When the panel begins to blink, by the referee alone."""
    referee = count.CountReferee(Scenario("count", seed, cue))
    lit = []
    for look in range(1, 500):
        referee.update(0.02 * look, np.zeros(3), np.zeros(3), holding=False)
        lit.append(referee.panel != GREY)
    return [0.02 * i for i in np.flatnonzero(np.diff([False, *lit]) & lit)]


def test_a_cup_that_changes_places_takes_its_part_along() -> None:
    """By the show alone: a point that follows each shell ends where the answer says."""
    told = []
    for seed in range(40):
        show, _ = cups.draw_show("cups", seed)
        way = np.array([show.shells_xy(time_s) for time_s in np.arange(0.0, show.length_s + 0.1, 0.02)])
        assert np.abs(np.diff(way, axis=0)).max() < 0.02
        ends = [int(np.argmin(np.abs(np.array(shells.PLACES_XY) - xy).sum(axis=1))) for xy in way[-1]]
        assert [show.before(place) for place in ends] == [0, 1, 2]
        between = np.linalg.norm(way[:, (0, 0, 1)] - way[:, (1, 2, 2)], axis=2)
        assert between.min() > 0.12
        told.append((len(show.swaps), ends[0]))
    assert {swaps for swaps, _ in told} == set(range(1, MOST_SWAPS + 1))
    assert {place for _, place in told} == {0, 1, 2}


def test_lessons_of_the_cups_have_fewer_swaps_too() -> None:
    lessons = [lesson_scenario("cups", seed, 1) for seed in range(2 * (MOST_SWAPS + 1))]
    shows = [cups.show_of(scenario)[0] for scenario in lessons]
    assert [len(show.swaps) for show in shows] == 2 * [*range(MOST_SWAPS + 1)]
    assert [scenario.seed for scenario in lessons] == [0] * (MOST_SWAPS + 1) + [1] * (MOST_SWAPS + 1)
    assert [show.before(1) for show in shows[:: MOST_SWAPS + 1]] == [1, 1]
    assert len({show.swaps for show in shows}) > MOST_SWAPS + 1
    assert lesson_scenario("count", 5, 1) == default_scenario("count", 5, 1)
    assert arm_recipe("cups", "act").pairs % (MOST_SWAPS + 1) == 0, "the last scene lacks lessons"
    assert cups.show_of(default_scenario("cups", SEED, 1)) == cups.draw_show("cups", SEED)


def test_expert_is_right_about_cups_that_never_changed_places() -> None:
    env = ArmEnv("cups")
    scenario = Scenario("cups", SEED, 1, swaps=0)
    episode = play(env, scenario, every=10_000)
    assert (episode.outcome.success, episode.outcome.visits) == (True, (1,))
    assert max(episode.cue_ticks) < 0.7 * max(play(env, Scenario("cups", SEED, 1), every=10_000).cue_ticks)


def test_branch_pose_does_not_count_before_the_stations() -> None:
    """Disturbed like this, the arm comes within the branch pose's zone on its way to the first station."""
    scenario = Scenario("cups", 20, 0, swaps=0)
    env = ArmEnv("cups")
    reached = []
    for step in demonstrate(env, scenario, render=False):
        reached += [name for name, done in step.outcome.stages.items() if done and name not in reached]
    assert (env.outcome().success, reached) == (True, ["station_1", "station_2", "station_3", "branch", "visit_1"])


@pytest.mark.parametrize(("task", "swaps"), [("cups", 5), ("cups", -1), ("count", 1)])
def test_swaps_that_cannot_be_are_refused(task: str, swaps: int) -> None:
    with pytest.raises(ValueError, match=rf"Scenario.swaps is {swaps}: use 0 to {MOST_SWAPS}, for task 'cups'"):
        Scenario(task, 0, 0, swaps=swaps)
