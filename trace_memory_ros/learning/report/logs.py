"""The log of a training beside its checkpoint: `progress.jsonl`, a line each, and TensorBoard's files where that is
installed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from trace_memory_ros.learning.report.progress import Progress, Reporter

FILE = "progress.jsonl"
TENSORBOARD = "tensorboard"
"""Folder of its event files."""
EVENTS = "events.out.tfevents.*"

Line = dict[str, Any]


class RunLog(Reporter):
    """Appends each line of a training to the files in `folder` as it comes; anew, unless it resumes.

    A context manager.
    """

    def __init__(self, folder: Path, resume: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if not resume:
            # TensorBoard shows all files of a folder as one run.
            for old in (folder / TENSORBOARD).glob(EVENTS):
                old.unlink()
        self._file = (folder / FILE).open("a" if resume else "w", encoding="utf-8")
        if self._file.tell() and not (folder / FILE).read_bytes().endswith(b"\n"):
            # A line that was cut off must not take the next one along.
            self._file.write("\n")
        self._board = _board(folder / TENSORBOARD)
        self._begun = time.monotonic()

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()

    def progress(self, line: Progress) -> None:
        """Write the line, so that it is there whatever comes next."""
        plain = plain_line(line) | {"wall_s": round(time.monotonic() - self._begun, 3)}
        self._file.write(json.dumps(plain) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in scalars(plain):
                self._board.add_scalar(f"{line.phase}/{name}", value, line.step)


def plain_line(line: Progress) -> Line:
    """A line as plain values; an accuracy with its count where it knows that."""
    return {field.name: _plain(getattr(line, field.name)) for field in fields(line)}


def scalars(line: Line) -> Iterator[tuple[str, float]]:
    """Names and numbers of a plain line: each loss, accuracy and figure."""
    for name, value in line.items():
        if isinstance(value, dict) and "value" in value:
            yield from ((name if key == "value" else f"{name}_{key}", value[key]) for key in ("value", "count"))
        elif isinstance(value, dict):
            yield from ((f"{name}/{key}", number) for key, number in value.items())
        elif isinstance(value, int | float) and name not in ("step", "wall_s"):
            yield name, value


def read(folder: Path) -> list[Line]:
    """The lines of a training's log, in order; of a step that was done twice, after a crash, the later one.

    A last line that was cut off is left out. Empty where there is no log.
    """
    try:
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    found: dict[tuple[str, int, int], Line] = {}
    for row in text.splitlines():
        try:
            line = json.loads(row)
            found[str(line["phase"]), int(line["attempt"]), int(line["step"])] = line
        except (ValueError, KeyError, TypeError):
            continue
    return list(found.values())


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return dict(value) if hasattr(value, "items") else value


def _board(folder: Path) -> Any:
    """A writer of TensorBoard's files, or None without it."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder))  # type: ignore[no-untyped-call]
