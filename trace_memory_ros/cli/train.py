"""`trace-memory train TASK|BAGS --memory NAME`: demonstrations or bags, curriculum, checkpoint, check."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trace_memory_ros.cli.arm_tasks import LEARNED as TASKS
from trace_memory_ros.cli.bags_lerobot import DATASET

FLAGS = {
    "task": "task",
    "seed": "seed",
    "memory": "memory.name",
    "depth": "address.depth",
    "window": "address.window.stretches",
    "policy": "policy.family",
    "eyes": "eyes.name",
    "chunk": "policy.chunk",
    "steps": "recipe.steps",
    "pairs": "recipe.pairs",
    "held_out": "bags.held_out",
    "validation": "bags.validation",
    "noise": "bags.noise",
    "split_seed": "bags.split_seed",
    "episodes": "bags.episodes",
}
"""Where a flag's value stands in a run's configuration."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "train", help="train a memory and a policy from bags or LeRobotDatasets, or on a delayed-evidence task"
    )
    sources = f"folders of bags (with --config), lerobot:FOLDER of a LeRobotDataset, or a task: {', '.join(TASKS)}"
    parser.add_argument("source", nargs="+", help=sources)
    parser.add_argument("--recipe", type=Path, metavar="FILE", help="configuration of the run, such as a run.yaml")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="one value of it, e.g. memory.slots=8; repeats"
    )
    parser.add_argument("--memory", help="memory mechanism, by registry name, or auto (default)")
    parser.add_argument("--policy", help="policy family: act, diffusion or lerobot (default: act)")
    parser.add_argument("--eyes", metavar="BACKBONE", help="what the memory sees with, e.g. efficientnet_lite0 (small)")
    parser.add_argument("--seed", type=int, help="seed of initialisation, sampling and augmentation (default: 0)")
    parser.add_argument("--depth", type=int, help="signature depth, 1 to 4 (default: 2)")
    parser.add_argument(
        "--window",
        type=int,
        metavar="N",
        help="address: signature of the last N standard deviations of path only, 0: of all (default)",
    )
    parser.add_argument("--clock", metavar="RULE", help="path:LENGTH or every:TICKS (bags: 30 writes an episode)")
    parser.add_argument("--chunk", type=int, help="actions per prediction, in ticks (default: two seconds)")
    parser.add_argument("--steps", type=int, help="steps of the joint phase (default: the recipe's)")
    parser.add_argument(
        "--policy-from", type=Path, metavar="CHECKPOINT", help="start from this policy, its adapter excepted"
    )
    parser.add_argument("--out", type=Path, help="checkpoint folder (default: out/train/NAME_MEMORY_SEED)")
    parser.add_argument("--workers", type=int, default=1, help="processes that render demonstrations or decode bags")
    parser.add_argument(
        "--features", type=Path, default=Path("out/features"), help="kept features of frozen eyes (out/features)"
    )
    parser.add_argument("--threads", type=int, default=1, help="torch threads")
    parser.add_argument("--resume", action="store_true", help="go on where a training in OUT was stopped, either phase")
    _add_hardware_options(parser.add_argument_group("hardware"))
    _add_task_options(parser.add_argument_group("simulated tasks"))
    _add_bag_options(parser.add_argument_group("bags"))
    parser.set_defaults(run=run)


def _add_hardware_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N or mps (default: auto, a GPU if any)")
    group.add_argument(
        "--precision", default="auto", help="of encoder and policy: float32, bf16, or auto: bf16 on a GPU that has it"
    )
    group.add_argument("--compile", action="store_true", help="compile encoder and policy, a minute once")
    group.add_argument(
        "--loaders", type=int, default=2, help="threads that make batches ahead of the step (default: 2)"
    )


def _add_task_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--pairs", type=int, help="counterfactual training pairs (default: the recipe's)")
    group.add_argument("--demos", type=Path, default=Path("out/demonstrations"), help="demonstration cache")
    group.add_argument("--closed-loop", type=int, default=10, help="closed-loop episodes after training, 0 for none")


def _add_bag_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--config", type=Path, help="what is what in the bags, as config/observation.yaml says it")
    group.add_argument("--episodes", type=int, metavar="N", help="train on N episodes at most (default: all)")
    group.add_argument("--held-out", type=float, metavar="SHARE", help="held-out share (default: 1/6)")
    group.add_argument("--validation", type=float, metavar="SHARE", help="share that attempts are chosen by (1/10)")
    group.add_argument(
        "--noise",
        type=_strengths,
        metavar="X[,Y...]",
        help="strength of the noise over signatures; of several, cross-validation chooses (default: 1,10,30)",
    )
    group.add_argument(
        "--no-cross-validation",
        action="store_true",
        help="hold some out, however few decisions that leaves to judge by",
    )
    group.add_argument("--split-seed", type=int, help="seed of the split (default: 0)")
    group.add_argument("--cache", type=Path, default=Path("out/bag-cache"), help="decoded episodes (out/bag-cache)")
    group.add_argument("--task", help="what the checkpoint calls its task (default: the first folder's name)")


def _strengths(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: give numbers by comma, for example 1,10,30") from None


def run(args: argparse.Namespace) -> int:
    """Train as the command line asks for."""
    simulated = [name for name in args.source if name in TASKS and not Path(name).exists()]
    absent = [name for name in args.source if name not in simulated and not Path(name.removeprefix(DATASET)).exists()]
    if absent or (simulated and len(args.source) > 1):
        raise ValueError(
            f"{(absent or simulated)[0]!r}: give folders of bags, {DATASET}FOLDER for a LeRobotDataset, or one of the "
            f"tasks {', '.join(TASKS)}"
        )
    if args.threads < 1:
        raise ValueError(f"--threads is {args.threads}: give at least 1")
    import torch

    from trace_memory_ros.learning.engine.hardware import Hardware
    from trace_memory_ros.learning.engine.processes import Group
    from trace_memory_ros.learning.report.console import console

    torch.set_num_threads(args.threads)
    given = _given(args)
    args.hardware = Hardware.chosen(args.device, args.precision, args.compile, args.loaders)
    args.group = Group.from_environment(args.hardware.device)
    console.quiet = not args.group.writes
    try:
        if simulated:
            from trace_memory_ros.arm.training import train

            train(args, simulated[0], given)
        else:
            from trace_memory_ros.cli.train_bags import train_from

            train_from(args, given)
    finally:
        args.group.leave()
    return 0


def _given(args: argparse.Namespace) -> dict[str, Any]:
    """What the file, over it the flags, and over these the assignments say."""
    from trace_memory_ros.learning.bags.design import parse_clock
    from trace_memory_ros.learning.run_config import assignment, merged, nested, read_file

    file = {} if args.recipe is None else read_file(args.recipe)
    flags = {key: getattr(args, flag) for flag, key in FLAGS.items() if getattr(args, flag) is not None}
    if args.clock is not None:
        flags["clock"] = parse_clock(args.clock).to_dict()
    if args.window == 0:
        flags["address.window"] = flags.pop("address.window.stretches") or None
    if args.no_cross_validation:
        flags["bags.cross_validation"] = False
    if args.policy_from is not None:
        flags["policy.start"] = str(args.policy_from)
    return merged([file, *(nested(key, value) for key, value in flags.items()), *map(assignment, args.set)])
