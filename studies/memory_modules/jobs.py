"""What one run of `bench memory-modules` does: train, drive, listen; each part is kept and not done again."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path

from studies.memory_modules.listening import Listener
from studies.memory_modules.plan import Condition, Plan, Run, digest, scenario_key
from studies.memory_modules.recording import Recorder, Recording
from studies.memory_modules.training import train_row
from studies.store import FAILURE, Figures, Store
from trace_memory_ros.arm.closed_loop import ClosedLoop
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.model import MemoryModel


def record(plan: Plan, what: tuple[str, int, Condition]) -> str:
    """Record the episodes of a task, training seed and condition that are not there; returns a line about it."""
    task, seed, condition = what
    missing = [s for s in plan.scenarios(task, seed, condition) if not recording_path(plan, s).exists()]
    if missing:
        base = load(plan.base_folder(task))
        model, config = MemoryModel.from_checkpoint(base), base.config
        recorder = Recorder(task, config.observation, model.state, config.clock, plan.design("none").chunk)
        try:
            for scenario in missing:
                recorder.record(scenario).save(recording_path(plan, scenario))
        finally:
            recorder.close()
    return f"{task} {condition.label} seed {seed}: {len(missing)} episodes recorded"


def recording_path(plan: Plan, scenario: Scenario) -> Path:
    """Where a recorded episode is kept; it depends on the base's normaliser and clock, which all rows share."""
    key = digest({"scenario": scenario_key(scenario), "base": _base_id(plan.base_folder(scenario.task))})
    return plan.out_dir / "recordings" / scenario.task / f"{scenario.seed}-{scenario.cue}-{key}.npz"


def train_and_listen(plan: Plan, run: Run) -> str:
    """Train the run and let it decide on the recordings, as far as that is missing; returns a line about it."""
    return _kept(plan, run, _train_and_listen)


def drive(plan: Plan, run: Run) -> str:
    """Drive the trained run's closed-loop episodes, as far as they are missing; returns a line about it."""
    return _kept(plan, run, _drive_all)


def _kept(plan: Plan, run: Run, measure: Callable[[Plan, Run, Path, Store], str]) -> str:
    """Do a part of a run; a failure is kept as the run's."""
    folder = run_folder(plan, run)
    store = Store(folder)
    store.write(FAILURE, {}, {"error": "unfinished: its process died or was interrupted"})
    try:
        figures = measure(plan, run, folder, store)
    except Exception as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        store.write(FAILURE, {}, {"error": reason, "traceback": traceback.format_exc()})
        return f"{run}: FAILED, {reason}"
    store.remove(FAILURE)
    return f"{run}: {figures}"


def run_folder(plan: Plan, run: Run) -> Path:
    """Folder of a run; the base must be there."""
    return plan.run_folder(run, _base_id(plan.base_folder(run.task)))


@lru_cache
def _base_id(folder: Path) -> str:
    return load(folder).model_id


def _train_and_listen(plan: Plan, run: Run, folder: Path, store: Store) -> str:
    trained = store.get("training", {}, lambda: train_row(plan, run, folder))
    words = [f"held out {trained['held_out_branch_accuracy']:.2f}", *_hear(plan, run, folder, store)]
    _hear_addressed_as_trained(plan, run, folder, store)
    return ", ".join(words)


def _drive_all(plan: Plan, run: Run, folder: Path, store: Store) -> str:
    scenarios = plan.scenarios(run.task, run.seed, plan.conditions[0])
    driven = store.get("closed_loop", _settings(scenarios), lambda: _drive(folder, run.task, scenarios))
    _hand_over(plan, run, folder, store)
    return f"closed loop {_share(driven):.2f}"


def _hear(plan: Plan, run: Run, folder: Path, store: Store) -> list[str]:
    """Listen to the conditions that are recorded; returns words about each."""
    words, listener = [], None
    for condition in plan.conditions:
        scenarios = plan.scenarios(run.task, run.seed, condition)
        part, settings = f"heard_{condition.name}", _settings(scenarios)
        paths = [recording_path(plan, scenario) for scenario in scenarios]
        figures = store.read(part, settings)
        if figures is None and all(path.exists() for path in paths):
            listener = listener or Listener(folder)
            heard = _listen(listener, scenarios, [Recording.load(path) for path in paths])
            figures = store.write(part, settings, heard)
        if figures is not None:
            words.append(f"{condition.label} {_share(figures):.2f}")
    return words


def _hear_addressed_as_trained(plan: Plan, run: Run, folder: Path, store: Store) -> None:
    """At longer delays, let memories that read by the signature read with the one the same scene has after a lap."""
    if not plan.design(run.row).depth:
        return
    for condition in (c for c in plan.conditions if "laps" in c.changes):
        scenarios = plan.scenarios(run.task, run.seed, condition)
        long, short = ([recording_path(plan, s) for s in some] for some in (scenarios, map(_one_lap, scenarios)))
        part, settings = f"addressed_as_trained_{condition.name}", _settings(scenarios)
        if store.read(part, settings) is None and all(path.exists() for path in (*long, *short)):
            heard = [[Recording.load(path) for path in paths] for paths in (long, short)]
            store.write(part, settings, _listen(Listener(folder), scenarios, *heard))


def _one_lap(scenario: Scenario) -> Scenario:
    return replace(scenario, laps=1)


def _settings(scenarios: Sequence[Scenario]) -> Figures:
    return {"scenarios": digest([scenario_key(scenario) for scenario in scenarios])}


def _drive(folder: Path, task: str, scenarios: Sequence[Scenario], expert_ticks: Sequence[int] = ()) -> Figures:
    with ClosedLoop(folder, task) as loop:
        lead_in = expert_ticks or [0] * len(scenarios)
        return {"episodes": [asdict(loop.run(s, ticks)) for s, ticks in zip(scenarios, lead_in, strict=True)]}


def _listen(
    listener: Listener,
    scenarios: Sequence[Scenario],
    recordings: Sequence[Recording],
    addressed_as: Sequence[Recording] | None = None,
) -> Figures:
    period_s = listener.checkpoint.config.observation.tick_period_ms / 1e3
    return {
        "episodes": [
            {"seed": s.seed, "cue": s.cue, "success": d.right, "writes": d.writes, "elapsed_s": d.ticks * period_s}
            for s, d in zip(scenarios, listener.decide(recordings, addressed_as), strict=True)
        ]
    }


def _hand_over(plan: Plan, run: Run, folder: Path, store: Store) -> None:
    """Of the first seed of some rows, let the policy drive on where the expert got to the branch."""
    name, count, rows = plan.handover
    condition = next((c for c in plan.conditions if c.name == name), None)
    if condition is None or run.row not in rows or run.seed != plan.seeds[0]:
        return
    scenarios = plan.scenarios(run.task, run.seed, condition)[:count]
    paths = [recording_path(plan, scenario) for scenario in scenarios]
    if not all(path.exists() for path in paths):
        return
    ticks = [Recording.load(path).branch_tick for path in paths]
    store.get("handed_over", _settings(scenarios), lambda: _drive(folder, run.task, scenarios, ticks))


def _share(figures: Figures) -> float:
    episodes = figures.get("episodes", [])
    return sum(e["success"] for e in episodes) / max(1, len(episodes))
