"""`trace-memory permissions CHECKPOINT`: what each node needs in a secured ROS graph, as a policy for SROS 2."""

from __future__ import annotations

import argparse
from pathlib import Path

COMMAND = "trace-memory permissions"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("permissions", help="write the SROS 2 policy of a checkpoint's nodes")
    parser.add_argument("checkpoint", help="checkpoint folder, or the name of a shipped one")
    parser.add_argument("--namespace", default="", help="namespace that the nodes run in")
    parser.add_argument("--streams", default="", help="topics by the checkpoint's names, as robot.launch.py takes them")
    parser.add_argument("--actions", default="", help="policy_node's actions_file, where it is given one")
    parser.add_argument("--dry-run", action="store_true", help="give policy_node no right to send commands")
    parser.add_argument("--out", type=Path, help="file to write (default: print it)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write or print the policy."""
    from trace_memory_ros.files import outputs
    from trace_memory_ros.nodes.permissions import permissions, policy_xml
    from trace_memory_ros.nodes.robot_topics import RobotTopics

    topics = RobotTopics.of_checkpoint(args.checkpoint).commanding(args.actions)
    remaps = topics.remaps(args.streams) if args.streams else ()
    text = policy_xml(permissions(topics, remaps, args.dry_run), args.namespace)
    if args.out is None:
        print(text, end="")
    else:
        outputs.write_file(args.out, text, COMMAND, comment=outputs.XML)
        print(f"written to {args.out}")
    return 0
