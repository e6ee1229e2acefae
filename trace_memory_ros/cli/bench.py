"""`trace-memory bench NAME`: run one study of a checkout, print its figures, write its summary."""

import argparse
import ast
import sys
from importlib import import_module
from pathlib import Path

import trace_memory_ros

ROOT = Path(trace_memory_ros.__file__).resolve().parents[1]
"""Of a checkout; studies are not installed."""
WHERE = (
    "studies are not installed with the package: get a checkout of trace_memory_ros and run the command there "
    "(`. scripts/env.sh` first)"
)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `bench`; its NAMEs are the folders of `studies/` with a `study.py`."""
    lines = [f"  {name:<16} {description}" for name, description in studies(ROOT).items()]
    parser = subparsers.add_parser(
        "bench",
        help="measure beside peers, limits and the papers' figures",
        description="Studies:\n" + "\n".join(lines or [f"  none here: {WHERE}"]),
        epilog="`trace-memory bench NAME --help` lists a study's own options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", help="study to run")
    parser.add_argument("options", nargs=argparse.REMAINDER, help="--quick, --out, and the study's own options")
    parser.set_defaults(run=run)


def studies(root: Path) -> dict[str, str]:
    """First docstring line of each study of the checkout at `root` by name, read without importing it."""
    found = {}
    for file in sorted(root.glob("studies/*/study.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        found[file.parent.name.replace("_", "-")] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return found


def run(parsed: argparse.Namespace) -> int:
    """Run the chosen study; returns 0. Raises ValueError where there is no such study, or no checkout."""
    known = studies(ROOT)
    if not known:
        raise ValueError(f"{parsed.name}: {WHERE}")
    if parsed.name not in known:
        raise ValueError(f"{parsed.name!r} is no study of {ROOT}: choose from {', '.join(known)}")
    if str(ROOT) not in sys.path:
        # A package that was built with links into its checkout is found without it.
        sys.path.insert(0, str(ROOT))
    return int(import_module("studies.engine").main(parsed.name, parsed.options))
