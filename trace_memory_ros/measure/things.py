"""Pictures as eyes for things see them: what is a thing in its colours, with a line round it, all else dark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.images import Image
from trace_memory_ros.vision.things import ThingsBackbone

TILE_PX, CAPTION_PX, GAP_PX = 256, 22, 6
DARK = 0.3
"""Of the brightness of what is not seen."""
PAPER, INK, LINE = 255, 40, (255, 255, 255)


@dataclass
class Counts:
    """Things in each picture of a camera, those that become tokens. full: pictures with more than there are tokens."""

    things: list[int] = field(default_factory=list)
    full: int = 0

    @property
    def empty(self) -> int:
        """Pictures without any."""
        return self.things.count(0)


def look(eyes: ThingsBackbone, image: Image, counts: Counts) -> Image:
    """A picture `(P, P, 3)` as it is seen, enlarged to about `TILE_PX`; counts what is in it."""
    of = eyes.things(image.astype(np.float32) / 255.0).of
    found = int(of.max(initial=-1)) + 1
    counts.things.append(min(found, eyes.most_things))
    counts.full += found > eyes.most_things
    return _enlarged(image, np.where(of < eyes.most_things, of, -1))


def captioned(picture: Image, words: str) -> Image:
    """A picture with words below it."""
    below = np.full((CAPTION_PX, picture.shape[1], 3), PAPER, dtype=np.uint8)
    cv2.putText(below, words, (2, 15), cv2.FONT_HERSHEY_SIMPLEX, 0.42, (INK, INK, INK), 1, cv2.LINE_AA)
    return np.concatenate([picture, below])


def sheet(rows: Sequence[Sequence[Image]]) -> Image:
    """Pictures of one size in rows; shorter ones end in paper."""
    tall, wide, _ = rows[0][0].shape
    columns = max(map(len, rows))
    paper = np.full((len(rows) * (tall + GAP_PX), columns * (wide + GAP_PX), 3), PAPER, dtype=np.uint8)
    for y, row in enumerate(rows):
        for x, picture in enumerate(row):
            top, left = y * (tall + GAP_PX), x * (wide + GAP_PX)
            paper[top : top + tall, left : left + wide] = picture
    return paper


def _enlarged(image: Image, of: NDArray[np.int64]) -> Image:
    """Pixels that belong to a thing as they are, the others dark, and lines where two meet."""
    times = max(1, round(TILE_PX / len(image)))
    grey = (DARK * image.mean(axis=-1, keepdims=True)).astype(np.uint8)
    shown, number = (each.repeat(times, 0).repeat(times, 1) for each in (np.where(of[..., None] >= 0, image, grey), of))
    for axis in (0, 1):
        shown[np.diff(number, axis=axis, append=-1) != 0] = LINE
    return np.asarray(shown, dtype=np.uint8)
