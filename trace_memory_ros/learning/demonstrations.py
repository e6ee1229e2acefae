"""Expert demonstrations of the arm tasks, recorded through the observation path that live and replay use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.tasks.arm.env import ArmEnv
from trace_memory_ros.tasks.arm.rollout import demonstrate
from trace_memory_ros.tasks.arm.scenario import Scenario

FORMAT = 1


@dataclass(frozen=True)
class Demonstration:
    """One episode. images `(T, C, P, P, 3)` uint8, state `(T, 17)` SI units, actions `(T, A)` rad and 0..1."""

    task: str
    seed: int
    cue: int
    images: NDArray[np.uint8]
    state: NDArray[np.float64]
    actions: NDArray[np.float32]
    branch_tick: int

    @property
    def ticks(self) -> int:
        return len(self.actions)


def record(scenario: Scenario, config: ObservationConfig, env: ArmEnv) -> Demonstration:
    """Let the expert solve `scenario` under the scenario's disturbance; its undisturbed actions are the labels.

    Raises `RuntimeError` when the expert fails: a failed demonstration must not be learned from.
    """
    observer = LockstepObserver(config)
    images: list[NDArray[np.uint8]] = []
    states: list[NDArray[np.float64]] = []
    actions: list[NDArray[np.float32]] = []
    last_wait = -1
    for step in demonstrate(env, scenario):
        sample = step.sample
        observation = observer.observe(sample.images, sample.joint_positions, sample.base_velocity)
        if observation.state is None or not observation.usable:
            raise RuntimeError(f"{scenario}: the simulator's own observation is unusable: {dict(observation.faults)}")
        if step.phase == "wait":
            last_wait = len(actions)
        images.append(np.stack([observation.images[name] for name in config.camera_names]))
        states.append(observation.state)
        actions.append(step.action.astype(np.float32))
    outcome = env.outcome()
    if not outcome.success or last_wait < 0:
        raise RuntimeError(f"the expert failed {scenario} with {outcome}: mend the expert or the scenario's limits")
    # Every episode waits for the lamp at the branch pose, and nowhere after it.
    stacked = np.stack(images), np.stack(states), np.stack(actions)
    return Demonstration(scenario.task, scenario.seed, scenario.cue, *stacked, branch_tick=last_wait + 1)


def _cache_key(config: ObservationConfig) -> str:
    content = json.dumps({"format": FORMAT, "observation": config.to_dict()}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _save(path: Path, demo: Demonstration) -> None:
    partial = path.with_suffix(".partial.npz")
    np.savez_compressed(
        partial, images=demo.images, state=demo.state, actions=demo.actions, branch_tick=np.int64(demo.branch_tick)
    )
    partial.replace(path)


def _load(path: Path, task: str, seed: int, cue: int) -> Demonstration:
    with np.load(path, allow_pickle=False) as data:
        return Demonstration(
            task, seed, cue, data["images"], data["state"], data["actions"], int(data["branch_tick"])
        )


def _collect_pair(task: str, seed: int, config: ObservationConfig, folder: Path) -> int:
    env = ArmEnv(task)
    try:
        for cue in (0, 1):
            path = folder / f"{seed}_{cue}.npz"
            if not path.exists():
                _save(path, record(Scenario(task=task, seed=seed, cue=cue), config, env))
    finally:
        env.close()
    return seed


def collect(
    task: str, seeds: list[int], config: ObservationConfig, cache: Path, workers: int = 1
) -> Iterator[tuple[Demonstration, Demonstration]]:
    """Counterfactual pairs (same seed, cue 0 and 1) of `task`, rendered once into `cache` and read back after.

    Interrupted collections resume: a finished episode is never rendered again.
    """
    folder = cache / task / _cache_key(config)
    folder.mkdir(parents=True, exist_ok=True)
    missing = [s for s in seeds if not all((folder / f"{s}_{cue}.npz").exists() for cue in (0, 1))]
    if workers > 1 and len(missing) > 1:
        with ProcessPoolExecutor(workers) as pool:
            futures = {seed: pool.submit(_collect_pair, task, seed, config, folder) for seed in missing}
            for seed in seeds:
                if seed in futures:
                    futures[seed].result()
                yield _load(folder / f"{seed}_0.npz", task, seed, 0), _load(folder / f"{seed}_1.npz", task, seed, 1)
        return
    for seed in seeds:
        if seed in missing:
            _collect_pair(task, seed, config, folder)
        yield _load(folder / f"{seed}_0.npz", task, seed, 0), _load(folder / f"{seed}_1.npz", task, seed, 1)
