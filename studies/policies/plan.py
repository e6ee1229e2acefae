"""What `bench policies` compares: tasks, policy families, with and without memory, training seeds, recipes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from studies.memory_modules.plan import DEPTH, JOINT, digest
from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED
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
"""Both families learn to listen for as many steps, from policies that can move."""
JOINTLY = ("steps", "batch_pairs", "reads", "shares", "learning_rate", "memory_rate", "frozen_trunk", "warm_up_steps")
"""Parts of a recipe that the memory's own training does not depend on."""
INFERENCE_STEPS = (1, 2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Run:
    """One training: a task, a policy family, a memory, a seed."""

    task: str
    policy: str
    memory: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} {self.policy} {self.memory} seed {self.seed}"


@dataclass(frozen=True)
class Plan:
    """Everything a call is decided by.

    pairs: counterfactual evaluation pairs per training seed. bases: folder of the memoryless checkpoints, one per task
    and family, that every row starts from. inference_steps: of DDIM, tried with `step_pairs` pairs each.
    """

    tasks: tuple[str, ...]
    policies: tuple[str, ...]
    memories: tuple[str, ...]
    seeds: tuple[int, ...]
    pairs: int
    recipes: dict[str, dict[str, Recipe]]
    inference_steps: tuple[int, ...]
    step_pairs: int
    out_dir: Path
    bases: Path
    demos: Path

    def runs(self) -> list[Run]:
        """All trainings, whole tables of one seed first, so that what is there after an interruption is balanced."""
        return [
            Run(task, policy, memory, seed)
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
        return Run(task, "diffusion", self.memories[-1], self.seeds[0])

    def design(self, run: Run) -> Design:
        """How a run's model is built."""
        return arm_design(run.memory, DEPTH, policy=run.policy)

    def recipe(self, run: Run) -> Recipe:
        """How a run is trained."""
        return self.recipes[run.policy][run.task]

    def scenarios(self, task: str, seed: int) -> list[Scenario]:
        """Evaluation episodes of a training seed, twins side by side; seeds share no scene."""
        first = FIRST_EVALUATION_SEED + seed * self.pairs
        return [Scenario(task=task, seed=first + i // 2, cue=i % 2) for i in range(2 * self.pairs)]

    def step_scenarios(self, task: str) -> list[Scenario]:
        """Episodes that every number of inference steps is tried in, beyond those of the seeds."""
        first = FIRST_EVALUATION_SEED + 10_000
        return [Scenario(task=task, seed=first + i // 2, cue=i % 2) for i in range(2 * self.step_pairs)]

    def base_folder(self, task: str, policy: str) -> Path:
        """The memoryless checkpoint that a task's rows of a family start from."""
        return self.bases / checkpoint_name(task, "none", policy)

    def run_folder(self, run: Run) -> Path:
        """Where a training and its results are kept: another design, recipe or base is another folder."""
        design = self.design(run)
        content = {
            "schema": SCHEMA,
            "policy_options": {**design.policy_options, "chunk": design.chunk},
            "options": dict(design.options),
            "recipe": self.recipe(run).to_dict(),
            "base": load(self.base_folder(run.task, run.policy)).model_id,
        }
        return self.out_dir / "runs" / f"{run.task}-{run.policy}-{run.memory}-{run.seed}-{digest(content)}"

    def memory_file(self, run: Run) -> Path:
        """Where the memory that both families of a task, mechanism and seed start from is kept."""
        recipe = {k: v for k, v in self.recipe(run).to_dict().items() if k not in JOINTLY}
        key = digest({"schema": SCHEMA, "options": dict(self.design(run).options), "recipe": recipe})
        return self.out_dir / "memories" / f"{run.task}-{run.memory}-{run.seed}-{key}.safetensors"


def quick_plan(plan: Plan) -> Plan:
    """A plan for a first look: one seed, few episodes, few numbers of steps."""
    return replace(
        plan,
        seeds=plan.seeds[:1],
        pairs=min(plan.pairs, 3),
        inference_steps=plan.inference_steps[1:4:2],
        step_pairs=min(plan.step_pairs, 2),
    )
