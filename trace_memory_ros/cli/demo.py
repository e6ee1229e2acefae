"""`trace-memory demo`: closed-loop episodes over ROS 2 with and without memory, and the proof of what they show."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.arm.demo.run import DemoOptions


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("demo", help="run the arm with and without memory over ROS 2, and show what it did")
    parser.add_argument("--episodes", type=int, default=4, help="episodes per task and memory, even (default: 4)")
    parser.add_argument("--task", default="origin,colour", help="tasks, comma-separated (default: origin,colour)")
    parser.add_argument(
        "--memory",
        help="memories, comma-separated (default: trace, gru, first_frame, none: those with weights for the tasks)",
    )
    parser.add_argument("--policy", default="act", help="policy family: act or diffusion (default: act)")
    parser.add_argument("--pause-seconds", type=float, default=60.0, help="pause between cue and branch (default: 60)")
    parser.add_argument("--pause-episodes", type=int, help="episodes with the pause per task and memory (default: few)")
    parser.add_argument(
        "--realtime-seconds", type=float, default=40.0, help="about how long to run in real time, 0 for not at all"
    )
    parser.add_argument("--jobs", type=int, default=0, help="tasks and memories run at once (default: by the cores)")
    parser.add_argument("--weights", type=Path, help="folder of TASK_MEMORY checkpoints (default: those shipped)")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder of the results (default: out/demo)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the demo, print and write its results; returns 1 only when something broke."""
    # SIGTERM ends the demo as Ctrl-C does: the nodes are stopped first.
    # A background job of a script starts with SIGINT ignored; whoever sends it still means the demo to end.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))

    from rich.console import Console

    from trace_memory_ros.arm.demo.acceptance import criteria
    from trace_memory_ros.arm.demo.console import Display, print_results
    from trace_memory_ros.arm.demo.plan import usual_memories
    from trace_memory_ros.arm.demo.report import write_report
    from trace_memory_ros.arm.demo.run import DemoFailed, run_demo
    from trace_memory_ros.files import outputs
    from trace_memory_ros.measure.summary import write_summary

    args.memory = args.memory or ",".join(usual_memories(_names(args.task), args.policy, args.weights))
    outputs.claim(args.out, "trace-memory demo")
    console = Console()
    try:
        with Display(console) as display:
            result = run_demo(_options(args), display)
    except DemoFailed as error:
        print(f"trace-memory demo: {error}", file=sys.stderr)
        return 1
    lines = criteria(result)
    figures = {**result.figures(), "acceptance": [line.figures() for line in lines]}
    summary = write_summary(args.out, command(args), figures)
    page = write_report(args.out, command(args), result)
    print_results(console, result, lines)
    for what, path in (("figures", summary), ("page", page), ("bag", result.bag), ("logs", args.out / "logs")):
        if path:
            console.print(f"{what:>8}: {path}", highlight=False, soft_wrap=True)
    return 0


def _options(args: argparse.Namespace) -> DemoOptions:
    from trace_memory_ros.arm.demo.run import DemoOptions

    return DemoOptions(
        tasks=_names(args.task),
        memories=_names(args.memory),
        episodes=args.episodes,
        pause_s=args.pause_seconds,
        pause_episodes=args.pause_episodes,
        realtime_s=args.realtime_seconds,
        jobs=args.jobs,
        out=args.out,
        weights=args.weights,
        policy=args.policy,
    )


def command(args: argparse.Namespace) -> str:
    """The command that gives these results again; nothing that names this machine's folders."""
    parts = [f"--episodes {args.episodes}", f"--task {args.task}", f"--memory {args.memory}"]
    if args.policy != "act":
        parts.append(f"--policy {args.policy}")
    if args.pause_episodes is not None:
        parts.append(f"--pause-episodes {args.pause_episodes}")
    parts += [f"--pause-seconds {args.pause_seconds:g}", f"--realtime-seconds {args.realtime_seconds:g}"]
    return f"trace-memory demo {' '.join(parts)}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
