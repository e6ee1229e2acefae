"""`trace-memory train TASK --memory NAME`: demonstrations, curriculum, checkpoint, closed-loop check."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("train", help="train a memory and a policy on a delayed-evidence task")
    parser.add_argument("task", choices=("origin", "colour"), help="task to learn")
    parser.add_argument("--memory", default="trace", help="memory mechanism, by registry name (default: trace)")
    parser.add_argument("--seed", type=int, default=0, help="seed of initialisation, sampling and augmentation")
    parser.add_argument("--depth", type=int, default=3, help="signature depth, 1 to 4 (default: 3)")
    parser.add_argument(
        "--window", type=int, metavar="N", help="address: signature of the last N standard deviations of path only"
    )
    parser.add_argument("--pairs", type=int, help="counterfactual training pairs (default: the recipe's)")
    parser.add_argument("--steps", type=int, help="steps of the joint phase (default: the recipe's)")
    parser.add_argument(
        "--policy-from", type=Path, metavar="CHECKPOINT", help="start from this policy, its adapter excepted"
    )
    parser.add_argument("--out", type=Path, help="checkpoint folder (default: out/train/TASK_MEMORY_SEED)")
    parser.add_argument("--demos", type=Path, default=Path("out/demonstrations"), help="demonstration cache")
    parser.add_argument("--workers", type=int, default=1, help="processes that render demonstrations")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--closed-loop", type=int, default=10, help="closed-loop episodes after training, 0 for none")
    parser.add_argument("--resume", action="store_true", help="continue from OUT/training.safetensors")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Train as told by the command line."""
    import torch

    from trace_memory_ros.cli.train_run import train

    torch.set_num_threads(args.threads)
    train(args)
    return 0
