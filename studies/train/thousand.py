"""A thousand long episodes of large images that take no room: files with holes where the pixels would be."""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trace_memory_ros.files.stored import StoredArray
from trace_memory_ros.learning.build import Design, prepare_unpaired
from trace_memory_ros.learning.data.dataset import fit_state, state_mask
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.engine.hardware import Hardware
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.runtime.clock import PathLength

CAMERAS = ("overhead", "left", "right")
JOINTS = tuple(f"joint_{i}" for i in range(14))
PERIOD_MS = 100
BEFORE_END = 40
"""Ticks between branch and end."""
GIB = 2**30


@dataclass(frozen=True)
class Sizes:
    """What is made up and trained. held_out: of the episodes, half to choose by and half to report."""

    episodes: int = 1_000
    seconds: int = 60
    image_px: int = 224
    thumbnail_px: int = 16
    depth: int = 3
    held_out: int = 24
    memory_steps: int = 30
    joint_steps: int = 4

    @property
    def ticks(self) -> int:
        """Of an episode."""
        return self.seconds * 1_000 // PERIOD_MS


def train(sizes: Sizes, folder: Path, device: str = "cpu") -> dict[str, Any]:
    """Make the episodes up in `folder`, train on them for some steps, and say what memory and time that took."""
    usage = Usage()
    design = _design(sizes)
    demos = [_episode(i, sizes, folder) for i in range(sizes.episodes)]
    held = sizes.held_out
    training, validation, reported = demos[held:], demos[: held // 2], demos[held // 2 : held]
    state = fit_state(training, state_mask(design.observation), design.least_state)
    data = prepare_unpaired(design, state, training, validation, reported)
    prepared = usage.now()
    first = MemoryFirst((1.0,), (), stage_steps=sizes.memory_steps, check_steps=sizes.memory_steps, attempts=1)
    recipe = Recipe(memory_first=first, steps=sizes.joint_steps)
    fitted = fit(design, data, recipe, 0, hardware=Hardware.chosen(device))
    pixels = sum(frames.nbytes for demo in demos for frames in demo.images.values())
    return {
        "sizes": {**asdict(sizes), "cameras": len(CAMERAS), "period_ms": PERIOD_MS},
        "pixels_gib": pixels / GIB,
        "signatures_gib": sizes.episodes * sizes.ticks * design.signature_numbers * 8 / GIB,
        "batch": {"episodes": 2 * recipe.batch_pairs, "reads": recipe.reads},
        "prepared": prepared,
        "peak": usage.peak(),
        "stages": fitted.times,
    }


class Usage:
    """Memory of this process: what it holds, of that what is its own and what mirrors files; the most that was seen."""

    def __init__(self) -> None:
        self._own = 0.0
        self._done = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def now(self) -> dict[str, float]:
        """GiB at present."""
        found = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
        names = {"resident": "VmRSS", "most_resident": "VmHWM", "anonymous": "RssAnon", "of_files": "RssFile"}
        return {name: int(found[key].split()[0]) * 1024 / GIB for name, key in names.items()}

    def peak(self) -> dict[str, float]:
        """GiB: most resident, files included, by the kernel; most of its own, sampled."""
        self._done.set()
        return {"resident": self.now()["most_resident"], "anonymous": self._own}

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self._own = max(self._own, self.now()["anonymous"])


def _design(sizes: Sizes) -> Design:
    joints = SensorConfig("joints", "joints", 250, select={"position": JOINTS})
    observation = ObservationConfig(
        cameras=tuple(CameraConfig(name, f"{name}/image", 250) for name in CAMERAS),
        streams=(joints,),
        state=joints.channels,
        path=joints.channels,
        image_px=sizes.image_px,
        thumbnail_px=sizes.thumbnail_px,
    )
    options = {"address_width": 32, "hidden": 32, "routing_width": 32, "read_norm": True, "address_norm": True}
    return Design("trace", options, observation, JOINTS, PathLength(4.0, 0.5), depth=sizes.depth, slots=8)


def _episode(number: int, sizes: Sizes, folder: Path) -> Demonstration:
    rng = np.random.default_rng(number)
    state = (0.02 * rng.standard_normal((sizes.ticks, len(JOINTS)))).cumsum(axis=0)
    answer = number % 2
    actions = state.astype(np.float32)
    branch = sizes.ticks - BEFORE_END
    actions[branch:, 0] += 1.0 if answer else -1.0
    images = {name: _empty(folder / f"{number:04d}.{name}.npy", sizes) for name in CAMERAS}
    stamps = np.arange(sizes.ticks, dtype=np.int64) * PERIOD_MS * 1_000_000
    return Demonstration(f"{number:04d}", f"{number:04d}", stamps, images, state, actions, (branch,), (answer,))


def _empty(path: Path, sizes: Sizes) -> Frames:
    """A camera's images and what the memory sees of them, as if decoded; the disk does not hold their zeros."""
    for file, px in ((path, sizes.image_px), (path.with_suffix(f".{sizes.thumbnail_px}px.npy"), sizes.thumbnail_px)):
        if not file.exists():
            shape = (sizes.ticks, px, px, 3)
            with file.open("wb") as out:
                np.lib.format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
                out.truncate(out.tell() + int(np.prod(shape)))
    return Frames(StoredArray(path), np.arange(sizes.ticks))


if __name__ == "__main__":
    torch.set_num_threads(1)
    given = Sizes(**json.loads(sys.argv[1]))
    print(json.dumps(train(given, Path(sys.argv[2]), sys.argv[3])))
