"""The simulated robot: deterministic, counterfactual in pairs, visible signals, loud about bad input."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from trace_memory_ros.arm.sim.env import MAX_JOINT_SPEED, ArmEnv
from trace_memory_ros.arm.sim.expert import Expert
from trace_memory_ros.arm.sim.names import ACTION_NAMES, CAMERA_NAMES, JOINT_NAMES, PERIOD_S, TASK_NAMES
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.sample import RawSample
from trace_memory_ros.arm.sim.scenario import Scenario


@pytest.fixture(scope="module")
def envs() -> Iterator[dict[str, ArmEnv]]:
    made = {task: ArmEnv(task) for task in TASK_NAMES}
    yield made
    for env in made.values():
        env.close()


def branch_sample(env: ArmEnv, scenario: Scenario) -> RawSample:
    """What is seen when the lamp at the branch turns green."""
    waited = False
    for step in demonstrate(env, scenario, render=False):
        at_branch = step.outcome.stages["branch"]
        if waited and not step.lamp_red:
            return env.observe()
        waited = at_branch and step.lamp_red
    raise AssertionError(f"the lamp never turned green at the branch in {scenario}")


def thumbnail(image: np.ndarray, px: int = 16) -> np.ndarray:
    side = image.shape[0] // px
    return image.reshape(px, side, px, side, 3).mean(axis=(1, 3))


def assert_same_pictures(a: RawSample, b: RawSample, worst: int) -> None:
    for name in CAMERA_NAMES:
        assert np.abs(a.images[name].astype(int) - b.images[name]).max() <= worst, name


def test_same_scenario_gives_the_same_episode(envs: dict[str, ArmEnv]) -> None:
    env = envs["origin"]
    scenario = Scenario("origin", 8, 1)
    first, second = (list(demonstrate(env, scenario, render=False)) for _ in range(2))
    assert [s.sample.joint_positions for s in first] == [s.sample.joint_positions for s in second]
    other = next(demonstrate(env, Scenario("origin", 9, 1), render=False))
    assert other.sample.joint_positions != first[0].sample.joint_positions


def test_colour_pair_is_identical_once_the_panel_is_grey(envs: dict[str, ArmEnv]) -> None:
    env = envs["colour"]
    scenario = Scenario("colour", 2, 0)
    a, b = branch_sample(env, scenario), branch_sample(env, scenario.counterfactual())
    assert a.joint_positions == b.joint_positions
    assert a.time_s == b.time_s
    assert_same_pictures(a, b, worst=0)


def test_origin_pair_differs_by_less_than_encoder_noise(envs: dict[str, ArmEnv]) -> None:
    env = envs["origin"]
    scenario = Scenario("origin", 2, 0, noise_std_rad=0.0)
    a, true_a = branch_sample(env, scenario), env.data.qpos.copy()
    b, true_b = branch_sample(env, scenario.counterfactual()), env.data.qpos.copy()
    assert np.abs(true_a - true_b).max() < 1e-5
    assert max(abs(a.joint_positions[n] - b.joint_positions[n]) for n in JOINT_NAMES) < 5e-3
    assert np.mean([np.any(a.images[n] != b.images[n], axis=2).mean() for n in CAMERA_NAMES]) < 0.01


def test_seed_changes_the_scene_and_cue_does_not(envs: dict[str, ArmEnv]) -> None:
    base = Scenario("colour", 0, 0)
    assert base.draws().distractors == base.counterfactual().draws().distractors
    assert base.draws().distractors != Scenario("colour", 1, 0).draws().distractors
    assert np.array_equal(base.action_noise(20), base.counterfactual().action_noise(20))


def test_panel_colour_survives_thumbnails_until_it_is_hidden(envs: dict[str, ArmEnv]) -> None:
    env = envs["colour"]
    seen = []
    for cue in (0, 1):
        env.reset(Scenario("colour", 6, cue))
        native = env.observe().images["overhead"]
        seen.append((native, thumbnail(native)))
    (native_a, small_a), (native_b, small_b) = seen
    changed = np.abs(native_a.astype(int) - native_b).max(axis=2) > 60
    assert np.ptp(np.argwhere(changed), axis=0).min() >= 15
    assert (np.abs(small_a - small_b).max(axis=2) > 60).sum() >= 4
    env.advance(3.0)
    assert not env.outcome().cue_visible
    grey = env.observe().images["overhead"][changed].astype(int)
    assert np.median(np.ptp(grey, axis=1)) < 25


def test_lamp_survives_thumbnails(envs: dict[str, ArmEnv]) -> None:
    env = envs["origin"]
    last = None
    for step in demonstrate(env, Scenario("origin", 1, 0), render=False):
        picture = env.observe().images["overhead"] if step.outcome.stages["branch"] else None
        if step.outcome.stages["branch"] and not step.lamp_red:
            break
        last = picture
    assert last is not None
    assert picture is not None
    redder = (last.astype(int) - picture)[..., 0]
    assert (redder > 100).sum() >= 64
    assert (thumbnail(last) - thumbnail(picture))[..., 0].max() > 100


def test_origin_part_shows_in_thumbnails(envs: dict[str, ArmEnv]) -> None:
    env = envs["origin"]
    small = []
    for cue in (0, 1):
        env.reset(Scenario("origin", 6, cue))
        small.append(thumbnail(env.observe().images["overhead"]))
    assert (np.abs(small[0] - small[1]).max(axis=2) > 25).sum() >= 2


def test_sample_is_complete(envs: dict[str, ArmEnv]) -> None:
    env = envs["colour"]
    env.reset(Scenario("colour", 0, 0))
    sample = env.observe()
    assert tuple(sample.images) == CAMERA_NAMES
    assert tuple(sample.joint_positions) == JOINT_NAMES
    assert all(image.shape == (96, 96, 3) and image.dtype == np.uint8 for image in sample.images.values())
    assert not sample.base_velocity.any()
    assert sample.base_velocity.shape == (3,)
    assert env.observe(render=False).images == {}
    assert env.observe(render=False).joint_positions == sample.joint_positions


def test_time_advances_in_any_portions(envs: dict[str, ArmEnv]) -> None:
    env = envs["colour"]
    ends = []
    for portion in (PERIOD_S, PERIOD_S / 3):
        env.reset(Scenario("colour", 0, 0))
        goal = np.concatenate([env.data.ctrl + 0.1, [0.0, 1.0]])
        env.apply(goal)
        for _ in range(round(10 * PERIOD_S / portion)):
            env.advance(portion)
        ends.append((env.time_s, env.observe(render=False).joint_positions))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_action_that_is_not_finite_is_refused_by_name(envs: dict[str, ArmEnv], bad: float) -> None:
    env = envs["origin"]
    env.reset(Scenario("origin", 0, 0))
    action = np.zeros(len(ACTION_NAMES))
    action[9] = bad
    with pytest.raises(ValueError, match="right_joint_3"):
        env.apply(action)
    with pytest.raises(ValueError, match=r"\(16,\)"):
        env.apply(np.zeros(14))


def test_wild_action_is_kept_within_limits_and_speed(envs: dict[str, ArmEnv]) -> None:
    env = envs["origin"]
    env.reset(Scenario("origin", 0, 0))
    before = env.data.ctrl.copy()
    env.apply(np.full(len(ACTION_NAMES), 1e6))
    env.advance(PERIOD_S)
    assert np.abs(env.data.ctrl - before).max() <= MAX_JOINT_SPEED * PERIOD_S + 1e-9
    env.advance(5.0)
    low, high = env.model.actuator_ctrlrange.T
    assert np.all(env.data.ctrl <= high)
    assert np.all(env.data.ctrl >= low)
    assert np.isfinite(env.data.qpos).all()


def test_standing_still_times_out_undecided(envs: dict[str, ArmEnv]) -> None:
    env = envs["origin"]
    scenario = Scenario("origin", 0, 0, extra_pause_s=1.0)
    env.reset(scenario)
    env.advance(scenario.timeout_s - 0.5)
    assert not env.outcome().finished
    env.advance(1.0)
    outcome = env.outcome()
    assert outcome.finished
    assert outcome.timed_out
    assert not outcome.decided
    assert outcome.branch == -1
    assert not outcome.success
    assert outcome.progress == 0.0


def test_wrong_target_is_a_decided_failure(envs: dict[str, ArmEnv]) -> None:
    """The other cue's expert drives: the arm does everything right but the branch."""
    env = envs["colour"]
    truth = Scenario("colour", 3, 0, noise_std_rad=0.0)
    actions = [step.action for step in demonstrate(env, truth.counterfactual(), render=False)]
    env.reset(truth)
    for action in actions:
        env.apply(action)
        env.advance(PERIOD_S)
    outcome = env.outcome()
    assert outcome.decided
    assert outcome.finished
    assert outcome.branch == 1
    assert not outcome.success
    assert outcome.progress == pytest.approx(5 / 7)


