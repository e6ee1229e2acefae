"""Closed-loop episodes in one process: simulator, runtime and policy in lock-step, without ROS."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.expert import Expert
from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.sample import Outcome
from trace_memory_ros.arm.sim.scenario import Scenario, scenarios
from trace_memory_ros.arm.simulator import simulator
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.policies.base import check_actions
from trace_memory_ros.policies.families import family
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.vision.one_look import share

FIRST_EVALUATION_SEED = 200_000
"""Seeds from here on are never trained or validated on."""


@dataclass(frozen=True)
class EpisodeOutcome:
    """One closed-loop episode. branch: -1 where none was taken; progress 0..1; elapsed_s simulated seconds."""

    seed: int
    cue: int
    branch: int
    success: bool
    progress: float
    elapsed_s: float
    ticks: int
    writes: int


class ClosedLoop:
    """A checkpoint's memory and policy, ready to be run through episodes of its task.

    A context manager: leaving it, by an error too, releases the simulator's renderer. one_pass: memory and policy see
    with the same backbone, which looks at a tick's images once for both.
    """

    def __init__(self, checkpoint: Path, task: str) -> None:
        loaded = load(checkpoint)
        policy = loaded.policy
        self.runtime = MemoryRuntime(loaded)
        self.policy = family(policy.family).load(policy.options, loaded.tensors_of("policy."))
        encoder, eyes = self.runtime.model.encoder, getattr(self.policy, "eyes", None)
        self.one_pass = encoder.config.shared and eyes is not None and share(encoder.vision, eyes)
        check_actions(self.policy.action_names, ACTION_NAMES, f"the simulated arm of task {task}")
        self._order = [self.policy.action_names.index(name) for name in ACTION_NAMES]
        self.observer = LockstepObserver(loaded.config.observation)
        self.period_s = loaded.config.observation.tick_period_ms / 1000.0
        self.env = simulator(task, loaded.config.observation)
        self.task = task

    def run(self, scenario: Scenario, expert_ticks: int = 0) -> EpisodeOutcome:
        """One episode from reset to the end of the task or its timeout.

        During the first `expert_ticks` ticks the scripted expert drives, while memory and policy follow along.
        """
        self.env.reset(scenario)
        self.runtime.reset()
        self.policy.reset()
        self.observer.reset()
        expert = Expert(self.env, scenario)
        ticks = writes = 0
        while not self.env.outcome().finished:
            sample = self.env.observe()
            observation = self.observer.observe(sample.images, sample.joint_positions, sample.base_velocity)
            condition, _ = self.runtime.tick(observation)
            action = self.policy.act(observation, condition)[self._order]
            self.env.apply(expert.act(sample) if ticks < expert_ticks else action)
            self.env.advance(self.period_s)
            ticks += 1
            writes += condition.wrote
        outcome = self.env.outcome()
        return EpisodeOutcome(
            scenario.seed,
            scenario.cue,
            outcome.branch,
            outcome.success,
            outcome.progress,
            ticks * self.period_s,
            ticks,
            writes,
        )

    def close(self) -> None:
        """Release the simulator's renderer."""
        self.env.close()

    def __enter__(self) -> ClosedLoop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def expert_outcome(env: ArmEnv, scenario: Scenario) -> Outcome:
    """How an episode ends that the scripted expert drives, undisturbed: what a policy could do if it had the answer."""
    for _ in demonstrate(env, replace(scenario, noise_std_rad=0.0), render=False):
        pass
    return env.outcome()


def run_episodes(
    checkpoint: Path,
    task: str,
    scenarios: Iterable[Scenario],
    report: Callable[[EpisodeOutcome], None] = lambda outcome: None,
) -> list[EpisodeOutcome]:
    """Run a checkpoint through `scenarios` one after the other; `report` is given each episode as it ends."""
    outcomes = []
    with ClosedLoop(checkpoint, task) as loop:
        for scenario in scenarios:
            outcomes.append(loop.run(scenario))
            report(outcomes[-1])
    return outcomes


def figures_of(outcomes: Sequence[EpisodeOutcome]) -> dict[str, Any]:
    """Figures of at least one episode; the interval is Wilson's. Raises ValueError for none."""
    count = len(outcomes)
    successes = sum(outcome.success for outcome in outcomes)
    interval = wilson_interval(successes, count)
    return {
        "episodes": count,
        "branch_success": successes / count,
        "ci95": list(interval),
        "progress": sum(outcome.progress for outcome in outcomes) / count,
        "writes_per_episode": sum(outcome.writes for outcome in outcomes) / count,
        "ticks_per_episode": sum(outcome.ticks for outcome in outcomes) / count,
    }


def held_out_scenarios(task: str, episodes: int, extra_pause_s: float = 0.0) -> list[Scenario]:
    """`episodes` unseen scenarios with balanced cues, all cues of a seed before the next seed."""
    return some_scenarios(task, FIRST_EVALUATION_SEED, episodes, extra_pause_s=extra_pause_s)


def some_scenarios(task: str, first_seed: int, episodes: int, **changes: Any) -> list[Scenario]:
    """`episodes` scenarios, all cues of `first_seed` first, then those of the next seed."""
    return list(islice(scenarios(task, first_seed, **changes), episodes))
