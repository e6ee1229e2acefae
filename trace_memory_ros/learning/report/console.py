"""What a training shows in the terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.report.progress import JOINT, MEMORY, Judged, Reporter
from trace_memory_ros.learning.report.progress import Progress as Step

console = Console()
PHASES = {MEMORY: "memory first (steps at most)", JOINT: "all together (steps)"}


def bar() -> Progress:
    """A progress bar with counts, the time so far and the time left."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)


def say(line: str) -> None:
    """Print a line as it is."""
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def line_of(step: Step) -> str:
    """One line of the log; what was not measured is left out."""
    attempt = f" (attempt {step.attempt})" if step.attempt > 1 else ""
    delay = f"  delay x{step.delay:g}" if step.delay > 1 else ""
    parts = [f"{step.phase}{attempt} {step.step:5d}  clock x{step.clock_factor:g}{delay}"]
    accuracies = {"train": step.train_branch_accuracy, "validation": step.validation_branch_accuracy}
    known = [f"{name} {value}" for name, value in accuracies.items() if value is not None]
    if known:
        parts.append(f"branch accuracy: {', '.join(known)}")
    if step.validation_chunk_error is not None:
        parts.append(f"validation chunk error {step.validation_chunk_error:.4f}")
    return "  ".join([*parts, *(f"{name} {value:.4f}" for name, value in step.losses.items())])


class TrainingReport(Reporter):
    """Prints the lines of a training under a bar for each phase. A context manager.

    The memory's phase ends when the memory has learned: its bar counts to the steps that an attempt has at most.
    """

    def __init__(self, recipe: Recipe) -> None:
        first = recipe.memory_first
        self._bar = bar()
        steps = {MEMORY: first.stages * first.stage_steps, JOINT: recipe.steps}
        self._tasks = {
            phase: self._bar.add_task(PHASES[phase], total=total, start=False) for phase, total in steps.items()
        }

    def __enter__(self) -> TrainingReport:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def progress(self, line: Step) -> None:
        """Move the phase's bar and print the line."""
        if line.phase == JOINT:
            self._bar.update(self._tasks[MEMORY], visible=False)
        self._moved(line.phase, line.step)
        console.print(line_of(line), highlight=False)

    def held_out(self, found: Judged) -> None:
        """Print it."""
        for what, value in (("branch accuracy", found.accuracy), ("chunk error", found.chunk_error)):
            if value is not None:
                text = f"{value:.4f}" if isinstance(value, float) else str(value)
                console.print(f"held-out {what}, never looked at before: {text}", highlight=False)

    def resumed(self, phase: str, step: int, steps: int | None) -> None:
        """Say so."""
        self._moved(phase, step)
        console.print(f"resumed {phase} phase at step {step}" + (f" of {steps}" if steps else ""), highlight=False)

    def _moved(self, phase: str, step: int) -> None:
        task = self._tasks[phase]
        if not self._bar.tasks[task].started:
            self._bar.start_task(task)
        self._bar.update(task, completed=step)


def command() -> str:
    """The command line that is running."""
    return " ".join(["trace-memory", *sys.argv[1:]])
