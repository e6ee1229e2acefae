"""A decoder that one bag ends; spawned processes find it by this module's name."""

from __future__ import annotations

import os
from pathlib import Path

from trace_memory_ros.bags.faults import BagVerdict, verdict_of


def dies(bag: Path, *_: object) -> BagVerdict:
    """Stands for a bag that ends the process which decodes it."""
    if bag.name == "two":
        os._exit(9)
    return verdict_of(bag, [])
