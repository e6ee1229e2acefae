"""`trace-memory`: one front for every command; each command is a file of this folder."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from trace_memory_ros import __version__

EXTRAS = {"mujoco": "sim", "diffusers": "diffusion", "huggingface_hub": "diffusion", "av": "video"}
"""Extra of this package that brings a module."""
ROS_MODULES = ("rclpy", "ament_index_python")
MESSAGES = "trace_memory_ros.msg"
ROS_ENDINGS = ("_msgs", "_srvs", "_interfaces")
COMMANDS = (
    "train",
    "sweep",
    "demonstrate",
    "evaluate",
    "compare",
    "replay",
    "bags",
    "doctor",
    "permissions",
    "demo",
    "bench",
)


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
    except KeyboardInterrupt as interrupted:
        print(str(interrupted) or "interrupted", file=sys.stderr)
        return 130
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        print(f"trace-memory {parsed.subcommand}: {error}", file=sys.stderr)
        return 1
    except ImportError as error:
        # Without a name it was raised by us, in words for people.
        said = str(error) if error.name is None else remedy(error.name)
        if not said:
            raise
        print(f"trace-memory {parsed.subcommand}: {said}", file=sys.stderr)
        return 1


def remedy(module: str) -> str:
    """What to do about a module that cannot be imported; empty for one of this package's own, which is a bug."""
    package = module.partition(".")[0]
    if package in EXTRAS:
        return f'needs {package}, which an extra brings: pip install "trace_memory_ros[{EXTRAS[package]}]"'
    if package in ROS_MODULES or package.endswith(ROS_ENDINGS) or module.startswith(MESSAGES):
        return f"needs {module}, which comes with ROS 2 and a colcon build of this package: source both"
    if package == "trace_memory_ros":
        return ""
    return f"needs {package}, which is not installed though this package depends on it: install this package again"


if __name__ == "__main__":
    sys.exit(main())
