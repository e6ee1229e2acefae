"""What `bench memory-modules` compares: tasks, rows, training seeds, recipes and the harder conditions."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from studies.grid import Plan, Run, digest
from studies.scenes import scenario_key, twins
from trace_memory_ros.arm.design import arm_design
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.memory import registry
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.window import PathWindow

TASKS = ("origin", "colour")
ROWS: dict[str, str] = {
    "none": "none",
    "first_frame": "first_frame",
    "last_k": "last_k",
    "gru": "gru",
    "gru+cache": "gru+cache",
    "gru+gate": "gru+gate",
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


@dataclass(frozen=True, kw_only=True)
class ModulesPlan(Plan):
    """The grid, and the harder conditions. pairs: of each training seed and condition.

    recipes: by task. base_recipes: one after the other.
    """

    conditions: tuple[Condition, ...]
    recipes: dict[str, Recipe]
    base_recipes: tuple[Recipe, ...]
    handover: tuple[str, int, tuple[str, ...]] = HANDOVER

    def design(self, row: str) -> Design:
        """How a row's mechanism is built."""
        return row_design(row)

    def scenarios(self, task: str, seed: int, condition: Condition) -> list[Scenario]:
        """Evaluation episodes of a training seed, twins side by side; seeds share no scene unless it is `shared`."""
        return twins(task, self.pairs, 0 if condition.shared else seed * self.pairs, **condition.changes)

    def to_record(self) -> list[tuple[str, int, Condition]]:
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

    def trained_by(self, run: Run) -> object:
        """Design, recipe and base; the base must be there."""
        return {
            "schema": SCHEMA,
            "design": _plain(self.design(run.row)),
            "recipe": self.recipes[run.task].to_dict(),
            "base": base_id(self.base_folder(run.task)),
        }

    def episode_path(self, scenario: Scenario) -> Path:
        """Where an expert's episode is kept; it depends on the base's normaliser and clock, which all rows share."""
        key = digest({"scenario": scenario_key(scenario), "base": base_id(self.base_folder(scenario.task))})
        return self.out_dir / "expert_episodes" / scenario.task / f"{scenario.seed}-{scenario.cue}-{key}.npz"


@lru_cache
def base_id(folder: Path) -> str:
    """Model id of a base policy."""
    return load(folder).model_id


def row_design(row: str) -> Design:
    """The design behind a row's name."""
    return arm_design(ROWS[row], DEPTH, window=WINDOWS.get(row))


def quick_plan(plan: ModulesPlan) -> ModulesPlan:
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


def _plain(design: Design) -> dict[str, Any]:
    content = {
        "memory": design.memory,
        "options": dict(design.options),
        "observation": design.observation.to_dict(),
        "clock": design.clock.to_dict(),
        "sizes": [design.depth, design.slots, design.width, design.chunk],
    }
    return content if design.window is None else content | {"window": design.window.to_dict()}
