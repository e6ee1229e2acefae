"""Where a command may write: to what is new, to an empty folder, or to what the same command wrote before."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from trace_memory_ros.files import atomic

MARKER = ".written_by"
"""File in a folder of results that names the command that wrote them."""
SUMMARY = "summary.json"
_SEAL = "Written by {}; sealed "


class Comment(NamedTuple):
    """How a line of comment begins and ends in a kind of file."""

    begin: str
    end: str = ""


HASH = Comment("# ")
XML = Comment("<!-- ", " -->")


class OutputError(ValueError):
    """A place that a command must not or cannot write to; the message names it and the remedy."""


def claim(folder: Path, command: str, option: str = "--out") -> Path:
    """Make `folder` the place of `command`'s results, and return it.

    command: its name without arguments, such as `trace-memory train`; option: how another folder is given. Raises
    OutputError where anything lies there that this command did not write, or where nothing can be written.
    """
    check(folder, command, option)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark(folder, command)
    except OSError as error:
        raise unwritable(folder, error, option) from error
    return folder


def check(folder: Path, command: str, option: str = "--out") -> None:
    """Raise OutputError where `folder` holds what this command did not write; changes nothing."""
    try:
        if folder.is_dir():
            if any(folder.iterdir()) and (author := written_by(folder)) != command:
                what = f"was written by `{author}`" if author else "holds files that no command of this package wrote"
                raise OutputError(f"{folder} {what}: give a new or an empty folder by {option}, or move it away")
        elif folder.exists() or folder.is_symlink():
            raise OutputError(f"{folder} is no folder: give another place by {option}, or move it away")
    except OSError as error:
        raise unwritable(folder, error, option) from error


def mark(folder: Path, command: str) -> None:
    """Say in `folder` which command writes it."""
    atomic.write(folder / MARKER, command + "\n")


def written_by(folder: Path) -> str:
    """The command that wrote a folder's results, by its mark or by its summary; empty where nothing tells."""
    try:
        return (folder / MARKER).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        pass
    try:
        words = str(json.loads((folder / SUMMARY).read_text(encoding="utf-8"))["command"]).split()
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return " ".join(words[: 3 if words[1:2] == ["bench"] else 2])


def vacate(folder: Path, command: str, author: str, written: Callable[[str], bool], option: str = "--out") -> None:
    """Remove what this command left in `folder`, so that it can write it anew.

    author: the command that wrote what lies there, as that says itself. written: whether a file of this name is one
    that the command writes. Raises OutputError where anything else lies there.
    """
    others = sorted(path.name for path in folder.iterdir() if path.is_dir() or not written(path.name))
    if author != command or others:
        unknown = f"what `{author}` wrote" if author else "what no command of this package wrote"
        found = ", ".join(others[:3]) or unknown
        what = f"{folder} holds {found}, and only what `{command}` wrote itself is replaced"
        raise OutputError(f"{what}: give another folder by {option}, or move it away")
    try:
        shutil.rmtree(folder)
    except OSError as error:
        raise unwritable(folder, error, option) from error


def check_file(path: Path, command: str, option: str = "--out", comment: Comment = HASH) -> None:
    """Raise OutputError where `path` is anything else than a file that `write_file` wrote and nobody edited since."""
    if not path.exists() and not path.is_symlink():
        return
    try:
        known = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        known = ""
    content, found, _ = known.rpartition(comment.begin + _SEAL.format(command))
    if not found or known != _sealed(content, command, comment):
        raise OutputError(
            f"{path} is not as `{command}` wrote it, or was edited: give another file by {option}, or move it away"
        )


def write_file(path: Path, content: str, command: str, option: str = "--out", comment: Comment = HASH) -> None:
    """Write a text file, with a last line of comment by which `check_file` knows it again.

    Raises OutputError where `check_file` does, or where it cannot be written.
    """
    check_file(path, command, option, comment)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write(path, _sealed(content, command, comment))
    except OSError as error:
        raise unwritable(path, error, option) from error


def _sealed(content: str, command: str, comment: Comment) -> str:
    seal = _SEAL.format(command) + hashlib.sha256(content.encode()).hexdigest()[:16]
    return f"{content}{comment.begin}{seal}{comment.end}\n"


def unwritable(path: Path, error: OSError, option: str = "--out") -> OutputError:
    """What to say where nothing can be written."""
    return OutputError(f"{path} cannot be written ({error.strerror or error}): give another place by {option}")
