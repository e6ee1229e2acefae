"""What the memory saw at one tick, as a picture of a page: all cameras side by side at its own size."""

from __future__ import annotations

import base64

import cv2
import numpy as np

from trace_memory_ros.observation.frames import Cameras, side_by_side


def seen_picture(frames: Cameras, tick: int, px: int) -> str:
    """A `data:` URI of the cameras at `tick`, each `px` wide."""
    picture = side_by_side({name: one[tick] for name, one in frames.items()}, px)
    ok, png = cv2.imencode(".png", np.ascontiguousarray(picture[..., ::-1]))
    assert ok
    return f"data:image/png;base64,{base64.b64encode(png.tobytes()).decode('ascii')}"
