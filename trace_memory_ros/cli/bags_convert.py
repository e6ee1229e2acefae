"""`trace-memory bags convert BAGS --out FOLDER`: ROS 1 bags to rosbag2 folders."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register it among the actions of `bags`."""
    parser = actions.add_parser("convert", help="write ROS 1 bags (.bag) as bags that everything else here reads")
    parser.add_argument("bags", type=Path, nargs="+", help=".bag files, or folders of them")
    parser.add_argument("--out", type=Path, required=True, help="folder of the new bags, one a .bag file")
    parser.set_defaults(run=convert)


def convert(args: argparse.Namespace) -> int:
    """Convert each and name it; returns 1 where one cannot be converted."""
    from trace_memory_ros.bags.faults import BagFault
    from trace_memory_ros.bags.ros1 import COMMAND, convert_bag, ros1_bags
    from trace_memory_ros.files import outputs

    bags: dict[str, Path] = {}
    for bag in dict.fromkeys(bag for source in args.bags for bag in ros1_bags(source)):
        other = bags.setdefault(bag.stem, bag)
        if other != bag:
            raise ValueError(f"{other} and {bag} have one name: convert them into folders of their own")
    outputs.claim(args.out, COMMAND)
    failed = 0
    for name, bag in bags.items():
        try:
            print(f"{bag}: {convert_bag(bag, args.out / name)} messages in {args.out / name}", flush=True)
        except BagFault as fault:
            failed += 1
            print(fault, file=sys.stderr, flush=True)
    return 1 if failed else 0
