"""What one run of `bench policies` does: train, drive, try inference steps; each part is kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from studies.grid import Figures, Run, Store
from studies.memory_modules.training import prepared
from studies.policies.plan import PoliciesPlan, parts_of
from studies.scenes import scenario_settings
from studies.tables import share_of
from trace_memory_ros.arm.closed_loop import ClosedLoop
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.policies.diffusion.policy import DiffusionPolicy
from trace_memory_ros.runtime.checkpoint import load

TIMED = 50


def train_and_drive(plan: PoliciesPlan, run: Run, store: Store) -> str:
    """Train a run and drive its episodes, as far as that is missing; returns words about it."""
    trained = store.get("training", {}, lambda: _train(plan, run, store.folder))
    scenarios = plan.scenarios(run.task, run.seed)
    driven = store.get("closed_loop", scenario_settings(scenarios), lambda: _drive(store.folder, run.task, scenarios))
    return f"held out {trained['held_out_branch_accuracy']['value']:.2f}, closed loop {share_of(driven):.2f}"


def try_steps(plan: PoliciesPlan, trial: tuple[str, int]) -> str:
    """Drive the first seed's diffusion policy with another number of inference steps; returns a line about it."""
    task, steps = trial
    folder, scenarios = plan.run_folder(plan.stepped(task)), plan.step_scenarios(task)
    settings = {**scenario_settings(scenarios), "inference_steps": steps}
    found = Store(folder).get(f"steps_{steps}", settings, lambda: _drive(folder, task, scenarios, steps))
    return f"{task}, {steps} inference steps: {share_of(found):.2f}"


def _train(plan: PoliciesPlan, run: Run, folder: Path) -> Figures:
    design, recipe = plan.design(run), plan.recipe(run)
    data = prepared(run.task, design.depth, None, recipe, plan.demos)
    start = load(plan.base_folder(run.task, parts_of(run)[0]))
    fitted = fit(design, data, recipe, run.seed, start=start, memory_file=plan.memory_file(run))
    agent = fitted.agent
    figures: Figures = {
        **fitted.figures(),
        "adapter_parameters": sum(p.numel() for p in agent.policy.adapter.parameters()),
        "execute": getattr(agent.policy.config, "execute", 1),
    }
    figures["model_id"] = fitted.save(folder, run.task, figures)
    return figures


def _drive(folder: Path, task: str, scenarios: Sequence[Scenario], inference_steps: int | None = None) -> Figures:
    with ClosedLoop(folder, task) as loop:
        if inference_steps is not None:
            _take_steps(loop, inference_steps)
        return {"episodes": [asdict(loop.run(scenario)) for scenario in scenarios]}


def _take_steps(loop: ClosedLoop, inference_steps: int) -> None:
    module = getattr(loop.policy, "policy", None)
    assert isinstance(module, DiffusionPolicy)
    module.config = replace(module.config, inference_steps=inference_steps)


def chunk_times_ms(folder: Path, task: str, steps: Sequence[int | None]) -> dict[int | None, dict[str, float]]:
    """Median and 95th percentile of a chunk's CPU time on one thread, by inference steps (None: the checkpoint's).

    CPU time, since a busy machine's wall clock says little; the numbers of steps take turns all the same, as caches are
    shared.
    """
    with ClosedLoop(folder, task) as loop:
        loop.env.reset(Scenario(task=task, seed=0, cue=0))
        loop.observer.reset()
        loop.runtime.reset()
        sample = loop.env.observe()
        observation = loop.observer.observe(sample.images, sample.joint_positions, sample.base_velocity)
        condition, _ = loop.runtime.tick(observation)
        policy: Any = loop.policy
        times: dict[int | None, list[float]] = {count: [] for count in steps}
        for _ in range(TIMED):
            for count in steps:
                if count is not None:
                    _take_steps(loop, count)
                begun = time.thread_time()
                policy.chunk(observation, condition)
                times[count].append(1e3 * (time.thread_time() - begun))
    return {n: {"median": float(np.median(t)), "p95": float(np.percentile(t, 95))} for n, t in times.items()}
