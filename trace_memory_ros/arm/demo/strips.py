"""Camera strips: the same scene with either cue, from the cue to what each memory did at the branch."""

from __future__ import annotations

import base64
from html import escape

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.demo.results import DemoResult, Frame, Recording, branch_name
from trace_memory_ros.measure.drawing import colour_of

_COMMON = (
    ("cue", "the cue is visible"),
    ("gone", "the cue is gone"),
    ("way", "on the way"),
    ("branch", "at the branch"),
)
_EXPLAINED = {
    "origin": "The part lies in the left or the right bin. From there on both paths are the same, until the part must "
    "go back to its own side.",
    "colour": "The panel at the far end lights up blue (left) or yellow (right) for two seconds, then turns grey.",
}


def strip(task: str, result: DemoResult) -> str:
    """HTML of one task's strip; empty when none of its episodes was recorded."""
    rows = "".join(_row(cue, _recorded(task, cue, result), result.memories) for cue in (0, 1))
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for _, name in _COMMON)
    head += "".join(f'<th class="end" style="--c:{colour_of(m)}">{escape(m)}</th>' for m in result.memories)
    explained = escape(_EXPLAINED.get(task, ""))
    return (
        f"<h3>{escape(task)}</h3><p>{explained}</p>"
        f'<div class="scroll"><table class="strip"><tr><th></th>{head}</tr>{rows}</table></div>'
    )


def _recorded(task: str, cue: int, result: DemoResult) -> dict[str, Recording]:
    """The first recorded plain episode with pictures of each memory, for one cue."""
    found: dict[str, Recording] = {}
    for recording in result.recordings:
        episode = recording.episode
        if (episode.task, episode.cue) == (task, cue) and not episode.pause_s and recording.frames:
            found.setdefault(episode.memory, recording)
    return found


def _row(cue: int, recorded: dict[str, Recording], memories: tuple[str, ...]) -> str:
    if not recorded:
        return ""
    first = next(recorded[memory] for memory in memories if memory in recorded)
    cells = "".join(_picture(first.frame(moment)) for moment, _ in _COMMON)
    ends = "".join(_end(recorded.get(memory)) for memory in memories)
    return f'<tr><th class="cue">cue<br><b>{branch_name(cue)}</b></th>{cells}{ends}</tr>'


def _end(recording: Recording | None) -> str:
    if recording is None:
        return "<td></td>"
    episode = recording.episode
    word, mark = ("right", "✓") if episode.success else ("wrong", "✗")
    went = "no branch" if episode.branch < 0 else f"went {branch_name(episode.branch)}"
    return _picture(recording.frame("end"), word, f'<span class="{word}">{mark} {went}</span>')


def _picture(frame: Frame | None, word: str = "", note: str = "") -> str:
    if frame is None:
        return f"<td><i>not reached</i>{note}</td>"
    image = f'<img alt="{frame.moment}" src="{data_uri(frame.image)}">'
    return f'<td class="{word}">{image}<span>{frame.time_s:.1f} s</span>{note}</td>'


def data_uri(image: NDArray[np.uint8]) -> str:
    """A picture `(H, W, 3)` uint8 RGB as a PNG inside a `data:` address."""
    done, png = cv2.imencode(".png", np.ascontiguousarray(image[..., ::-1]))
    if not done:
        raise ValueError(
            f"a picture of shape {image.shape}, {image.dtype} cannot be written as PNG: give (H, W, 3) uint8"
        )
    return "data:image/png;base64," + base64.b64encode(png.tobytes()).decode()
