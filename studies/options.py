"""Command-line values that several benchmarks take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable


def names_of(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of names by comma, each of which has to be `known`; names those that are not and what there is."""
    choices = tuple(known)

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(part.strip() for part in text.split(","))
        if unknown := [name for name in names if name not in choices]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(choices)}")
        return names

    return parse
