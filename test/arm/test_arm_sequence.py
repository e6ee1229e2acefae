"""`sequence`: colours in order, then visits in that order; only the colours tell which, and the newest count."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np
import pytest

from trace_memory_ros.arm.sim.curriculum import MOST_DECOYS, mixed_scenario
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.events import MAX_CUES
from trace_memory_ros.arm.sim.names import CAMERA_NAMES, JOINT_NAMES, PERIOD_S
from trace_memory_ros.arm.sim.rollout import DecisionWatch, DemoStep, demonstrate
from trace_memory_ros.arm.sim.route import SPACING_RAD
from trace_memory_ros.arm.sim.scenario import Scenario

SIX = (1, 0, 0, 1, 1, 0)
PANEL_PIXEL = (11, 48)
"""Middle of the panel in the overhead picture."""


@pytest.fixture(scope="module")
def env() -> Iterator[ArmEnv]:
    arm_env = ArmEnv("sequence")
    yield arm_env
    arm_env.close()


def sequence(seed: int, cues: tuple[int, ...], **more: object) -> Scenario:
    return Scenario("sequence", seed, cues[0], cues=cues, **more)  # type: ignore[arg-type]


def run(env: ArmEnv, scenario: Scenario) -> list[DemoStep]:
    return list(demonstrate(env, scenario, render=False))


def looking(env: ArmEnv, scenario: Scenario, every: int = 4) -> tuple[list[DemoStep], dict[int, dict[str, np.ndarray]]]:
    """An episode and its pictures by tick, up to the first decision; a decoy shows for longer than `every` ticks."""
    steps, pictures = [], {}
    for tick, step in enumerate(demonstrate(env, scenario, render=False)):
        steps.append(step)
        if step.decides or (tick % every == 0 and not step.outcome.visits):
            pictures[tick] = env.observe().images
    return steps, pictures


def joints(step: DemoStep) -> np.ndarray:
    return np.array([step.sample.joint_positions[name] for name in JOINT_NAMES])


def seen_colour(picture: np.ndarray) -> int:
    """0 blue, 1 orange, -1 grey in the middle of the panel."""
    red, _, blue = (int(c) for c in picture[PANEL_PIXEL])
    return -1 if abs(red - blue) < 60 else int(red > blue)


@pytest.mark.parametrize("count", range(1, MAX_CUES + 1))
def test_expert_visits_in_the_order_of_the_newest_cues(env: ArmEnv, count: int) -> None:
    for seed, overwrite in ((count, None), (count + 10, tuple(1 - c for c in reversed(SIX[:count])))):
        scenario = sequence(seed, SIX[:count], overwrite=overwrite)
        steps = run(env, scenario)
        outcome = env.outcome()
        assert (outcome.success, outcome.progress, outcome.timed_out) == (True, 1.0, False), (scenario, outcome)
        assert outcome.visits == (overwrite or SIX[:count])
        assert outcome.visits_right == count
        decisions = [i for i, step in enumerate(steps) if step.decides]
        assert [len(steps[i].outcome.visits) for i in decisions] == list(range(count))
        assert len(steps) * PERIOD_S < scenario.timeout_s - 15.0


def test_panel_shows_the_cues_in_order_then_the_new_ones_at_station_2(env: ArmEnv) -> None:
    cues, newer = (1, 1, 0, 1), (0, 1, 1, 0)
    steps, seen = [], []
    for step in demonstrate(env, sequence(3, cues, overwrite=newer), render=False):
        steps.append(step)
        seen.append(seen_colour(env.render("overhead")))
    runs = [(colour, len(list(ticks))) for colour, ticks in groupby(seen)]
    assert tuple(colour for colour, _ in runs if colour >= 0) == cues + newer
    assert all(6 <= ticks <= 9 for colour, ticks in runs if colour >= 0)
    assert min(ticks for colour, ticks in runs[1:] if colour < 0) >= 2
    second = next(tick for tick, step in enumerate(steps) if step.outcome.stages["station_2"])
    assert tuple(colour for colour, _ in groupby(seen[:second]) if colour >= 0) == cues
    lit = np.flatnonzero(np.array(seen) >= 0)
    assert lit[lit < second].max() * PERIOD_S < 6.0
    assert all(steps[tick].lamp_red for tick in lit)
    assert all(steps[tick].outcome.cue_visible for tick in lit)


def test_a_clock_of_motion_ticks_while_colours_show_and_the_right_arm_waits(env: ArmEnv) -> None:
    for seed in range(2):
        steps = run(env, sequence(seed, SIX, noise_std_rad=0.0, overwrite=SIX))
        path = np.stack([joints(step) for step in steps])
        visible = np.array([step.outcome.cue_visible for step in steps])
        settled = [tick for tick in np.flatnonzero(visible) if tick >= 10 and visible[tick - 10 : tick + 1].all()]
        moved = np.linalg.norm(np.diff(path, axis=0), axis=1)
        # A colour shows for 8 ticks.
        assert min(moved[tick : tick + 8].sum() for tick in settled[:-8]) > 0.4
        right = path[:, 7:]
        assert max(np.abs(right[tick] - right[tick - 1]).max() for tick in settled) < 0.03


def test_pair_is_identical_until_the_first_decision(env: ArmEnv) -> None:
    scenario = sequence(7, (0, 0, 1), overwrite=(1, 0, 1), decoys=2)
    twin = scenario.counterfactual()
    assert (twin.cues, twin.overwrite, twin.answers) == ((1, 1, 0), (0, 1, 0), (0, 1, 0))
    one, pictures = looking(env, scenario)
    other, of_twin = looking(env, twin)
    decision = [step.decides for step in one].index(True)
    assert decision == [step.decides for step in other].index(True)
    for a, b in zip(one[: decision + 1], other[: decision + 1], strict=True):
        assert a.sample.joint_positions == b.sample.joint_positions
        assert a.lamp_red == b.lamp_red
    for tick in pictures:
        if tick <= decision and not one[tick].outcome.cue_visible:
            assert all(np.array_equal(pictures[tick][n], of_twin[tick][n]) for n in CAMERA_NAMES)
    for a, b in zip(one[:decision], other[:decision], strict=True):
        assert np.array_equal(a.action, b.action)
    after = slice(decision, decision + 10)
    assert max(np.abs(a.action - b.action).max() for a, b in zip(one[after], other[after], strict=True)) > 0.1


def test_overwriting_shows_in_the_pictures_alone(env: ArmEnv) -> None:
    plain, overwritten = (run(env, sequence(5, (0, 1), overwrite=new)) for new in (None, (0, 1)))
    assert [s.sample.joint_positions for s in plain] == [s.sample.joint_positions for s in overwritten]
    assert [s.lamp_red for s in plain] == [s.lamp_red for s in overwritten]


def test_joint_angles_tell_which_visit_it_is_whatever_the_number(env: ArmEnv) -> None:
    def decisions(count: int) -> np.ndarray:
        steps = run(env, sequence(2, SIX[:count], noise_std_rad=0.0))
        return np.stack([joints(step) for step in steps if step.decides])

    six = decisions(6)
    apart = np.linalg.norm(six[:, None] - six[None], axis=2) + np.eye(6)
    assert apart.min() > 0.4
    few = decisions(3)
    assert np.abs(few - six[:3]).max() < 0.06


def test_route_never_comes_back_to_joint_angles_it_has_left(env: ArmEnv) -> None:
    for count in (1, 6):
        env.reset(sequence(3, SIX[:count]))
        points = env.route.points[::10]
        distance = np.linalg.norm(points[:, None] - points[None], axis=2)
        apart = np.abs(np.subtract.outer(np.arange(len(points)), np.arange(len(points)))) * 10 * SPACING_RAD > 0.6
        assert distance[apart].min() > 0.4


def test_laps_and_decoys_work_here_too(env: ArmEnv) -> None:
    once = run(env, sequence(1, (0, 1)))
    steps, decoys = [], set()
    for step in demonstrate(env, sequence(1, (0, 1), laps=3, decoys=5), render=False):
        steps.append(step)
        if env.decoy is not None:
            assert not step.outcome.cue_visible
            assert not step.decides
            decoys.add(env.decoy)
    assert env.outcome().success
    assert len(decoys) == 5
    first, later = ([s.decides for s in some].index(True) for some in (once, steps))
    assert later > 2.2 * first


def test_a_decoy_ends_where_new_cues_are_shown(env: ArmEnv) -> None:
    scenario = sequence(7, (0, 1, 1), overwrite=(1, 1, 0), decoys=6, noise_std_rad=0.0)
    shown = [
        (env.decoy is not None, step.outcome.cue_visible, step.decides)
        for step in demonstrate(env, scenario, render=False)
    ]
    assert sum(decoy for decoy, _, _ in shown) > 30
    assert not any(decoy and (cue or decides) for decoy, cue, decides in shown)


def follow(env: ArmEnv, truth: Scenario, driven: Scenario) -> None:
    """Play under `truth` what the expert does in `driven`."""
    actions = [step.action for step in demonstrate(env, driven, render=False)]
    env.reset(truth)
    for action in actions:
        env.apply(action)
        env.advance(PERIOD_S)


def test_wrong_visits_are_counted_one_by_one(env: ArmEnv) -> None:
    truth, driven = (sequence(4, cues, noise_std_rad=0.0) for cues in ((0, 1, 1), (0, 0, 1)))
    follow(env, truth, driven)
    outcome = env.outcome()
    assert (outcome.visits, outcome.visits_right, outcome.success) == ((0, 0, 1), 2, False)
    assert (outcome.decided, outcome.finished, outcome.timed_out) == (True, True, False)
    assert outcome.progress == pytest.approx(6 / 7)
    follow(env, truth, truth.counterfactual())
    assert (env.outcome().visits_right, env.outcome().branch) == (0, 1)


def test_the_old_cues_are_wrong_once_overwritten(env: ArmEnv) -> None:
    follow(env, sequence(4, (0, 1), overwrite=(1, 1), noise_std_rad=0.0), sequence(4, (0, 1), noise_std_rad=0.0))
    assert env.outcome().visits == (0, 1)
    assert not env.outcome().success
    assert env.outcome().visits_right == 1


def test_an_arm_that_stays_at_the_branch_ends_the_episode(env: ArmEnv) -> None:
    steps = demonstrate(env, sequence(6, (0, 1)), render=False)
    decision = next(step for step in steps if step.decides)
    watch = DecisionWatch(env)
    for _ in range(130):
        env.apply(np.concatenate([joints(decision), [0.0, 0.0]]))
        env.advance(PERIOD_S)
        assert not watch.decides()
    outcome = env.outcome()
    assert (outcome.finished, outcome.timed_out, outcome.decided, outcome.visits) == (True, False, False, ())


def test_an_arm_that_leaves_at_red_is_held(env: ArmEnv) -> None:
    scenario = sequence(0, SIX)
    env.reset(scenario)
    target = np.concatenate([env.route.points[env.route.marks["visit_1"]], [0.0, 0.0]])
    while env.lamp_red:
        env.apply(target)
        env.advance(PERIOD_S)
        assert env.outcome().stages["branch"] is False
        assert env.outcome().visits == ()


def test_mixed_scenarios_are_pairs_of_every_kind() -> None:
    made = [mixed_scenario("sequence", seed, 0) for seed in range(300)]
    assert {len(s.cues) for s in made} == set(range(1, MAX_CUES + 1))
    assert {s.decoys for s in made} == set(range(MOST_DECOYS + 1))
    assert 0.18 < np.mean([s.overwrite is not None for s in made]) < 0.32
    assert {s.cues for s in made if len(s.cues) == 3} == {(0, a, b) for a in (0, 1) for b in (0, 1)}
    for scenario in made[:20]:
        twin = mixed_scenario("sequence", scenario.seed, 1)
        assert twin == scenario.counterfactual()
        assert twin.cue == 1
    assert mixed_scenario("colour", 3, 1).counterfactual() == mixed_scenario("colour", 3, 0)


def test_wrong_cues_are_refused() -> None:
    assert Scenario("colour", 0, 1).answers == Scenario("colour", 0, 1).cues == (1,)
    for wrong, word in (
        ({"cues": (1, 0)}, "cues"),
        ({"cues": (0, 2)}, "cues"),
        ({"cues": (0,) * 7}, "cues"),
        ({"cues": (0, 1), "overwrite": (1,)}, "overwrite"),
        ({"overwrite": (2,)}, "overwrite"),
        ({"task": "origin", "cues": (0, 1)}, "sequence"),
        ({"task": "colour", "overwrite": (1,)}, "sequence"),
    ):
        with pytest.raises(ValueError, match=word):
            Scenario(**{"task": "sequence", "seed": 0, "cue": 0, **wrong})
    assert hash(sequence(0, (0, 1), overwrite=(1, 1)))
