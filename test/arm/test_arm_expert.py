"""The scripted expert finishes every episode, cleanly and under noise, within the promised times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import JOINT_NAMES, ONE_CUE_TASKS, PERIOD_S
from trace_memory_ros.arm.sim.rollout import DemoStep, demonstrate
from trace_memory_ros.arm.sim.route import SPACING_RAD
from trace_memory_ros.arm.sim.scenario import Scenario

SEEDS = {0: range(6), 1: range(6, 12)}
"""Scenes of each cue."""


@pytest.fixture(scope="module", params=ONE_CUE_TASKS)
def env(request: pytest.FixtureRequest) -> Iterator[ArmEnv]:
    arm_env = ArmEnv(request.param)
    yield arm_env
    arm_env.close()


def joints(step: DemoStep) -> np.ndarray:
    return np.array([step.sample.joint_positions[name] for name in JOINT_NAMES])


@pytest.mark.parametrize("noise_std_rad", [0.0, 0.03])
@pytest.mark.parametrize("cue", [0, 1])
def test_expert_succeeds_slowly_and_smoothly(env: ArmEnv, cue: int, noise_std_rad: float) -> None:
    for seed in SEEDS[cue]:
        steps = list(demonstrate(env, Scenario(env.task, seed, cue, noise_std_rad=noise_std_rad), render=False))
        outcome = env.outcome()
        assert outcome.success, (seed, outcome)
        assert (outcome.branch, outcome.progress) == (cue, 1.0), (seed, outcome)
        if noise_std_rad == 0.0:
            assert len(steps) * PERIOD_S >= 20.0
            path = np.stack([joints(step) for step in steps])
            assert np.abs(np.diff(path, axis=0)).max() <= 0.12
        visible = [step.outcome.cue_visible for step in steps]
        assert visible[0]
        assert np.mean(visible) <= 0.15
        assert not any(visible[visible.index(False) :])


def test_expert_stands_still_at_red_for_as_long_as_asked(env: ArmEnv) -> None:
    plain = list(demonstrate(env, Scenario(env.task, 5, 0, noise_std_rad=0.0), render=False))
    paused = list(demonstrate(env, Scenario(env.task, 5, 0, extra_pause_s=12.0, noise_std_rad=0.0), render=False))
    assert env.outcome().success
    assert (len(paused) - len(plain)) * PERIOD_S == pytest.approx(12.0, abs=1.6)
    red = [
        step
        for step in paused
        if step.lamp_red and step.outcome.stages["station_2"] and not step.outcome.stages["station_3"]
    ]
    settled = red[20:]
    assert len(settled) > 80
    assert not any(step.outcome.cue_visible for step in settled)
    assert all(np.array_equal(step.action, settled[0].action) for step in settled)
    assert np.abs(joints(settled[-1]) - joints(settled[0])).max() < 0.005


def test_route_never_comes_back_to_joint_angles_it_has_left(env: ArmEnv) -> None:
    for cue in (0, 1):
        env.reset(Scenario(env.task, 3, cue))
        points = env.route.points[::10]
        distance = np.linalg.norm(points[:, None] - points[None], axis=2)
        apart = np.abs(np.subtract.outer(np.arange(len(points)), np.arange(len(points)))) * 10 * SPACING_RAD > 0.6
        assert distance[apart].min() > 0.4


def test_branches_differ_only_after_the_shared_segment(env: ArmEnv) -> None:
    routes = []
    for cue in (0, 1):
        env.reset(Scenario(env.task, 4, cue))
        routes.append(env.route)
    shared = [route.points[route.marks["merge"] : route.marks["branch"] + 1] for route in routes]
    assert shared[0] == pytest.approx(shared[1], abs=1e-9)
    after = [route.points[route.marks["branch"] + 40] for route in routes]
    assert np.abs(after[0] - after[1]).max() > 0.1
