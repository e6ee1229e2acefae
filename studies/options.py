"""Command-line options that several studies take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

DEMOS = Path("out/demonstrations")


def names_of(known: Iterable[str]) -> Callable[[str], tuple[str, ...]]:
    """A parser of names by comma, each of which has to be `known`; names those that are not and what there is."""
    choices = tuple(known)

    def parse(text: str) -> tuple[str, ...]:
        names = tuple(part.strip() for part in text.split(","))
        if unknown := [name for name in names if name not in choices]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(choices)}")
        return names

    return parse


def count(text: str, least: int = 1) -> int:
    """A parser of whole numbers of at least `least`."""
    if not text.isdigit() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of at least {least}")
    return int(text)


def whole(text: str) -> int:
    """A parser of whole numbers from 0."""
    return count(text, least=0)


def add_names(parser: argparse.ArgumentParser, flag: str, known: Iterable[str], what: str) -> None:
    """Add an option that takes some of the `known` names, by default all."""
    choices = tuple(known)
    words = f"{what}, by comma, of {', '.join(choices)} (default: all)"
    parser.add_argument(flag, type=names_of(choices), default=choices, help=words)


def add_counts(parser: argparse.ArgumentParser, **counts: tuple[int, str]) -> None:
    """Add options that take a whole number of at least 1: name=(default, what it counts)."""
    for name, (default, what) in counts.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=count, default=default, help=f"{what} (default: {default})")


def add_workers(parser: argparse.ArgumentParser, default: int = 1) -> None:
    """Add `--workers`."""
    add_counts(parser, workers=(default, "processes"))


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add `--device`."""
    parser.add_argument("--device", default="cpu", help="to train on: auto, cpu, cuda, cuda:N or mps (default: cpu)")


def add_grid(parser: argparse.ArgumentParser, workers: int = 2, seeds: int = 3) -> None:
    """Add what every study of trainings on the arm takes: seeds, workers, `--report`, the demonstration cache."""
    add_counts(parser, seeds=(seeds, "training seeds"))
    add_workers(parser, workers)
    parser.add_argument("--report", action="store_true", help="train and measure nothing, tabulate what is there")
    add_demos(parser)


def add_demos(parser: argparse.ArgumentParser) -> None:
    """Add `--demos`."""
    parser.add_argument("--demos", type=Path, default=DEMOS, help="demonstration cache")
