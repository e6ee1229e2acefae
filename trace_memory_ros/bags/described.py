"""Messages of types that only their definition in the bag tells how to read, by rosbags."""

from __future__ import annotations

from typing import Any

from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from trace_memory_ros.bags.types import typestore
from trace_memory_ros.streams.cdr import Cdr, CdrError


class Described:
    """Reads payloads of one type, as `definition`, the text in the bag, says; empty for what rosbags knows itself."""

    def __init__(self, type_name: str, definition: str) -> None:
        self._type_name = type_name
        self._store = get_typestore(Stores.ROS2_JAZZY) if definition else typestore()
        self.fault = ""
        try:
            if definition:
                found = get_types_from_msg(definition, type_name)
                self._store.register({name: kind for name, kind in found.items() if name not in self._store.types})
            if type_name not in self._store.types:
                self.fault = (
                    f"{type_name} is not known and the bag has no definition of it: record with mcap, or with ROS 2 "
                    "Jazzy or later"
                )
        except Exception as error:  # whatever rosbags makes of a text
            self.fault = f"the bag's definition of {type_name} cannot be understood ({error})"

    def message(self, payload: bytes | memoryview) -> Any:
        """The message, with attributes by field name. Raises CdrError."""
        if self.fault:
            raise CdrError(self.fault)
        cdr = Cdr(payload)
        try:
            definition = self._store.get_msgdef(self._type_name)
            read = definition.deserialize_cdr_le if cdr.order == "<" else definition.deserialize_cdr_be
            # Bytes behind the end are no fault: rclpy.serialization leaves room for what empty sequences might need.
            message, _ = read(bytes(cdr.data), 0, definition.cls, self._store)
            return message
        except Exception as error:  # whatever rosbags makes of damaged bytes
            raise CdrError(f"payload of {len(payload)} bytes is no {self._type_name} ({error})") from error
