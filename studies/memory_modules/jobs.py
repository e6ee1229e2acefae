"""What one run of `bench memory-modules` does: train, decide in open loop, drive; each part is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from studies.grid import Figures, Run, Store
from studies.memory_modules.expert_episodes import ExpertEpisode, ExpertRecorder
from studies.memory_modules.open_loop import OpenLoop
from studies.memory_modules.plan import Condition, ModulesPlan
from studies.memory_modules.training import train_row
from studies.scenes import scenario_settings
from studies.tables import share_of
from trace_memory_ros.arm.closed_loop import ClosedLoop
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.model import MemoryModel


def record(plan: ModulesPlan, what: tuple[str, int, Condition]) -> str:
    """Record the episodes of a task, training seed and condition that are not there; returns a line about it."""
    task, seed, condition = what
    missing = [s for s in plan.scenarios(task, seed, condition) if not plan.episode_path(s).exists()]
    if missing:
        base = load(plan.base_folder(task))
        model, config = MemoryModel.from_checkpoint(base), base.config
        recorder = ExpertRecorder(task, config.observation, model.state, config.clock, plan.design("none").chunk)
        try:
            for scenario in missing:
                recorder.record(scenario).save(plan.episode_path(scenario))
        finally:
            recorder.close()
    return f"{task} {condition.label} seed {seed}: {len(missing)} episodes recorded"


def train_and_decide(plan: ModulesPlan, run: Run, store: Store) -> str:
    """Train the run and let it decide in open loop, as far as that is missing; returns words about it."""
    trained = store.get("training", {}, lambda: train_row(plan, run, store.folder))
    words = [f"held out {trained['held_out_branch_accuracy']['value']:.2f}", *_decide(plan, run, store)]
    _decide_with_address_override(plan, run, store)
    return ", ".join(words)


def drive(plan: ModulesPlan, run: Run, store: Store) -> str:
    """Drive the trained run's closed-loop episodes, as far as they are missing; returns words about it."""
    scenarios = plan.scenarios(run.task, run.seed, plan.conditions[0])
    driven = store.get("closed_loop", scenario_settings(scenarios), lambda: _drive(store.folder, run.task, scenarios))
    _hand_over(plan, run, store)
    return f"closed loop {share_of(driven):.2f}"


def _decide(plan: ModulesPlan, run: Run, store: Store) -> list[str]:
    """Decide under the conditions that are recorded; returns words about each."""
    words, loop = [], None
    for condition in plan.conditions:
        scenarios = plan.scenarios(run.task, run.seed, condition)
        part, settings = f"open_loop_{condition.name}", scenario_settings(scenarios)
        episodes = _recorded(plan, scenarios)
        figures = store.read(part, settings)
        if figures is None and episodes is not None:
            loop = loop or OpenLoop(store.folder)
            figures = store.write(part, settings, _decided(loop, scenarios, episodes))
        if figures is not None:
            words.append(f"{condition.label} {share_of(figures):.2f}")
    return words


def _decide_with_address_override(plan: ModulesPlan, run: Run, store: Store) -> None:
    """At longer delays, let memories that read by the signature read with the one the same scene has after a lap."""
    if not plan.design(run.row).depth:
        return
    for condition in (c for c in plan.conditions if "laps" in c.changes):
        scenarios = plan.scenarios(run.task, run.seed, condition)
        long, short = _recorded(plan, scenarios), _recorded(plan, [replace(s, laps=1) for s in scenarios])
        part, settings = f"address_override_{condition.name}", scenario_settings(scenarios)
        if long is not None and short is not None and store.read(part, settings) is None:
            store.write(part, settings, _decided(OpenLoop(store.folder), scenarios, long, short))


def _recorded(plan: ModulesPlan, scenarios: Sequence[Scenario]) -> list[ExpertEpisode] | None:
    """The expert's episodes; None where some are not recorded."""
    paths = [plan.episode_path(scenario) for scenario in scenarios]
    return [ExpertEpisode.load(path) for path in paths] if all(path.exists() for path in paths) else None


def _decided(
    loop: OpenLoop,
    scenarios: Sequence[Scenario],
    episodes: Sequence[ExpertEpisode],
    address_override: Sequence[ExpertEpisode] | None = None,
) -> Figures:
    period_s = loop.checkpoint.config.observation.tick_period_ms / 1e3
    return {
        "episodes": [
            {"seed": s.seed, "cue": s.cue, "success": d.right, "writes": d.writes, "elapsed_s": d.ticks * period_s}
            for s, d in zip(scenarios, loop.decide(episodes, address_override), strict=True)
        ]
    }


def _drive(folder: Path, task: str, scenarios: Sequence[Scenario], expert_ticks: Sequence[int] = ()) -> Figures:
    with ClosedLoop(folder, task) as loop:
        lead_in = expert_ticks or [0] * len(scenarios)
        return {"episodes": [asdict(loop.run(s, ticks)) for s, ticks in zip(scenarios, lead_in, strict=True)]}


def _hand_over(plan: ModulesPlan, run: Run, store: Store) -> None:
    """Of the first seed of some rows, let the policy drive on where the expert got to the branch."""
    name, count, rows = plan.handover
    condition = next((c for c in plan.conditions if c.name == name), None)
    if condition is None or run.row not in rows or run.seed != plan.seeds[0]:
        return
    scenarios = plan.scenarios(run.task, run.seed, condition)[:count]
    episodes = _recorded(plan, scenarios)
    if episodes is None:
        return
    ticks = [episode.branch_tick for episode in episodes]
    store.get("handed_over", scenario_settings(scenarios), lambda: _drive(store.folder, run.task, scenarios, ticks))
