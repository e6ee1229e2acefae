"""Camera strips: the same scene with each cue, from the cue to what each memory did at the branch."""

from __future__ import annotations

import base64
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.demo.results import DemoResult, Frame, IllustratedEpisode, cue_name, went
from trace_memory_ros.arm.sim.tasks.table import task_of

_COMMON = (
    ("cue", "the cue is visible"),
    ("gone", "the cue is gone"),
    ("way", "on the way"),
    ("branch", "at the branch"),
)
_EXPLAINED = {
    "origin": "The part lies in the left or the right bin. From there on both paths are the same, until the part must "
    "go back to its own side. The first picture shows where it lay: keeping that picture alone is enough.",
    "colour": "The panel at the far end lights up blue (left) or yellow (right) for two seconds, then turns grey. The "
    "first picture shows it: keeping that picture alone is enough.",
    "cups": "The part is covered by one of three cups, which are then swapped. Which is it under now? No single "
    "picture tells.",
}


class Picture(NamedTuple):
    """A cell of a strip. frame: None where there is none, for the reason `missing`.

    word: `right`, `wrong` or empty, of `note`.
    """

    frame: Frame | None
    uri: str = ""
    word: str = ""
    note: str = ""
    missing: str = "not reached"


class Row(NamedTuple):
    """The pictures of one cue: those that all memories share, then one a memory."""

    cue: str
    pictures: list[Picture]


class Strip(NamedTuple):
    """What the page shows of a task."""

    task: str
    explained: str
    moments: list[str]
    rows: list[Row]


def strips_of(result: DemoResult) -> list[Strip]:
    """A strip for each task of which an episode was recorded."""
    found = []
    for task in result.tasks:
        cues = ((cue, _recorded(task, cue, result)) for cue in range(task_of(task).choices))
        rows = [_row(task, cue, recorded, result.memories) for cue, recorded in cues if recorded]
        if rows:
            found.append(Strip(task, _EXPLAINED.get(task, ""), [name for _, name in _COMMON], rows))
    return found


def _recorded(task: str, cue: int, result: DemoResult) -> dict[str, IllustratedEpisode]:
    """The first recorded plain episode with pictures of each memory, for one cue."""
    found: dict[str, IllustratedEpisode] = {}
    for recording in result.recordings:
        episode = recording.episode
        if (episode.task, episode.cue) == (task, cue) and not episode.pause_s and recording.frames:
            found.setdefault(episode.memory, recording)
    return found


def _row(task: str, cue: int, recorded: dict[str, IllustratedEpisode], memories: tuple[str, ...]) -> Row:
    first = next(recorded[memory] for memory in memories if memory in recorded)
    shared = [_picture(first.frame(moment)) for moment, _ in _COMMON]
    return Row(cue_name(task, cue), shared + [_end(recorded.get(memory)) for memory in memories])


def _end(recording: IllustratedEpisode | None) -> Picture:
    if recording is None:
        return Picture(None, missing="")
    episode = recording.episode
    word, mark = ("right", "✓") if episode.success else ("wrong", "✗")
    where = "no branch" if episode.branch < 0 else f"went {went(episode.task, episode.branch)}"
    return _picture(recording.frame("end"))._replace(word=word, note=f"{mark} {where}")


def _picture(frame: Frame | None) -> Picture:
    return Picture(frame, data_uri(frame.image) if frame else "")


def data_uri(image: NDArray[np.uint8]) -> str:
    """A picture `(H, W, 3)` uint8 RGB as a PNG inside a `data:` address."""
    done, png = cv2.imencode(".png", np.ascontiguousarray(image[..., ::-1]))
    if not done:
        raise ValueError(
            f"a picture of shape {image.shape}, {image.dtype} cannot be written as PNG: give (H, W, 3) uint8"
        )
    return "data:image/png;base64," + base64.b64encode(png.tobytes()).decode()
