"""One training from start to checkpoint, whoever asks for it: build, adopt a policy, memory first, all together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from trace_memory_ros.files import atomic, outputs
from trace_memory_ros.learning import build
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.batches import Data
from trace_memory_ros.learning.decisions.branch_accuracy import judge
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.engine.keeping import Keeper, Kept, digest
from trace_memory_ros.learning.engine.optimise import Feed
from trace_memory_ros.learning.engine.processes import ALONE, Group
from trace_memory_ros.learning.engine.stage_times import StageTimes
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.report.console import TrainingReport
from trace_memory_ros.learning.report.logs import RunLog
from trace_memory_ros.learning.report.progress import JOINT, MEMORY, Judged, Progress, Reporter, Reporters
from trace_memory_ros.learning.run_config import RunConfig
from trace_memory_ros.learning.trainer import Trainer
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.policies import families
from trace_memory_ros.runtime.checkpoint import Checkpoint, load
from trace_memory_ros.runtime.checkpoint_config import plain
from trace_memory_ros.vision.config import SMALL, BackboneConfig

REPORT_EVERY = 50
KEPT = "training.safetensors"
"""The training as far as it came."""


@dataclass(frozen=True)
class Fitted:
    """What a training gave. last: end of the joint phase. held_out: on episodes that nothing looked at before.

    memory: end of the memory-first phase; None where there was none: no weights to learn, resumed, taken from a file.
    memory_s, joint_s: wall time of the phases, memory_cpu_s, joint_cpu_s: CPU time. hardware, processes: what it was
    trained on. times: where each phase's time went, see `StageTimes`. resumed: whether all these, and how often the
    memory's phase was begun, are only of what was done since the training was stopped.
    """

    agent: Agent
    design: Design
    data: Data
    recipe: Recipe
    seed: int
    memory: Progress | None
    last: Progress
    held_out: Judged
    memory_s: float
    memory_cpu_s: float
    joint_s: float
    joint_cpu_s: float
    hardware: Hardware = CPU
    processes: int = 1
    times: Mapping[str, Any] = field(default_factory=dict)
    resumed: bool = False

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
        return {
            "train_branch_accuracy": plain_accuracy(self.last.train_branch_accuracy),
            "validation_branch_accuracy": plain_accuracy(self.last.validation_branch_accuracy),
            "held_out_branch_accuracy": plain_accuracy(self.held_out.accuracy),
            **{f"{name}_episodes": 0 if b is None else len(b.data.episodes) for name, b in self.data._asdict().items()},
            "losses": self.last.losses,
            "parameters": {name: sum(p.numel() for p in part.parameters()) for name, part in self.parts().items()},
            "memory_steps": self.memory_steps,
            "attempts": self.attempts,
            "memory_s": self.memory_s,
            "joint_s": self.joint_s,
            "memory_cpu_s": self.memory_cpu_s,
            "joint_cpu_s": self.joint_cpu_s,
            "training_minutes": (self.memory_s + self.joint_s) / 60.0,
            "resumed": self.resumed,
            "hardware": {**self.hardware.to_dict(), "processes": self.processes},
            "stages": dict(self.times),
        }

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
    hardware: Hardware = CPU,
    group: Group = ALONE,
    begins: Callable[[], None] | None = None,
) -> Fitted:
    """Train a design on data; every random choice follows from `seed`. Held-out episodes are looked at when it is done.

    start: checkpoint to take the policy from. memory_file: encoder and memory that a run of the same data and seed
    kept are taken from it, or trained and kept there. save_to: file that the training is saved to as it goes, and when
    it is asked to stop (Ctrl-C, SIGTERM); with `resume` it goes on from there, if the file is there. group: processes
    that all call this alike, each with its share of every batch. begins: called once before anything is trained, where
    what was kept is of this run. Raises ValueError where the file was written by another run, Stopped,
    FloatingPointError where a loss is no number, and MemoryError, all in words for people.
    """
    report = report if report is not None and group.writes else Reporter()
    keeper = Keeper(seed, recipe, save_to, group, about=_about(design, data, start))
    agent = new_agent(design, data, seed, start).place(hardware, group)
    first, joint = (Feed(hardware, group, StageTimes(hardware.wait)) for _ in range(2))
    trainer = Trainer(agent, data.training, data.validation, recipe, seed, joint, keeper)
    kept = keeper.read() if resume else None
    if begins is not None:
        begins()
    begun, memory = _Now(), None
    with keeper.listening() if save_to is not None else nullcontext():
        if kept is not None and kept.phase == JOINT:
            trainer.restore(kept)
            report.resumed(JOINT, trainer.step, recipe.steps)
        elif list(agent.memory.parameters()) or (memory_file is not None and memory_file.exists()):
            memory = _learn_or_take_memory(agent, data, recipe, memory_file, report, first, keeper, kept)
            trainer.save()
        between = _Now()
        last = trainer.run(report.progress, REPORT_EVERY)
    agent.eval().place(CPU)
    end = _Now()
    times = {name: feed.times.figures() for name, feed in ((MEMORY, first), (JOINT, joint)) if feed.times.steps}
    spent = (*between.since(begun), *end.since(between))
    held_out = judge(agent, data.held_out) if group.writes else Judged(None, None)
    report.held_out(held_out)
    told = (memory, last, held_out, *spent, hardware, group.size, times, kept is not None)
    return Fitted(agent, design, data, recipe, seed, *told)


def _about(design: Design, data: Data, start: Checkpoint | None) -> dict[str, Any]:
    """What a training that goes on has to have in common with the one that was kept, beside recipe and seed."""
    window = None if design.window is None else design.window.to_dict()
    memory = {"name": design.memory, "options": design.options, "depth": design.depth, "window": window}
    sizes = {"width": design.width, "slots": design.slots, "clock": design.clock.to_dict()}
    seen = BackboneConfig.from_dict(design.policy_options.get("backbone", SMALL))
    options = {**design.policy_options, "backbone": seen.to_dict()}
    policy = {"family": design.policy, "options": options, "chunk": design.chunk}
    eyes = {**design.backbone.to_dict(), "pooling": design.pooling}
    given = {"eyes": eyes, "least_spread": design.spread, "start": start and start.model_id}
    # What is held out is looked at when all is done; where it is others, so are those that are trained on.
    looked_at = [] if data.validation is None else data.validation.data.episodes
    sides = {"training": data.training.data.episodes, "validation": looked_at}
    episodes = {side: digest(one.demo.name for one in found) for side, found in sides.items()}
    numbers = {side: digest(one.demo.digest for one in found) for side, found in sides.items()}
    learned = {"episodes": episodes, "numbers": numbers, "observation": design.observation.to_dict()}
    return plain({"memory": {**memory, **sizes}, "policy": policy, **given, **learned})


def claim_folder(folder: Path, resume: bool) -> None:
    """Make `folder` a training's, before anything is computed. Raises ValueError where something else lies there."""
    if not (resume and (folder / KEPT).exists()):
        outputs.claim(folder, "trace-memory train")


