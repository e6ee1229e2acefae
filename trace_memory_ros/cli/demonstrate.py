"""`trace-memory demonstrate TASK`: record an arm task's expert demonstrations as rosbag2 bags, without ROS."""

from __future__ import annotations

import argparse
from pathlib import Path

from trace_memory_ros.cli.arm_tasks import ALL as TASKS


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("demonstrate", help="record a simulated task's demonstrations as rosbag2 bags")
    parser.add_argument("task", choices=TASKS, help="task to demonstrate")
    parser.add_argument("--seeds", type=int, default=75, help="scenes; each gives a bag per cue (default: 75)")
    parser.add_argument("--first-seed", type=int, default=0, help="seed of the first scene (default: 0)")
    parser.add_argument("--out", type=Path, help="folder of the bags (default: out/bags/TASK)")
    parser.add_argument(
        "--compression", choices=("none", "chunk", "message", "file"), default="chunk", help="zstd by (default: chunk)"
    )
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Record the bags that are not there yet, and write the configuration that says what is what in them."""
    import yaml

    from trace_memory_ros.arm.recorder import arm_recording, record_bags, scenarios_of
    from trace_memory_ros.files import outputs
    from trace_memory_ros.learning.report.console import bar, console

    if args.seeds < 1 or args.first_seed < 0:
        raise ValueError(f"--seeds is {args.seeds}, --first-seed {args.first_seed}: use at least 1 and 0")
    folder: Path = args.out or Path("out/bags") / args.task
    outputs.claim(folder, "trace-memory demonstrate")
    config = folder / "observation.yaml"
    config.write_text(yaml.safe_dump(arm_recording().to_dict(), sort_keys=False), encoding="utf-8")
    scenarios = scenarios_of(args.task, range(args.first_seed, args.first_seed + args.seeds))
    with bar() as shown:
        row = shown.add_task("bags", total=len(scenarios))
        for _ in record_bags(scenarios, folder, args.compression, args.workers):
            shown.advance(row)
    console.print(f"{len(scenarios)} bags in {folder}; what is what in them: {config}", highlight=False)
    return 0
