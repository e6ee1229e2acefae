"""Frames of one episode out of a LeRobotDataset's video file, in order."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


class Unreadable(ValueError):
    """A file of a dataset is missing or damaged. what: the matter with it; remedy: what to do about it."""

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"{path}: {what}; {remedy}")
        self.path, self.what, self.remedy = path, what, remedy


AGAIN = "copy the dataset again"
LFS = "this is a pointer of Git LFS, not the file: run `git lfs pull` in the dataset's folder"
INSTALL = 'pip install "trace_memory_ros[datasets]"'
_POINTER = b"version https://git-lfs"


def check_file(path: Path) -> None:
    """Raise Unreadable where a file is missing, empty, or stands for one that was never fetched."""
    try:
        with path.open("rb") as content:
            head = content.read(len(_POINTER))
    except OSError as error:
        raise Unreadable(path, f"cannot be read ({error.strerror})", AGAIN) from error
    if not head or head == _POINTER:
        raise Unreadable(path, "is empty" if not head else "was not fetched", AGAIN if not head else LFS)


def video_frames(
    path: Path, start_s: float, count: int, fps: int, wanted: Collection[int] | None = None
) -> Iterator[NDArray[np.uint8]]:
    """Frames `(H, W, 3)` uint8 RGB of the `count` from `start_s` seconds on, decoded by PyAV: the `wanted`, else all.

    Raises Unreadable where a frame is missing, or PyAV is.
    """
    check_file(path)
    try:
        import av
    except ModuleNotFoundError as error:
        raise Unreadable(path, "is decoded by PyAV, which is not installed", INSTALL) from error
    due = 0
    try:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            unit_s = float(stream.time_base or 1.0 / fps)
            container.seek(int(start_s / unit_s), stream=stream, backward=True)
            for frame in container.decode(stream):
                position = round((float(frame.pts or 0) * unit_s - start_s) * fps)
                if position < due:
                    continue
                if position > due or due == count:
                    break
                if wanted is None or due in wanted:
                    yield np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
                due += 1
                if due == count:
                    return
    except (av.error.FFmpegError, IndexError) as error:
        raise Unreadable(path, f"is no video that can be decoded ({error})", AGAIN) from error
    raise Unreadable(path, f"lacks frame {due} of the {count} from {start_s:.3f} s on at {fps} per second", AGAIN)
