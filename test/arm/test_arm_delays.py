"""Longer delays and distractors: laps, long pauses and decoys leave the evidence and the way as they are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import CAMERA_NAMES, JOINT_NAMES, ONE_CUE_TASKS
from trace_memory_ros.arm.sim.rollout import QUIET_AFTER_S, DemoStep, demonstrate
from trace_memory_ros.arm.sim.scenario import Scenario


@pytest.fixture(scope="module", params=ONE_CUE_TASKS)
def env(request: pytest.FixtureRequest) -> Iterator[ArmEnv]:
    arm_env = ArmEnv(request.param)
    yield arm_env
    arm_env.close()


def delay(steps: list[DemoStep]) -> int:
    """Ticks from the last sight of the cue to the decision."""
    gone = [step.outcome.cue_visible for step in steps].index(False)
    return [step.decides for step in steps].index(True) - gone


@pytest.mark.parametrize(("laps", "seed"), [(2, 0), (2, 1), (5, 2)])
def test_laps_multiply_the_delay_and_begin_as_one_lap_does(env: ArmEnv, laps: int, seed: int) -> None:
    once = list(demonstrate(env, Scenario(env.task, seed, 1), render=False))
    assert env.outcome().success
    steps = list(demonstrate(env, Scenario(env.task, seed, 1, laps=laps), render=False))
    assert env.outcome().success, env.outcome()
    assert env.outcome().progress == 1.0
    assert delay(steps) == pytest.approx(laps * delay(once), rel=0.15)
    at_station_3 = [step.outcome.stages["station_3"] for step in once].index(True)
    for one, many in zip(once[:at_station_3], steps[:at_station_3], strict=True):
        assert one.sample.joint_positions == many.sample.joint_positions
        assert np.array_equal(one.action, many.action)


def test_expert_goes_through_every_station_of_every_lap(env: ArmEnv) -> None:
    laps = 4
    phases = [s.phase for s in demonstrate(env, Scenario(env.task, 2, 0, laps=laps), render=False) if s.phase != "wait"]
    order = [name for name, before in zip(phases, ["", *phases], strict=False) if name != before]
    stations = [name for name in order if name.startswith(("station", "merge"))]
    names = ("merge", "station_1", "station_2", "station_3")
    expected = [f"{name}@{lap}" if lap > 1 else name for lap in range(1, laps + 1) for name in names]
    # Noise may throw the arm back over a waypoint that it has just passed.
    assert sorted(set(stations), key=stations.index) == expected


def test_pauses_of_later_laps_are_drawn_by_seed(env: ArmEnv) -> None:
    pauses = Scenario(env.task, 1, 0, laps=4).pauses_s()
    assert np.array_equal(pauses, Scenario(env.task, 1, 1, laps=4).pauses_s())
    assert np.array_equal(pauses[:2], Scenario(env.task, 1, 0, laps=2).pauses_s())
    assert len(np.unique(pauses[:, 1])) == 4
    assert not np.array_equal(pauses, Scenario(env.task, 2, 0, laps=4).pauses_s())


def test_long_pause_ends_well_and_is_still(env: ArmEnv) -> None:
    pause_s = 40.0
    scenario = Scenario(env.task, 1, 0, extra_pause_s=pause_s)
    steps = list(demonstrate(env, scenario, render=False))
    assert env.outcome().success
    quiet = round(QUIET_AFTER_S / 0.1) + 20
    red = [s for s in steps if s.lamp_red and s.outcome.stages["station_2"] and not s.outcome.stages["station_3"]]
    still = np.array([list(step.sample.joint_positions.values()) for step in red])[quiet:]
    assert len(still) >= 150
    assert np.ptp(still, axis=0).max() < 0.006  # rad, encoder noise included


def test_still_pictures_are_those_that_would_be_drawn(env: ArmEnv) -> None:
    """From the arrival at a station until the arm has left it, the lamp's change to green among them."""
    reused, drawn, last = 0, 0, None
    for step in demonstrate(env, Scenario(env.task, 0, 0, extra_pause_s=4.0, noise_std_rad=0.0), render=False):
        if not step.outcome.stages["station_2"]:
            continue
        images = env.observe().images
        if last is not None and images["overhead"] is last["overhead"]:
            reused += 1
            assert all(np.array_equal(images[name], env.render(name)) for name in CAMERA_NAMES)
        else:
            drawn += 1
        last = images
        if reused and not step.lamp_red and drawn > 30:
            break
    assert reused > 20


def test_decoys_show_after_the_cue_and_change_nothing_else(env: ArmEnv) -> None:
    for seed in range(2):
        plain = list(demonstrate(env, Scenario(env.task, seed, 0), render=False))
        scenario = Scenario(env.task, seed, 0, decoys=3)
        shown: list[bool] = []
        pictures = {}
        for plain_step, step in zip(plain, demonstrate(env, scenario, render=False), strict=True):
            assert step.sample.joint_positions == plain_step.sample.joint_positions
            shown.append(env.decoy is not None)
            if shown[-1]:
                assert not step.outcome.cue_visible
                assert not step.decides
                pictures.setdefault(env.decoy, env.observe().images["overhead"])
        assert env.outcome().success
        assert sum(np.diff([0, *shown]) > 0) == 3
        assert 21 <= sum(shown) <= 39
        assert set(pictures) == set(scenario.decoy_events())


def test_decoys_are_the_same_for_both_cues_and_look_like_cues(env: ArmEnv) -> None:
    scenario = Scenario(env.task, 3, 0, decoys=6)
    assert scenario.decoy_events() == scenario.counterfactual().decoy_events()
    assert {d.side for seed in range(6) for d in Scenario(env.task, seed, 0, decoys=2).decoy_events()} == {0, 1}
    for dark, lit in _decoy_onsets(env, scenario):
        changed = np.abs(lit.astype(int) - dark).max(axis=2) > 60
        assert changed.sum() >= (150 if env.task == "colour" else 25)


def _decoy_onsets(env: ArmEnv, scenario: Scenario) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Overhead pictures of the tick before a decoy shows and of the first with it."""
    shown = [env.decoy is not None for _ in demonstrate(env, scenario, render=False)]
    before = np.flatnonzero(np.diff(shown, prepend=False) & shown) - 1
    pictures = {}
    for tick, _ in enumerate(demonstrate(env, scenario, render=False)):
        if tick in before or tick - 1 in before:
            pictures[tick] = env.render("overhead")
    yield from ((pictures[tick], pictures[tick + 1]) for tick in before)


def test_pair_with_decoys_and_laps_is_the_same_at_the_decision() -> None:
    env = ArmEnv("colour")
    seen = []
    for cue in (0, 1):
        for step in demonstrate(env, Scenario("colour", 5, cue, laps=2, decoys=4), render=False):
            if step.decides:
                seen.append((step.sample.time_s, step.sample.joint_positions, env.observe().images))
    env.close()
    (time_a, joints_a, images_a), (time_b, joints_b, images_b) = seen
    assert (time_a, joints_a) == (time_b, joints_b)
    assert len(joints_a) == len(JOINT_NAMES)
    assert all(np.array_equal(images_a[name], images_b[name]) for name in CAMERA_NAMES)


def test_wrong_laps_and_decoys_are_refused() -> None:
    for wrong in ({"laps": 0}, {"laps": 33}, {"laps": 1.5}, {"decoys": -1}, {"decoys": 7}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Scenario(**{"task": "origin", "seed": 0, "cue": 0, **wrong})
    assert Scenario("origin", 0, 0, laps=2, decoys=7).decoys == 7
