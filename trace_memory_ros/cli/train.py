"""`trace-memory train TASK|BAGS --memory NAME`: demonstrations or bags, curriculum, checkpoint, check."""

from __future__ import annotations

import argparse
from pathlib import Path

TASKS = ("origin", "colour")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("train", help="train a memory and a policy from bags, or on a delayed-evidence task")
    parser.add_argument(
        "source", nargs="+", help=f"folders of bags (with --config), or a simulated task: {', '.join(TASKS)}"
    )
    parser.add_argument("--memory", default="trace", help="memory mechanism, by registry name (default: trace)")
    parser.add_argument("--policy", default="act", help="policy family: act or diffusion (default: act)")
    parser.add_argument("--seed", type=int, default=0, help="seed of initialisation, sampling and augmentation")
    parser.add_argument("--depth", type=int, help="signature depth, 1 to 4 (default: 3, from bags 2)")
    parser.add_argument(
        "--window", type=int, metavar="N", help="address: signature of the last N standard deviations of path only"
    )
    parser.add_argument("--steps", type=int, help="steps of the joint phase (default: the recipe's)")
    parser.add_argument(
        "--policy-from", type=Path, metavar="CHECKPOINT", help="start from this policy, its adapter excepted"
    )
    parser.add_argument("--out", type=Path, help="checkpoint folder (default: out/train/NAME_MEMORY_SEED)")
    parser.add_argument("--workers", type=int, default=1, help="processes that render demonstrations or decode bags")
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--resume", action="store_true", help="continue from OUT/training.safetensors")
    _add_task_options(parser.add_argument_group("simulated tasks"))
    _add_bag_options(parser.add_argument_group("bags"))
    parser.set_defaults(run=run)


def _add_task_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--pairs", type=int, help="counterfactual training pairs (default: the recipe's)")
    group.add_argument("--demos", type=Path, default=Path("out/demonstrations"), help="demonstration cache")
    group.add_argument("--closed-loop", type=int, default=10, help="closed-loop episodes after training, 0 for none")


def _add_bag_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--config", type=Path, help="what is what in the bags, as config/observation.yaml says it")
    group.add_argument("--episodes", type=int, metavar="N", help="train on N episodes at most (default: all)")
    group.add_argument("--held-out", type=float, default=1 / 6, metavar="SHARE", help="held-out share (default: 1/6)")
    group.add_argument("--split-seed", type=int, default=0, help="seed of the held-out split (default: 0)")
    group.add_argument("--clock", metavar="RULE", help="path:LENGTH or every:TICKS (default: 30 writes an episode)")
    group.add_argument("--chunk", type=int, default=20, help="actions per prediction, in ticks (default: 20)")
    group.add_argument(
        "--state-floor", type=float, help="least spread that a state channel is divided by, in its unit (default: 0.2)"
    )
    group.add_argument("--cache", type=Path, default=Path("out/bag-cache"), help="decoded episodes (out/bag-cache)")
    group.add_argument("--task", help="what the checkpoint calls its task (default: the first folder's name)")


def run(args: argparse.Namespace) -> int:
    """Train as told by the command line."""
    simulated = [name for name in args.source if name in TASKS and not Path(name).exists()]
    absent = [name for name in args.source if name not in simulated and not Path(name).exists()]
    if absent or (simulated and len(args.source) > 1):
        raise ValueError(f"{(absent or simulated)[0]!r}: give folders of bags, or one of the tasks {', '.join(TASKS)}")
    import torch

    torch.set_num_threads(args.threads)
    if simulated:
        from trace_memory_ros.arm.training import train

        args.task, args.depth = simulated[0], args.depth or 3
        train(args)
        return 0
    from trace_memory_ros.cli.train_bags import train_from

    train_from(args)
    return 0
