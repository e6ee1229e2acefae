"""`trace-memory bags to-lerobot` and `from-lerobot`: bags to a LeRobotDataset and back; `inspect` of one."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trace_memory_ros.bags.episode import BagEpisode
    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.learning.lerobot.dataset import Dataset

DATASET = "lerobot:"
"""Before the folder of a LeRobotDataset where bags could stand too."""


def add_parsers(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register both among the actions of `bags`."""
    there = actions.add_parser("to-lerobot", help="write bags as a LeRobotDataset")
    there.add_argument("bags", type=Path, nargs="+", help="bags, or folders of bags")
    there.add_argument("--config", type=Path, required=True, help="recording configuration, such as observation.yaml")
    there.add_argument("--repo-id", required=True, help="LeRobot's name of the dataset, such as me/parts")
    there.add_argument("--root", type=Path, required=True, help="folder to write to; must not exist")
    there.add_argument("--task", required=True, help="LeRobot's task string of all episodes")
    there.add_argument("--storage", choices=("image", "video"), default="image", help="of the cameras (default: image)")
    there.add_argument("--vcodec", default="libsvtav1", help="video codec (default: libsvtav1)")
    there.add_argument(
        "--gaps", choices=("refuse", "split"), default="refuse", help="episodes with unusable ticks (default: refuse)"
    )
    there.set_defaults(run=to_lerobot)
    back = actions.add_parser("from-lerobot", help="write a LeRobotDataset as bags, one per episode")
    back.add_argument("dataset", type=Path, help="root folder of the dataset")
    back.add_argument("--out", type=Path, required=True, help="folder of the bags and their observation.yaml")
    back.set_defaults(run=from_lerobot)


def to_lerobot(args: argparse.Namespace) -> int:
    """Write the dataset and say what was left out; returns 1 where nothing was left."""
    from trace_memory_ros.bags.recording import RecordingConfig
    from trace_memory_ros.learning.lerobot.export import ExportOptions, export

    recording = RecordingConfig.load(args.config)
    options = ExportOptions(args.repo_id, args.root, args.task, args.storage, args.vcodec, args.gaps)
    done = export(_episodes(args.bags, recording), recording, options)
    for reason in done.left_out:
        print(f"left out: {reason}")
    print(
        f"{done.episodes} episodes, {done.frames} frames in {args.root}; left out: {len(done.left_out)} episodes, and "
        f"{done.trimmed} ticks without an observation or an action at the ends of others"
    )
    return 0 if done.episodes else 1


def _episodes(bags: list[Path], recording: RecordingConfig) -> Iterator[BagEpisode]:
    from trace_memory_ros.bags.build import decode_bag
    from trace_memory_ros.bags.faults import Grade
    from trace_memory_ros.bags.layout import bags_under

    for bag in bags_under(bags):
        episodes, verdict = decode_bag(bag, recording)
        if verdict.grade is not Grade.OK:
            print(verdict, flush=True)
        yield from episodes


def from_lerobot(args: argparse.Namespace) -> int:
    """Write the bags and name them, and what is left out; returns 1 where nothing was left."""
    from trace_memory_ros.files import outputs
    from trace_memory_ros.learning.lerobot.importing import CONFIG, import_dataset, remove_others

    outputs.claim(args.out, "trace-memory bags from-lerobot")
    left_out: list[str] = []
    written: list[Path] = []
    for bag in import_dataset(args.dataset, args.out, left_out):
        print(bag, flush=True)
        written.append(bag)
    for reason in left_out:
        print(f"left out: {reason}")
    if removed := remove_others(args.out, written):
        print(f"removed, of an earlier import: {', '.join(removed)}")
    print(f"{len(written)} episodes; left out: {len(left_out)}; what is what in them: {args.out / CONFIG}")
    return 0 if written else 1


def inspect_dataset(source: Path, out: Path | None, command: str) -> int:
    """Print what a dataset holds and lacks, and a configuration, which goes to `out`; 1 where no episode is whole."""
    from trace_memory_ros.bags.inspection import Proposal
    from trace_memory_ros.files import outputs
    from trace_memory_ros.learning.lerobot.layout import described
    from trace_memory_ros.learning.lerobot.source import folder_of, missing_files, opened_dataset

    dataset = opened_dataset(source)
    layout = dataset.layout
    recording = described(folder_of(source))
    _show_dataset(source, dataset)
    missing = missing_files(dataset)
    for index, why in missing.items():
        print(f"fault: episode {index}: {why}")
    print(f"{len(dataset.episodes) - len(missing)} of {len(dataset.episodes)} episodes have all their files")
    notes = _dataset_notes(recording, branched=recording.branches is not None, fps=layout.fps)
    proposal = Proposal(str(folder_of(source)), {}, recording, notes=notes)
    if out is None:
        print()
        print(proposal.yaml())
    else:
        for text in notes:
            print(f"note: {text}")
        outputs.write_file(out, proposal.yaml(), command)
        print(f"written to {out}")
    return 1 if len(missing) == len(dataset.episodes) else 0


def _show_dataset(source: Path, dataset: Dataset) -> None:
    """A table of the features that are used."""
    from rich.console import Console
    from rich.table import Table

    layout, info = dataset.layout, dataset.info
    table = Table("feature", "taken for", title=str(source))
    for name, key in layout.cameras.items():
        height, width = layout.sizes[name]
        table.add_row(key, f"camera {name}, {width}x{height}, {info['features'][key]['dtype']}")
    table.add_row("observation.state", ", ".join(layout.state))
    table.add_row("action", ", ".join(layout.actions))
    if layout.branched:
        table.add_row("branch", "annotated branches")
    Console().print(table)
    frames = sum(dataset.frames(index) for index in dataset.episodes)
    print(f"{len(dataset.episodes)} episodes, {frames} frames at {layout.fps} per second")


def _dataset_notes(recording: RecordingConfig, branched: bool, fps: int) -> list[str]:
    """What a person should decide."""
    seen = recording.observation
    notes = [
        "topics and joints are what a live robot must publish: change them to its own; cameras keep their names",
        "joints or actions that are renamed are taken in the dataset's order: rename all of them, or none",
        f"a tick is {seen.tick_period_ms} ms, the dataset has {fps} frames per second",
    ]
    if "raw" in seen.state_units:
        notes.append(
            "the state is no radians: a live robot must publish the dataset's own unit, LeRobot's degrees or percent"
        )
    if not branched:
        notes.append("no branch is annotated")
    return notes
