"""Training: ticks a second, where a step's time goes, memory at 1,000 episodes, minutes to a memory that decides.

On a CPU all is done by one thread; with `--device cuda` by the GPU, encoder and policy in bf16 where it has it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import torch
from rich.table import Table

from studies import options
from studies.grid import Figures, Store, say
from studies.tables import table, with_interval
from studies.train.scan import ticks_per_s
from studies.train.thousand import Sizes
from trace_memory_ros.arm.recorder import arm_recording, record_bags, scenarios_of
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.training import Prepared, prepare, read_bags
from trace_memory_ros.learning.engine.hardware import Hardware
from trace_memory_ros.learning.engine.stage_times import STEP
from trace_memory_ros.learning.fit import fit, plain_accuracy
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import Progress, Reporter
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.registry import GATED

SCHEMA = 2
TASK, MEMORIES = "origin", ("gru", "trace")
LEARNED = 0.95
LONGER = 10
"""Times the steps on made-up episodes where there is a GPU, whose first steps are slow."""
RAM_GIB, TORCH_SHARE, CPU_MIN = 6.0, 0.9, 6.0
"""What must hold: memory at 1,000 episodes, least share of a step in torch, most CPU minutes to `LEARNED`."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Device, memories that learn the task, bags, their number, workers."""
    options.add_names(parser, "--memories", MEMORIES, f"memories that learn {TASK}")
    options.add_device(parser)
    parser.add_argument("--bags", type=Path, default=Path("out/bags"), help="where bags are recorded (out/bags)")
    options.add_counts(parser, scenes=(75, "scenes of which both cues are recorded"))
    options.add_workers(parser)


def run(
    out_dir: Path, quick: bool, memories: tuple[str, ...], device: str, bags: Path, scenes: int, workers: int
) -> Figures:
    """Measure each part that is not there yet."""
    hardware = Hardware.chosen(device)
    store = Store(out_dir / "parts")
    names = registry.names()[:2] if quick else (*registry.names(), f"trace{GATED}")
    sizes = Sizes(episodes=24, seconds=12, held_out=8, memory_steps=3, joint_steps=2) if quick else Sizes()
    if hardware.device.type != "cpu" and not quick:
        sizes = replace(sizes, memory_steps=LONGER * sizes.memory_steps, joint_steps=LONGER * sizes.joint_steps)
    settings = {"schema": SCHEMA, "quick": quick, "hardware": hardware.to_dict()}
    torch.set_num_threads(1)
    scan = {name: store.get(f"scan-{name}", settings, partial(ticks_per_s, name, hardware)) for name in names}
    say(f"ticks a second, forward and backward: {_rates(scan)}")
    measure = partial(in_a_process, sizes, out_dir / "made-up", device)
    thousand = store.get("thousand", {**settings, "sizes": asdict(sizes)}, measure)
    say(f"{sizes.episodes} episodes: at most {thousand['peak']['resident']:.2f} GiB")
    few = 4 if quick else scenes
    tasks = {}
    for memory in memories[:1] if quick else memories:
        learn = partial(learn_task, memory, bags, few, quick, workers, replace(hardware, loaders=1))
        tasks[memory] = store.get(f"task-{memory}", {**settings, "scenes": few}, learn)
        say(f"{TASK}, {memory}: {_task_words(tasks[memory])}")
    return {
        "hardware": hardware.to_dict(),
        "scan_ticks_per_s": scan,
        "thousand_episodes": thousand,
        "tasks": tasks,
        "holds": _holds(thousand, tasks),
    }