def check_start(config: RunConfig) -> None:
    """Look whether the policy can be trained, and opened to start from, before bags are decoded or memories tried.

    Raises UnknownFamily, CheckpointError, and ValueError for a policy of another family.
    """
    families.family(config.policy.family).check_trained()
    start = start_of(config)
    if start is not None:
        build.check_family(start, config.policy.family)


def start_of(config: RunConfig) -> Checkpoint | None:
    """The checkpoint that the policy is to start from, if there is one. Raises CheckpointError."""
    return load(config.policy.start) if config.policy.start else None


def fit_shown(
    config: RunConfig,
    design: Design,
    recipe: Recipe,
    data: Data,
    folder: Path,
    resume: bool,
    hardware: Hardware = CPU,
    group: Group = ALONE,
    memory_file: Path | None = None,
) -> Fitted:
    """Train what `config` asks for in the terminal's sight; it is kept and logged in `folder` as it goes.

    `config` is written there too, unless what is to be resumed is of another run.
    """
    how: dict[str, Any] = dict(start=start_of(config), memory_file=memory_file, save_to=folder / KEPT, resume=resume)
    how |= dict(hardware=hardware, group=group)
    if not group.writes:
        return fit(design, data, recipe, config.seed, **how)
    # Lines of a run of which nothing was kept are not those of the one that begins now.
    with TrainingReport(recipe) as shown, RunLog(folder, resume and (folder / KEPT).exists()) as log:
        how |= dict(report=Reporters(shown, log), begins=lambda: config.write(folder))
        return fit(design, data, recipe, config.seed, **how)


def _learn_or_take_memory(
    agent: Agent,
    data: Data,
    recipe: Recipe,
    file: Path | None,
    report: Reporter,
    feed: Feed,
    keeper: Keeper,
    kept: Kept | None,
) -> Progress | None:
    """Train encoder and memory, or take them from `file`; the end of the training, None where there was none."""
    if file is not None and file.exists():
        found = load_file(file)
        for name, part in _remembering(agent).items():
            part.load_state_dict({k.removeprefix(f"{name}."): v for k, v in found.items() if k.startswith(f"{name}.")})
        return None
    log: list[Progress] = []

    def noted(line: Progress) -> None:
        log.append(line)
        report.progress(line)

    if kept is not None:
        report.resumed(MEMORY, int(kept.place["total"]), None)
    learn_memory(agent, data.training, data.validation, recipe, keeper.seed, noted, feed=feed, keeper=keeper, kept=kept)
    if file is not None and keeper.group.writes:
        keep_memory(agent, file)
    return log[-1] if log else None


def keep_memory(agent: Agent, file: Path) -> None:
    """Keep encoder and memory where `fit` takes them from."""
    parts = _remembering(agent).items()
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic.replacing(file) as partial:
        save_file({f"{n}.{k}": v.cpu() for n, part in parts for k, v in part.state_dict().items()}, partial)


def _remembering(agent: Agent) -> dict[str, torch.nn.Module]:
    """What the first phase trains and keeps, by name."""
    places = agent.policy.places if agent.encoder.config.shared else None
    kept: dict[str, torch.nn.Module] = {"encoder": agent.encoder, "memory": agent.memory}
    return kept if places is None else {**kept, "places": places}


def plain_accuracy(accuracy: Accuracy | None) -> dict[str, Any] | None:
    """As a summary holds it."""
    return None if accuracy is None else accuracy.to_dict()


class _Now:
    """Wall and CPU time now."""

    def __init__(self) -> None:
        self.wall_s, self.cpu_s = time.monotonic(), time.process_time()

    def since(self, earlier: _Now) -> tuple[float, float]:
        """Wall and CPU seconds between."""
        return self.wall_s - earlier.wall_s, self.cpu_s - earlier.cpu_s
