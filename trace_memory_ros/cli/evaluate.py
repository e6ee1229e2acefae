"""`trace-memory evaluate`: a checkpoint on recorded bags, or driving held-out episodes of a simulated task."""

from __future__ import annotations

import argparse
from pathlib import Path

from trace_memory_ros.cli.arm_tasks import LEARNED as TASKS


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "evaluate",
        help="tell from bags whether a policy uses its memory, or run it through held-out simulated episodes",
        description="evaluate BAGS... --checkpoint CHECKPOINT: do decisions come from earlier evidence? "
        "evaluate TASK CHECKPOINT: closed-loop episodes of a simulated task.",
    )
    parser.add_argument("source", nargs="+", metavar="BAGS|TASK", help="bags, folders of bags, or a task's name")
    parser.add_argument("--checkpoint", help="of bags: checkpoint folder, or the name of a shipped one")
    parser.add_argument(
        "--out", type=Path, help="folder of the results (default: out/evaluate-NAME, of a task out/evaluate-TASK-NAME)"
    )
    bags = parser.add_argument_group("bags")
    bags.add_argument(
        "--config",
        type=Path,
        help="what is what in the bags (default: observation.yaml beside them, or as in those trained on)",
    )
    bags.add_argument("--workers", type=int, help="processes (default: 1)")
    bags.add_argument("--ray", metavar="ADDRESS", help="evaluate on a Ray cluster instead of here")
    bags.add_argument("--cache", type=Path, default=Path("out/bag-cache"), help="decoded bags (out/bag-cache)")
    bags.add_argument("--seed", type=int, default=0, help="of the history transforms (default: 0)")
    bags.add_argument("--window", type=int, default=3, help="writes in a moment that is left out (default: 3)")
    bags.add_argument(
        "--present-seconds", type=float, default=2.0, help="what came longer before a decision is earlier (default: 2)"
    )
    task = parser.add_argument_group("simulated tasks")
    task.add_argument("--episodes", type=int, default=20, help="episodes, cues balanced (default: 20)")
    task.add_argument("--pause-seconds", type=float, default=0.0, help="red-lamp pause before the branch, simulated")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate as told by the command line; returns 0, or 1 where no bag could be evaluated."""
    if args.checkpoint is None:
        from trace_memory_ros.arm.evaluation import evaluate_task

        return evaluate_task(args, *_task_and_checkpoint(args.source))
    from trace_memory_ros.cli.evaluate_bags import evaluate_from

    return evaluate_from(args)


def _task_and_checkpoint(source: list[str]) -> tuple[str, Path]:
    """Of the form without --checkpoint. Raises ValueError saying what both forms are."""
    if len(source) != 2 or source[0] not in TASKS:
        raise ValueError(
            f"{' '.join(source)!r} is neither `TASK CHECKPOINT`, with a task of {', '.join(TASKS)}, nor "
            "`BAGS... --checkpoint CHECKPOINT`: give one of them"
        )
    return source[0], Path(source[1])
