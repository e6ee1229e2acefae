"""What other installed packages bring by entry point, with errors that name the package."""

from __future__ import annotations

from importlib import metadata
from typing import Any, NamedTuple


class EntryPointError(ValueError):
    """What a package brings cannot be used; the message names the package and the remedy."""


class Brought(NamedTuple):
    """An object that a package brings: where it was imported from, as `module:attribute`, and the package's name."""

    found: Any
    origin: str
    package: str


def names(group: str) -> set[str]:
    """Names that installed packages bring in an entry point group; imports nothing."""
    return {point.name for point in metadata.entry_points(group=group)}


def load(group: str, name: str, what: str) -> Brought | None:
    """The object of that name, None where no package brings one; `what` says in errors what it should be.

    Raises EntryPointError where several packages bring the name, or the import fails.
    """
    points = [point for point in metadata.entry_points(group=group) if point.name == name]
    if not points:
        return None
    if len(points) > 1:
        packages = ", ".join(sorted(_package(point) for point in points))
        raise EntryPointError(f"{what} {name!r} is brought by {packages}: uninstall all but one")
    (point,) = points
    try:
        return Brought(point.load(), point.value, _package(point))
    except Exception as error:
        raise EntryPointError(
            f"{what} {name!r} of {_package(point)} cannot be imported from {point.value}: "
            f"{type(error).__name__}: {error}. Install what it needs, or uninstall it"
        ) from error


def _package(point: metadata.EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed package"
