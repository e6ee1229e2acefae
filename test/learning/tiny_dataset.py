"""Small LeRobotDatasets (format v3.0) written file by file, without LeRobot; needs pyarrow, for videos PyAV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

pyarrow = pytest.importorskip("pyarrow", reason="LeRobotDatasets are read by pyarrow: extra [datasets]")
from pyarrow import parquet  # noqa: E402

FPS, FRAMES, BRANCH_FRAME = 10, 24, 16
JOINTS = ("shoulder.pos", "elbow.pos", "gripper.pos")
DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
SIZES = {"front": (20, 24), "wrist": (32, 16)}
"""Height and width of the cameras, which are unlike."""


def write_dataset(
    root: Path,
    sides: Sequence[int],
    *,
    storage: str = "image",
    fps: int = FPS,
    annotated: bool = True,
    scale: float = 1.0,
) -> Path:
    """Episodes of a colour in the first four images, after which the elbow goes that way at the branch."""
    features: dict[str, Any] = {
        "observation.state": {"dtype": "float32", "shape": [3], "names": list(JOINTS)},
        "action": {"dtype": "float32", "shape": [3], "names": list(JOINTS)},
    }
    for name, (height, width) in SIZES.items():
        names = ["height", "width", "channels"]
        features[f"observation.images.{name}"] = {"dtype": storage, "shape": [height, width, 3], "names": names}
    if annotated:
        features["branch"] = {"dtype": "string", "shape": [1], "names": None}
    rows: list[dict[str, Any]] = []
    episodes = []
    for index, side in enumerate(sides):
        episodes.append(_episode(root, rows, index, side, storage, fps, annotated, scale))
    _table(root / DATA.format(chunk_index=0, file_index=0), rows)
    _table(root / "meta/episodes/chunk-000/file-000.parquet", episodes)
    info = {"codebase_version": "v3.0", "fps": fps, "features": features, "total_episodes": len(sides)}
    (root / "meta/info.json").write_text(json.dumps({**info, "data_path": DATA, "video_path": VIDEO}))
    state = np.array([row["observation.state"] for row in rows])
    stats = {"observation.state": {"min": state.min(0).tolist(), "max": state.max(0).tolist()}}
    (root / "meta/stats.json").write_text(json.dumps(stats))
    return root


def _episode(
    root: Path, rows: list[dict[str, Any]], index: int, side: int, storage: str, fps: int, annotated: bool, scale: float
) -> dict[str, Any]:
    rng = np.random.default_rng([index, side])
    path = rng.normal(0.0, 0.15, (FRAMES, len(JOINTS))).cumsum(axis=0)
    path[BRANCH_FRAME:, 1] += (0.5 if side else -0.5) * np.arange(FRAMES - BRANCH_FRAME)
    row: dict[str, Any] = {
        "episode_index": index,
        "length": FRAMES,
        "tasks": ["go where the colour said"],
        "data/chunk_index": 0,
        "data/file_index": 0,
        "dataset_from_index": index * FRAMES,
        "dataset_to_index": (index + 1) * FRAMES,
        "stats/action/min": [0.0],
    }
    seen = {name: [_picture(rng, size, side, k) for k in range(FRAMES)] for name, size in SIZES.items()}
    if storage == "video":
        for name, pictures in seen.items():
            key = f"observation.images.{name}"
            _video(root / VIDEO.format(video_key=key, chunk_index=0, file_index=index), pictures, fps)
            row |= {f"videos/{key}/chunk_index": 0, f"videos/{key}/file_index": index}
            row |= {f"videos/{key}/from_timestamp": 0.0, f"videos/{key}/to_timestamp": FRAMES / fps}
    for k in range(FRAMES):
        frame: dict[str, Any] = {"episode_index": index, "frame_index": k, "timestamp": k / fps}
        frame["observation.state"] = (path[k] * scale).astype(np.float32).tolist()
        frame["action"] = (path[min(k + 1, FRAMES - 1)] * scale).astype(np.float32).tolist()
        if storage == "image":
            frame |= {f"observation.images.{name}": {"bytes": _png(seen[name][k]), "path": None} for name in SIZES}
        if annotated:
            frame["branch"] = "" if k < BRANCH_FRAME else ("left", "right")[side]
        rows.append(frame)
    return row


def _picture(rng: np.random.Generator, size: tuple[int, int], side: int, k: int) -> NDArray[np.uint8]:
    picture = rng.integers(90, 130, (*size, 3)).astype(np.uint8)
    if k < 4:
        picture[2:-2, 2:-2] = (230, 30, 30) if side else (30, 30, 230)
    return picture


def _png(picture: NDArray[np.uint8]) -> bytes:
    return cv2.imencode(".png", picture[..., ::-1])[1].tobytes()


def _video(path: Path, pictures: list[NDArray[np.uint8]], fps: int) -> None:
    av = pytest.importorskip("av", reason="videos need PyAV")
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=Fraction(fps))
        stream.height, stream.width = pictures[0].shape[:2]
        stream.bit_rate = 4_000_000
        for picture in pictures:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def _table(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
