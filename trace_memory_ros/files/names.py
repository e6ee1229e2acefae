"""Names that differ from one another, as topics, cameras and numbers of a configuration must."""

from __future__ import annotations

from collections.abc import Collection


def unique(name: str, taken: Collection[str]) -> str:
    """`name`, or with the first number from 2 on that is not taken."""
    chosen, count = name, 2
    while chosen in taken:
        chosen, count = f"{name}_{count}", count + 1
    return chosen
