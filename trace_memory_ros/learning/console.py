"""What a training shows in the terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from trace_memory_ros.learning.progress import Progress as Step

console = Console()


def bar() -> Progress:
    """A progress bar with counts and times."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)


def line(step: Step) -> str:
    """One line of the log; what was not measured is left out."""
    attempt = f" (attempt {step.attempt})" if step.attempt > 1 else ""
    parts = [f"{step.phase}{attempt} {step.step:5d}  clock x{step.clock_factor:g}"]
    accuracies = {"train": step.train_branch_accuracy, "held out": step.held_out_branch_accuracy}
    known = [f"{name} {value:.2f}" for name, value in accuracies.items() if value is not None]
    if known:
        parts.append(f"branch accuracy: {', '.join(known)}")
    if step.held_out_chunk_error is not None:
        parts.append(f"held-out chunk error {step.held_out_chunk_error:.4f}")
    return "  ".join([*parts, *(f"{name} {value:.4f}" for name, value in step.losses.items())])


def show(step: Step) -> None:
    """Print the line."""
    console.print(line(step), highlight=False)


def command() -> str:
    """The command line that is running."""
    return " ".join(["trace-memory", *sys.argv[1:]])
