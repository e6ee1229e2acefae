"""Bags that are broken in one way each, and what a verdict must say about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml

from studies.tiny_bags import BEGIN_NS, PERIOD_NS, RECORDING, Entry, recording_of
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.faults import Grade
from trace_memory_ros.bags.recording import RecordingConfig

TICKS = 20
SECOND_NS = 10**9


@dataclass(frozen=True)
class BadBag:
    """make: writes the bag at a path. what, where, remedy: parts of one fault's texts. ticks, usable: of all."""

    make: Callable[[Path], object]
    grade: Grade
    what: str
    where: str
    remedy: str
    ticks: int = 0
    usable: int = 0
    recording: RecordingConfig = RECORDING


BAD: dict[str, BadBag] = {}


def bad(
    grade: Grade,
    what: str,
    where: str,
    remedy: str,
    ticks: int = 0,
    usable: int = 0,
    recording: RecordingConfig = RECORDING,
) -> Callable[[Callable[[Path], object]], Callable[[Path], object]]:
    """Enter the function that makes a bad bag."""

    def enter(make_bag: Callable[[Path], object]) -> Callable[[Path], object]:
        BAD[make_bag.__name__] = BadBag(make_bag, grade, what, where, remedy, ticks, usable, recording)
        return make_bag

    return enter


def edited(change: Callable[[Entry, int], Entry | None], ticks: int = TICKS) -> list[Entry]:
    """A sound recording, each message changed, or left out for None; `change` is given its tick."""
    out = []
    for entry in recording_of(ticks):
        changed = change(entry, (entry.log_ns - BEGIN_NS) // PERIOD_NS)
        if changed is not None:
            out.append(changed)
    return out


def storage_file(bag: Path) -> Path:
    """The one storage file of a bag."""
    (file,) = (path for path in bag.iterdir() if path.name != "metadata.yaml")
    return file


def cut(bag: Path, share: float) -> None:
    """Keep only the first `share` of the storage file."""
    file = storage_file(bag)
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def edit_metadata(bag: Path, change: Callable[[dict], object]) -> None:  # type: ignore[type-arg]
    file = bag / "metadata.yaml"
    data = yaml.safe_load(file.read_text())
    change(data["rosbag2_bagfile_information"])
    file.write_text(yaml.safe_dump(data))


def restamped(entry: Entry, ns: int) -> Entry:
    entry.message.header = make.header(ns)
    return entry


UNUSABLE, DEGRADED = Grade.UNUSABLE, Grade.DEGRADED
