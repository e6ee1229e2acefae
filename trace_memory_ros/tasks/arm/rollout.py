"""One demonstration, tick by tick: the expert labels, a noisy copy of its action is executed (DART)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.tasks.arm.env import ArmEnv
from trace_memory_ros.tasks.arm.expert import Expert
from trace_memory_ros.tasks.arm.names import JOINT_NAMES, PERIOD_S
from trace_memory_ros.tasks.arm.sample import Outcome, RawSample
from trace_memory_ros.tasks.arm.scenario import Scenario


@dataclass(frozen=True)
class DemoStep:
    """One control tick: what was seen, the expert's clean action `(16,)`, and how the episode stood."""

    sample: RawSample
    action: NDArray[np.float64]
    phase: str
    lamp_red: bool
    outcome: Outcome


def demonstrate(env: ArmEnv, scenario: Scenario, render: bool = True) -> Iterator[DemoStep]:
    """Reset `env` and yield every tick of the expert's episode; afterwards `env.outcome()` is the result."""
    env.reset(scenario)
    expert = Expert(env, scenario)
    noise = scenario.action_noise(round(scenario.timeout_s / PERIOD_S) + 1)
    tick = 0
    while not (outcome := env.outcome()).finished:
        sample = env.observe(render=render)
        action = expert.act(sample)
        yield DemoStep(sample, action, expert.phase, env.lamp_red, outcome)
        executed = action.copy()
        executed[: len(JOINT_NAMES)] += noise[tick]
        env.apply(executed)
        env.advance(PERIOD_S)
        tick += 1
