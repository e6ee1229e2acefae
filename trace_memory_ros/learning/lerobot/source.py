"""Episodes of a LeRobotDataset as those of a bag: the same arrays, in the same cache, at the ticks of a configuration.

`lerobot:FOLDER` names a dataset, `lerobot:FOLDER/episode_000012` one of its episodes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.branches import Branch
from trace_memory_ros.bags.cache import file_hash
from trace_memory_ros.bags.episode import NO_STAMP, BagEpisode
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.bags.faults import BagFault, BagVerdict, verdict_of
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.lerobot.dataset import Dataset, Table, opened
from trace_memory_ros.learning.lerobot.frames import Unreadable, check_file
from trace_memory_ros.observation.config import MASKED
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.observation.images import prepare

PREFIX = "lerobot:"
FORMAT = 2
START_NS = 1_000_000_000
"""Stamp of the first frame where nothing tells it: zero would mean that there is none."""
SECOND_NS = 1_000_000_000
_EPISODE = "episode_"


def is_dataset(source: str | Path) -> bool:
    """Whether a source names a LeRobotDataset or an episode of one."""
    return str(source).startswith(PREFIX)


def folder_of(source: str | Path) -> Path:
    """The folder of the dataset that a source names."""
    return Path(str(source).removeprefix(PREFIX))


def opened_dataset(source: str | Path) -> Dataset:
    """The dataset that a source names. Raises ValueError where it is none, or of another version."""
    return opened(folder_of(source))


def missing_files(dataset: Dataset) -> dict[int, str]:
    """Episodes whose files are not all there, and what is wrong with the first such file."""
    found = {}
    for index in dataset.episodes:
        try:
            for file in dataset.files(index):
                check_file(file)
        except Unreadable as error:
            found[index] = str(error)
    return found


def episodes_of(source: str | Path) -> list[Path]:
    """The names of a dataset's episodes, in order. Raises ValueError where it is none, or of another version."""
    dataset = opened_dataset(source)
    return [Path(f"{PREFIX}{folder_of(source)}") / f"{_EPISODE}{index:06d}" for index in dataset.episodes]


class DatasetSource:
    """What the cache of decoded episodes asks: the name of an episode's content, and the episode itself."""

    def key(self, path: Path, recording: RecordingConfig, cache_dir: Path) -> str:
        """A hash of the episode's files, its row in the dataset's list, the configuration and the format."""
        dataset, index = _found(path)
        contents = [file_hash(file, cache_dir) for file in dataset.files(index) if file.is_file()]
        said = {"row": dataset.rows[index], "info": dataset.info, "about": dict(dataset.about(index))}
        content = {"lerobot": FORMAT, "recording": recording.to_dict(), "files": contents, **said}
        # Not sorted: the order of what a stream selects is that of the state's columns.
        return hashlib.sha256(json.dumps(content, default=str).encode()).hexdigest()[:24]

    def stem(self, path: Path) -> str:
        """The name of the dataset's folder."""
        return folder_of(path.parent).name

    def decode(self, path: Path, recording: RecordingConfig) -> tuple[list[BagEpisode], BagVerdict]:
        """One episode, and what is wrong with it. A fault is never an exception."""
        try:
            return _decode(path, *_found(path), recording)
        except Unreadable as error:
            where = "/".join(error.path.parts[-4:])
            return [], verdict_of(path, [BagFault(path, error.what, where, error.remedy)], usable=False)
        except BagFault as fault:
            return [], verdict_of(path, [fault], usable=False)


def _found(path: Path) -> tuple[Dataset, int]:
    return opened(folder_of(path.parent)), int(path.name.removeprefix(_EPISODE))


def _decode(
    path: Path, dataset: Dataset, index: int, recording: RecordingConfig
) -> tuple[list[BagEpisode], BagVerdict]:
    config, layout = recording.observation, dataset.layout
    table = dataset.table(index)
    columns = state_columns(path, config.state, layout.state)
    stamps = _frame_stamps(dataset, index)
    ticks = np.arange(stamps[0], stamps[-1] + 1, config.period_ns, dtype=np.int64)
    held = np.searchsorted(stamps, ticks, side="right") - 1
    state = np.where(columns >= 0, table.state[held][:, columns], 0.0)
    usable = np.asarray(np.isfinite(state).all(axis=1))
    lost = {int(tick): _lost(config.state, state[tick]) for tick in np.flatnonzero(~usable)}
    state[~usable] = np.nan
    episode = BagEpisode(
        name=f"{folder_of(path.parent).name}#{index}",
        bag=str(path),
        span=EpisodeSpan(str(path), 0, int(stamps[0]), int(stamps[-1]) + 1),
        streams=tuple(stream.name for stream in config.inputs),
        stamps_ns=ticks,
        images={name: _frames(path, dataset, index, name, recording, held) for name in config.camera_names},
        state=state,
        usable=usable,
        faults=lost,
        input_stamps_ns=_held_stamps(recording, stamps[held], lost),
        actions=_actions(path, dataset, table, recording, state, held),
        action_names=() if recording.actions is None else recording.actions.names,
        branches=_branches(dataset, index, table, recording, held),
        counters={},
    )
    notes = [_not_finite(path, lost)] if lost else []
    return [episode], verdict_of(path, notes, bool(usable.any()))


