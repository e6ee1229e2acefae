"""MIKASA's Panda as a robot of ours: its observation configuration, and recordings as demonstrations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.mikasa.names import CAMERAS, PROPRIO, PX, RATE_HZ, RECORDED
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.observation.types import Observation

STREAM = "proprio"
LENGTHS = ("x", "y", "z", "gripper")
STALE_MS = 250
TICKS = (*CAMERAS, "proprio", "actions")
"""Of a recording's file, what each tick has."""


@dataclass(frozen=True)
class Seen:
    """What the benchmark shows at a tick, and all that is used: pictures `(128, 128, 3)` by camera, `PROPRIO`."""

    pictures: Mapping[str, NDArray[np.uint8]]
    proprio: NDArray[np.float32]


class Recorded:
    """A recording, of which the pictures are read when they are asked for.

    success: at any tick, which is what the benchmark counts. current: told as recordings are now.
    """

    def __init__(self, file: Path) -> None:
        with np.load(file, allow_pickle=False) as kept:
            self._kept = {name: np.atleast_1d(kept[name]).tolist() for name in kept.files if name not in TICKS}
        self.name, self._file = file.stem, file
        self.success = bool(self._kept["success"][0])
        self.current = self._kept.get("schema") == [RECORDED]

    @property
    def cue_gone(self) -> int:
        """The first tick at which the cue is not shown any more."""
        return int(self._kept["cue_gone"][0])

    @property
    def asked(self) -> int:
        """The first tick at which the choices are shown."""
        return int(self._kept["asked"][0])

    def demonstration(self, task: str, config: ObservationConfig) -> Demonstration:
        """The recording as `config` sees it, by the observer of a closed loop. Raises ValueError for a failed one.

        Its decisions are at the tick that shows the choices, and where several are to be touched at those after each
        touch; an answer is the place of the right one.
        """
        if not self.success:
            raise ValueError(f"recording {self.name} of {task}: the expert failed, which must not be learned from")
        observer = LockstepObserver(config)
        with np.load(self._file, allow_pickle=False) as read:
            kept = {name: read[name] for name in TICKS}
        found = [
            observe(observer, Seen({name: kept[name][tick] for name in CAMERAS}, kept["proprio"][tick]))
            for tick in range(len(kept["actions"]))
        ]
        images = {name: Frames.held([one.images[name] for one in found]) for name in config.camera_names}
        states = [one.state for one in found if one.state is not None]
        stamps_ns = np.arange(len(found), dtype=np.int64) * config.period_ns
        name = f"{task} {self.name}"
        told = tuple(self._kept["asked"]), tuple(self._kept["answer"])
        return Demonstration(name, name, stamps_ns, images, np.stack(states), kept["actions"], *told)


def robot(px: int = PX) -> ObservationConfig:
    """Two cameras of `px` pixels and the hand, at the benchmark's control rate; the path is the hand's."""
    stream = SensorConfig(STREAM, STREAM, STALE_MS, select={"position": PROPRIO})
    channels = dict(zip(PROPRIO, stream.channels, strict=True))
    return ObservationConfig(
        cameras=tuple(CameraConfig(name, f"{name}/image", STALE_MS) for name in CAMERAS),
        streams=(stream,),
        units={channels[name]: "m" for name in LENGTHS},
        image_px=px,
        thumbnail_px=px,
        tick_period_ms=1000 // RATE_HZ,
    )


def observe(observer: LockstepObserver, seen: Seen) -> Observation:
    """A tick's observation. Raises ValueError for what the benchmark shows and no robot may."""
    state = dict(zip(PROPRIO, map(float, seen.proprio), strict=True))
    # The hand points down, where the benchmark's roll jumps between -pi and pi.
    state["roll"] %= 2.0 * math.pi
    observation = observer.observe(seen.pictures, state)
    if not observation.usable:
        raise ValueError(f"the benchmark's observation cannot be used: {dict(observation.faults)}")
    return observation
