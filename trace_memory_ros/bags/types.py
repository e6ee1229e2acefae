"""Message types for rosbags: those of ROS 2, and ours from the text of their `.msg` files."""

from __future__ import annotations

from functools import cache

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from trace_memory_ros.runtime.shipped import PACKAGE, message_files


@cache
def typestore() -> Typestore:
    """ROS 2's types and this package's. Raises `ValueError` when the `.msg` files aren't found."""
    store = get_typestore(Stores.ROS2_JAZZY)
    types = {}
    for file in message_files():
        types.update(get_types_from_msg(file.read_text(encoding="utf-8"), f"{PACKAGE}/msg/{file.stem}"))
    store.register(types)
    return store


def of_another_version(type_name: str, definition: str) -> bool:
    """Whether a bag's definition has other fields than ours; False for a type that is not ours, or without one."""
    if not definition or not type_name.startswith(f"{PACKAGE}/") or type_name not in typestore().fielddefs:
        return False
    try:
        found = get_types_from_msg(definition, type_name)
    except Exception:  # whatever rosbags makes of a text: then nothing is known
        return False
    return type_name in found and found[type_name][1] != typestore().fielddefs[type_name][1]
