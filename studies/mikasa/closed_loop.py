"""Closed-loop episodes: MIKASA's process, our memory's tick and the policy's runner, in lock-step."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from studies.mikasa.client import MikasaWorld
from studies.mikasa.names import ACTIONS
from studies.mikasa.robot import observe
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.policies.base import check_actions
from trace_memory_ros.policies.families import family
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime


@dataclass(frozen=True)
class Episode:
    """One closed-loop episode. success: at any tick, the benchmark's criterion; success_at_end: at the last.

    at_right, beside_m: whether the hand ended nearest to the right choice, and how far beside it. They tell a memory
    that does not know from a policy that does not reach. touched: how many things were touched rightly, where several
    are to be, before a wrong one was.
    """

    seed: int
    success: bool
    success_at_end: bool
    at_right: bool
    beside_m: float
    touched: int
    steps: int
    writes: int


class ClosedLoop:
    """A checkpoint's memory and policy, ready to be run through episodes of a task."""

    def __init__(self, checkpoint: Path, world: MikasaWorld, task: str) -> None:
        loaded = load(checkpoint)
        self.runtime = MemoryRuntime(loaded)
        self.policy = family(loaded.policy.family).load(loaded.policy.options, loaded.tensors_of("policy."))
        check_actions(self.policy.action_names, ACTIONS, f"MIKASA's {task}")
        self._order = [self.policy.action_names.index(name) for name in ACTIONS]
        self.observer = LockstepObserver(loaded.config.observation)
        self.world, self.task = world, task

    def run(self, seed: int) -> Episode:
        """One episode, from its reset to its last step."""
        self.runtime.reset()
        self.policy.reset()
        self.observer.reset()
        seen = self.world.start(self.task, seed)
        successes: list[bool] = []
        writes, done = 0, False
        while not done:
            observation = observe(self.observer, seen)
            condition, _ = self.runtime.tick(observation)
            acted = self.world.move(self.policy.act(observation, condition)[self._order].tolist())
            seen, done = acted.seen, acted.done
            successes.append(acted.success)
            writes += condition.wrote
        where = acted.at_right, acted.beside_m, acted.touched
        return Episode(seed, any(successes), successes[-1], *where, len(successes), writes)
