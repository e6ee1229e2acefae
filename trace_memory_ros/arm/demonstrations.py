"""Expert demonstrations of the arm tasks, recorded through the observation path that live and replay use."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim.curriculum import default_scenario, lesson_scenario, plain_scenario
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.arm.simulator import simulator
from trace_memory_ros.files import atomic
from trace_memory_ros.files.stored import StoredArray
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.measure.workers import start_worker
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.frames import Cameras, Frames
from trace_memory_ros.observation.lockstep import LockstepObserver

FORMAT = 3
INDEX = "index_"
"""Before a camera's name: which of its images each tick holds, in a kept demonstration."""
ScenarioOf = Callable[[str, int, int], Scenario]


def record(scenario: Scenario, config: ObservationConfig, env: ArmEnv) -> Demonstration:
    """Let the expert solve `scenario` under the scenario's disturbance; its undisturbed actions are the labels.

    Raises `RuntimeError` when the expert fails: a failed demonstration must not be learned from.
    """
    observer = LockstepObserver(config)
    images: dict[str, list[NDArray[np.uint8]]] = {name: [] for name in config.camera_names}
    states: list[NDArray[np.float64]] = []
    actions: list[NDArray[np.float32]] = []
    decisions: list[int] = []
    shown: list[bool] = []
    for step in demonstrate(env, scenario):
        sample = step.sample
        observation = observer.observe(sample.images, sample.joint_positions, sample.base_velocity)
        if observation.state is None or not observation.usable:
            raise RuntimeError(f"{scenario}: the simulator's own observation is unusable: {dict(observation.faults)}")
        if step.decides:
            decisions.append(len(actions))
        shown.append(task_of(scenario.task).brief and step.showing)
        for name, taken in images.items():
            taken.append(observation.images[name])
        states.append(observation.state)
        actions.append(step.action.astype(np.float32))
    outcome = env.outcome()
    if not outcome.success or len(decisions) != len(scenario.answers):
        raise RuntimeError(f"the expert failed {scenario} with {outcome}: mend the expert or the scenario's limits")
    frames = {name: Frames.held(taken) for name, taken in images.items()}
    arrays = np.stack(states), np.stack(actions)
    return _named(scenario, config, frames, *arrays, tuple(decisions), scenario.answers, shown=np.array(shown))


def _named(scenario: Scenario, config: ObservationConfig, images: Cameras, *arrays: Any, **more: Any) -> Demonstration:
    swaps = "" if scenario.swaps is None else f" swapped {scenario.swaps}"
    scene = f"{scenario.task} {scenario.seed}{swaps}"
    stamps_ns = np.arange(len(arrays[0]), dtype=np.int64) * config.period_ns
    return Demonstration(f"{scene} {scenario.cue}", scene, stamps_ns, images, *arrays, **more)


