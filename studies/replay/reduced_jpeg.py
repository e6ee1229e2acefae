"""What unpacking a JPEG at a smaller scale changes in policy images, in levels of 255."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import cv2
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from studies.grid import Figures
from studies.tables import table
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import CAMERA_NAMES
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.observation.images import PackedImage, open_compressed, prepare, reduction

SIZES = ((480, 640), (720, 1280), (1080, 1920))
SIDES = (48, 96, 128, 224)
PICTURES = 6
QUALITY = 90
TASKS = ("colour", "origin")

Image = NDArray[np.uint8]


def measure(pictures: int = PICTURES, sizes: Sequence[tuple[int, int]] = SIZES) -> list[Figures]:
    """A row per source of pictures, size `(h, w)` and side of the policy image, where it is unpacked smaller."""
    rows = []
    for size in sizes:
        for source, made in (("photographs", photographs(pictures, size)), ("rendered", rendered(pictures, size))):
            rows += [row for px in SIDES if (row := _row(source, made, px))]
    return rows


def photographs(count: int, size: tuple[int, int]) -> list[Image]:
    """Detail of every size, as photographs have it (amplitude falls as 1 / frequency), and hard edges before it."""
    height, width = size
    rng = np.random.default_rng(0)
    amount = 1 / np.maximum(np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]), 1 / width)
    found = []
    for _ in range(count):
        waves = rng.normal(size=(3, *amount.shape)) + 1j * rng.normal(size=(3, *amount.shape))
        smooth = np.fft.irfft2(waves * amount, s=size)
        image = np.clip(128 + 50 * smooth / smooth.std(), 0, 255).astype(np.uint8).transpose(1, 2, 0).copy()
        for _ in range(25):
            middle = (int(rng.integers(width)), int(rng.integers(height)))
            colour = [int(value) for value in rng.integers(0, 256, 3)]
            cv2.circle(image, middle, int(rng.integers(height // 160, height // 8)), colour, -1)
        found.append(image)
    return found


def rendered(count: int, size: tuple[int, int]) -> list[Image]:
    """Views of the arm's cameras, drawn large and cut to the size's shape."""
    height, width = size
    found: list[Image] = []
    for k in range(-(-count // len(CAMERA_NAMES))):
        env = ArmEnv(TASKS[k % len(TASKS)])
        env.reset(Scenario(env.task, seed=k, cue=k % 2))
        for camera in CAMERA_NAMES:
            square = env.render(camera, 640)
            cut = square[: 640 * height // width] if height < width else square
            found.append(np.asarray(cv2.resize(cut, (width, height), interpolation=cv2.INTER_LINEAR), dtype=np.uint8))
        env.close()
    return found[:count]


def tables(rows: Sequence[Figures]) -> Iterator[Table | str]:
    """One line per row."""
    columns = ("pictures", "size", "policy image", "unpacked at 1 /", "max difference", "mean", "99 %")
    lines = []
    for row in rows:
        height, width = row["size"]
        gap = (str(row["max"]), f"{row['mean']:.2f}", f"{row['p99']:.0f}")
        lines.append((row["source"], f"{width}x{height}", str(row["px"]), str(row["scale"]), *gap))
    yield table("JPEG unpacked at a smaller scale, differences in levels of 255", columns, lines)


def _row(source: str, pictures: Sequence[Image], px: int) -> Figures:
    gaps, scale = [], 1
    for picture in pictures:
        bgr = np.ascontiguousarray(picture[..., ::-1])
        opened = open_compressed(cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes(), "jpeg")
        assert isinstance(opened, PackedImage)
        scale = reduction(opened.head, px)
        if scale == 1:
            return {}
        gaps.append(np.abs(opened.policy_image(px).astype(int) - prepare(opened.rgb(), px)))
    gap = np.stack(gaps)
    figures = {"max": int(gap.max()), "mean": float(gap.mean()), "p99": float(np.percentile(gap, 99))}
    return {"source": source, "size": list(pictures[0].shape[:2]), "px": px, "scale": scale} | figures