def _frame_stamps(dataset: Dataset, index: int) -> NDArray[np.int64]:
    """Stamps of an episode's frames: its first + k / fps. The dataset's own timestamps are float32."""
    first_ns = int(dataset.about(index).get("first_stamp_ns", START_NS))
    frames = range(dataset.frames(index))
    return np.array([first_ns + round(k * SECOND_NS / dataset.layout.fps) for k in frames], dtype=np.int64)


def state_columns(path: Path, channels: Sequence[str], names: Sequence[str]) -> NDArray[np.int64]:
    """Which of the dataset's numbers each state channel is, -1 for one that is always 0. Raises BagFault.

    By name: a channel `STREAM.FIELD.JOINT` is what the dataset calls so, or JOINT. Where a configuration gives the
    robot's own names, none of which the dataset has, in order.
    """
    real = [channel for channel in channels if not channel.startswith(MASKED)]
    kept = [i for i, name in enumerate(names) if not name.startswith(MASKED)]
    places = dict(zip(real, _matched(path, "state", real, [names[i] for i in kept]), strict=True))
    return np.array([kept[places[channel]] if channel in places else -1 for channel in channels], dtype=np.int64)


def _matched(path: Path, what: str, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Places in `names` of what is wanted."""
    alike = [[i for i, name in enumerate(names) if one == name or one.endswith(f".{name}")] for one in wanted]
    if all(len(found) == 1 for found in alike):
        return [found[0] for found in alike]
    in_order = all(not found or i in found for i, found in enumerate(alike))
    if len(wanted) == len(names) and in_order and (not any(alike) or all(alike)):
        return list(range(len(names)))
    raise BagFault(
        path,
        f"has the {what} {', '.join(names)}; the configuration names {', '.join(wanted)}",
        "meta/info.json",
        "name them as the dataset does, or all of them otherwise and in its order; `trace-memory bags inspect "
        f"{PREFIX}FOLDER --out FILE` proposes a configuration",
    )


def _frames(
    path: Path, dataset: Dataset, index: int, camera: str, recording: RecordingConfig, held: NDArray[np.int64]
) -> Frames:
    """A camera's images at the size that the configuration keeps; frames that no tick holds are not kept."""
    if camera not in dataset.layout.cameras:
        raise BagFault(
            path,
            f"has no camera {camera!r}, but {', '.join(dataset.layout.cameras)}",
            "meta/info.json",
            "name the configuration's cameras as the dataset does; their topics are the robot's",
        )
    config = recording.observation
    crop = None if dataset.exported else next(one.crop for one in config.cameras if one.name == camera)
    wanted, rows = np.unique(held, return_inverse=True)
    px = config.px_of(camera)
    pixels = np.empty((len(wanted), px, px, 3), dtype=np.uint8)
    for k, picture in enumerate(dataset.pictures(index, camera, set(wanted.tolist()))):
        pixels[k] = prepare(picture, px, crop)
    return Frames(pixels, rows)


def _actions(
    path: Path,
    dataset: Dataset,
    table: Table,
    recording: RecordingConfig,
    state: NDArray[np.float64],
    held: NDArray[np.int64],
) -> NDArray[np.float32] | None:
    """What was commanded at each tick; less the state where the configuration says relative."""
    if recording.actions is None:
        return None
    places = _matched(path, "actions", recording.actions.names, dataset.layout.actions)
    targets = table.actions[held][:, places]
    rows = recording.actions.relative_rows(recording.observation)
    targets[:, rows >= 0] -= state[:, rows[rows >= 0]]
    targets[~np.isfinite(targets)] = np.nan
    return targets.astype(np.float32)


def _branches(
    dataset: Dataset,
    index: int,
    table: Table,
    recording: RecordingConfig,
    held: NDArray[np.int64],
) -> tuple[Branch, ...]:
    """Annotated branches: where the label of the frames changes, else as an export noted them.

    As in a bag, each is taken at the last tick that holds no later frame.
    """
    if recording.branches is None:
        return ()
    if table.labels is None:
        marks = [(int(one["tick"]), str(one["label"])) for one in dataset.about(index).get("branches", [])]
    else:
        before = ("", *table.labels)
        marks = [(k, label) for k, label in enumerate(table.labels) if label and label != before[k]]
    return tuple(Branch(int(np.searchsorted(held, k, side="right")) - 1, label) for k, label in marks)


def _lost(channels: Sequence[str], state: NDArray[np.float64]) -> dict[str, str]:
    """What is wrong with a tick's state, by stream."""
    names = [name for name, value in zip(channels, state, strict=True) if not np.isfinite(value)]
    return {name.partition(".")[0]: f"{name} is not finite" for name in names}


def _held_stamps(
    recording: RecordingConfig, stamps: NDArray[np.int64], lost: dict[int, dict[str, str]]
) -> NDArray[np.int64]:
    inputs = [stream.name for stream in recording.observation.inputs]
    out = np.repeat(stamps[:, None], len(inputs), axis=1)
    for tick, faults in lost.items():
        out[tick, [inputs.index(name) for name in faults]] = NO_STAMP
    return out


def _not_finite(path: Path, lost: dict[int, dict[str, str]]) -> BagFault:
    tick = min(lost)
    what = f"{len(lost)} ticks have no whole state: tick {tick}: {'; '.join(lost[tick].values())}"
    return BagFault(path, what, "observation.state", "they are left out; look into what recorded them")
