"""`trace-memory doctor CHECKPOINT`: does this robot, as it runs now, offer what the checkpoint needs?"""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("doctor", help="compare the robot that runs now with what a checkpoint needs")
    parser.add_argument("checkpoint", help="checkpoint folder, or the name of a shipped one")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to listen (default: 5)")
    parser.add_argument("--namespace", default="", help="namespace that the nodes would run in")
    parser.add_argument(
        "--remap", nargs="+", action="extend", default=[], metavar="OLD:=NEW", help="topics, renamed as for the nodes"
    )
    parser.add_argument("--streams", default="", help="topics by the checkpoint's names, as robot.launch.py takes them")
    parser.add_argument(
        "--reliability", choices=("best_effort", "reliable"), default="best_effort", help="the nodes' parameter"
    )
    parser.add_argument("--actions", default="", help="policy_node's parameter actions_file")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Listen, print the table; returns 1 where something is wrong."""
    from trace_memory_ros.nodes.doctor.judge import judged, table
    from trace_memory_ros.nodes.doctor.listen import listen
    from trace_memory_ros.nodes.memory.findings import Level
    from trace_memory_ros.nodes.policy.loading import actions_of, load_policy
    from trace_memory_ros.nodes.robot_topics import RobotTopics
    from trace_memory_ros.runtime import checkpoint
    from trace_memory_ros.runtime.shipped import find_checkpoint

    if not 0.5 <= args.seconds <= 600.0:
        raise ValueError(f"--seconds {args.seconds:g}: listen for 0.5 to 600 seconds")
    loaded = checkpoint.load(find_checkpoint(args.checkpoint))
    observation = loaded.config.observation
    actions = actions_of(loaded, load_policy(loaded), args.actions) if loaded.config.policy else None
    topics = RobotTopics.of_checkpoint(args.checkpoint).commanding(args.actions)
    given = topics.remaps(args.streams) if args.streams else ()
    remaps = [*(f"{old}:={new}" for old, new in given), *args.remap]
    seen = listen(observation, actions, args.seconds, args.namespace, remaps)
    rows = judged(seen, observation, actions, args.reliability)
    print(table(rows))
    wrong = sum(row.level == Level.ERROR for row in rows)
    print(f"{wrong} wrong" if wrong else "nothing is wrong")
    return 1 if wrong else 0
