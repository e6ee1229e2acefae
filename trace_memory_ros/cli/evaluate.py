"""`trace-memory evaluate TASK CHECKPOINT`: held-out closed-loop episodes of a checkpoint, in one process."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.evaluation.closed_loop import EpisodeOutcome


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("evaluate", help="run a checkpoint through held-out episodes, without ROS")
    parser.add_argument("task", choices=("origin", "colour"), help="task to run")
    parser.add_argument("checkpoint", type=Path, help="checkpoint folder")
    parser.add_argument("--episodes", type=int, default=20, help="episodes, cues balanced (default: 20)")
    parser.add_argument("--pause-seconds", type=float, default=0.0, help="red-lamp pause before the branch, simulated")
    parser.add_argument("--out", type=Path, help="folder of summary.json (default: out/evaluate-CHECKPOINT)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Run the episodes one after the other, print each, and write the summary."""
    from trace_memory_ros.evaluation.closed_loop import figures_of, held_out_scenarios, run_episodes
    from trace_memory_ros.evaluation.summary import write_summary

    if args.episodes < 1:
        raise ValueError(f"--episodes is {args.episodes}: give at least 1")
    scenarios = held_out_scenarios(args.task, args.episodes, args.pause_seconds)
    done = 0

    def report(outcome: EpisodeOutcome) -> None:
        nonlocal done
        done += 1
        verdict = "right branch" if outcome.success else f"cue {outcome.cue}, branch {outcome.branch}"
        print(f"episode {done} of {args.episodes}, seed {outcome.seed}: {verdict}", flush=True)

    outcomes = run_episodes(args.checkpoint, args.task, scenarios, report)
    figures = {"task": args.task, "pause_s": args.pause_seconds, **figures_of(outcomes)}
    command = f"trace-memory evaluate {args.task} {args.checkpoint.name} --episodes {args.episodes}"
    if args.pause_seconds:
        command += f" --pause-seconds {args.pause_seconds:g}"
    path = write_summary(args.out or Path("out") / f"evaluate-{args.checkpoint.resolve().name}", command, figures)
    low, high = figures["ci95"]
    print(f"branch success {figures['branch_success']:.2f} (95 % CI {low:.2f}-{high:.2f}), written to {path}")
    return 0
