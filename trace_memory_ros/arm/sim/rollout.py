"""One demonstration, tick by tick: the expert labels, a noisy copy of its action is executed (DART)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.expert import Expert
from trace_memory_ros.arm.sim.names import JOINT_NAMES, PERIOD_S
from trace_memory_ros.arm.sim.sample import Outcome, RawSample
from trace_memory_ros.arm.sim.scenario import Scenario

QUIET_AFTER_S = 10.0
"""A robot that has waited this long is disturbed no more: it would be the same again for minutes."""


class DecisionWatch:
    """Tells the ticks at which only the cues say what to do: the lamp at the branch has just turned green.

    There are as many in an episode as cues. Ask once per tick, whoever drives.
    """

    def __init__(self, env: ArmEnv) -> None:
        self._env = env
        self._was_red = False

    def decides(self) -> bool:
        """Whether this tick is one."""
        red = self._env.lamp_red
        decides = self._was_red and not red
        self._was_red = red and self._env.outcome().stages["branch"]
        return decides


@dataclass(frozen=True)
class DemoStep:
    """One control tick: what was seen, the expert's clean action `(16,)`, and how the episode stood.

    decides: see `DecisionWatch`. showing: see `ArmEnv.showing`.
    """

    sample: RawSample
    action: NDArray[np.float64]
    phase: str
    lamp_red: bool
    outcome: Outcome
    decides: bool
    showing: bool


def demonstrate(env: ArmEnv, scenario: Scenario, render: bool = True) -> Iterator[DemoStep]:
    """Reset `env` and yield every tick of the expert's episode; afterwards `env.outcome()` is the result."""
    env.reset(scenario)
    expert = Expert(env, scenario)
    noise = scenario.action_noise(round(scenario.timeout_s / PERIOD_S) + 1)
    tick = still_ticks = 0
    watch = DecisionWatch(env)
    while not (outcome := env.outcome()).finished:
        sample = env.observe(render=render)
        action = expert.act(sample)
        yield DemoStep(sample, action, expert.phase, env.lamp_red, outcome, watch.decides(), env.showing)
        still_ticks = still_ticks + 1 if expert.phase == "wait" else 0
        executed = action.copy()
        if still_ticks * PERIOD_S < QUIET_AFTER_S:
            executed[: len(JOINT_NAMES)] += noise[tick]
        env.apply(executed)
        env.advance(PERIOD_S)
        tick += 1
