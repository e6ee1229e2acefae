"""Frames of one episode out of a LeRobotDataset's video file, in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.policies.lerobot.install import lerobot


def video_frames(path: Path, start_s: float, count: int, fps: int) -> Iterator[NDArray[np.uint8]]:
    """`count` frames `(H, W, 3)` uint8 RGB from `start_s` seconds on, decoded by PyAV, which LeRobot brings.

    LeRobot's own reader needs torchcodec, or a torchvision before 0.26. Raises ValueError where a frame is missing.
    """
    av = lerobot("av")
    due = 0
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        container.seek(int(start_s / stream.time_base), stream=stream, backward=True)
        for frame in container.decode(stream):
            position = round((float(frame.pts * stream.time_base) - start_s) * fps)
            if position < due:
                continue
            if position > due or due == count:
                break
            yield frame.to_ndarray(format="rgb24")
            due += 1
            if due == count:
                return
    raise ValueError(
        f"{path} lacks frame {due} of the {count} from {start_s:.3f} s on at {fps} frames per second: copy the dataset "
        "again"
    )
