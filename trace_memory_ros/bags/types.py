"""Message types for rosbags: those of ROS 2, and ours from the text of their `.msg` files."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

import trace_memory_ros

PACKAGE = "trace_memory_ros"


@cache
def typestore() -> Typestore:
    """ROS 2's types and this package's. Raises `ValueError` when the `.msg` files aren't found."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types = {}
    for file in message_files():
        types.update(get_types_from_msg(file.read_text(encoding="utf-8"), f"{PACKAGE}/msg/{file.stem}"))
    store.register(types)
    return store


def message_files() -> list[Path]:
    """This package's `.msg` files: the checkout's, else the installed ones. Raises `ValueError` naming all places."""
    prefixes = [prefix for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    installed = [Path(prefix) / "share" / PACKAGE for prefix in prefixes]
    folders = [Path(trace_memory_ros.__file__).resolve().parents[1] / "msg", *(share / "msg" for share in installed)]
    for folder in folders:
        files = sorted(folder.glob("*.msg"))
        if files:
            return files
    places = ", ".join(str(folder) for folder in folders)
    raise ValueError(f"no .msg files in {places}: build the package with colcon and source its install folder")
