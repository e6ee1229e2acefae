"""`trace-memory sweep FILE`: trainings of several seeds, memories and recipes, and one table of them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.learning.sweep import SweepConfig
    from trace_memory_ros.measure.fleet import Executor

NONE = "none"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("sweep", help="train several seeds, memories and recipes, and tabulate them")
    parser.add_argument("file", type=Path, help="YAML: source, memories, seeds, recipes, set, train")
    parser.add_argument("--out", type=Path, help="folder of the runs and of the table (default: out/sweep-NAME)")
    parser.add_argument("--workers", type=int, help="trainings at once, on this machine (default: 1)")
    parser.add_argument(
        "--ray", default=NONE, metavar="ADDRESS", help="a Ray cluster: local, auto or host:port (default: none)"
    )
    parser.add_argument("--gpus", type=float, default=0.0, help="of a Ray task, 0.5 for two trainings on one GPU")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Do the trainings that are not done; returns 1 where some failed."""
    from trace_memory_ros.files import atomic, outputs
    from trace_memory_ros.learning.report.console import console
    from trace_memory_ros.learning.sweep import SweepConfig, outdated, written
    from trace_memory_ros.measure.fleet import executor

    config = SweepConfig.load(args.file)
    execute = executor(args.workers, None if args.ray == NONE else args.ray, args.gpus)
    folder = outputs.claim(args.out or Path("out") / f"sweep-{args.file.stem}", "trace-memory sweep").resolve()
    atomic.write(folder / "sweep.yaml", written(config))
    failed = _train(config, folder / "runs", execute)
    other = outdated(config, folder / "runs")
    for name, why in other.items():
        console.print(f"{name}: {why}", highlight=False, markup=False, soft_wrap=True)
    failed |= other
    text = _tabulate(config, folder, failed, args.file.stem)
    console.print(text, highlight=False, markup=False, soft_wrap=True)
    console.print(f"summary.json, sweep.md and sweep.html in {folder}", highlight=False, soft_wrap=True)
    return 1 if failed else 0


def _train(config: SweepConfig, kept: Path, execute: Executor) -> dict[str, str]:
    """Do the runs that are not done; why some failed, by name."""
    from trace_memory_ros.learning.report.console import bar, console
    from trace_memory_ros.learning.sweep import Job, carry_out

    runs = config.runs()
    jobs = [Job(one, kept / one.name, Path.cwd()) for one in runs if one.figures(kept) is None]
    failed: dict[str, str] = {}
    with bar() as shown:
        row = shown.add_task("trainings", total=len(runs), completed=len(runs) - len(jobs))

        def report(done: tuple[Job, str]) -> None:
            job, why = done
            shown.advance(row)
            if why:
                failed[job.run.name] = why
            console.print(f"{job.run.name}: {f'FAILED, {why}' if why else 'done'}", highlight=False, markup=False)

        for lost in execute(carry_out, jobs, report):
            report(lost)
    return failed


def _tabulate(config: SweepConfig, folder: Path, failed: Mapping[str, str], title: str) -> str:
    """Write the table as data, page and text; returns the text."""
    from trace_memory_ros.files import atomic
    from trace_memory_ros.learning.report import page
    from trace_memory_ros.learning.report.console import command
    from trace_memory_ros.learning.sweep import TITLES, cells, markdown, table
    from trace_memory_ros.measure.page import render
    from trace_memory_ros.measure.summary import write_summary

    rows = table(config, folder / "runs", failed)
    told = {"titles": list(TITLES), "rows": [cells(found) for found in rows], "failed": list(failed.items())}
    html = render(Path(page.__file__).with_name("sweep.html"), title=f"Sweep {title}", **told)
    atomic.write(folder / "sweep.html", html)
    text = markdown(rows)
    atomic.write(folder / "sweep.md", text)
    write_summary(folder, command(), {"rows": rows})
    return text
