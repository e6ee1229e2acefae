"""Recorded conditions of any age: also those of bags made before conditions carried an instance."""

from __future__ import annotations

from typing import Any

from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from trace_memory_ros.bags.described import Described
from trace_memory_ros.bags.messages import CONDITION
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.message_fields import condition_of
from trace_memory_ros.runtime.shipped import message_files

SINCE_INSTANCES = ("instance", "restored", "gap_ticks")
"""Fields that conditions did not have at first."""


def earlier_definition() -> str:
    """The text of MemoryCondition.msg without the fields that came later."""
    (file,) = (file for file in message_files() if file.stem == "MemoryCondition")
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line.split()[1:2] not in [[name] for name in SINCE_INSTANCES])


class RecordedConditions:
    """Reads the conditions of one topic by the definition that the bag has of them.

    Without one (rosbag2 before Jazzy wrote none to sqlite), by today's and else by the earlier.
    """

    def __init__(self, definition: str) -> None:
        self._described = Described(CONDITION, definition) if definition else None
        self._earlier: Typestore | None = None

    def read(self, raw: RawMessage) -> Condition:
        """The condition in a recorded message. Raises ValueError where it is of another type or damaged."""
        if raw.type_name != CONDITION:
            raise ValueError(f"message on {raw.topic} is {raw.type_name}, needed is {CONDITION}")
        try:
            return condition_of(self._message(bytes(raw.data)))
        except Exception as error:  # whatever rosbags makes of damaged bytes
            raise ValueError(f"condition on {raw.topic} logged at {raw.log_ns} ns cannot be read ({error})") from error

    def _message(self, data: bytes) -> Any:
        if self._described is not None:
            return self._described.message(data)
        if self._earlier is None:
            try:
                return typestore().deserialize_cdr(data, CONDITION)
            except Exception:  # of a bag that is older, or damaged: the earlier definition tells
                store = _earlier_types()
                message = store.deserialize_cdr(data, CONDITION)
                self._earlier = store
                return message
        return self._earlier.deserialize_cdr(data, CONDITION)


def _earlier_types() -> Typestore:
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(earlier_definition(), CONDITION))
    return store
