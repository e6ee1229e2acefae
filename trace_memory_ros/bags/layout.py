"""Which files make up a bag: a folder of `ros2 bag record`, or one storage file on its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.split import why_apart
from trace_memory_ros.bags.sqlite_journal import journals
from trace_memory_ros.bags.storage import absolute, not_cdr
from trace_memory_ros.files.bounded_yaml import LOADER, check_depth

SUFFIXES = (".mcap", ".db3")
PACKED = (".zstd", ".zst")
ROS1 = ".bag"
METADATA = "metadata.yaml"
INFORMATION = "rosbag2_bagfile_information"
"""Key of metadata.yaml under which all that it tells of a bag stands."""
REINDEX = "run `ros2 bag reindex` on the folder"
CONVERT = "convert it once: `trace-memory bags convert {} --out FOLDER`"
AUTHOR = "written_by"
"""Key of metadata.yaml's custom data: the command that wrote the bag."""
DATASET = "lerobot:"
"""Before the folder of a LeRobotDataset, which training reads as it lies; all else reads bags."""
REPLAY = "trace-memory replay"
"""Writes its bags, which hold no sensors, beside the recordings."""


@dataclass
class BagLayout:
    """A bag's storage files in order. counts: messages per topic by metadata.yaml; None where it does not say."""

    bag: Path
    files: list[Path]
    counts: dict[str, int] | None = None
    faults: list[BagFault] = field(default_factory=list)


def layout_of(bag: Path) -> BagLayout:
    """Find a bag's files. Raises BagFault for a path that is no bag."""
    if not bag.exists() and any(part.startswith(DATASET) for part in bag.parts):
        folder = str(bag).partition(DATASET)[2]
        remedy = f"write it as bags first: `trace-memory bags from-lerobot {folder} --out BAGS`"
        raise BagFault(bag, "names a LeRobotDataset where a bag is needed", "path", remedy)
    if not bag.exists():
        raise BagFault(bag, "does not exist", "path", "give a bag's folder, or its .mcap or .db3 file")
    if bag.is_file():
        return _single(bag)
    try:
        entries = sorted(bag.iterdir())
    except OSError as error:
        raise BagFault(bag, f"cannot be listed ({error.strerror})", "folder", "grant permission to read it") from error
    present = [path for path in entries if is_storage(path)]
    if not present:
        raise _no_storage(bag, entries)
    return _with_metadata(bag, present) if (bag / METADATA).exists() else _without_metadata(bag, present)


def is_storage(path: Path) -> bool:
    """Whether it is a file with the name of a storage file, compressed or not."""
    return stem(path) != path.name and not path.is_dir()


def stem(path: Path) -> str:
    """A storage file's name without what says how it is stored and packed; other names as they are."""
    name = path.name
    for packed in PACKED:
        name = name.removesuffix(packed)
    return name.rpartition(".")[0] if name.endswith(SUFFIXES) else path.name


def find_bags(folder: Path) -> list[Path]:
    """Bags at or below `folder`, in order of name: folders with metadata.yaml or storage files.

    Of files that hold one run in several forms one is given, and a bag that a link leads to once. ROS 1 bags are among
    them, to be refused by name, unless a bag of the same name lies beside. What `trace-memory replay` wrote beside
    recordings is left out. Raises BagFault where there is none.
    """
    if folder.is_file() or not folder.exists():
        return [folder]
    found = each_once(_bags_below(folder))
    if not found:
        raise BagFault(folder, "holds no bag", "folder", "give a folder of bags, or a bag")
    return [bag for bag in found if not _is_replay(bag)] or found


def author_of(folder: Path) -> str:
    """The command that wrote a bag, as its metadata.yaml says; empty where nothing tells."""
    try:
        information = plain_yaml((folder / METADATA).read_text(encoding="utf-8"))[INFORMATION]
        return str((information.get("custom_data") or {}).get(AUTHOR, ""))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError, yaml.YAMLError):
        return ""


def _is_replay(bag: Path) -> bool:
    try:
        # Metadata may be long to parse, and few bags name the command at all.
        named = REPLAY.encode() in (bag / METADATA).read_bytes()
    except OSError:
        return False
    return named and author_of(bag) == REPLAY


def bags_under(sources: Iterable[Path]) -> list[Path]:
    """All bags at or below `sources`, each once. Raises BagFault for a folder that holds none."""
    return each_once(bag for source in sources for bag in find_bags(source))


def each_once(paths: Iterable[Path], place: Callable[[Path], Path] = Path.resolve) -> list[Path]:
    """Paths in order, of those that lead to one place the first that is no link itself, else the first.

    Read twice, an episode could be held out and trained on. place: where a path leads.
    """
    listed = list(dict.fromkeys(paths))
    chosen: dict[Path, Path] = {}
    for path in sorted(listed, key=Path.is_symlink):
        chosen.setdefault(place(path), path)
    kept = set(chosen.values())
    return [path for path in listed if path in kept]


