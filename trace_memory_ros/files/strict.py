"""Strict reading of nested mappings into dataclasses: an unknown or missing key is an error, never ignored."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any


class ConfigError(ValueError):
    """A configuration value is wrong; the message names the key, the value and the remedy."""


def nearest(name: str, known: Collection[str]) -> str:
    """`'did you mean ...? Known are ...'`: the known name closest to `name` where one is close, and all of them."""
    if not known:
        return "there is none to choose"
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    listed = ", ".join(sorted(known))
    return f"did you mean {close[0]!r}? Known are {listed}" if close else f"known are {listed}"


def check_keys(data: object, known: Collection[str], required: Collection[str], where: str) -> Mapping[str, Any]:
    """Return `data` if it is a mapping with only known keys and all required ones.

    Raises ConfigError naming the key, `where` it was read and the nearest known key.
    """
    if not isinstance(data, Mapping):
        raise ConfigError(f"{where}: expected a mapping with keys {', '.join(sorted(known))}, got {data!r}")
    for key in data:
        if key not in known:
            raise ConfigError(f"{where}: unknown key {key!r}; {nearest(str(key), known)}")
    for key in required:
        if key not in data:
            raise ConfigError(f"{where}: key {key!r} is missing; add it")
    return data


def require_text(value: object, where: str) -> None:
    """Raise ConfigError unless `value` is a non-empty string."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{where} = {value!r}: must be a non-empty string")


def require_int(value: object, where: str, least: int, most: int | None = None) -> None:
    """Raise ConfigError unless `value` is an int (not bool) within `least..most`."""
    bound = f"at least {least}" if most is None else f"{least}..{most}"
    if isinstance(value, bool) or not isinstance(value, int) or value < least or (most is not None and value > most):
        raise ConfigError(f"{where} = {value!r}: must be an integer, {bound}")


def require_positive(value: object, where: str, *, zero: bool = False) -> None:
    """Raise ConfigError unless `value` is a finite number > 0 (>= 0 with `zero`)."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not (0 <= float(value) < float("inf")) or (value == 0 and not zero):  # type: ignore[arg-type]
        raise ConfigError(f"{where} = {value!r}: must be a finite number {'>= 0' if zero else '> 0'}")


def require_choice(value: object, choices: Collection[str], where: str) -> None:
    """Raise ConfigError unless `value` is one of `choices`."""
    if value not in choices:
        raise ConfigError(f"{where} = {value!r}: must be one of {', '.join(choices)}")
