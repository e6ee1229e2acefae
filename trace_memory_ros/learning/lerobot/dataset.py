"""A LeRobotDataset (format v3.0) read from its own files, episode by episode, without LeRobot."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.learning.lerobot.frames import AGAIN, INSTALL, Unreadable, check_file, video_frames
from trace_memory_ros.learning.lerobot.layout import (
    ACTION,
    BRANCH,
    STATE,
    Layout,
    read_info,
    read_layout,
    read_sidecar,
    relative_rows,
)

EPISODES = "meta/episodes"
INDEX, FRAME = "episode_index", "frame_index"


@dataclass(frozen=True)
class Table:
    """The numbers of an episode's frames: state `(N, d_s)`, actions `(N, A)`; labels `(N,)` of branches, or None.

    Actions are absolute, also those that an export from here wrote less the state.
    """

    state: NDArray[np.float64]
    actions: NDArray[np.float64]
    labels: tuple[str, ...] | None


class Dataset:
    """The dataset in a folder. Raises ValueError where it is none, of another version, or its list cannot be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.info = read_info(folder)
        self.layout: Layout = read_layout(folder)
        self.sidecar = read_sidecar(folder)
        self.rows = self._episodes()

    @property
    def exported(self) -> bool:
        """Whether it was made here: its images are then cut out and reduced already."""
        return "recording" in self.sidecar

    @property
    def episodes(self) -> tuple[int, ...]:
        """Indices of the episodes, in order."""
        return tuple(self.rows)

    def frames(self, index: int) -> int:
        """How many frames an episode has."""
        return int(self.rows[index]["length"])

    def tasks(self, index: int) -> tuple[str, ...]:
        """An episode's task strings."""
        return tuple(self.rows[index].get("tasks") or ())

    def about(self, index: int) -> Mapping[str, Any]:
        """What an export from here noted of an episode."""
        known: Sequence[Mapping[str, Any]] = self.sidecar.get("episodes", [])
        return known[index] if index < len(known) else {}

    def files(self, index: int) -> list[Path]:
        """The files that hold an episode: its table, then a video of each camera that has one."""
        row = self.rows[index]
        found = [self._path(self.info["data_path"], row, "data")]
        return found + [self._video(index, key) for key in self.layout.cameras.values() if self._filmed(key)]

    def table(self, index: int) -> Table:
        """State, actions and branch labels of an episode's frames. Raises Unreadable naming the file."""
        branched = self.layout.branched
        values = self._columns(index, [FRAME, STATE, ACTION, *[BRANCH] * branched])
        count, path = self.frames(index), self.files(index)[0]
        if values[FRAME] != list(range(count)):
            what = f"holds {len(values[FRAME])} frames of episode {index}, {EPISODES} says {count}"
            raise Unreadable(path, what, AGAIN)
        state = np.array(values[STATE], dtype=np.float64).reshape(count, -1)
        actions = np.array(values[ACTION], dtype=np.float64).reshape(count, -1)
        if (rows := self._relative_rows) is not None:
            actions[:, rows >= 0] += state[:, rows[rows >= 0]]
        labels = tuple(_label(value) for value in values[BRANCH]) if branched else None
        return Table(state, actions, labels)

    def pictures(self, index: int, camera: str, wanted: Collection[int] | None = None) -> Iterator[NDArray[np.uint8]]:
        """Images `(H, W, 3)` uint8 RGB of a camera at the `wanted` frames, in order; None for all of them.

        Raises Unreadable naming the file: missing, damaged, or with images of another size than the dataset says.
        """
        key, count = self.layout.cameras[camera], self.frames(index)
        if self._filmed(key):
            path = self._video(index, key)
            start_s = float(self.rows[index][f"videos/{key}/from_timestamp"])
            found = video_frames(path, start_s, count, self.layout.fps, wanted)
        else:
            path = self.files(index)[0]
            found = self._stored(index, key, range(count) if wanted is None else sorted(wanted))
        for picture in found:
            if picture.shape[:2] != self.layout.sizes[camera]:
                (height, width), (rows, columns) = self.layout.sizes[camera], picture.shape[:2]
                what = f"camera {camera} has images of {columns}x{rows}, meta/info.json says {width}x{height}"
                raise Unreadable(path, what, "leave the episode out, or record it again at one size")
            yield picture

    @cached_property
    def _relative_rows(self) -> NDArray[np.int64] | None:
        return relative_rows(self.sidecar, self.folder)

    def _stored(self, index: int, key: str, wanted: Collection[int]) -> Iterator[NDArray[np.uint8]]:
        """Images that lie in the table or, by name, beside it."""
        column = self._columns(index, [key])[key]
        for k in wanted:
            entry, path = column[k], self.files(index)[0]
            data = entry.get("bytes")
            if data is None:
                path = self.folder / str(entry.get("path"))
                check_file(path)
                data = path.read_bytes()
            picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
            if picture is None:
                raise Unreadable(path, f"{key} of frame {k} of episode {index} is no image", AGAIN)
            yield np.asarray(picture[..., ::-1], dtype=np.uint8)

    def _columns(self, index: int, names: list[str]) -> dict[str, list[Any]]:
        path = self.files(index)[0]
        found: dict[str, list[Any]] = _read(path, names, [(INDEX, "=", index)]).to_pydict()
        return found

    def _filmed(self, key: str) -> bool:
        return bool(self.info["features"][key]["dtype"] == "video")

    def _video(self, index: int, key: str) -> Path:
        return self._path(self.info["video_path"], self.rows[index], f"videos/{key}", video_key=key)

    def _path(self, pattern: str, row: Mapping[str, Any], kind: str, **more: str) -> Path:
        places = {name: int(row[f"{kind}/{name}"]) for name in ("chunk_index", "file_index")}
        return self.folder / pattern.format(**places, **more)

    def _episodes(self) -> dict[int, dict[str, Any]]:
        parts = sorted((self.folder / EPISODES).glob("chunk-*/file-*.parquet"))
        rows = [row for part in parts for row in _read(part).to_pylist()]
        said = int(self.info.get("total_episodes", len(rows)))
        if not rows or len(rows) != said:
            raise ValueError(
                f"{self.folder}: {EPISODES} lists {len(rows)} episodes, meta/info.json says {said}: {AGAIN}, or record "
                "at least one episode"
            )
        return {int(row[INDEX]): row for row in rows}