def _single(bag: Path) -> BagLayout:
    if bag.suffix == ROS1:
        raise BagFault(bag, "is a ROS 1 bag", "path", CONVERT.format(bag))
    if not is_storage(bag):
        raise BagFault(bag, "is not a .mcap or .db3 file", "path", "give a bag's folder or its storage file")
    layout = BagLayout(bag, [bag])
    try:
        twins = [path for path in bag.parent.iterdir() if is_storage(path) and stem(path) == stem(bag) and path != bag]
    except OSError:
        return layout
    if twins:
        layout.faults.append(_twin_fault(bag, bag, twins))
    return layout


def _twin_fault(bag: Path, chosen: Path, others: list[Path]) -> BagFault:
    what = f"has the name of {chosen.name} and is taken for the same run: it is not read"
    return BagFault(bag, what, ", ".join(sorted(path.name for path in others)), "keep one form of each run in a folder")


def _no_storage(bag: Path, entries: list[Path]) -> BagFault:
    """What to say of a folder without storage files."""
    below = [entry.name for entry in entries if entry.is_dir() and _bags_below(entry)]
    if below:
        shown = ", ".join(below[:3]) + (", ..." if len(below) > 3 else "")
        return BagFault(bag, "is a folder of bags, not a bag", "folder", f"give one of them: {shown}")
    if any(entry.suffix == ROS1 for entry in entries):
        return BagFault(bag, "holds ROS 1 bags and none of ROS 2", "folder", CONVERT.format(bag))
    if (bag / METADATA).exists() and (named := [entry.name for entry in entries if stem(entry) != entry.name]):
        what, remedy = "is a folder where a storage file should be", "put the storage file there that it holds"
        return BagFault(bag, what, ", ".join(named), f"{remedy}, or restore it from a copy")
    remedy = "give the folder that `ros2 bag record` wrote, with its .mcap or .db3 files"
    return BagFault(bag, "holds no storage file", "folder", remedy)


