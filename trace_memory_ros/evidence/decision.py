"""A checkpoint's policy and recorded actions as chunks that branches are told by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.observation.frames import Cameras
from trace_memory_ros.observation.images import shrunk
from trace_memory_ros.policies.families import UnknownFamily, family
from trace_memory_ros.policies.module import ChunkModule
from trace_memory_ros.policies.references import Chunk
from trace_memory_ros.runtime.checkpoint import Checkpoint
from trace_memory_ros.vision.encoder import pixels_of

NO_POLICY = "the checkpoint holds a memory without a policy"


class ChunkHead:
    """A checkpoint's policy as a function of the readout, at one recorded observation; chunks are normalised."""

    def __init__(self, policy: ChunkModule) -> None:
        self.policy = policy.eval()

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> ChunkHead | str:
        """The policy of a checkpoint, or the reason why there is none. Raises CheckpointError where it does not fit."""
        policy = checkpoint.config.policy
        if policy is None:
            return NO_POLICY
        try:
            module = family(policy.family).build(policy.options)
        except UnknownFamily as error:
            return str(error)
        checkpoint.load_into(module, "policy.")
        return cls(module)

    @property
    def action_names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self.policy.config.action_names
        return names

    @property
    def horizon(self) -> int:
        """H: ticks in a chunk."""
        return int(self.policy.config.chunk)

    def seen(self, images: Cameras, tick: int) -> NDArray[np.uint8]:
        """An episode's images at a tick as the policy is given them live: its cameras, at its side, `(C, P, P, 3)`."""
        config = self.policy.config
        return np.stack([shrunk(images[name][tick], config.image_px) for name in config.cameras])

    @torch.inference_mode()
    def chunks(self, images: NDArray[np.uint8], state: NDArray[np.float64], readout: Readout) -> Chunk:
        """Chunks `(B, H, A)` at images `(C, P, P, 3)` and state `(d_s,)`, for every one of B readouts."""
        count = len(readout.vector)
        pixels = pixels_of(images)
        raw = torch.from_numpy(state.astype(np.float32))
        chunks: Chunk = self.policy.predict(pixels.expand(count, *pixels.shape), raw.expand(count, -1), readout).numpy()
        return chunks

    def normalise(self, actions: NDArray[np.float32]) -> Chunk:
        """Actions `(..., A)` in action standard deviations from the training split's mean; NaN stays NaN."""
        with torch.inference_mode():
            normal: Chunk = self.policy.normalise_actions(torch.from_numpy(actions)).numpy()
        return normal


def recorded_chunk(actions: NDArray[np.float32], tick: int, head: ChunkHead, names: Sequence[str]) -> Chunk | str:
    """The recorded `(T, A)` actions called `names` from `tick` on as a normalised chunk, or why there is none."""
    missing = [name for name in head.action_names if name not in names]
    if missing:
        return f"the recorded actions lack {', '.join(missing)}, which the policy commands"
    chunk = np.full((head.horizon, len(head.action_names)), np.nan, dtype=np.float32)
    order = [list(names).index(name) for name in head.action_names]
    found = actions[tick : tick + head.horizon][:, order].astype(np.float32)
    chunk[: len(found)] = head.normalise(found)
    return chunk if np.isfinite(chunk).any() else "no action was recorded from the branch on"
