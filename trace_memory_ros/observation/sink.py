"""What takes the contents of messages, whether they come live or from a bag."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from trace_memory_ros.observation.alignment import Verdict


class Sink(Protocol):
    """Where message contents go: `Observer`, or what else takes them, such as a store of samples."""

    def push_image(
        self,
        camera: str,
        stamp_ns: int,
        arrival_ns: int,
        *,
        data: Any,
        encoding: str,
        height: int,
        width: int,
        step: int,
        is_bigendian: int,
    ) -> Verdict: ...

    def push_compressed(self, camera: str, stamp_ns: int, arrival_ns: int, *, data: Any, format: str) -> Verdict: ...  # noqa: A002

    def push_joints(
        self, stream: str, stamp_ns: int, arrival_ns: int, *, names: Sequence[str], positions: Any
    ) -> Verdict: ...

    def push_base(
        self, stream: str, stamp_ns: int, arrival_ns: int, *, vx: float, vy: float, yaw_rate: float
    ) -> Verdict: ...
