"""`trace-memory`: one front for every command; each command is a file of this folder."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from trace_memory_ros import __version__

COMMANDS = ("train", "demonstrate", "evaluate", "compare", "replay", "bags", "demo", "bench")


def parser() -> argparse.ArgumentParser:
    """Argument parser with a subcommand per module in `COMMANDS`, each adding itself by `add_parser`.

    `add_parser(subparsers)` sets the default `run`, a function from the parsed arguments to an exit status
    (None counts as 0). The modules import what is heavy inside `run`, so that `--help` answers at once.
    """
    front = argparse.ArgumentParser(prog="trace-memory", description="Causal memory for robot policies over ROS 2.")
    front.add_argument("--version", action="version", version=f"trace-memory {__version__}")
    subparsers = front.add_subparsers(dest="subcommand", metavar="command", required=True)
    for name in COMMANDS:
        import_module(f"trace_memory_ros.cli.{name}").add_parser(subparsers)
    return front


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status: 0 done, 1 refused with a reason, 130 interrupted."""
    parsed = parser().parse_args(arguments)
    try:
        return int(parsed.run(parsed) or 0)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError) as error:
        print(f"trace-memory {parsed.subcommand}: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
