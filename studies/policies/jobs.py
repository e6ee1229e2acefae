"""What one run of `bench policies` does: train, drive, try inference steps; each part is kept and not done again."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from studies.memory_modules.plan import digest, scenario_key
from studies.memory_modules.training import prepared
from studies.policies.plan import Plan, Run
from studies.store import FAILURE, Figures, Store
from trace_memory_ros.arm.closed_loop import ClosedLoop
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.policies.diffusion.policy import DiffusionPolicy
from trace_memory_ros.runtime.checkpoint import load

TIMED = 50


def train_and_drive(plan: Plan, run: Run) -> str:
    """Train a run and drive its episodes, as far as that is missing; returns a line about it. A failure is kept."""
    return _kept(plan, run, _train_and_drive)


def try_steps(plan: Plan, trial: tuple[str, int]) -> str:
    """Drive the first seed's diffusion policy with another number of inference steps; returns a line about it."""
    task, steps = trial
    folder, scenarios = plan.run_folder(plan.stepped(task)), plan.step_scenarios(task)
    settings = {**_settings(scenarios), "inference_steps": steps}
    found = Store(folder).get(f"steps_{steps}", settings, lambda: _drive(folder, task, scenarios, steps))
    return f"{task}, {steps} inference steps: {_share(found):.2f}"


def _kept(plan: Plan, run: Run, measure: Callable[[Plan, Run, Path, Store], str]) -> str:
    folder = plan.run_folder(run)
    store = Store(folder)
    store.write(FAILURE, {}, {"error": "unfinished: its process died or was interrupted"})
    try:
        line = measure(plan, run, folder, store)
    except Exception as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        store.write(FAILURE, {}, {"error": reason, "traceback": traceback.format_exc()})
        return f"{run}: FAILED, {reason}"
    store.remove(FAILURE)
    return f"{run}: {line}"


def _train_and_drive(plan: Plan, run: Run, folder: Path, store: Store) -> str:
    trained = store.get("training", {}, lambda: _train(plan, run, folder))
    scenarios = plan.scenarios(run.task, run.seed)
    driven = store.get("closed_loop", _settings(scenarios), lambda: _drive(folder, run.task, scenarios))
    return f"held out {trained['held_out_branch_accuracy']:.2f}, closed loop {_share(driven):.2f}"


def _train(plan: Plan, run: Run, folder: Path) -> Figures:
    design, recipe = plan.design(run), plan.recipe(run)
    data = prepared(run.task, design.depth, None, recipe.pairs, recipe.held_out_pairs, plan.demos)
    start = load(plan.base_folder(run.task, run.policy))
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


def _settings(scenarios: Sequence[Scenario]) -> Figures:
    return {"scenarios": digest([scenario_key(scenario) for scenario in scenarios])}


def _share(figures: Figures) -> float:
    episodes = figures["episodes"]
    return sum(e["success"] for e in episodes) / max(1, len(episodes))