def test_misuse_is_refused(envs: dict[str, ArmEnv]) -> None:
    with pytest.raises(ValueError, match="unknown arm task"):
        ArmEnv("juggle")
    for wrong in ({"cue": 2}, {"seed": -1}, {"extra_pause_s": -1.0}, {"task": "x"}, {"noise_std_rad": 1.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Scenario(**{"task": "origin", "seed": 0, "cue": 0, **wrong})
    env = envs["origin"]
    with pytest.raises(ValueError, match="another ArmEnv"):
        env.reset(Scenario("colour", 0, 0))
    env.reset(Scenario("origin", 0, 0))
    with pytest.raises(ValueError, match="reset it"):
        Expert(env, Scenario("origin", 1, 0))
    fresh = ArmEnv("origin")
    with pytest.raises(RuntimeError, match="reset"):
        fresh.observe()


def test_a_robot_that_drives_through_red_is_held_until_green(envs: dict[str, ArmEnv]) -> None:
    env = envs["colour"]
    scenario = Scenario("colour", 4, 0, extra_pause_s=3.0)
    env.reset(scenario)
    expert = Expert(env, scenario)
    while not (env.outcome().stages["station_2"] and env.lamp_red):
        env.apply(expert.act(env.observe(render=False)))
        env.advance(PERIOD_S)
    onward = np.concatenate([env.route.points[env.route.marks["station_3"]], [0.0, 1.0]])
    travelled = []
    while env.lamp_red:
        env.apply(onward)
        env.advance(PERIOD_S)
        sample = env.observe(render=False)
        travelled.append([sample.joint_positions[name] for name in JOINT_NAMES])
    assert len(travelled) > 30
    assert np.ptp(travelled[10:], axis=0).max() < 0.01  # rad, encoder noise included
    env.apply(onward)
    env.advance(1.0)
    after = env.observe(render=False).joint_positions
    assert max(abs(after[name] - before) for name, before in zip(JOINT_NAMES, travelled[-1], strict=True)) > 0.1
