"""The training scan over a recorded episode, beside the conditions that a live run published over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.data.batches import NO_PICTURES, BatchBuilder
from trace_memory_ros.learning.data.dataset import Episode, Statistics
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.path_signatures import signatures
from trace_memory_ros.memory.base import Readout
from trace_memory_ros.observation.frames import at, resized
from trace_memory_ros.replay.parity import ARRAYS
from trace_memory_ros.runtime.checkpoint import Checkpoint
from trace_memory_ros.runtime.clock import UpdateClock
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.model import MemoryModel

READS_AT_ONCE = 500
NO_TICKS: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class _Episodes:
    """An `EpisodeSet` of one."""

    episodes: list[Episode]

    @property
    def pairs(self) -> int:
        return 0

    def draw(self, rng: np.random.Generator, pairs: int) -> list[int]:
        return [0]


def scan_difference(checkpoint: Checkpoint, bag: Path, live: Sequence[Condition]) -> dict[str, Any]:
    """Largest difference between a training scan over `bag` and the usable ticks of the live run recorded in it.

    The bag is decoded and scanned as training does it: whole episode, batched encoder, one padded scan.
    Raises ValueError for a bag that gives no episode.
    """
    episodes, verdict = decode_bag(bag, RecordingConfig(checkpoint.config.observation))
    if not episodes:
        raise ValueError(str(verdict))
    return _difference(checkpoint, episodes[0], live)


def _difference(checkpoint: Checkpoint, episode: BagEpisode, live: Sequence[Condition]) -> dict[str, Any]:
    builder, agent, ticks = _training_side(checkpoint, episode)
    by_stamp = {condition.stamp_ns: condition for condition in live}
    conditions = [by_stamp[int(stamp)] for stamp in episode.stamps_ns[np.flatnonzero(episode.usable)]]
    largest = dict.fromkeys(ARRAYS, 0.0)
    for first in range(0, len(ticks), READS_AT_ONCE):
        part = slice(first, first + READS_AT_ONCE)
        with torch.no_grad():
            readout, _ = agent.recall(builder.build([0], [1.0], [ticks[part]], NO_PICTURES))
        _widen(largest, readout, conditions[part])
    wrote = np.array([condition.wrote for condition in conditions])
    due = builder.data.episodes[0].write_mask(builder.clock)[ticks]
    return {
        "ticks": len(ticks),
        "max_abs": max(largest.values()),
        "max_abs_of": largest,
        "writes_live": int(wrote.sum()),
        "writes_due_in_training": int(due.sum()),
    }


def _training_side(checkpoint: Checkpoint, episode: BagEpisode) -> tuple[BatchBuilder, Agent, NDArray[np.int64]]:
    """What training makes of the checkpoint and the episode, and the episode's usable ticks counted from its first."""
    config = checkpoint.config
    model = MemoryModel.from_checkpoint(checkpoint)
    begin = int(np.flatnonzero(episode.usable)[0])
    usable = episode.usable[begin:]
    held = begin + np.maximum.accumulate(np.where(usable, np.arange(len(usable)), 0))
    images, state = at(episode.images, held), episode.state[held]
    stamps_ns, nothing_done = episode.stamps_ns[begin:], np.zeros((len(held), 1), np.float32)
    demo = Demonstration(episode.name, episode.name, stamps_ns, images, state, nothing_done, usable=usable)
    normal = model.state.apply(state)
    path = config.observation.path_of(normal)
    xi = signatures(path, config.signature_depth, config.signature_window)
    small = resized(images, config.observation.thumbnail_px)
    seen = Episode(demo, NO_TICKS, NO_TICKS, small, normal, path, xi, config.observation.tick_period_ms)
    nothing = np.zeros(1, np.float32)
    statistics = Statistics(model.state, model.xi, model.delta, nothing, nothing + 1.0)
    builder = BatchBuilder(_Episodes([seen]), statistics, UpdateClock(config.clock), 1)
    agent = Agent(model.encoder, model.memory, nn.Identity())  # type: ignore[arg-type]
    return builder, agent.eval(), np.flatnonzero(usable)


def _widen(largest: dict[str, float], readout: Readout, conditions: Sequence[Condition]) -> None:
    for name in ARRAYS:
        scanned = getattr(readout, name).numpy().reshape(len(conditions), -1)
        live = np.stack([getattr(condition, name).ravel() for condition in conditions])
        if scanned.size:
            largest[name] = max(largest[name], float(np.abs(scanned - live).max()))
