"""From the stored parts of all runs to figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.table import Table

from studies.grid import Figures, Run, Store, parts
from studies.memory_modules.plan import ROWS, ModulesPlan
from studies.memory_modules.speed import step_times_ms
from studies.tables import success_of, table, with_interval
from trace_memory_ros.memory.registry import GATED

ENOUGH = 0.9
"""Branch success every memory must reach at the trained delay."""
FEWER_WRITES = 5.0
"""A gate is worth its name where it writes this many times more rarely at the same success."""


def figures_of(plan: ModulesPlan) -> dict[str, Any]:
    """Figures of every task and row that has results, and of what has failed."""
    tasks = {task: {row: _row(plan, task, row) for row in plan.rows} for task in plan.tasks}
    for task, rows in tasks.items():
        checkpoints = {row: plan.run_folder(Run(task, row, plan.seeds[0])) for row, f in rows.items() if f["runs"]}
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
        "missing": plan.missing(tasks),
        "gate": {task: _gate(rows) for task, rows in tasks.items()},
    }


def _row(plan: ModulesPlan, task: str, row: str) -> dict[str, Any]:
    stores = plan.stores(task, row)
    trained = parts(stores, "training")
    figures: dict[str, Any] = {"runs": len(trained)}
    if failures := plan.failures(task, row):
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
        "closed_loop": success_of(parts(stores, "closed_loop")),
        "open_loop": {c.name: success_of(parts(stores, f"open_loop_{c.name}"), c.shared) for c in plan.conditions},
    }
    figures["address_override"] = {
        c.name: found
        for c in plan.conditions
        if (found := success_of(parts(stores, f"address_override_{c.name}"), c.shared)) is not None
    }
    figures["agreement"] = {
        "driven": _agreement(stores, "closed_loop", f"open_loop_{plan.conditions[0].name}"),
        "handed_over": _agreement(stores, "handed_over", f"open_loop_{plan.handover[0]}"),
    }
    return figures


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


def tables(figures: dict[str, Any]) -> Iterator[Table | str]:
    """One table per task, then what is missing."""
    labels = [condition["label"] for condition in figures["conditions"].values()]
    columns = ("memory", "closed loop", *labels, "parameters", "bytes", "writes/s", "step ms", "runs")
    for task, rows in figures["tasks"].items():
        title = f"{task}: branch success in closed loop, and open-loop decisions under harder conditions"
        yield table(title, columns, ((row, *_cells(found, figures["conditions"])) for row, found in rows.items()))
    if figures["missing"]:
        yield f"without all their runs: {', '.join(figures['missing'])}"
    if figures["below_enough"]:
        yield f"below {ENOUGH} at the trained delay: {', '.join(figures['below_enough'])}"


def _cells(found: Figures, conditions: Iterable[str]) -> Iterator[str]:
    driven = found.get("closed_loop")
    yield with_interval(driven)
    yield from (with_interval(found.get("open_loop", {}).get(name)) for name in conditions)
    yield str(found.get("memory_parameters", ""))
    yield str(found.get("state_bytes", ""))
    yield f"{driven['writes_per_s']:.2f}" if driven else ""
    yield f"{found['step_ms']:.2f}" if "step_ms" in found else ""
    yield f"{found['runs']}" + (f", {len(found['failed'])} failed" if "failed" in found else "")
