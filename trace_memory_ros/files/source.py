"""Hashes of Python source, by which what was computed is told from what other code would compute."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path


def brought_digest(packages: Iterable[str]) -> str:
    """Hash of the source of the importable `packages` of other people."""
    found = []
    for package in sorted(packages):
        module = sys.modules[package]
        # One module alone has no folder, and one without a file, as typed in, has no source.
        places = getattr(module, "__path__", None) or filter(None, [getattr(module, "__file__", None)])
        found += [(package, Path(place)) for place in places]
    return digest_of(found)


def digest_of(sources: Iterable[tuple[str, Path]]) -> str:
    """Hash of all Python files under named places, or of the file that one is, and of what they are called there."""
    digest = hashlib.sha256()
    for name, place in sources:
        for file in [place] if place.is_file() else sorted(place.rglob("*.py")):
            called = f"{name}\0{file.relative_to(place).as_posix()}\0"
            digest.update(called.encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()
