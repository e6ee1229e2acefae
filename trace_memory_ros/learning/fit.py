"""One training from start to checkpoint, whoever asks for it: build, adopt a policy, memory first, all together."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from trace_memory_ros.files import atomic, outputs
from trace_memory_ros.learning import build
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.batches import Data
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.console import TrainingReport
from trace_memory_ros.learning.found import named
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.progress import Progress, Reporter
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import RunConfig
from trace_memory_ros.learning.trainer import Trainer
from trace_memory_ros.runtime.checkpoint import Checkpoint, load

REPORT_EVERY = 50
KEPT = "training.safetensors"
"""The joint phase as far as it came."""


@dataclass(frozen=True)
class Fitted:
    """What a training gave. last: end of the joint phase.

    memory: end of the memory-first phase; None where there was none: no weights to learn, resumed, taken from a file.
    memory_s, joint_s: wall time of the phases, memory_cpu_s, joint_cpu_s: CPU time.
    """

    agent: Agent
    design: Design
    data: Data
    recipe: Recipe
    seed: int
    memory: Progress | None
    last: Progress
    memory_s: float
    memory_cpu_s: float
    joint_s: float
    joint_cpu_s: float

    @property
    def memory_steps(self) -> int:
        """Steps of the memory-first phase's last attempt; 0 without one."""
        return 0 if self.memory is None else self.memory.step

    @property
    def attempts(self) -> int:
        """How often the memory-first phase was begun; 0 without one."""
        return 0 if self.memory is None else self.memory.attempt

    def figures(self) -> dict[str, Any]:
        """What a summary says of the training."""
        figures = {
            "train_branch_accuracy": self.last.train_branch_accuracy,
            "held_out_branch_accuracy": self.last.held_out_branch_accuracy,
            "held_out_episodes": len(self.data.held_out.data.episodes),
            "losses": self.last.losses,
            "parameters": {name: sum(p.numel() for p in part.parameters()) for name, part in self.parts().items()},
            "memory_steps": self.memory_steps,
            "attempts": self.attempts,
            "memory_s": self.memory_s,
            "joint_s": self.joint_s,
            "training_minutes": (self.memory_s + self.joint_s) / 60.0,
        }
        return named(figures, self.data.found)

    def parts(self) -> dict[str, torch.nn.Module]:
        """Encoder, memory and policy by name."""
        return dict(self.agent.named_children())

    def save(self, folder: Path, task: str, figures: Mapping[str, Any], **origin: Any) -> str:
        """Write the checkpoint, which says `origin` (such as the command), seed, recipe and figures; its model_id."""
        training = {**origin, "seed": self.seed, "recipe": self.recipe.to_dict(), "figures": dict(figures)}
        return build.save_checkpoint(self.agent, self.design, self.data.training, task, training, folder)


def new_agent(design: Design, data: Data, seed: int, start: Checkpoint | None = None) -> Agent:
    """An untrained agent whose weights follow from `seed`; its policy, but for the adapter, is that of `start`.

    Raises ValueError where that policy is of another family or other sizes.
    """
    torch.manual_seed(seed)
    agent = build.build_agent(design, data.training)
    if start is not None:
        build.adopt_policy(agent, start)
    return agent


def fit(
    design: Design,
    data: Data,
    recipe: Recipe,
    seed: int,
    *,
    start: Checkpoint | None = None,
    memory_file: Path | None = None,
    report: Reporter | None = None,
    save_to: Path | None = None,
    resume: bool = False,
) -> Fitted:
    """Train a design on data; every random choice follows from `seed`.

    start: checkpoint to take the policy from. memory_file: encoder and memory that a run of the same data and seed
    kept are taken from it, or trained and kept there. save_to: file that the joint phase is saved to as it goes; with
    `resume` it goes on from there, if the file is there. Raises ValueError where that was written by another run.
    """
    report = report or Reporter()
    agent = new_agent(design, data, seed, start)
    trainer = Trainer(agent, data.training, data.held_out, recipe, seed)
    begun = _Now()
    memory = None
    if resume and save_to is not None and save_to.exists():
        trainer.load(save_to)
        report.resumed(trainer.step, recipe.steps)
    elif list(agent.memory.parameters()):
        memory = _learn_or_take_memory(agent, data, recipe, seed, memory_file, report)
        if save_to is not None:
            trainer.save(save_to)
    between = _Now()
    last = trainer.run(report.progress, REPORT_EVERY, save_to)
    agent.eval()
    end = _Now()
    return Fitted(agent, design, data, recipe, seed, memory, last, *between.since(begun), *end.since(between))


def claim_folder(folder: Path, resume: bool) -> None:
    """Make `folder` a training's, before anything is computed. Raises ValueError where something else lies there."""
    if not (resume and (folder / KEPT).exists()):
        outputs.claim(folder, "trace-memory train")


def fit_shown(config: RunConfig, design: Design, recipe: Recipe, data: Data, folder: Path, resume: bool) -> Fitted:
    """Train what `config` asks for in the terminal's sight; the joint phase is kept in `folder` as it goes."""
    start = load(config.policy.start) if config.policy.start else None
    kept = folder / KEPT
    with TrainingReport(recipe.steps, data.found) as report:
        return fit(design, data, recipe, config.seed, start=start, report=report, save_to=kept, resume=resume)


def _learn_or_take_memory(
    agent: Agent, data: Data, recipe: Recipe, seed: int, file: Path | None, report: Reporter
) -> Progress | None:
    """Train encoder and memory, or take them from `file`; the end of the training, None where there was none."""
    parts = {"encoder": agent.encoder, "memory": agent.memory}
    if file is not None and file.exists():
        kept = load_file(file)
        for name, part in parts.items():
            part.load_state_dict({k.removeprefix(f"{name}."): v for k, v in kept.items() if k.startswith(f"{name}.")})
        return None
    log: list[Progress] = []

    def noted(line: Progress) -> None:
        log.append(line)
        report.progress(line)

    learn_memory(agent, data.training, data.held_out, recipe, seed, noted)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic.replacing(file) as partial:
            tensors = {f"{n}.{k}": v.contiguous() for n, part in parts.items() for k, v in part.state_dict().items()}
            save_file(tensors, partial)
    return log[-1] if log else None


class _Now:
    """Wall and CPU time now."""

    def __init__(self) -> None:
        self.wall_s, self.cpu_s = time.monotonic(), time.process_time()

    def since(self, earlier: _Now) -> tuple[float, float]:
        """Wall and CPU seconds between."""
        return self.wall_s - earlier.wall_s, self.cpu_s - earlier.cpu_s