def _cache_key(config: ObservationConfig, frame_s: float) -> str:
    slow = {"frame_s": frame_s} if frame_s else {}
    content = json.dumps({"format": FORMAT, "observation": config.to_dict(), **slow}, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def _folder(cache: Path, task: str, config: ObservationConfig, frame_s: float) -> Path:
    return cache / task / _cache_key(config, frame_s)


def _stem(scenario: Scenario) -> str:
    """File name of a demonstration; scenarios of one seed, cue and task that differ in anything else differ in it."""
    name = f"{scenario.seed}_{scenario.cue}"
    if scenario == plain_scenario(scenario.task, scenario.seed, scenario.cue):
        return name
    return f"{name}_{hashlib.sha256(json.dumps(asdict(scenario), sort_keys=True).encode()).hexdigest()[:10]}"


def _pixels(path: Path, camera: str) -> Path:
    """Where the images of a kept demonstration lie."""
    return path.with_name(f"{path.stem}_{camera}.npy")


def _save(path: Path, demo: Demonstration) -> None:
    images: dict[str, Any] = {f"{INDEX}{name}": frames.index for name, frames in demo.images.items()}
    for name, frames in demo.images.items():
        with atomic.replacing(_pixels(path, name)) as partial:
            np.save(partial, frames.pixels)
    with atomic.replacing(path) as partial:
        np.savez_compressed(
            partial,
            state=demo.state,
            actions=demo.actions,
            branch_tick=np.int64(demo.decision_ticks[0]),
            decision_ticks=np.array(demo.decision_ticks, dtype=np.int64),
            shown=np.zeros(demo.ticks, dtype=bool) if demo.shown is None else demo.shown,
            **images,
        )


def _load(path: Path, scenario: Scenario, config: ObservationConfig) -> Demonstration:
    with np.load(path, allow_pickle=False) as data:
        images = {
            name: Frames(StoredArray(_pixels(path, name)), data[f"{INDEX}{name}"]) for name in config.camera_names
        }
        arrays = images, data["state"], data["actions"]
        # Recordings of one cue that were made before there could be more lack these.
        ticks = data["decision_ticks"].tolist() if "decision_ticks" in data else [int(data["branch_tick"])]
        return _named(scenario, config, *arrays, tuple(ticks), scenario.answers, shown=data.get("shown"))


def _collect_scene(twins: tuple[Scenario, ...], config: ObservationConfig, folder: Path, frame_s: float) -> None:
    env = simulator(twins[0].task, config, frame_s)
    try:
        for scenario in twins:
            path = folder / f"{_stem(scenario)}.npz"
            if not path.exists():
                _save(path, record(scenario, config, env))
    finally:
        env.close()


def render(
    task: str,
    seeds: list[int],
    config: ObservationConfig,
    cache: Path,
    workers: int = 1,
    scenario_of: ScenarioOf = default_scenario,
    frame_s: float = 0.0,
) -> Iterator[tuple[Scenario, ...]]:
    """Render what `cache` lacks of the counterfactual twins of each seed, by cue; yields those of a seed together.

    scenario_of: what `(task, seed, cue)` looks like; must be picklable where `workers` > 1. frame_s: simulated seconds
    between two pictures, 0 for one per tick. Interrupted renderings resume: a finished episode is never rendered again.
    """
    folder = _folder(cache, task, config, frame_s)
    folder.mkdir(parents=True, exist_ok=True)
    scenes = [tuple(scenario_of(task, seed, cue) for cue in range(task_of(task).choices)) for seed in seeds]
    missing = [twins for twins in scenes if not all((folder / f"{_stem(s)}.npz").exists() for s in twins)]
    if workers > 1 and len(missing) > 1:
        with ProcessPoolExecutor(workers, initializer=start_worker) as pool:
            futures = {twins: pool.submit(_collect_scene, twins, config, folder, frame_s) for twins in missing}
            for twins in scenes:
                if twins in futures:
                    futures[twins].result()
                yield twins
        return
    for twins in scenes:
        if twins in missing:
            _collect_scene(twins, config, folder, frame_s)
        yield twins


def collect(
    task: str,
    seeds: list[int],
    config: ObservationConfig,
    cache: Path,
    workers: int = 1,
    scenario_of: ScenarioOf = default_scenario,
    frame_s: float = 0.0,
) -> Iterator[tuple[Demonstration, ...]]:
    """Counterfactual twins of each seed of `task`, rendered once into `cache` (see `render`) and read back after."""
    folder = _folder(cache, task, config, frame_s)
    for twins in render(task, seeds, config, cache, workers, scenario_of, frame_s):
        yield tuple(_load(folder / f"{_stem(scenario)}.npz", scenario, config) for scenario in twins)


def collect_splits(
    task: str, recipe: Recipe, config: ObservationConfig, cache: Path, workers: int = 1
) -> Iterator[tuple[Demonstration, ...]]:
    """Counterfactual twins of all seeds of a recipe, in its order; `lesson_scenario`s to learn from."""
    yield from collect(task, recipe.training_seeds, config, cache, workers, lesson_scenario)
    yield from collect(task, recipe.all_seeds[recipe.pairs :], config, cache, workers)
