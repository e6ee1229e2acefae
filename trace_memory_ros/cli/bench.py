"""`trace-memory bench NAME`: run one study of a checkout, print its figures, write its summary."""

import argparse
import ast
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import trace_memory_ros

STUDIES = Path(trace_memory_ros.__file__).resolve().parents[1] / "studies"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `bench`; its NAMEs are the folders of `studies/` with a `study.py`: `run(out_dir, quick, ...) -> figures`."""
    available = bench_descriptions()
    lines = [f"  {name:<16} {description}" for name, description in available.items()]
    parser = subparsers.add_parser(
        "bench",
        help="measure beside peers, limits and the papers' figures",
        description="Benchmarks:\n" + "\n".join(lines),
        epilog="`trace-memory bench NAME --help` lists a benchmark's own options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=sorted(available), help="benchmark to run")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="--quick, --out, and the benchmark's own options")
    parser.set_defaults(run=run)


def bench_descriptions() -> dict[str, str]:
    """First docstring line of each benchmark by name, read without importing it."""
    found = {}
    for file in sorted(STUDIES.glob("*/study.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found[file.parent.name.replace("_", "-")] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def run(parsed: argparse.Namespace) -> int:
    """Run the chosen benchmark, print a table and write `summary.json`; returns 0."""
    from rich.console import Console
    from rich.table import Table

    from trace_memory_ros.measure.summary import write_summary

    bench = import_module(f"studies.{parsed.name.replace('-', '_')}.study")
    options = vars(_option_parser(parsed.name, bench).parse_args(parsed.options))
    out_dir = options.pop("out")
    figures = bench.run(out_dir, options.pop("quick"), **options)
    command = shlex.join(["trace-memory", "bench", parsed.name, *parsed.options])
    path = write_summary(out_dir, command, figures)
    table = Table("figure", "value", title=command)
    for name, value in flatten(figures):
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    console = Console()
    console.print(table)
    console.print(f"written to {path}", highlight=False)
    return 0


def _option_parser(name: str, bench: Any) -> argparse.ArgumentParser:
    """Options every benchmark has, and those that its `add_options(parser)` adds."""
    parser = argparse.ArgumentParser(prog=f"trace-memory bench {name}", description=bench.__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, for a first look")
    parser.add_argument("--out", type=Path, default=Path("out") / f"bench-{name}", help="folder of summary.json")
    if hasattr(bench, "add_options"):
        bench.add_options(parser)
    return parser


def flatten(figures: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name and value of every leaf of nested figures, in order."""
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
