"""What `trace-memory evaluate TASK CHECKPOINT` does: held-out closed-loop episodes, in one process."""

from __future__ import annotations

import argparse
from pathlib import Path

from trace_memory_ros.arm.closed_loop import EpisodeOutcome, figures_of, held_out_scenarios, run_episodes
from trace_memory_ros.files import outputs
from trace_memory_ros.measure.summary import write_summary


def evaluate_task(args: argparse.Namespace, task: str, checkpoint: Path) -> int:
    """Run the episodes one after the other, print each, and write the summary; returns 0."""
    if args.episodes < 1:
        raise ValueError(f"--episodes is {args.episodes}: give at least 1")
    scenarios = held_out_scenarios(task, args.episodes, args.pause_seconds)
    done = 0

    def report(outcome: EpisodeOutcome) -> None:
        nonlocal done
        done += 1
        verdict = "right branch" if outcome.success else f"cue {outcome.cue}, branch {outcome.branch}"
        print(f"episode {done} of {args.episodes}, seed {outcome.seed}: {verdict}", flush=True)

    out = outputs.claim(
        args.out or Path("out") / f"evaluate-{task}-{checkpoint.resolve().name}", "trace-memory evaluate"
    )
    outcomes = run_episodes(checkpoint, task, scenarios, report)
    figures = {"task": task, "pause_s": args.pause_seconds, **figures_of(outcomes)}
    command = f"trace-memory evaluate {task} {checkpoint.name} --episodes {args.episodes}"
    if args.pause_seconds:
        command += f" --pause-seconds {args.pause_seconds:g}"
    path = write_summary(out, command, figures)
    low, high = figures["ci95"]
    print(f"branch success {figures['branch_success']:.2f} (95 % CI {low:.2f}-{high:.2f}), written to {path}")
    return 0
