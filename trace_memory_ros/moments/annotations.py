"""What was found as annotation files, which a person may look at, edit and keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

from trace_memory_ros.files import outputs


class Entry(NamedTuple):
    """A decision of an episode of a bag."""

    bag: Path
    episode: int
    stamp_ns: int
    label: str


def write_annotations(entries: Sequence[Entry], bags: Sequence[Path], file: str, command: str) -> list[Path]:
    """Write `file` into every bag's folder, as `branches.file` reads it; an empty list where none was found.

    Raises ValueError for bags that share a folder, and OutputError for a file that somebody else wrote, or edited.
    """
    by_folder: dict[Path, Path] = {}
    for bag in bags:
        folder = bag if bag.is_dir() else bag.parent
        if by_folder.setdefault(folder, bag) != bag:
            raise ValueError(f"{by_folder[folder]} and {bag} lie in one folder: give each bag a folder of its own")
    for folder in by_folder:
        outputs.check_file(folder / file, command, "--annotate")
    for folder, bag in by_folder.items():
        found: list[Mapping[str, object]] = [
            {"episode": entry.episode, "stamp_ns": entry.stamp_ns, "label": entry.label}
            for entry in entries
            if entry.bag == bag
        ]
        outputs.write_file(folder / file, yaml.safe_dump({"branches": found}, sort_keys=False), command, "--annotate")
    return [folder / file for folder in by_folder]
