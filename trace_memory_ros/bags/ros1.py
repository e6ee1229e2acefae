"""ROS 1 bags to rosbag2 folders, by rosbags."""

from __future__ import annotations

import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import yaml
from rosbags.convert import ConverterError, convert
from rosbags.rosbag1 import Reader, ReaderError
from rosbags.typesys import Stores, get_typestore

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.layout import AUTHOR, INFORMATION, METADATA, ROS1, plain_yaml
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.writer import replace_bag
from trace_memory_ros.files import atomic

COMMAND = "trace-memory bags convert"
REPAIR = "repair a copy with `rosbag reindex` or `rosbag fix`, or restore it from a copy"


def ros1_bags(source: Path) -> list[Path]:
    """The `.bag` files at or below `source`. Raises BagFault where there is none."""
    found = [source] if source.is_file() else sorted(path for path in source.rglob("*" + ROS1) if path.is_file())
    if not found:
        what = "holds no ROS 1 bag" if source.is_dir() else "does not exist"
        raise BagFault(source, what, "path", "give a .bag file, or a folder of them")
    return found


def convert_bag(bag: Path, folder: Path) -> int:
    """Write a ROS 1 bag as mcap bag to `folder`; returns how many messages.

    Messages keep their log times; types that ROS 2 changed are brought over field by field, those that it does not
    know come with the definition in the bag. What an earlier conversion left in `folder` is replaced. Raises BagFault
    for a bag that cannot be converted whole, OutputError where something else lies in `folder`.
    """
    replace_bag(folder, COMMAND)
    try:
        with Reader(bag) as reader:
            expected = reader.message_count
        with redirect_stdout(io.StringIO()):
            convert([bag], folder, "mcap", 9, None, "none", None, get_typestore(Stores.ROS2_JAZZY), [], [], [], [])
        _sign(folder)
        with BagReader(folder) as converted:
            written = sum(info.messages for info in converted.topics.values())
    except BaseException as error:
        # Half a bag would be taken for a whole one, or stand in the way of the next run.
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, BagFault) and not expected:
            raise BagFault(bag, "holds no messages", "file", "record again") from error
        if isinstance(error, ConverterError | ReaderError | OSError | BagFault | AssertionError):
            raise BagFault(bag, f"cannot be converted ({error})", "file", REPAIR) from error
        raise
    if written != expected:
        shutil.rmtree(folder)
        raise BagFault(bag, f"holds {expected} messages, {written} of them were converted", "file", REPAIR)
    return written


def _sign(folder: Path) -> None:
    data = plain_yaml((folder / METADATA).read_text(encoding="utf-8"))
    data[INFORMATION]["custom_data"] = {AUTHOR: COMMAND}
    atomic.write(folder / METADATA, yaml.safe_dump(data, sort_keys=False))
