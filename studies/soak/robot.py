"""A made-up robot that moves on and on: few numbers and a tiny picture, so that a million ticks fit into minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.learning.sizes import LADDER
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.stream_config import CameraConfig, SensorConfig
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig, MemoryConfig
from trace_memory_ros.runtime.clock import PathLength
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.signature.layout import signature_size
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig

JOINTS = ("rail", "mast", "swing", "wrist")
CAMERA, PX = "gantry", 8
PERIOD_MS = 50
DEPTH, WIDTH, SLOTS = 3, 64, 4
SPREAD_RAD = 0.5
CLOCK = PathLength(0.5, 0.05)
STILL = (900, 1000)
"""Of every thousand ticks, those in which it stands, but for the noise of its sensors."""
NOISE_RAD = 2e-4
PICTURES = 64


@dataclass(frozen=True)
class Row:
    """A mechanism to be ticked. window: of the path whose signature it is given; None for the whole episode."""

    memory: str
    window: PathWindow | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def rows() -> dict[str, Row]:
    """Every registered mechanism and whatever `auto` may take, TRACE with a window and gates, by name."""
    window = PathWindow(deadband=CLOCK.deadband)
    plain = {name: Row(name) for name in dict.fromkeys((*registry.names(), *LADDER))}
    return {**plain, "trace+window": Row("trace", window), "trace+window+gate": Row("trace+gate", window)}


def observation_config() -> ObservationConfig:
    """What the robot is seen with."""
    return ObservationConfig(
        cameras=(CameraConfig(CAMERA, f"{CAMERA}/image_raw", 250),),
        streams=(SensorConfig("axes", "axes/state", 250, select={"position": JOINTS}),),
        tick_period_ms=PERIOD_MS,
        image_px=PX,
        thumbnail_px=PX,
    )


def write_checkpoint(folder: Path, row: Row, seed: int) -> Path:
    """A checkpoint of a mechanism with random weights of full size, for this robot."""
    torch.manual_seed(seed)
    seen = observation_config()
    encoder = ContentEncoder(EncoderConfig(1, PX, seen.state_dim))
    content = encoder.config.content_dim
    depth = DEPTH if registry.build(row.memory, MemoryDims(content, 1, WIDTH, SLOTS), row.options).uses_signature else 0
    dims = MemoryDims(content, signature_size(seen.path_dim, depth) if depth else 0, WIDTH, SLOTS)
    memory = registry.build(row.memory, dims, row.options).eval()
    # Spreads as of paths of some hundred ticks, which is what memories are trained on.
    signature = (_spread(dims.signature, 10.0), _spread(dims.signature, 1.0)) if depth else ()
    model = MemoryModel(encoder, memory, _spread(seen.state_dim, SPREAD_RAD), *signature)
    config = CheckpointConfig(
        memory=MemoryConfig.from_dict(registry.config_of(memory)),
        encoder=encoder.config,
        observation=seen,
        clock=CLOCK,
        signature_depth=depth,
        task="soak",
        signature_window=row.window if depth else None,
    )
    checkpoint.save(folder, config, model.tensors())
    return folder


class Robot:
    """Observations by tick, each a function of its number alone, so that a run goes on where it was."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([seed, 1])
        self._seed = seed
        self._pictures = rng.integers(0, 256, (PICTURES, PX, PX, 3), dtype=np.uint8)
        self._rates = 2 * np.pi / rng.uniform(37.0, 211.0, len(JOINTS))
        self._phases = rng.uniform(0, 2 * np.pi, len(JOINTS))
        self._block, self._noise = -1, np.zeros((0, len(JOINTS)))

    def observe(self, tick: int) -> Observation:
        """What is seen at a tick. No joint comes back to where it was together with all others."""
        stamp_ns = tick * PERIOD_MS * 1_000_000
        picture = self._pictures[tick // 7 % PICTURES]
        return Observation(tick, stamp_ns, {CAMERA: picture}, self._state(tick), {CAMERA: stamp_ns}, {})

    def _state(self, tick: int) -> NDArray[np.float64]:
        cycle, within = divmod(tick, STILL[1])
        moved = cycle * STILL[0] + min(within, STILL[0])
        if cycle != self._block:
            noise = np.random.default_rng([self._seed, 2, cycle])
            self._block, self._noise = cycle, NOISE_RAD * noise.standard_normal((STILL[1], len(JOINTS)))
        state: NDArray[np.float64] = np.sin(self._rates * moved + self._phases) + self._noise[within]
        return state


def _spread(width: int, spread: float) -> Standardiser:
    return Standardiser(np.zeros(width), np.full(width, spread), np.ones(width, dtype=bool))