def in_a_process(sizes: Sizes, folder: Path, device: str) -> Figures:
    """What training on made-up episodes takes, in a process of its own, whose memory holds nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "studies.train.thousand", json.dumps(asdict(sizes)), str(folder), device]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"training on {sizes.episodes} made-up episodes failed: {done.stderr[-2000:]}")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


class Clocked(Reporter):
    """CPU and wall seconds at each line of a training."""

    def __init__(self) -> None:
        self._begun = self._now()
        self.lines: list[tuple[float, float, Progress]] = []

    def progress(self, line: Progress) -> None:
        """Note when it came."""
        cpu_s, wall_s = self._now()
        self.lines.append((cpu_s - self._begun[0], wall_s - self._begun[1], line))

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()


def learn_task(memory: str, bags: Path, scenes: int, quick: bool, workers: int, hardware: Hardware) -> Figures:
    """One task of the arm from its bags: minutes until validation decisions are right, and what is held out."""
    prepared = _prepared(memory, bags, scenes, quick, workers)
    clocked = Clocked()
    fitted = fit(prepared.design, prepared.data, prepared.recipe, 0, report=clocked, hardware=hardware)
    reached = [
        (cpu_s / 60.0, wall_s / 60.0)
        for cpu_s, wall_s, line in clocked.lines
        if line.clock_factor == 1.0
        and line.validation_branch_accuracy is not None
        and line.validation_branch_accuracy.value >= LEARNED
    ]
    figures = fitted.figures()
    cpu_min, wall_min = reached[0] if reached else (None, None)
    return {
        "task": TASK,
        "episodes": {name: figures[f"{name}_episodes"] for name in ("training", "validation", "held_out")},
        "cpu_min_to_learned": cpu_min,
        "wall_min_to_learned": wall_min,
        "cpu_min": (fitted.memory_cpu_s + fitted.joint_cpu_s) / 60.0,
        "wall_min": (fitted.memory_s + fitted.joint_s) / 60.0,
        "attempts": fitted.attempts,
        "held_out_branch_accuracy": plain_accuracy(fitted.held_out.accuracy),
        "stages": fitted.times,
    }


def _prepared(memory: str, bags: Path, scenes: int, quick: bool, workers: int) -> Prepared:
    folders = list(record_bags(scenarios_of(TASK, range(scenes)), bags / TASK, workers=workers))
    data, failed = read_bags(folders, arm_recording(), bags / "cache", workers)
    if failed:
        raise ValueError(f"{failed[0]}: delete the bag, it is recorded again")
    recipe = Recipe(steps=200)
    if quick:
        first = MemoryFirst((4.0, 1.0), stage_steps=4, check_steps=4, attempts=1)
        recipe = replace(recipe, steps=2, memory_first=first)
    return prepare(data, arm_recording(), BagOptions(memory=memory, depth=2), recipe)


def _holds(thousand: Figures, tasks: Figures) -> Figures:
    stages = [stage for found in (thousand, *tasks.values()) for stage in found["stages"].values()]
    holds = {
        "memory": thousand["peak"]["resident"] <= RAM_GIB,
        "in_torch": min(stage["in_torch"] for stage in stages) >= TORCH_SHARE,
    }
    for memory, task in tasks.items():
        accuracy, minutes = task["held_out_branch_accuracy"], task["cpu_min_to_learned"]
        holds[f"cpu_minutes, {memory}"] = minutes is not None and minutes <= CPU_MIN
        holds[f"held_out, {memory}"] = accuracy is not None and accuracy["value"] >= LEARNED
    return holds


def _rates(scan: Figures) -> str:
    return ", ".join(f"{name} {found['forward_and_backward']:,.0f}" for name, found in scan.items())


def _task_words(task: Figures) -> str:
    reached, accuracy = task["cpu_min_to_learned"], task["held_out_branch_accuracy"]
    when = "never" if reached is None else f"after {reached:.1f} CPU min"
    held = "not judged" if accuracy is None else with_interval(accuracy, "value")
    return f"{LEARNED:.0%} of validation decisions right {when} of {task['cpu_min']:.1f}; held out {held}"


def tables(figures: Figures) -> Iterator[Table | str]:
    """Speed by memory, where the time goes, memory, the task."""
    keys = ("forward", "forward_and_backward", "parameters")
    cells = ((name, *(f"{found[key]:,.0f}" for key in keys)) for name, found in figures["scan_ticks_per_s"].items())
    columns = ("memory", "forward", "forward and backward", "parameters")
    given = figures["hardware"]
    where = f"{given['device']}, {given['precision']}"
    yield table(f"ticks of memory a second, 16 episodes of 30 writes: {where}", columns, cells)
    thousand, tasks = figures["thousand_episodes"], figures["tasks"]
    named = {f"{task['task']}, {memory}": task for memory, task in tasks.items()}
    rows = [row for name, found in {"made-up": thousand, **named}.items() for row in _stages(name, found["stages"])]
    yield table("where a step's time goes", ("training", "ms", "ticks/s", *STEP, "in torch"), rows)
    sizes, peak = thousand["sizes"], thousand["peak"]
    yield (
        f"{sizes['episodes']} episodes of {sizes['seconds']} s, {thousand['pixels_gib']:.0f} GiB of pixels: at most "
        f"{peak['resident']:.2f} GiB resident, {peak['anonymous']:.2f} of it anonymous"
    )
    for name, task in named.items():
        yield f"{name}: {_task_words(task)}"
    yield ", ".join(f"{name}: {'holds' if held else 'DOES NOT HOLD'}" for name, held in figures["holds"].items())


def _stages(where: str, phases: Figures) -> Iterator[tuple[str, ...]]:
    for phase, found in phases.items():
        shares = (f"{found['share'][name]:.0%}" for name in STEP)
        speed = (f"{found['step_ms']:.0f}", f"{found['ticks_per_s']:,.0f}")
        yield f"{where}, {phase}", *speed, *shares, f"{found['in_torch']:.1%}"
