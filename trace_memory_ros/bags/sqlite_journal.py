"""Messages that a recorder left in sqlite's journals, brought into a copy of the database."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from pathlib import Path
from typing import NamedTuple

WAL_MAGICS = (0x377F0682, 0x377F0683)
HOT_MAGIC = bytes.fromhex("d9d505f920a163d7")
_WAL_HEAD, _FRAME_HEAD = struct.Struct(">IIIIII8x"), struct.Struct(">IIII8x")


class Recovered(NamedTuple):
    """A copy of a database with its journals worked in. frames: pages that came out of the write-ahead log.

    unfinished: whether a transaction was never finished, and its messages are lost.
    """

    path: Path
    frames: int
    unfinished: bool


def write_ahead_log(path: Path) -> Path:
    """Where sqlite keeps what was not yet moved into the database."""
    return path.with_name(path.name + "-wal")


def journals(path: Path) -> list[Path]:
    """The journals beside a database that hold anything."""
    beside = (write_ahead_log(path), path.with_name(path.name + "-journal"))
    return [file for file in beside if file.is_file() and file.stat().st_size]


def recover(path: Path, folder: Path) -> Recovered:
    """Copy a database and its journals to `folder`, and work them in there. Raises sqlite3.Error, OSError."""
    copy = folder / path.name
    shutil.copyfile(path, copy)
    unfinished = False
    for journal in journals(path):
        shutil.copyfile(journal, folder / journal.name)
        unfinished |= journal.name.endswith("-journal") and journal.read_bytes()[: len(HOT_MAGIC)] == HOT_MAGIC
    log = write_ahead_log(path)
    if not copy.stat().st_size and log in journals(path):
        _begin_with(copy, log)
    connection = sqlite3.connect(copy)
    try:
        connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()
        _, frames, _ = connection.execute("PRAGMA wal_checkpoint").fetchone()
    finally:
        connection.close()
    if log in journals(path):
        unfinished |= _goes_on(log, max(frames, 0))
    return Recovered(copy, max(frames, 0), unfinished)


def _head(log: Path) -> tuple[int, bytes] | None:
    """Page size and salts of a write-ahead log; None where it is none."""
    with log.open("rb") as file:
        head = file.read(_WAL_HEAD.size)
    if len(head) < _WAL_HEAD.size or _WAL_HEAD.unpack(head)[0] not in WAL_MAGICS:
        return None
    return _WAL_HEAD.unpack(head)[2], head[16:24]


def _begin_with(database: Path, log: Path) -> None:
    """Give an empty database its first page from the log: beside an empty one sqlite deletes the log."""
    head = _head(log)
    if head is None or not 512 <= head[0] <= 65536:
        return
    with log.open("rb") as file:
        file.seek(_WAL_HEAD.size)
        while frame := file.read(_FRAME_HEAD.size + head[0]):
            if len(frame) == _FRAME_HEAD.size + head[0] and _FRAME_HEAD.unpack_from(frame)[0] == 1:
                database.write_bytes(frame[_FRAME_HEAD.size :])
                return


def _goes_on(log: Path, frames: int) -> bool:
    """Whether frames of the same log, and not of one before, follow the last that counts."""
    head = _head(log)
    if head is None:
        return False
    with log.open("rb") as file:
        file.seek(_WAL_HEAD.size + frames * (_FRAME_HEAD.size + head[0]))
        frame = file.read(_FRAME_HEAD.size)
    return len(frame) >= 16 and frame[8:16] == head[1]
