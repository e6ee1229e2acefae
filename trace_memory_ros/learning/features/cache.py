"""What a frozen backbone makes of episodes' images, found again by pixels, view, weights and code."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.files import atomic
from trace_memory_ros.learning.features.store import FeatureFile
from trace_memory_ros.learning.features.views import PLAIN, seen
from trace_memory_ros.learning.recipe import Augmentation
from trace_memory_ros.observation.frames import Cameras, Frames
from trace_memory_ros.vision.base import Features, VisualBackbone, features_of

FORMAT = 3
KEY_FILE = "features.json"
TOGETHER = 4
"""Images in a pass; on a CPU more of them take longer each, since their activations leave its cache."""
_STEP = 2**22


class FeatureCache:
    """Kept features of one frozen backbone: tokens, or only what is pooled, of any episode's frames.

    folder: of all caches; this one's is a folder in it by the backbone's config and revision. views: how
    many perturbed ones training draws from. An image is computed when a batch first asks for it, and never twice,
    however many ticks hold it. Raises ValueError for a backbone that is trained.
    """

    def __init__(
        self,
        folder: Path,
        backbone: VisualBackbone,
        tokens: bool,
        strength: Augmentation | None = None,
    ) -> None:
        if not backbone.config.kept:
            raise ValueError(f"backbone {backbone.config.name} is trained: only a frozen one's features can be kept")
        # Convolutions of few channels each are limited by memory: this order of numbers halves their time.
        self.backbone = backbone.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.tokens = tokens
        self.strength = strength or Augmentation()
        self.computed = 0
        self._lock = Lock()
        code = {"format": FORMAT, "revision": backbone.revision}
        self._key = {**code, "backbone": backbone.config.to_dict(), "tokens": tokens}
        self.folder = folder / f"{backbone.config.name.replace(':', '_').replace('/', '_')}-{_digest(self._key)}"
        self._files: dict[tuple[int, int, int], FeatureFile] = {}
        # Pixels are kept beside their names: an id counts only for as long as its object lives.
        self._named: dict[int, tuple[Frames, str]] = {}

    @property
    def views(self) -> int:
        """How many perturbed views training draws from; 0 for none."""
        return self.strength.views

    def features(self, cameras: Cameras, ticks: NDArray[np.int64], view: int = PLAIN) -> Features:
        """Features at ticks `(n,)` of all cameras: tokens `(n, C, K, d)`, pooled `(n, C, d)`, float32.

        Where tokens are kept, pooled is their mean; where not, K is 0.
        """
        # Batches are made ahead by several threads.
        with self._lock:
            parts = [self._camera(number, frames, ticks, view) for number, frames in enumerate(cameras.values())]
        values = torch.from_numpy(np.stack(parts, axis=1).astype(np.float32))
        if self.tokens:
            return Features(values, values.mean(dim=-2))
        return Features(values.new_zeros(*values.shape[:-1], 0, values.shape[-1]), values)

    def _camera(self, number: int, frames: Frames, ticks: NDArray[np.int64], view: int) -> NDArray[np.float16]:
        file = self._file(number, frames, view)
        return file.rows(frames.index[ticks], partial(self._compute, number, frames, view))

    def _compute(self, number: int, frames: Frames, view: int, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        self.computed += len(rows)
        found = features_of(self.backbone, seen(frames.pixels[rows], rows, number, view, self.strength), TOGETHER)
        return (found.tokens if self.tokens else found.pooled).numpy()

    def _file(self, number: int, frames: Frames, view: int) -> FeatureFile:
        pixels = id(frames.pixels)
        key = (pixels, number, view)
        if key not in self._files:
            if pixels not in self._named:
                self._named[pixels] = frames, _content(frames)
            name = self._named[pixels][1] + self._suffix(number, view)
            self._claim()
            self._files[key] = FeatureFile(self.folder / f"{name}.npy", (len(frames.pixels), *self._row(frames.px)))
        return self._files[key]

    def _suffix(self, number: int, view: int) -> str:
        if view == PLAIN:
            return ""
        later = [name for name in ("hue", "memory_shift") if getattr(self.strength, name)]
        names = ("brightness", "colour_gain", "pixel_noise", *later)
        strength = {name: getattr(self.strength, name) for name in names}
        return f"-{_digest([view, number, strength])}"

    def _row(self, px: int) -> tuple[int, ...]:
        rows, columns = self.backbone.token_grid(px)
        return (rows * columns, self.backbone.width) if self.tokens else (self.backbone.width,)

    def _claim(self) -> None:
        """Say in the folder what its files are."""
        file = self.folder / KEY_FILE
        if not file.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic.write(file, json.dumps(self._key, indent=1, sort_keys=True))


def draw_views(rng: np.random.Generator, views: int, episodes: int) -> list[int]:
    """The view that each episode of a batch is seen in."""
    return [int(view) for view in rng.integers(1, views + 1, episodes)] if views else [PLAIN] * episodes


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _content(frames: Frames) -> str:
    """Name of frames by their pixels, whose size, crop and decoding are in them."""
    digest = hashlib.sha256(str(frames.pixels.shape).encode())
    rows = max(1, _STEP // max(1, frames.pixels[:1].nbytes))
    for first in range(0, len(frames.pixels), rows):
        digest.update(np.ascontiguousarray(frames.pixels[first : first + rows]).data)
    return digest.hexdigest()[:24]
