"""What `bench memory-modules` compares: tasks, rows, training seeds, recipes and the harder conditions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED
from trace_memory_ros.arm.design import arm_design
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.memory import registry
from trace_memory_ros.runtime.window import PathWindow

TASKS = ("origin", "colour")
ROWS: dict[str, str] = {
    "none": "none",
    "gru": "gru",
    "transformer": "transformer",
    "lru": "lru",
    "retrieval": "retrieval",
    "linear_attention": "linear_attention",
    "deltanet": "deltanet",
    "trace": "trace",
    "trace+window": "trace",
    "trace+gate": "trace+gate",
    "trace+window+gate": "trace+gate",
    "aura": "aura",
    "vla": "vla",
    "elmur": "elmur",
    "prism": "prism",
}
"""Row of the table -> registry name of its mechanism."""
WINDOWS = dict.fromkeys(("trace+window", "trace+window+gate"), PathWindow())
"""Rows whose address is the signature of the newest part of the path, not of the whole episode."""
DEPTH = 2
"""Signatures of depth 2: at depth 3 the first layer alone would be most of TRACE's parameters, and none would match."""
SCHEMA = 1


@dataclass(frozen=True)
class Condition:
    """An evaluation condition: names for files and people, and how its scenarios differ from the trained ones.

    shared: the same scenes for all training seeds, where an episode is long and costly to record.
    """

    name: str
    label: str
    changes: dict[str, Any] = field(default_factory=dict)
    shared: bool = False


CONDITIONS = (
    Condition("x1", "1x"),
    Condition("x2", "2x", {"laps": 2}),
    Condition("x4", "4x", {"laps": 4}),
    Condition("x16", "16x", {"laps": 16}, shared=True),
    Condition("pause", "10 min pause", {"extra_pause_s": 600.0}, shared=True),
    Condition("decoys", "decoys", {"decoys": 3}),
)
HANDOVER = ("x2", 6, ("none", "gru", "trace", "vla"))
"""Condition, episodes and rows in which the policy takes over from the expert at the branch and drives on."""

QUICK_ROWS = ("none", "gru", "trace")
QUICK_CONDITIONS = ("x1", "x4")

BASE_RECIPES = (Recipe(), replace(Recipe(), steps=600))
"""The memoryless policy that every row starts from is trained in two runs, the second from the first's policy."""
_JOINT = replace(
    Recipe(),
    memory_first=MemoryFirst(stage_steps=400, settle_steps=50),
    steps=100,
    batch_pairs=4,
    warm_up_steps=20,
    frozen_trunk=True,
)
JOINT = {
    "origin": _JOINT,
    # Picking the part from the tray is what suffers while the policy learns to use a memory.
    "colour": replace(_JOINT, steps=150, shares=replace(_JOINT.shares, start=0.2)),
}
"""Short, since the policy can move already: it has to learn what its memory tells it."""


@dataclass(frozen=True)
class Run:
    """One training: a row's mechanism, a task, a seed."""

    task: str
    row: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} {self.row} seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """Everything a call is decided by. pairs: counterfactual evaluation pairs per training seed."""

    tasks: tuple[str, ...]
    rows: tuple[str, ...]
    seeds: tuple[int, ...]
    pairs: int
    conditions: tuple[Condition, ...]
    recipes: dict[str, Recipe]
    base_recipes: tuple[Recipe, ...]
    out_dir: Path
    demos: Path
    handover: tuple[str, int, tuple[str, ...]] = HANDOVER

    def runs(self) -> list[Run]:
        """All trainings, whole tables of one seed first, so that what is there after an interruption is balanced."""
        return [Run(task, row, seed) for seed in self.seeds for row in self.rows for task in self.tasks]

    def design(self, row: str) -> Design:
        """How a row's mechanism is built."""
        return row_design(row)

    def scenarios(self, task: str, seed: int, condition: Condition) -> list[Scenario]:
        """Evaluation episodes of a training seed, twins side by side; seeds share no scene unless it is `shared`."""
        first = FIRST_EVALUATION_SEED + (0 if condition.shared else seed * self.pairs)
        return [
            Scenario(task=task, seed=first + index // 2, cue=index % 2, **condition.changes)
            for index in range(2 * self.pairs)
        ]

    def recordings(self) -> list[tuple[str, int, Condition]]:
        """Task, seed and condition of all that has to be recorded, each scene once."""
        return [
            (task, seed, condition)
            for task in self.tasks
            for condition in self.conditions
            for seed in (self.seeds[:1] if condition.shared else self.seeds)
        ]

    def base_folder(self, task: str) -> Path:
        """Where the memoryless policy of a task is kept."""
        recipes = [recipe.to_dict() for recipe in self.base_recipes]
        return self.out_dir / "bases" / f"{task}-{digest({'recipes': recipes, 'design': _plain(self.design('none'))})}"

    def run_folder(self, run: Run, base_id: str) -> Path:
        """Where a training and its results are kept: another design, recipe or base is another folder."""
        content = {
            "schema": SCHEMA,
            "design": _plain(self.design(run.row)),
            "recipe": self.recipes[run.task].to_dict(),
            "base": base_id,
        }
        return self.out_dir / "runs" / f"{run.task}-{run.row}-{run.seed}-{digest(content)}"


def row_design(row: str) -> Design:
    """The design behind a row's name."""
    return arm_design(ROWS[row], DEPTH, window=WINDOWS.get(row))


def quick_plan(plan: Plan) -> Plan:
    """A plan for a first look: one seed, three rows, two conditions, a base policy that can hardly move."""
    return replace(
        plan,
        rows=tuple(row for row in plan.rows if row in QUICK_ROWS) or plan.rows[:1],
        seeds=plan.seeds[:1],
        pairs=min(plan.pairs, 3),
        conditions=tuple(c for c in plan.conditions if c.name in QUICK_CONDITIONS),
        base_recipes=(replace(plan.base_recipes[0], steps=400),),
        handover=("", 0, ()),
    )


def known_rows(rows: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The rows whose mechanism is registered, and the others."""
    known = {row: ROWS[row].removesuffix(registry.GATED) in registry.names() for row in rows}
    return tuple(r for r in rows if known[r]), tuple(r for r in rows if not known[r])


def known_conditions(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The conditions that scenarios have settings for."""
    settings = {f.name for f in fields(Scenario)}
    return tuple(c for c in conditions if set(c.changes) <= settings)


def scenario_key(scenario: Scenario) -> dict[str, Any]:
    """What distinguishes a scenario from the default one of its class; a setting added later changes no key."""
    return {f.name: value for f in fields(Scenario) if (value := getattr(scenario, f.name)) != f.default}


def digest(content: object) -> str:
    """A short name for plain content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]


def _plain(design: Design) -> dict[str, Any]:
    content = {
        "memory": design.memory,
        "options": dict(design.options),
        "observation": design.observation.to_dict(),
        "clock": design.clock.to_dict(),
        "sizes": [design.depth, design.slots, design.width, design.chunk],
    }
    return content if design.window is None else content | {"window": design.window.to_dict()}
