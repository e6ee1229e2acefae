"""The bytes of an mcap file: copied, as views of the file, or through a window for what is read record by record."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

from trace_memory_ros.bags.mcap_records import RecordError

_WINDOW_BYTES = 2**16
_STEP = 2**22


class Source:
    """An open file. mapped: `view` gives views of the file itself. Methods raise RecordError where the file ends."""

    def __init__(self, path: Path, mapped: bool = False) -> None:
        self._map: mmap.mmap | None = None
        self._window, self._window_at = b"", 0
        self._fd = os.open(path, os.O_RDONLY)
        try:
            self.size = os.fstat(self._fd).st_size
            if mapped:
                self._map = mmap.mmap(self._fd, self.size, access=mmap.ACCESS_READ)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the file; views that were handed out keep the mapping for as long as they live."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._map = None
        self._window = b""

    def read(self, at: int, size: int) -> bytes:
        """`size` bytes from byte `at` on."""
        data = os.pread(self._fd, max(min(size, self.size - at), 0), at) if at >= 0 else b""
        if len(data) < size:
            raise RecordError(f"the file ends {size - len(data)} bytes too early")
        return data

    def view(self, at: int, size: int) -> memoryview:
        """As `read`, but a view of the file where that is mapped."""
        if self._map is None:
            return memoryview(self.read(at, size))
        view = memoryview(self._map)[at : at + size]
        if len(view) < size:
            raise RecordError(f"the file ends {size - len(view)} bytes too early")
        return view

    def window(self, at: int, least: int) -> tuple[bytes, int]:
        """Bytes around `at`, at least `least` of them from there on, and where in them `at` is."""
        begin = at - self._window_at
        if begin < 0 or begin + least > len(self._window):
            if at + least > self.size:
                raise RecordError(f"the file ends {at + least - self.size} bytes too early")
            self._window, self._window_at = os.pread(self._fd, _WINDOW_BYTES, at), at
            begin = 0
        return self._window, begin

    def only_zeros(self, at: int) -> bool:
        """Whether nothing but zeros follows."""
        while block := os.pread(self._fd, _STEP, at):
            if block.count(0) != len(block):
                return False
            at += len(block)
        return True

    def find(self, pattern: bytes, at: int) -> int:
        """Where `pattern` comes next, -1 where it does not."""
        while block := os.pread(self._fd, _STEP + len(pattern) - 1, at):
            if (found := block.find(pattern)) >= 0:
                return at + found
            at += _STEP
        return -1
