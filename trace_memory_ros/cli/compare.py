"""`trace-memory compare A B`: two evaluations of bags side by side, episode by episode where both have them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.evidence.compare import Comparison, Difference, Side


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="compare two evaluations of bags, figure by figure",
        description="Two results of `trace-memory evaluate BAGS --checkpoint C`, of one task: every figure of both, "
        "and its difference over the episodes that both evaluated.",
    )
    parser.add_argument("first", type=Path, help="folder of an evaluation, or its evaluation.json")
    parser.add_argument("second", type=Path, help="the other one")
    parser.add_argument("--out", type=Path, help="folder of summary.json (default: out/compare-FIRST-SECOND)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the table and write the summary; returns 0."""
    from trace_memory_ros.evidence.compare import compare
    from trace_memory_ros.evidence.evaluation_file import read_evaluation
    from trace_memory_ros.files import outputs
    from trace_memory_ros.measure.summary import write_summary

    names = [_name(path) for path in (args.first, args.second)]
    comparison = compare(read_evaluation(args.first), read_evaluation(args.second))
    out = outputs.claim(args.out or Path("out") / f"compare-{names[0]}-{names[1]}", "trace-memory compare")
    show(comparison, names)
    path = write_summary(out, f"trace-memory compare {names[0]} {names[1]}", comparison.figures())
    print(f"written to {path}")
    return 0


def _name(path: Path) -> str:
    resolved = path.resolve()
    return resolved.name if path.is_dir() or resolved.suffix != ".json" else resolved.parent.name


def show(comparison: Comparison, names: list[str]) -> None:
    """Both verdicts, then a row a figure; differences whose interval leaves out 0 are set off."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    sides = zip(names, (comparison.first, comparison.second), comparison.verdicts, comparison.episodes, strict=True)
    for name, model, verdict, episodes in sides:
        what = f"{name}: {model.mechanism} {model.model_id[:12]}, {episodes} episodes of {model.task}"
        console.print(what, style="bold", highlight=False, markup=False, soft_wrap=True)
        for sentence in verdict.sentences:
            console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    table = Table("", *names, "second - first, 95 %", box=None, title=f"{len(comparison.shared)} episodes in both")
    table.columns[0].no_wrap = True
    part = ""
    for row in comparison.rows:
        *parts, name = row.name.split(".")
        if parts and part != (part := ".".join(parts)):
            table.add_row(f"[bold]{escape(part.replace('_', ' '))}[/]")
        cells = (_cell(row.first, row.is_share), _cell(row.second, row.is_share), _difference(row.difference))
        table.add_row(escape("  " * bool(parts) + name.replace("_", " ")), *cells)
    console.print(table)
    if not comparison.shared:
        console.print("no episode is in both, recorded alike: no difference can be paired", style="yellow")


def _cell(side: Side | None, is_share: bool) -> str:
    """A mean; of a share of decisions with its interval and the number of episodes as well."""
    if side is None:
        return "-"
    counted = f" [dim]{side.ci95.low:.2f} to {side.ci95.high:.2f} of {side.episodes}[/]" if is_share else ""
    return f"{side.mean:.4g}{counted}"


def _difference(difference: Difference | None) -> str:
    if difference is None:
        return "-"
    low, high = difference.ci95
    text = f"{difference.mean:+.3g} [dim]{low:+.3g} to {high:+.3g}[/]"
    return f"[bold]{text}[/]" if difference.sure else text
