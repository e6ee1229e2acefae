"""What the entries of a memory are called and which of them count at a tick, from the diagnostics alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from trace_memory_ros.msg import MemoryDiagnostics

OPEN = 0.5
"""A learned gate writes from here on."""
LONGEST_KIND = 24


def kind(message: MemoryDiagnostics) -> str:
    """What one entry is, in a word or two."""
    words = " ".join(message.slot_kind.split()) or "entry"
    return words if len(words) <= LONGEST_KIND else words[: LONGEST_KIND - 2] + ".."


def name(message: MemoryDiagnostics, index: int) -> str:
    """'ring entry 17'."""
    return f"{kind(message)} {index}"


def how_many(message: MemoryDiagnostics) -> str:
    """'32 ring entries', '1 slot'."""
    count, one = len(message.slot_norms), kind(message)
    if count == 1:
        return f"1 {one}"
    several = one[:-1] + "ies" if one.endswith("y") and one[-2:-1] not in tuple("aeiou") else one + "s"
    return f"{count or 'no'} {several}"


def greatest(shares: Sequence[float]) -> int:
    """The index of the largest share, the first of equals; -1 where no share is a number."""
    numbers = [(share, -index) for index, share in enumerate(shares) if math.isfinite(share)]
    return -max(numbers)[1] if numbers else -1


def refused(message: MemoryDiagnostics) -> bool:
    """Whether the gate kept the last write that was due out of the memory."""
    return message.gate < OPEN and not any(strength > 0 for strength in message.write_strength)


def written(message: MemoryDiagnostics) -> int:
    """The entry that got the largest share of the last write, -1 where nothing was written."""
    some = any(math.isfinite(share) and share > 0 for share in message.route)
    return greatest(message.route) if some and not refused(message) else -1
