"""`trace-memory bags inspect BAGS` and `bags check BAGS`: what bags hold, and what is wrong with them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from trace_memory_ros.cli.bags_convert import add_parser as add_convert
from trace_memory_ros.cli.bags_lerobot import DATASET, inspect_dataset
from trace_memory_ros.cli.bags_lerobot import add_parsers as add_lerobot
from trace_memory_ros.cli.bags_moments import add_parser as add_moments
from trace_memory_ros.cli.bags_things import add_parser as add_things

if TYPE_CHECKING:
    from trace_memory_ros.bags.episode import BagEpisode
    from trace_memory_ros.bags.faults import BagVerdict
    from trace_memory_ros.bags.inspection import Proposal
    from trace_memory_ros.bags.recording import RecordingConfig

INSPECT = "trace-memory bags inspect"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand and its actions."""
    parser = subparsers.add_parser("bags", help="look into rosbag2 recordings: propose a configuration, find faults")
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    inspecting = actions.add_parser("inspect", help="propose a configuration for bags, and name what they lack")
    inspecting.add_argument("bag", type=Path, help="bag, its .mcap or .db3 file, a folder of bags, or lerobot:FOLDER")
    inspecting.add_argument("--out", type=Path, help="file to write the proposal to, such as observation.yaml")
    inspecting.set_defaults(run=inspect)
    checking = actions.add_parser("check", help="decode bags and print a verdict for each")
    checking.add_argument("bags", type=Path, nargs="+", help="bags, or folders of bags")
    checking.add_argument("--config", type=Path, help="recording configuration (default: proposed from each bag)")
    checking.set_defaults(run=check)
    add_moments(actions)
    add_things(actions)
    add_convert(actions)
    add_lerobot(actions)


def inspect(args: argparse.Namespace) -> int:
    """Print topics, what is missing, the proposal, and each bag's verdict; returns 1 where nothing can be proposed."""
    from trace_memory_ros.bags.faults import BagFault
    from trace_memory_ros.bags.inspection import inspect as inspect_bag
    from trace_memory_ros.bags.inspection import inspect_bags
    from trace_memory_ros.bags.layout import find_bags
    from trace_memory_ros.files import outputs

    if args.out is not None:
        outputs.check_file(args.out, INSPECT)
    if str(args.bag).startswith(DATASET):
        return inspect_dataset(args.bag, args.out, INSPECT)
    bags = find_bags(args.bag)
    try:
        proposal = inspect_bag(bags[0]) if len(bags) == 1 else inspect_bags(args.bag, bags)
    except BagFault as fault:
        for other in fault.also:
            print(f"fault: {other}")
        raise
    _show_topics(proposal)
    for text in proposal.missing:
        print(f"missing: {text}")
    for text in proposal.notes:
        print(f"note: {text}")
    for bag, texts in proposal.differences.items():
        print(f"differs: {bag}: {'; '.join(texts)}")
    if proposal.recording is None:
        print("\n".join(proposal.others()))
        for other in proposal.faults:
            print(f"fault: {other}")
        print("no configuration can be proposed: record what is missing")
        return 1
    if args.out is not None:
        print("\n".join(proposal.others()))
        outputs.write_file(args.out, proposal.yaml(), INSPECT)
        print(f"written to {args.out}")
    else:
        print()
        print(proposal.yaml())
    _try_on(bags, proposal.recording)
    return 0


def _try_on(bags: list[Path], recording: RecordingConfig) -> None:
    """Decode every bag as proposed, and print what comes of it."""
    from dataclasses import replace

    from trace_memory_ros.bags.build import decode_bag

    # Whether an image can be used does not depend on the size that it is kept in.
    small = replace(recording, observation=replace(recording.observation, image_px=1, thumbnail_px=1))
    episodes = ticks = usable = 0
    for bag in bags:
        found, verdict = decode_bag(bag, small)
        print(_line(found, verdict), flush=True)
        episodes += len(found)
        ticks += sum(e.ticks for e in found)
        usable += sum(int(e.usable.sum()) for e in found)
    print(f"with it: {episodes} episodes, {ticks} ticks, {usable} of them usable")
    if recording.clock_note:
        print(recording.clock_note)


def _line(episodes: list[BagEpisode], verdict: BagVerdict) -> str:
    """A bag's verdict with its counts, and its faults below."""
    ticks, usable = sum(e.ticks for e in episodes), sum(int(e.usable.sum()) for e in episodes)
    head, *faults = str(verdict).splitlines()
    return "\n".join([f"{head} ({len(episodes)} episodes, {usable} of {ticks} ticks usable)", *faults])


def _show_topics(proposal: Proposal) -> None:
    """A table of the topics that are used; how many others there are."""
    from rich.console import Console
    from rich.table import Column, Table

    whole = [Column(text, overflow="fold") for text in ("topic", "type")]
    table = Table(*whole, "messages", "Hz", "taken for", title=str(proposal.bag))
    for name, use in sorted(proposal.uses.items()):
        found = proposal.topics[name]
        rate = "" if found.rate_hz is None else f"{found.rate_hz:.1f}"
        table.add_row(name, found.info.type_name, str(found.info.messages), rate, use)
    Console().print(table)
    print(f"{len(proposal.topics) - len(proposal.uses)} more topics are not used")


def check(args: argparse.Namespace) -> int:
    """Print each bag's verdict; returns 1 where a bag cannot be used at all."""
    from collections import Counter

    from trace_memory_ros.bags.faults import BagFault, Grade, verdict_of
    from trace_memory_ros.bags.layout import find_bags
    from trace_memory_ros.bags.recording import RecordingConfig

    chosen = None if args.config is None else RecordingConfig.load(args.config)
    grades: Counter[Grade] = Counter()

    def say(episodes: list[BagEpisode], verdict: BagVerdict) -> None:
        print(_line(episodes, verdict), flush=True)
        grades[verdict.grade] += 1

    seen: set[Path] = set()
    for path in args.bags:
        try:
            bags = find_bags(path)
        except BagFault as fault:
            say([], verdict_of(path, [fault], usable=False))
            continue
        for bag in bags:
            if bag.resolve() not in seen:
                seen.add(bag.resolve())
                say(*_judge(bag, chosen))
    print(", ".join(f"{grades[grade]} {grade.value}" for grade in Grade if grades[grade]))
    if chosen is not None and chosen.clock_note:
        print(chosen.clock_note)
    return 1 if grades[Grade.UNUSABLE] else 0


def _judge(bag: Path, recording: RecordingConfig | None) -> tuple[list[BagEpisode], BagVerdict]:
    """Decode a bag, as configured or as proposed for it; all that was found wrong with it is in the verdict."""
    from trace_memory_ros.bags.build import decode_bag
    from trace_memory_ros.bags.faults import BagFault, verdict_of
    from trace_memory_ros.bags.inspection import inspect as look_into

    if recording is None:
        try:
            proposal = look_into(bag)
        except BagFault as fault:
            return [], verdict_of(bag, [*fault.also, fault], usable=False)
        recording = proposal.recording
        if recording is None:
            lack = BagFault(bag, f"lacks {'; '.join(proposal.missing)}", "topics", "record what is missing")
            return [], verdict_of(bag, [*proposal.faults, lack], usable=False)
    return decode_bag(bag, recording)
