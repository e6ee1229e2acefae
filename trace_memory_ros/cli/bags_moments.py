"""`trace-memory bags moments BAGS --config FILE`: does the task need a memory, and at which moments?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.bags.episode import BagEpisode
    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.learning.bags.data import BagData
    from trace_memory_ros.moments.find import Found
    from trace_memory_ros.vision.base import VisualBackbone

COMMAND = "trace-memory bags moments"


def add_parser(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register it among the actions of `bags`."""
    parser = actions.add_parser("moments", help="find the moments at which only the past tells what to do")
    parser.add_argument("bags", type=Path, nargs="+", help="bags, folders of bags, or lerobot:FOLDER")
    parser.add_argument("--config", type=Path, required=True, help="recording configuration, such as observation.yaml")
    parser.add_argument(
        "--alarm",
        type=float,
        default=0.01,
        help="share of episodes whose rotated look-alikes, which have no groups, pass the threshold (default: 0.01)",
    )
    parser.add_argument("--eyes", metavar="NAME", help="backbone to look with, such as resnet18 (default: 16 pixels)")
    parser.add_argument("--annotate", metavar="FILE", help="write what was found beside each bag, for branches.file")
    parser.add_argument("--out", type=Path, help="folder of the page and summary.json (default: out/moments/NAME)")
    parser.add_argument("--cache", type=Path, default=Path("out/bag-cache"), help="decoded episodes (out/bag-cache)")
    parser.add_argument("--workers", type=int, default=1, help="processes that decode bags (default: 1)")
    parser.set_defaults(run=moments)


def moments(args: argparse.Namespace) -> int:
    """Search, print, write the page and the summary; returns 0 whatever was found."""
    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.files import outputs
    from trace_memory_ros.learning.bags.data import from_episodes
    from trace_memory_ros.learning.data.spread import ACTION_SHARE, least_spread
    from trace_memory_ros.learning.decisions.found import recorded
    from trace_memory_ros.measure.summary import write_summary
    from trace_memory_ros.moments import words
    from trace_memory_ros.moments.find import Search, find
    from trace_memory_ros.moments.page import write_page

    _check_annotate(args)
    recording, search = RecordingConfig.load(args.config), Search(alarm=args.alarm)
    out: Path = args.out or Path("out/moments") / args.bags[0].resolve().name
    outputs.claim(out, COMMAND)
    episodes = _decode(args, recording)
    period_ms = recording.observation.tick_period_ms
    data = from_episodes(episodes, period_ms)
    units = recording.actions.units if recording.actions is not None else ()
    least = least_spread(recording.observation.state_units), ACTION_SHARE * least_spread(units)
    eyes = None if args.eyes is None else _eyes(args.eyes, recording)
    found = find([recorded(demo, period_ms, eyes) for demo in data.episodes], *least, search)
    _show(found, data, units, period_ms)
    notes = [f"{name}: {reason}" for name, reason in data.left_out]
    command = f"{COMMAND} {' '.join(path.name for path in args.bags)}"
    names, frames = [demo.name for demo in data.episodes], [demo.images for demo in data.episodes]
    page = write_page(out, command, found, names, frames, data.action_names, notes, period_ms)
    write_summary(out, command, words.figures(found, data.action_names))
    print(f"page {page}, figures {out / 'summary.json'}")
    if args.annotate is not None:
        _annotate(args.annotate, found, data, episodes)
    return 0


def _check_annotate(args: argparse.Namespace) -> None:
    """Raises ValueError where annotations are asked for in one place for all, or of what can't have them beside it."""
    from trace_memory_ros.learning.lerobot.source import is_dataset

    file = Path(args.annotate or "")
    if file.is_absolute() or ".." in file.parts:
        raise ValueError(
            f"--annotate {file}: every bag would write the same file; give a name alone, such as branches.yaml, "
            "which each bag gets in its own folder"
        )
    datasets = [str(bag) for bag in args.bags if is_dataset(bag)]
    if args.annotate is not None and datasets:
        raise ValueError(
            f"--annotate {args.annotate}: writes beside bags, and {datasets[0]} is a LeRobotDataset; "
            "leave --annotate out, since training searches for moments by itself"
        )


def _eyes(name: str, recording: RecordingConfig) -> VisualBackbone:
    """The backbone of that name with the weights that it usually has."""
    from trace_memory_ros.learning.eyes import BackboneSection
    from trace_memory_ros.vision import registry

    px = recording.observation.image_px
    return registry.build(BackboneSection(name).chosen(px), px)


def _decode(args: argparse.Namespace, recording: RecordingConfig) -> list[BagEpisode]:
    """The recordings' episodes; says what is wrong with recordings."""
    from trace_memory_ros.bags.episode import BagEpisode
    from trace_memory_ros.learning.bags.recordings import load_recordings, recordings_under

    results = load_recordings(recordings_under(args.bags), recording, args.cache, args.workers)
    for result in results:
        if not isinstance(result, BagEpisode):
            print(result)
    return [result for result in results if isinstance(result, BagEpisode)]


def _show(found: Found, data: BagData, units: Sequence[str], period_ms: int) -> None:
    """The table and the verdict."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from trace_memory_ros.moments import words

    table = Table("moment", "needs a memory", "episodes", "median s", "ways to go on", "confidence")
    for number, kind in enumerate(found.kinds, 1):
        called = zip(words.way_names(found, kind, data.action_names, units), words.counts(kind), strict=True)
        ways = "\n".join([f"{name} ({count})" for name, count in called])
        ways += f"\nunclear ({words.unclear(kind)})" if words.unclear(kind) else ""
        at_s = np.median([one.tick for one in kind.occurrences]) * period_ms / 1e3
        needed = "yes" if kind.needs_memory else "no"
        named = f"{kind.episodes} of {len(found.ways)}"
        table.add_row(str(number), needed, named, f"{at_s:.1f}", ways, words.confidence(kind))
    console = Console()
    if found.kinds:
        console.print(table)
    for name, reason in data.left_out:
        console.print(f"{name}: {reason}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    console.print(
        f"{len(found.ways)} episodes; threshold: what {found.search.alarm:.0%} of them pass when their look-alikes are "
        "rotated at random, which leaves no groups",
        highlight=False,
        soft_wrap=True,
    )
    console.print(words.verdict(found), style="bold", highlight=False, soft_wrap=True)


def _annotate(file: str, found: Found, data: BagData, episodes: Sequence[BagEpisode]) -> None:
    """Write the moments that need a memory beside the bags."""
    from trace_memory_ros.learning.decisions.found import answer_numbers, with_decisions
    from trace_memory_ros.moments.annotations import Entry, write_annotations
    from trace_memory_ros.moments.words import LETTERS

    numbers = answer_numbers(found)
    labels = {number: f"{kind + 1}{LETTERS[way]}" for (kind, way), number in numbers.items()}
    places = {episode.name: (Path(episode.bag), episode.span.index) for episode in episodes}
    entries = []
    for index, demo in enumerate(data.episodes):
        told = with_decisions(demo, found.of_episode(index), numbers)
        for tick, answer in zip(told.decision_ticks, told.answers, strict=True):
            entries.append(Entry(*places[demo.name], int(demo.stamps_ns[tick]), labels[answer]))
    written = write_annotations(entries, list(dict.fromkeys(bag for bag, _ in places.values())), file, COMMAND)
    print(f"{len(entries)} decisions in {file} beside {len(written)} bags: `branches: {{file: {file}}}` reads them")
