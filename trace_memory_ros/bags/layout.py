"""Which files make up a bag: a folder of `ros2 bag record`, or one storage file on its own."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.bags.faults import BagFault

SUFFIXES = (".mcap", ".db3")
PACKED = ".zstd"
METADATA = "metadata.yaml"
REINDEX = "run `ros2 bag reindex` on the folder"


@dataclass
class BagLayout:
    """A bag's storage files in order. counts: messages per topic by metadata.yaml; None where it does not say."""

    bag: Path
    files: list[Path]
    counts: dict[str, int] | None = None
    faults: list[BagFault] = field(default_factory=list)


def layout_of(bag: Path) -> BagLayout:
    """Find a bag's files. Raises BagFault for a path that is no bag."""
    if not bag.exists():
        raise BagFault(bag, "does not exist", "path", "give a bag's folder, or its .mcap or .db3 file")
    if bag.is_file():
        if not is_storage(bag):
            raise BagFault(bag, "is not a .mcap or .db3 file", "path", "give a bag's folder or its storage file")
        return BagLayout(bag, [bag])
    try:
        present = sorted(path for path in bag.iterdir() if is_storage(path))
    except OSError as error:
        raise BagFault(bag, f"cannot be listed ({error.strerror})", "folder", "grant permission to read it") from error
    if not present:
        raise BagFault(
            bag,
            "holds no storage file",
            "folder",
            "give the folder that `ros2 bag record` wrote, with its .mcap or .db3 files",
        )
    return _with_metadata(bag, present) if (bag / METADATA).exists() else _without_metadata(bag, present)


def is_storage(path: Path) -> bool:
    """Whether the name is that of a storage file, compressed or not."""
    return path.name.removesuffix(PACKED).endswith(SUFFIXES)


def find_bags(folder: Path) -> list[Path]:
    """Bags at or below `folder`, in order of name: folders with metadata.yaml or storage files.

    Raises BagFault where there is none.
    """
    if folder.is_file() or not folder.exists():
        return [folder]
    found = _bags_below(folder)
    if not found:
        raise BagFault(folder, "holds no bag", "folder", "give a folder of bags, or a bag")
    return found


def _bags_below(folder: Path) -> list[Path]:
    if (folder / METADATA).exists():
        return [folder]
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return [folder]
    files = [entry for entry in entries if entry.is_file() and is_storage(entry)]
    bags = [bag for entry in entries if entry.is_dir() for bag in _bags_below(entry)]
    if files and len({_series(path) for path in files}) == 1:
        return [folder, *bags]
    return [*files, *bags]


def _series(path: Path) -> str:
    """A storage file's name without the number of its part."""
    return re.sub(r"_\d+$", "", path.name.removesuffix(PACKED).rpartition(".")[0])


def _part(path: Path) -> tuple[str, int]:
    number = re.search(r"_(\d+)$", path.name.removesuffix(PACKED).rpartition(".")[0])
    return _series(path), int(number[1]) if number else -1


def _without_metadata(bag: Path, present: list[Path]) -> BagLayout:
    series = {_series(path) for path in present}
    if len(series) > 1:
        raise BagFault(
            bag,
            f"holds files of {len(series)} bags ({', '.join(sorted(series))}) and no {METADATA}",
            "folder",
            "put each bag into a folder of its own",
        )
    fault = BagFault(bag, "is missing: nothing tells whether files or messages were lost", METADATA, REINDEX)
    return BagLayout(bag, sorted(present, key=_part), None, [fault])


def _with_metadata(bag: Path, present: list[Path]) -> BagLayout:
    layout = BagLayout(bag, sorted(present, key=_part))
    try:
        information = _plain_yaml((bag / METADATA).read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
        names = [Path(str(name)).name for name in information["relative_file_paths"]]
        counts = {
            str(topic["topic_metadata"]["name"]): int(topic["message_count"])
            for topic in information["topics_with_message_count"]
        }
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        layout.faults.append(BagFault(bag, what, METADATA, "grant permission to read it"))
        return _checked(layout)
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        what = f"cannot be understood ({type(error).__name__}: {reason})"
        layout.faults.append(BagFault(bag, what, METADATA, REINDEX))
        return _checked(layout)
    return _matched(layout, names, counts, information)


def _plain_yaml(text: str) -> Any:
    """As `yaml.safe_load`, by the C library where PyYAML has it: metadata can be longer to read than its bag."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _checked(layout: BagLayout) -> BagLayout:
    """Without usable metadata the files must at least be of one bag."""
    return BagLayout(layout.bag, _without_metadata(layout.bag, layout.files).files, None, layout.faults)


def _matched(layout: BagLayout, names: list[str], counts: dict[str, int], information: Any) -> BagLayout:
    """The files that metadata.yaml lists, in its order, faults for those that are missing or not listed."""
    present = {path.name: path for path in layout.files}
    missing = [name for name in names if name not in present]
    if len(missing) == len(names):
        raise BagFault(
            layout.bag,
            f"lists {', '.join(names) or 'no files'}; the folder holds {', '.join(present)}",
            METADATA,
            f"restore the missing files, or {REINDEX}",
        )
    if missing:
        what = f"is listed in {METADATA} and missing: its messages are lost"
        layout.faults.append(BagFault(layout.bag, what, ", ".join(missing), "restore it, or " + REINDEX))
    strangers = [name for name in present if name not in names]
    if strangers:
        what = f"is not listed in {METADATA} and left out: of another bag, or of a recording that broke off"
        remedy = f"move it into a folder of its own, or {REINDEX} if it belongs here"
        layout.faults.append(BagFault(layout.bag, what, ", ".join(strangers), remedy))
    version = information.get("version", 0)
    if not isinstance(version, int) or version > 9:
        remedy = "convert the bag with `ros2 bag convert` of the ROS 2 that recorded it, if messages are missing"
        layout.faults.append(BagFault(layout.bag, f"has version {version!r}; known are 1 to 9", METADATA, remedy))
    layout.files = [present[name] for name in names if name in present]
    layout.counts = counts
    return layout
