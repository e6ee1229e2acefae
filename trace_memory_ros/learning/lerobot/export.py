"""Recorded episodes as a LeRobotDataset (format v3.0) on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.lerobot.layout import ACTION, SIDECAR, STATE
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.names import IMAGES

STORAGES = ("image", "video")
GAPS = ("refuse", "split")
VIDEO_PX = 32
"""Least side of a video's frames: the AV1 encoder ends the process where they are 16 wide."""


@dataclass(frozen=True)
class ExportOptions:
    """Where to and how. root: a folder that does not exist yet. task: LeRobot's task string of every episode.

    storage: `image` (PNG, exact) or `video` (smaller, lossy, by `vcodec`). gaps: an episode with unusable ticks inside
    is left out (`refuse`) or becomes several (`split`); LeRobot's frames are equally spaced.
    """

    repo_id: str
    root: Path
    task: str
    storage: str = "image"
    vcodec: str = "libsvtav1"
    gaps: str = "refuse"

    def __post_init__(self) -> None:
        for name, choices in (("storage", STORAGES), ("gaps", GAPS)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} = {getattr(self, name)!r}: choose from {', '.join(choices)}")
        if not self.task:
            raise ValueError("task is empty: give LeRobot's task string, such as 'put the part where it came from'")
        if self.root.exists():
            raise ValueError(f"{self.root} exists already: LeRobot writes datasets to new folders; give another one")


@dataclass
class Exported:
    """What was written. left_out: episodes that were not, and why. trimmed: ticks at the ends that were not."""

    episodes: int = 0
    frames: int = 0
    trimmed: int = 0
    left_out: list[str] = field(default_factory=list)


def frames_per_second(recording: RecordingConfig) -> int:
    """LeRobot's fps. Raises ValueError for a tick period that is no whole number of them."""
    period_ms = recording.observation.tick_period_ms
    if 1000 % period_ms:
        raise ValueError(
            f"tick_period_ms = {period_ms} is {1000 / period_ms:.4g} frames per second, and LeRobot's fps is a whole "
            "number: decode the bags at a tick_period_ms that divides 1000, such as 20, 25, 40, 50 or 100"
        )
    return 1000 // period_ms


def features(recording: RecordingConfig, storage: str) -> dict[str, dict[str, Any]]:
    """LeRobot's features of a recording. Raises ValueError where no actions are recorded, or videos are too small."""
    if recording.actions is None:
        raise ValueError(
            "the recording configuration has no actions, and a LeRobot policy needs them: name the command topic there "
            "or, with ahead_ms, what was measured"
        )
    seen, found = recording.observation, {}
    for name in seen.camera_names:
        side = seen.px_of(name)
        if storage == "video" and side < VIDEO_PX:
            raise ValueError(
                f"image_px = {side} is less than {VIDEO_PX}, too small for videos: choose storage image, or a larger "
                f"image_px for camera {name}"
            )
        shape = (side, side, 3)
        found[f"{IMAGES}{name}"] = {"dtype": storage, "shape": shape, "names": ["height", "width", "channels"]}
    numbers = {STATE: seen.state, ACTION: recording.actions.names}
    return found | {
        key: {"dtype": "float32", "shape": (len(names),), "names": list(names)} for key, names in numbers.items()
    }


def export(episodes: Iterable[BagEpisode], recording: RecordingConfig, options: ExportOptions) -> Exported:
    """Write `episodes`: tick k of an episode becomes the frame at k / fps seconds.

    State and actions are rounded to float32, as LeRobot's policies take them; images are those a policy is given,
    `image_px` wide. Lost are the ticks' own stamps but the first, when each stream's sample was taken, and the command
    between two ticks. Raises LerobotMissing, ValueError.
    """
    fps = frames_per_second(recording)
    factory = lerobot("lerobot.datasets.lerobot_dataset").LeRobotDataset
    dataset = factory.create(
        options.repo_id,
        fps=fps,
        features=features(recording, options.storage),
        root=options.root,
        use_videos=options.storage == "video",
        vcodec=options.vcodec,
    )
    done, kept = Exported(), []
    try:
        for episode in episodes:
            for ticks in _runs(episode, options.gaps, done):
                _write(dataset, episode, ticks, options.task)
                kept.append(_provenance(episode, ticks))
                done.episodes += 1
                done.frames += len(ticks)
    finally:
        dataset.finalize()
    text = yaml.safe_dump({"recording": recording.to_dict(), "episodes": kept}, sort_keys=False, allow_unicode=True)
    (options.root / SIDECAR).write_text(text, encoding="utf-8")
    return done


def _runs(episode: BagEpisode, gaps: str, done: Exported) -> Iterator[range]:
    """The stretches of ticks that have a whole observation and an action, as `gaps` says."""
    whole = episode.usable.copy()
    if episode.actions is None:
        whole[:] = False
    else:
        whole &= np.isfinite(episode.actions).all(axis=1)
    runs = stretches(whole)
    inside = len(runs) > 1
    if not runs or (inside and gaps == "refuse"):
        done.left_out.append(f"{episode.name}: {_why(episode, runs)}")
        return
    done.trimmed += episode.ticks - sum(map(len, runs))
    yield from runs


def stretches(whole: NDArray[np.bool_]) -> list[range]:
    """The runs of True in `(T,)`."""
    edges = np.flatnonzero(np.diff(whole.astype(np.int8), prepend=0, append=0)).tolist()
    return [range(begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True)]


def _why(episode: BagEpisode, runs: list[range]) -> str:
    if not runs:
        return "no tick has both a whole observation and an action"
    gap = runs[0].stop
    what = episode.fault_text(gap) or "no command"
    return f"{len(runs) - 1} gaps, the first at tick {gap} ({what}); --gaps split makes episodes of what lies between"


def _write(dataset: Any, episode: BagEpisode, ticks: range, task: str) -> None:
    assert episode.actions is not None
    for tick in ticks:
        frame: dict[str, Any] = {f"{IMAGES}{name}": frames[tick] for name, frames in episode.images.items()}
        frame[STATE] = episode.state[tick].astype(np.float32)
        frame[ACTION] = episode.actions[tick].astype(np.float32)
        dataset.add_frame(frame | {"task": task})
    # Encoding in several processes forks after torch has started its threads.
    dataset.save_episode(parallel_encoding=False)


def _provenance(episode: BagEpisode, ticks: range) -> dict[str, Any]:
    inside = [branch for branch in episode.branches if branch.tick in ticks]
    return {
        "name": episode.name,
        "first_stamp_ns": int(episode.stamps_ns[ticks.start]),
        "first_tick": ticks.start,
        "branches": [{"tick": branch.tick - ticks.start, "label": branch.label} for branch in inside],
    }
