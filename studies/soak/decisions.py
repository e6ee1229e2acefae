"""Decisions long after the cue, by shipped checkpoints and the very tick that a live node runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import trace_memory_ros
from studies.grid import Figures
from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.branch_accuracy import nearer
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.policies.families import family
from trace_memory_ros.policies.runner import ChunkRunner
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.snapshot import Arrays

NOISE_RAD = 2e-4


@dataclass(frozen=True)
class Question:
    """What a shipped memory is asked. idle: ticks for which the arm stands between cue and branch.

    long: as `idle`, for one episode of either cue, after which every other one is begun anew without a reset.
    """

    task: str
    memory: str
    pairs: int
    idle: int
    long: int

    @property
    def checkpoint(self) -> Path:
        """Raises ValueError where none is shipped."""
        found = Path(trace_memory_ros.__file__).resolve().parents[1] / "weights" / f"{self.task}_{self.memory}"
        if not found.is_dir():
            raise ValueError(f"{found} is not there: the weights of a checkout are asked")
        return found


class Asked:
    """A checkpoint's memory and policy over demonstrations, tick by tick on one axis of time that never begins anew."""

    def __init__(self, checkpoint: Path) -> None:
        loaded = load(checkpoint)
        self.runtime = MemoryRuntime(loaded)
        runner = family(loaded.policy.family).load(loaded.policy.options, loaded.tensors_of("policy."))
        assert isinstance(runner, ChunkRunner)
        self.runner = runner
        self.config = loaded.config.observation
        self.tick = 0
        self.rng = np.random.default_rng(0)

    def see(self, demo: Demonstration, at: int, noise: float = 0.0) -> Observation:
        """The next tick's observation, of what a demonstration shows at tick `at`."""
        images = {name: np.asarray(demo.images[name][at]) for name in self.config.camera_names}
        state = demo.state[at] + noise * self.rng.standard_normal(demo.state.shape[1]) * (demo.state[at] != 0)
        observation = Observation(self.tick, self.tick * self.config.period_ns, images, state, {}, {})
        self.tick += 1
        return observation

    def watch(self, demo: Demonstration) -> None:
        """Tick from the beginning of a demonstration to just before its branch."""
        for at in range(demo.decision_ticks[0]):
            self.runtime.tick(self.see(demo, at))

    def idle(self, demo: Demonstration, ticks: int) -> int:
        """Stand still just before the branch; returns how often the memory was written meanwhile."""
        at = demo.decision_ticks[0] - 1
        return sum(self.runtime.tick(self.see(demo, at, NOISE_RAD))[0].wrote for _ in range(ticks))

    @torch.inference_mode()
    def right(self, demo: Demonstration, twin: Demonstration) -> bool:
        """Tick at the branch, and whether the policy's chunk is nearer to the own expert's than to the twin's."""
        observation = self.see(demo, demo.decision_ticks[0])
        condition, _ = self.runtime.tick(observation)
        chunk = torch.from_numpy(self.runner.chunk(observation, condition))
        policy, length = self.runner.policy, len(chunk)
        own, other = (
            torch.from_numpy(one.actions[one.decision_ticks[0] :][:length].astype(np.float32)) for one in (demo, twin)
        )
        least = min(len(own), len(other))
        chunks = [policy.normalise_actions(part[:least]) for part in (chunk, own, other)]
        return bool(nearer(*chunks))


def answer(question: Question, demos: Path) -> Figures:
    """Decisions without a pause, after `idle` ticks, after `long` ticks, and in new episodes after those."""
    asked = Asked(question.checkpoint)
    seeds = [FIRST_EVALUATION_SEED + i for i in range(question.pairs)]
    episodes = [
        pair
        for one, other in collect(question.task, seeds, asked.config, demos)
        for pair in ((one, other), (other, one))
    ]
    figures = {str(idle): _held(asked, episodes, idle) for idle in (0, question.idle)}
    return {"held": figures, "long": _long(asked, episodes, question.long)}


def _held(asked: Asked, episodes: Sequence[tuple[Demonstration, Demonstration]], idle: int) -> Figures:
    right, writes = [], 0
    for demo, twin in episodes:
        asked.runtime.reset()
        asked.watch(demo)
        writes += asked.idle(demo, idle)
        right.append(asked.right(demo, twin))
    return {**_share(right), "writes_while_idle": writes}


def _long(asked: Asked, episodes: Sequence[tuple[Demonstration, Demonstration]], ticks: int) -> Figures:
    """One pause of `ticks` after a cue: the state before and after it, its decision, then new episodes from there."""
    demo, twin = episodes[0]
    asked.runtime.reset()
    asked.watch(demo)
    asked.idle(demo, 1)
    before = asked.runtime.snapshot()
    writes = asked.idle(demo, ticks)
    after, at = asked.runtime.snapshot(), asked.tick
    fresh = []
    held = asked.right(demo, twin)
    for own, other in episodes:
        asked.runtime.restore(after)
        asked.tick = at
        asked.watch(own)
        fresh.append(asked.right(own, other))
    return {
        "ticks": ticks,
        "writes_while_idle": writes,
        "memory_unchanged": _same_memory(before, after),
        "address_moved": _moved(before, after),
        "held_right": held,
        "fresh_without_reset": _share(fresh),
    }


def _same_memory(before: Arrays, after: Arrays) -> bool:
    return all(np.array_equal(array, after[name]) for name, array in before.items() if name.startswith("memory."))


def _moved(before: Arrays, after: Arrays) -> float | None:
    """Greatest difference of the signature's numbers, relative to its greatest; None without one."""
    if "address.signature" not in before:
        return None
    here, there = before["address.signature"], after["address.signature"]
    return float(np.abs(there - here).max() / np.abs(here).max())


def _share(right: Sequence[bool]) -> Figures:
    return {
        "right": sum(right),
        "decisions": len(right),
        "share": sum(right) / len(right),
        "ci95": list(wilson_interval(sum(right), len(right))),
    }
