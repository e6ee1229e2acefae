"""What a training shows in the terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from trace_memory_ros.learning.progress import JOINT, Reporter
from trace_memory_ros.learning.progress import Progress as Step

console = Console()


def bar() -> Progress:
    """A progress bar with counts and times."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)


def line_of(step: Step, found: bool = False) -> str:
    """One line of the log; what was not measured is left out. found: decisions were found, not annotated."""
    attempt = f" (attempt {step.attempt})" if step.attempt > 1 else ""
    parts = [f"{step.phase}{attempt} {step.step:5d}  clock x{step.clock_factor:g}"]
    accuracies = {"train": step.train_branch_accuracy, "held out": step.held_out_branch_accuracy}
    known = [f"{name} {value:.2f}" for name, value in accuracies.items() if value is not None]
    if known:
        parts.append(f"branch accuracy{' (found)' if found else ''}: {', '.join(known)}")
    if step.held_out_chunk_error is not None:
        parts.append(f"held-out chunk error {step.held_out_chunk_error:.4f}")
    return "  ".join([*parts, *(f"{name} {value:.4f}" for name, value in step.losses.items())])


class TrainingReport(Reporter):
    """Prints the lines of a training under a bar of its joint phase's steps. A context manager.

    found: decisions were found, not annotated.
    """

    def __init__(self, steps: int, found: bool = False) -> None:
        self._found = found
        self._bar = bar()
        self._task = self._bar.add_task("training (steps)", total=steps)

    def __enter__(self) -> TrainingReport:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def progress(self, line: Step) -> None:
        """Print the line; one of the joint phase moves the bar."""
        if line.phase == JOINT:
            self._bar.update(self._task, completed=line.step)
        console.print(line_of(line, self._found), highlight=False)

    def resumed(self, step: int, steps: int) -> None:
        """Say so."""
        self._bar.update(self._task, completed=step)
        console.print(f"resumed at step {step} of {steps}", highlight=False)


def command() -> str:
    """The command line that is running."""
    return " ".join(["trace-memory", *sys.argv[1:]])