def _bags_below(folder: Path) -> list[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return [folder]
    files = [entry for entry in entries if is_storage(entry)]
    told = folder / METADATA in entries
    if told and (files or _is_of_a_bag(folder / METADATA)):
        return [folder]
    bags = [bag for entry in entries if entry.is_dir() for bag in _bags_below(entry)]
    if told and not bags:
        return [folder]
    beside = {stem(entry) for entry in entries if entry in files or entry in bags}
    bags += [entry for entry in entries if entry.suffix == ROS1 and entry.is_file() and entry.stem not in beside]
    if files and len({_series(path) for path in files}) == 1 and not _why_apart(folder, files):
        return [folder, *bags]
    return [*_one_form(files), *bags]


def _is_of_a_bag(metadata: Path) -> bool:
    """Whether a file of that name tells of a bag: data sets have one of their own."""
    try:
        return INFORMATION.encode() in metadata.read_bytes()
    except OSError:
        return True


def _one_form(files: list[Path]) -> list[Path]:
    """Of files with one name but for their endings the one to read: that holds something, mcap, not packed."""
    chosen: dict[str, Path] = {}
    for path in sorted(files, key=_form):
        chosen.setdefault(stem(path), path)
    return [path for path in files if chosen[stem(path)] == path]


def _form(path: Path) -> tuple[bool, bool, bool]:
    try:
        empty = not path.stat().st_size and not journals(path)
    except OSError:
        empty = True
    return empty, ".mcap" not in path.suffixes, path.name.endswith(PACKED)


def _series(path: Path) -> str:
    """A storage file's name without the number of its part."""
    return re.sub(r"_\d+$", "", stem(path))


def _part(path: Path) -> tuple[str, int]:
    number = re.search(r"_(\d+)$", stem(path))
    return _series(path), int(number[1]) if number else -1


def _without_metadata(bag: Path, present: list[Path]) -> BagLayout:
    _refuse_several(bag, present)
    if reason := _why_apart(bag, present):
        what = f"holds {len(_one_form(present))} files {reason}, and no {METADATA}"
        raise BagFault(bag, what, "folder", "give one of the files: each is a bag")
    return _parts(bag, present)


def _refuse_several(bag: Path, present: list[Path]) -> None:
    series = {_series(path) for path in present}
    if len(series) > 1:
        raise BagFault(
            bag,
            f"holds files of {len(series)} bags ({', '.join(sorted(series))}) and no {METADATA}",
            "folder",
            "put each bag into a folder of its own",
        )


def _why_apart(folder: Path, files: list[Path]) -> str:
    """What tells that numbered files are bags of their own; empty for parts of one.

    `ros2 bag record` gives its parts the name of their folder.
    """
    chosen = _one_form(files)
    recorded_as_one = len(chosen) == 1 or _series(chosen[0]) == folder.resolve().name
    return "" if recorded_as_one else why_apart(chosen)


def _parts(bag: Path, present: list[Path]) -> BagLayout:
    """All files as parts of one bag, in the order of their numbers."""
    fault = BagFault(bag, "is missing: nothing tells whether files or messages were lost", METADATA, REINDEX)
    files, faults = _untwinned(bag, sorted(present, key=_part))
    return BagLayout(bag, files, None, [fault, *faults])


def _untwinned(bag: Path, files: list[Path]) -> tuple[list[Path], list[BagFault]]:
    """The files to read where some hold one run in several forms, and a fault for each that is left out."""
    chosen = _one_form(files)
    by_stem = {stem(path): path for path in chosen}
    return chosen, [_twin_fault(bag, by_stem[stem(path)], [path]) for path in files if path not in chosen]


def _with_metadata(bag: Path, present: list[Path]) -> BagLayout:
    layout = BagLayout(bag, sorted(present, key=_part))
    try:
        information = plain_yaml((bag / METADATA).read_text(encoding="utf-8"))[INFORMATION]
        names = [Path(str(name)).name for name in information["relative_file_paths"]]
        counts: dict[str, int] = {}
        for topic in information["topics_with_message_count"]:
            name = absolute(str(topic["topic_metadata"]["name"]))
            counts[name] = counts.get(name, 0) + int(topic["message_count"])
    except OSError as error:
        what = f"cannot be read ({error.strerror})"
        layout.faults.append(BagFault(bag, what, METADATA, "grant permission to read it"))
        return _checked(layout)
    except (yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = " ".join(str(error).split())
        what = f"cannot be understood ({type(error).__name__}: {reason})"
        layout.faults.append(BagFault(bag, what, METADATA, REINDEX))
        return _checked(layout)
    layout.faults += _formats(bag, information)
    return _matched(layout, names, counts, information)


def _formats(bag: Path, information: Any) -> list[BagFault]:
    """What metadata.yaml says of version, serialisation and compression that this package cannot read."""
    found = []
    version = information.get("version", 0)
    if not isinstance(version, int) or version > 9:
        remedy = "convert the bag with `ros2 bag convert` of the ROS 2 that recorded it, if messages are missing"
        found.append(BagFault(bag, f"has version {version!r}; known are 1 to 9", METADATA, remedy))
    for topic in information["topics_with_message_count"]:
        encoding = str(topic["topic_metadata"].get("serialization_format", "cdr"))
        if encoding not in ("cdr", ""):
            found.append(not_cdr(bag, str(topic["topic_metadata"]["name"]), encoding, METADATA))
    packer = information.get("compression_format") or ""
    if information.get("compression_mode") and packer not in ("", "zstd"):
        remedy = "unpack the bag with `ros2 bag convert` of the ROS 2 that recorded it"
        found.append(BagFault(bag, f"says that it is packed with {packer!r}; known is zstd", METADATA, remedy))
    return found


def plain_yaml(text: str) -> Any:
    """As `yaml.safe_load`, but faster: metadata can be longer to read than its bag.

    Raises ConfigError where values lie too deep in one another, yaml.YAMLError.
    """
    check_depth(text)
    loader = LOADER(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _checked(layout: BagLayout) -> BagLayout:
    """Without usable metadata the files must at least be of one bag."""
    _refuse_several(layout.bag, layout.files)
    return BagLayout(layout.bag, _parts(layout.bag, layout.files).files, None, layout.faults)


def _matched(layout: BagLayout, listed: list[str], counts: dict[str, int], information: Any) -> BagLayout:
    """The files that metadata.yaml lists, in its order, faults for those that are missing or not listed."""
    names = list(dict.fromkeys(listed))
    if len(names) < len(listed):
        what = f"lists {', '.join(sorted({n for n in names if listed.count(n) > 1}))} twice: it is read once"
        layout.faults.append(BagFault(layout.bag, what, METADATA, REINDEX))
    present = {path.name: path for path in layout.files}
    forms = {stem(path): path for path in _one_form(layout.files)}
    # A file that was unpacked, packed or converted since then still is the part that is listed.
    found = {name: present.get(name) or forms.get(stem(Path(name))) for name in names}
    missing = [name for name, path in found.items() if path is None]
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
    read = [path for path in dict.fromkeys(found.values()) if path is not None]
    files, twins = _untwinned(layout.bag, read)
    chosen = {stem(path): path for path in files}
    others = [path for path in present.values() if path not in read]
    twins += [_twin_fault(layout.bag, chosen[stem(path)], [path]) for path in others if stem(path) in chosen]
    strangers = [path.name for path in others if stem(path) not in chosen]
    if strangers:
        what = f"is not listed in {METADATA} and left out: of another bag, or of a recording that broke off"
        remedy = f"move it into a folder of its own, or {REINDEX} if it belongs here"
        layout.faults.append(BagFault(layout.bag, what, ", ".join(strangers), remedy))
    layout.faults += twins
    layout.files, layout.counts = files, counts
    return layout
