"""From the stored parts of all runs to figures and a printed table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from studies.memory_modules.jobs import run_folder
from studies.memory_modules.plan import ROWS, Plan, Run
from studies.memory_modules.speed import step_times_ms
from studies.store import FAILURE, Figures, Store
from trace_memory_ros.measure.statistics import Interval, percentiles, wilson_interval
from trace_memory_ros.memory.registry import GATED

RESAMPLES = 4_000
ENOUGH = 0.9
"""Branch success every memory must reach at the trained delay."""
FEWER_WRITES = 5.0
"""A gate is worth its name where it writes this many times more rarely at the same success."""


def figures_of(plan: Plan) -> dict[str, Any]:
    """Figures of every task and row that has results, and of what has failed."""
    tasks = {task: {row: _row(plan, task, row) for row in plan.rows} for task in plan.tasks}
    for task, rows in tasks.items():
        checkpoints = {row: run_folder(plan, Run(task, row, plan.seeds[0])) for row, f in rows.items() if f["runs"]}
        for row, ms in step_times_ms(checkpoints).items():
            rows[row]["step_ms"] = ms
    return {
        "seeds": len(plan.seeds),
        "episodes_per_seed": 2 * plan.pairs,
        "signature_depth": plan.design("trace").depth if "trace" in ROWS else 0,
        "conditions": {c.name: {"label": c.label, **c.changes} for c in plan.conditions},
        "recipes": {task: plan.recipes[task].to_dict() for task in plan.tasks},
        "tasks": tasks,
        "below_enough": [f"{t} {r}" for t, rows in tasks.items() for r, f in rows.items() if not _enough(r, f)],
        "missing": [f"{t} {r}" for t, rows in tasks.items() for r, f in rows.items() if f["runs"] < len(plan.seeds)],
        "gate": {task: _gate(rows) for task, rows in tasks.items()},
    }


def _row(plan: Plan, task: str, row: str) -> dict[str, Any]:
    stores = [Store(run_folder(plan, Run(task, row, seed))) for seed in plan.seeds]
    trained = [found for store in stores if (found := store.read("training")) is not None]
    figures: dict[str, Any] = {"runs": len(trained)}
    failures = {str(seed): f["error"] for seed, s in zip(plan.seeds, stores, strict=True) if (f := s.read(FAILURE))}
    if failures:
        figures["failed"] = failures
    if not trained:
        return figures
    figures |= {
        "memory_parameters": trained[0]["memory_parameters"],
        "state_bytes": trained[0]["state_bytes"],
        "held_out_branch_accuracy": [t["held_out_branch_accuracy"] for t in trained],
        "training_s": [t["memory_s"] + t["joint_s"] for t in trained],
        "memory_steps": [t["memory_steps"] for t in trained],
        "attempts": [t["attempts"] for t in trained],
        "closed_loop": success_of(_parts(stores, "closed_loop")),
        "heard": {c.name: success_of(_parts(stores, f"heard_{c.name}")) for c in plan.conditions},
    }
    figures["addressed_as_trained"] = {
        c.name: found
        for c in plan.conditions
        if (found := success_of(_parts(stores, f"addressed_as_trained_{c.name}"))) is not None
    }
    figures["agreement"] = {
        "driven": _agreement(stores, "closed_loop", f"heard_{plan.conditions[0].name}"),
        "handed_over": _agreement(stores, "handed_over", f"heard_{plan.handover[0]}"),
    }
    return figures


def success_of(seeds: Sequence[Figures]) -> dict[str, Any] | None:
    """Success over the episodes of several training seeds, None without any.

    ci95: the wider of Wilson's over episodes and a bootstrap over seeds and the episodes of each.
    """
    shares = [[bool(e["success"]) for e in figures["episodes"]] for figures in seeds]
    won, count = sum(map(sum, shares)), sum(map(len, shares))
    if not count:
        return None
    episodes = [episode for figures in seeds for episode in figures["episodes"]]
    wilson, bootstrap = wilson_interval(won, count), _two_level(shares)
    found = {
        "success": won / count,
        "ci95": [min(wilson.low, bootstrap.low), max(wilson.high, bootstrap.high)],
        "episodes": count,
        "by_seed": [sum(share) / len(share) for share in shares],
        "writes_per_s": sum(e["writes"] for e in episodes) / sum(e["elapsed_s"] for e in episodes),
        "writes_per_episode": sum(e["writes"] for e in episodes) / count,
    }
    if "progress" in episodes[0]:
        found["progress"] = sum(e["progress"] for e in episodes) / count
    return found


def _two_level(shares: Sequence[Sequence[bool]]) -> Interval:
    """Percentile bootstrap of the mean over seeds and, in each, over its episodes."""
    random = np.random.default_rng(0)
    drawn = []
    for _ in range(RESAMPLES):
        chosen = random.integers(0, len(shares), len(shares))
        drawn.append(np.mean([np.mean(random.choice(shares[i], len(shares[i]))) for i in chosen]))
    return Interval(*percentiles(drawn, (2.5, 97.5)))


def _parts(stores: Sequence[Store], part: str) -> list[Figures]:
    return [found for store in stores if (found := store.read(part)) is not None]


def _agreement(stores: Sequence[Store], driven: str, decided: str) -> dict[str, int] | None:
    """In how many episodes what was driven and what was decided at the branch came out alike."""
    alike = count = 0
    for store in stores:
        outcomes, decisions = store.read(driven), store.read(decided)
        if outcomes is None or decisions is None:
            continue
        by_episode = {(e["seed"], e["cue"]): e["success"] for e in decisions["episodes"]}
        for episode in outcomes["episodes"]:
            key = (episode["seed"], episode["cue"])
            if key in by_episode:
                count += 1
                alike += by_episode[key] == episode["success"]
    return {"alike": alike, "episodes": count} if count else None


def _enough(row: str, figures: Figures) -> bool:
    driven = figures.get("closed_loop")
    return row == "none" or driven is None or driven["success"] >= ENOUGH


def _gate(rows: dict[str, Figures]) -> dict[str, Any]:
    """Each gated row beside its own without the gate: how many times fewer writes, at which success."""
    found = {}
    for row in (name for name in rows if name.endswith(GATED)):
        plain, gated = (rows.get(name, {}).get("closed_loop") for name in (row.removesuffix(GATED), row))
        if plain and gated:
            ratio = plain["writes_per_episode"] / max(gated["writes_per_episode"], 1e-9)
            parity = gated["success"] >= plain["ci95"][0]
            found[row] = {"fewer_writes": ratio, "parity": parity, "met": parity and ratio >= FEWER_WRITES}
    return found


def show(figures: dict[str, Any], console: Console) -> None:
    """Print one table per task."""
    for task, rows in figures["tasks"].items():
        table = Table(title=f"{task}: branch success in closed loop, and decisions under harder conditions")
        for column in ("memory", "closed loop", *(c["label"] for c in figures["conditions"].values())):
            table.add_column(column)
        for column in ("parameters", "bytes", "writes/s", "step ms", "runs"):
            table.add_column(column, justify="right")
        for row, found in rows.items():
            table.add_row(row, *_cells(found, list(figures["conditions"])))
        console.print(table)
    if figures["missing"]:
        console.print(f"without all their runs: {', '.join(figures['missing'])}")
    if figures["below_enough"]:
        console.print(f"below {ENOUGH} at the trained delay: {', '.join(figures['below_enough'])}")


def _cells(found: Figures, conditions: Sequence[str]) -> Iterator[str]:
    driven = found.get("closed_loop")
    yield _words(driven)
    yield from (_words(found.get("heard", {}).get(name)) for name in conditions)
    yield str(found.get("memory_parameters", ""))
    yield str(found.get("state_bytes", ""))
    yield f"{driven['writes_per_s']:.2f}" if driven else ""
    yield f"{found['step_ms']:.2f}" if "step_ms" in found else ""
    yield f"{found['runs']}" + (f", {len(found['failed'])} failed" if "failed" in found else "")


def _words(found: Figures | None) -> str:
    return f"{found['success']:.2f} ({found['ci95'][0]:.2f}-{found['ci95'][1]:.2f})" if found else ""
