"""Closed-loop episodes in one process: simulator, runtime and policy in lock-step, without ROS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.policies.runner import ActRunner
from trace_memory_ros.runtime.checkpoint import CheckpointError, load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.tasks.arm.env import ArmEnv
from trace_memory_ros.tasks.arm.scenario import Scenario

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
    """A checkpoint's memory and policy, ready to be run through episodes of its task."""

    def __init__(self, checkpoint: Path, task: str) -> None:
        loaded = load(checkpoint)
        if loaded.config.policy is None:
            raise CheckpointError(f"{checkpoint} holds a memory without a policy: give a checkpoint trained with one")
        self.runtime = MemoryRuntime.from_checkpoint(checkpoint)
        self.policy = ActRunner.from_tensors(loaded.config.policy.options, loaded.tensors_of("policy."))
        self.observer = LockstepObserver(loaded.config.observation)
        self.period_s = loaded.config.observation.tick_period_ms / 1000.0
        self.env = ArmEnv(task)
        self.task = task

    def run(self, scenario: Scenario) -> EpisodeOutcome:
        """One episode from reset to the end of the task or its timeout."""
        self.env.reset(scenario)
        self.runtime.reset()
        self.policy.reset()
        self.observer.reset()
        ticks = writes = 0
        while not self.env.outcome().finished:
            sample = self.env.observe()
            observation = self.observer.observe(sample.images, sample.joint_positions, sample.base_velocity)
            condition, _ = self.runtime.tick(observation)
            self.env.apply(self.policy.act(observation, condition))
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


def held_out_scenarios(task: str, episodes: int, extra_pause_s: float = 0.0) -> list[Scenario]:
    """`episodes` unseen scenarios with balanced cues, both cues of a seed before the next seed."""
    return [
        Scenario(task=task, seed=FIRST_EVALUATION_SEED + i // 2, cue=i % 2, extra_pause_s=extra_pause_s)
        for i in range(episodes)
    ]