def opened(folder: Path) -> Dataset:
    """The dataset in a folder, read once as long as its list of episodes stays. Raises ValueError."""
    info = folder / "meta" / "info.json"
    changed = info.stat().st_mtime_ns if info.exists() else 0
    return _opened(folder.resolve(), changed)


@lru_cache(maxsize=4)
def _opened(folder: Path, _changed_ns: int) -> Dataset:
    return Dataset(folder)


def _read(path: Path, columns: list[str] | None = None, only: list[tuple[str, str, int]] | None = None) -> Any:
    """A parquet file, or some of it, as a pyarrow table without statistics. Raises Unreadable."""
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError as error:
        raise Unreadable(path, "is read by pyarrow, which is not installed", INSTALL) from error
    check_file(path)
    try:
        if columns is None:
            names = parquet.read_schema(path).names
            columns = [name for name in names if not name.startswith("stats/")]
        # By itself it would read columns of a folder's name, as `chunk-000`, too.
        return parquet.read_table(path, columns=columns, filters=only, partitioning=None)
    except (ArrowException, OSError, KeyError) as error:
        what = f"cannot be read as a table ({' '.join(str(error).split())[:120]})"
        raise Unreadable(path, what, f"it may be cut off: {AGAIN}") from error


def _label(value: Any) -> str:
    """A branch label as text; empty where there is none: an empty text, a number below 0."""
    value = value[0] if isinstance(value, list) else value
    if value is None or value == "" or (isinstance(value, int | float) and not value >= 0):
        return ""
    return str(int(value)) if isinstance(value, int | float) else str(value)
