"""`trace-memory replay BAG`: a recorded bag through a checkpoint's memory, as fast as the machine goes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.replay.bag_replay import ReplayReport
    from trace_memory_ros.replay.parity import Parity

_SHOWN_FAULTS = 8


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("replay", help="run a recorded bag through a memory, and write what it remembers")
    parser.add_argument("bag", type=Path, help="bag folder, or its .mcap or .db3 file")
    parser.add_argument("--checkpoint", required=True, help="checkpoint folder, or the name of a shipped one")
    parser.add_argument("--config", type=Path, help="what is what in the bag (default: as in the checkpoint's)")
    parser.add_argument("--out", type=Path, help="new bag to write (default: BAG_replay beside BAG)")
    parser.add_argument("--no-bag", action="store_true", help="write no bag: only measure, and compare with a live run")
    parser.add_argument(
        "--reset-per-episode", action="store_true", help="begin every episode of the bag with an empty memory"
    )
    parser.add_argument(
        "--as-recorded",
        action="store_true",
        help="follow the conditions of the live run in the bag: every tick takes the samples that the live one held",
    )
    parser.add_argument("--summary", type=Path, help="folder of summary.json (default: out/BAG_replay)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Replay, print what happened and how fast; returns 0."""
    from trace_memory_ros.bags.layout import REPLAY
    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.files import outputs
    from trace_memory_ros.measure.summary import write_summary
    from trace_memory_ros.replay.bag_replay import Replay
    from trace_memory_ros.replay.output_bag import replay_to_bag
    from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
    from trace_memory_ros.runtime.shipped import find_checkpoint

    checkpoint = find_checkpoint(args.checkpoint)
    recording = RecordingConfig.load(args.config) if args.config else RecordingConfig.beside(checkpoint)
    runtime = MemoryRuntime.from_checkpoint(checkpoint)
    runtime.warm_up()
    out = None if args.no_bag else args.out or default_out(args.bag)
    replay = Replay(
        args.bag, runtime, recording, reset_per_episode=args.reset_per_episode, as_recorded=args.as_recorded
    )
    name = default_out(args.bag).name
    summary = args.summary or Path("out") / name
    outputs.check(summary, REPLAY, "--summary")
    parity = replay_to_bag(replay, out)
    print_report(replay.report, parity, bool(replay.live))
    if replay.recording.clock_note:
        print(replay.recording.clock_note)
    figures = {"mechanism": runtime.config.mechanism, "model_id": runtime.model_id, **replay.report.figures()}
    figures["stamped_when_received"] = list(replay.recording.received)
    figures["parity"] = None if parity is None else parity.figures()
    path = write_summary(outputs.claim(summary, REPLAY, "--summary"), f"{REPLAY} {args.bag.name}", figures)
    if out is not None:
        print(f"bag: {out}")
    print(f"figures: {path}")
    return 0


def default_out(bag: Path) -> Path:
    """The new bag's folder beside the old one."""
    name = bag.resolve().name
    for suffix in (".zstd", ".mcap", ".db3"):
        name = name.removesuffix(suffix)
    return bag.resolve().parent / f"{name}_replay"


def print_report(report: ReplayReport, parity: Parity | None, live: bool) -> None:
    """What happened, how fast, where the time went, and how far a live run in the bag is from it."""
    counts = ", ".join(f"{count} {status}" for status, count in report.statuses.items() if count)
    print(f"{report.ticks} ticks in {report.episodes} episode(s): {counts or 'none'}")
    print(
        f"{report.stream_s:.1f} s of bag in {report.wall_s:.2f} s: {report.times_real:.1f} x real time "
        f"({report.times_real_cpu:.1f} x in processor time)"
    )
    per_second = ", ".join(
        f"{name} {1e3 * spent / report.stream_s:.2f}" for name, spent in report.stage_s.items() if report.stream_s
    )
    print(f"ms per second of bag: {per_second}")
    if report.unfinished:
        print(f"{report.unfinished} tick(s) at the end lack a stream that simply stops there, and are left out")
    if report.missed:
        print(f"{report.missed} sample(s) that live ticks held are not in the bag")
    for name, count in report.cut_off.most_common():
        print(f"{name} is far beyond what training showed, and cut off, at {count} tick(s): compare its unit")
    for fault in report.faults[:_SHOWN_FAULTS]:
        print(f"fault: {fault}")
    if len(report.faults) > _SHOWN_FAULTS:
        print(f"and {len(report.faults) - _SHOWN_FAULTS} more faults")
    if parity is not None:
        verdict = "bit-identical" if parity.identical else f"first differing tick: {parity.first_differing_tick}"
        print(
            f"live run in the bag: {parity.compared} of {parity.live} ticks compared, max |live - replay| = "
            f"{parity.largest:g}, {verdict}"
        )
        if parity.within or parity.beyond:
            print(f"ticks that one side alone has: {parity.within} in between, {parity.beyond} at the ends")
    elif live:
        print("the live run in the bag was of another checkpoint: not compared")
