"""What `bench policies` compares: tasks, policy families, with and without memory, training seeds, recipes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from studies.grid import Plan, Run, digest
from studies.memory_modules.plan import DEPTH, JOINT
from studies.scenes import twins
from trace_memory_ros.arm.design import arm_design, checkpoint_name
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.runtime.checkpoint import load

TASKS = ("origin", "colour")
POLICIES = ("act", "diffusion")
MEMORIES = ("none", "trace")
SCHEMA = 1
RECIPES: dict[str, dict[str, Recipe]] = dict.fromkeys(POLICIES, JOINT)
"""Both families learn to read their memory for as many steps, from policies that can move."""
JOINTLY = ("steps", "batch_pairs", "reads", "shares", "learning_rate", "memory_rate", "frozen_trunk", "warm_up_steps")
"""Parts of a recipe that the memory's own training does not depend on."""
INFERENCE_STEPS = (1, 2, 3, 5, 10, 20)


def row_of(policy: str, memory: str) -> str:
    """The row of a policy family with a memory."""
    return f"{policy} {memory}"


def parts_of(run: Run) -> tuple[str, str]:
    """Policy family and memory of a run's row."""
    policy, _, memory = run.row.partition(" ")
    return policy, memory


@dataclass(frozen=True, kw_only=True)
class PoliciesPlan(Plan):
    """The grid, and the trials of inference steps. pairs: of each training seed.

    recipes: by family and task. bases: folder of the memoryless checkpoints, one per task and family, that every row
    starts from. inference_steps: of DDIM, tried with `step_pairs` pairs each.
    """

    policies: tuple[str, ...]
    memories: tuple[str, ...]
    rows: tuple[str, ...] = ()
    recipes: dict[str, dict[str, Recipe]]
    inference_steps: tuple[int, ...]
    step_pairs: int
    bases: Path

    def __post_init__(self) -> None:
        rows = tuple(row_of(policy, memory) for policy in self.policies for memory in self.memories)
        object.__setattr__(self, "rows", rows)

    def runs(self) -> list[Run]:
        """All trainings, whole tables of one seed first and those with a memory before those without."""
        return [
            Run(task, row_of(policy, memory), seed)
            for seed in self.seeds
            for memory in reversed(self.memories)
            for policy in self.policies
            for task in self.tasks
        ]

    def step_trials(self) -> list[tuple[str, int]]:
        """Task and number of inference steps, of the first seed's diffusion policy with the last memory."""
        if "diffusion" not in self.policies:
            return []
        return [(task, steps) for steps in self.inference_steps for task in self.tasks]

    def stepped(self, task: str) -> Run:
        """The training whose inference steps are varied."""
        return Run(task, row_of("diffusion", self.memories[-1]), self.seeds[0])

    def design(self, run: Run) -> Design:
        """How a run's model is built."""
        policy, memory = parts_of(run)
        return arm_design(memory, DEPTH, policy=policy)

    def recipe(self, run: Run) -> Recipe:
        """How a run is trained."""
        return self.recipes[parts_of(run)[0]][run.task]

    def scenarios(self, task: str, seed: int) -> list[Scenario]:
        """Evaluation episodes of a training seed, twins side by side; seeds share no scene."""
        return twins(task, self.pairs, seed * self.pairs)

    def step_scenarios(self, task: str) -> list[Scenario]:
        """Episodes that every number of inference steps is tried in, beyond those of the seeds."""
        return twins(task, self.step_pairs, 10_000)

    def base_folder(self, task: str, policy: str) -> Path:
        """The memoryless checkpoint that a task's rows of a family start from."""
        return self.bases / checkpoint_name(task, "none", policy)

    def trained_by(self, run: Run) -> object:
        """Design, recipe and base."""
        design = self.design(run)
        return {
            "schema": SCHEMA,
            "policy_options": {**design.policy_options, "chunk": design.chunk},
            "options": dict(design.options),
            "recipe": self.recipe(run).to_dict(),
            "base": load(self.base_folder(run.task, parts_of(run)[0])).model_id,
        }

    def memory_file(self, run: Run) -> Path:
        """Where the memory that both families of a task, mechanism and seed start from is kept."""
        recipe = {k: v for k, v in self.recipe(run).to_dict().items() if k not in JOINTLY}
        key = digest({"schema": SCHEMA, "options": dict(self.design(run).options), "recipe": recipe})
        return self.out_dir / "memories" / f"{run.task}-{parts_of(run)[1]}-{run.seed}-{key}.safetensors"


def quick_plan(plan: PoliciesPlan) -> PoliciesPlan:
    """A plan for a first look: one seed, few episodes, few numbers of steps."""
    return replace(
        plan,
        seeds=plan.seeds[:1],
        pairs=min(plan.pairs, 3),
        inference_steps=plan.inference_steps[1:4:2],
        step_pairs=min(plan.step_pairs, 2),
    )
