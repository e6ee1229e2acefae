"""Whether numbered files are the parts of one recording, or recordings of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.mcap_file import McapFile
from trace_memory_ros.bags.sqlite_file import SqliteFile

APART_NS = 1_000_000_000
"""A recorder that begins its next part loses less than this, and writes into two parts for less."""


class _Span(NamedTuple):
    """Log times of a file's first and last message, and its topics."""

    first_ns: int
    last_ns: int
    topics: frozenset[str]


def why_apart(files: Sequence[Path]) -> str:
    """What tells that files are recordings of their own; empty where they may be parts of one.

    Files that are packed, hold nothing or cannot be read tell nothing.
    """
    spans = sorted(span for file in files if (span := _span(file)) is not None)
    for before, span in zip(spans, spans[1:], strict=False):
        shared = sorted(before.topics & span.topics)
        if shared and min(before.last_ns, span.last_ns) - span.first_ns > APART_NS:
            return f"of the same time with {shared[0]} in each"
    gap_ns = _longest_gap_ns(spans)
    return f"recorded up to {gap_ns / 1e9:.0f} s apart" if gap_ns > APART_NS else ""


def _longest_gap_ns(spans: Sequence[_Span]) -> int:
    """The longest time between the first and the last message of which no file tells; 0 for none."""
    longest, until = 0, spans[0].last_ns if spans else 0
    for span in spans:
        longest, until = max(longest, span.first_ns - until), max(until, span.last_ns)
    return longest


def _span(file: Path) -> _Span | None:
    if file.suffix not in (".mcap", ".db3"):
        return None  # Unpacking it takes as long as reading it.
    try:
        storage = McapFile(file, file) if file.suffix == ".mcap" else SqliteFile(file, file)
    except (BagFault, OSError):
        return None
    try:
        times = storage.times_ns()
        return None if times is None else _Span(*times, frozenset(topic.name for topic in storage.topics()))
    finally:
        storage.close()
