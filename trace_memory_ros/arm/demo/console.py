"""What the demo shows in the terminal: progress while it runs, then a table and the judged lines."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from types import TracebackType

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from trace_memory_ros.arm.demo.acceptance import Criterion
from trace_memory_ros.arm.demo.plan import CellPlan
from trace_memory_ros.arm.demo.results import Cell, DemoResult, EpisodeResult, Mode, cue_name, went

STYLES = {"met": "green", "missed": "bold red", "not measured": "dim"}


class Display:
    """Progress bars on a terminal, a line per episode elsewhere; implements `DemoProgress`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._rows: dict[str, TaskID] = {}
        self._won: dict[str, list[bool]] = {}
        columns = (TextColumn("{task.description:<26}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        last = TextColumn("{task.fields[last]}")
        self._bars = Progress(*columns, last, console=console) if console.is_terminal else None

    def __enter__(self) -> Display:
        if self._bars:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def begin(self, cells: list[CellPlan]) -> None:
        """List the cells."""
        total = sum(len(cell.episodes) for cell in cells)
        self._console.print(f"{total} episodes in {len(cells)} sets of five ROS 2 processes", highlight=False)
        for cell in cells:
            self._won[cell.name] = []
            if self._bars:
                self._rows[cell.name] = self._bars.add_task(cell.name, total=len(cell.episodes), start=False, last="")

    def episode(self, cell: CellPlan, result: EpisodeResult) -> None:
        """Show one episode."""
        with self._lock:
            won = self._won[cell.name]
            won.append(result.success)
            if self._bars:
                row = self._rows[cell.name]
                if len(won) == 1:
                    self._bars.start_task(row)
                self._bars.update(row, advance=1, last=f"{sum(won)} right, last {result.wall_s:.0f} s")
            else:
                number = f"{len(won)}/{len(cell.episodes)}"
                self._console.print(f"{cell.name} {number}: {episode_line(result)}", highlight=False, soft_wrap=True)


def episode_line(result: EpisodeResult) -> str:
    """One episode in a line."""
    pause = f", pause {result.pause_s:g} s" if result.pause_s else ""
    stale = f", {result.ticks_stale} of them without fresh inputs" if result.ticks_stale else ""
    verdict = "right" if result.success else "WRONG"
    return (
        f"seed {result.seed}{pause}, cue {cue_name(result.task, result.cue)}, "
        f"went {went(result.task, result.branch)}: {verdict}; "
        f"{result.duration_s:.1f} s simulated in {result.wall_s:.1f} s, "
        f"{result.ticks_published} of {result.ticks_expected} ticks{stale}, {result.write_count} writes"
    )


def print_results(console: Console, result: DemoResult, lines: Iterable[Criterion]) -> None:
    """The table of cells, then every requirement with its numbers."""
    table = Table("task", "memory", "success", "95 % CI", "paused", "95 % CI", "progress", box=SIMPLE_HEAD)
    for task in result.tasks:
        for memory in result.memories:
            cell, paused = result.cell(task, memory), result.cell(task, memory, paused=True)
            progress = f"{cell.figures()['progress']:.2f}" if cell else "-"
            table.add_row(task, memory, *_share(cell), *_share(paused), progress)
    console.print(table)
    real = result.in_mode(Mode.REALTIME)
    if real:
        won = sum(episode.success for episode in real)
        console.print(f"real time: {won} of {len(real)} episodes took the correct branch", highlight=False)
    for line in lines:
        word = f"[{STYLES[line.word]}]{line.word:>12}[/]"
        text = escape(f"{line.name}, {line.requirement}: {line.evidence}")
        console.print(f"{word}  {text}", highlight=False, soft_wrap=True)


def _share(cell: Cell | None) -> tuple[str, str]:
    if cell is None:
        return "-", "-"
    low, high = cell.ci95
    return f"{cell.branch_success:.2f} ({cell.successes}/{cell.trials})", f"{low:.2f}-{high:.2f}"
