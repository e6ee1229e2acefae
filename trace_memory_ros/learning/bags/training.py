"""From folders of bags to batch builders: what the command line and the benchmark share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from trace_memory_ros.bags.cache import Report
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, Split, from_episodes, split
from trace_memory_ros.learning.bags.design import BagOptions, Motion, bag_design, bag_recipe, motion_of
from trace_memory_ros.learning.bags.recordings import load_recordings
from trace_memory_ros.learning.build import Design, prepare_unpaired
from trace_memory_ros.learning.data.batches import BatchBuilder, Data
from trace_memory_ros.learning.decisions.found import Decisions, find_decisions, without_decisions
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import AUTO, NONE, with_values
from trace_memory_ros.learning.selection import Planned
from trace_memory_ros.measure.accuracy import ANNOTATED, FOUND
from trace_memory_ros.moments.find import Found
from trace_memory_ros.signature.normalise import Standardiser

HELD_OUT, VALIDATION = 1 / 6, 1 / 10
"""Shares of the scenes."""


class Told(NamedTuple):
    """What a split's episodes say, whatever memory is trained. source: of the labels, of `measure.accuracy.SOURCES`."""

    motion: Motion
    decisions: Decisions
    source: str


@dataclass(frozen=True)
class Prepared:
    """Everything that a training needs."""

    design: Design
    recipe: Recipe
    data: Data
    told: Told

    @property
    def state(self) -> Standardiser:
        """Statistics of the training episodes."""
        return self.told.motion.state

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the answers."""
        return self.told.decisions.labels

    @property
    def moments(self) -> Found | None:
        """What was searched for decisions, where they were not annotated."""
        return self.told.decisions.moments

    @property
    def planned(self) -> Planned:
        """What a memory is trained on."""
        return Planned(self.design, self.recipe, self.data)

    @property
    def training(self) -> BatchBuilder:
        """Batches of the training split."""
        return self.data.training

    @property
    def held_out(self) -> BatchBuilder:
        """Batches of the held-out split. Raises ValueError where all episodes are trained on."""
        if self.data.held_out is None:
            raise ValueError("no episode is held out: all are trained on")
        return self.data.held_out

    @property
    def writes(self) -> float:
        """Median of the training episodes' writes."""
        episodes = self.training.data.episodes
        return float(np.median([episode.write_mask(self.training.clock).sum() for episode in episodes]))


def read_bags(
    bags: Sequence[Path], recording: RecordingConfig, cache: Path, workers: int = 1, report: Report | None = None
) -> tuple[BagData, list[BagVerdict]]:
    """What the bags hold to learn from, and the verdicts of those that hold nothing that can be used.

    Raises ValueError where nothing is left.
    """
    results = load_recordings(bags, recording, cache, workers, report)
    failed = [result for result in results if isinstance(result, BagVerdict)]
    episodes = [result for result in results if isinstance(result, BagEpisode)]
    if not episodes:
        raise ValueError(f"none of the {len(bags)} recordings can be used: see what is wrong with each, above")
    return from_episodes(episodes, recording.observation.tick_period_ms), failed


def prepare(
    data: BagData,
    recording: RecordingConfig,
    options: BagOptions,
    recipe: Recipe,
    held_out: float = HELD_OUT,
    split_seed: int = 0,
    episodes: int | None = None,
    validation: float = VALIDATION,
    decisions: str = AUTO,
) -> Prepared:
    """Split the episodes, choose what depends on them and make builders.

    episodes: train on that many at most. decisions: see `BagsSection`.
    """
    chosen = split_of(data, held_out, validation, split_seed, episodes)
    return prepare_split(data, recording, options, recipe, chosen, decisions=decisions)


def split_of(data: BagData, held_out: float, validation: float, seed: int, episodes: int | None) -> Split:
    """`split`, of which at most so many episodes are trained on."""
    chosen = split(data.episodes, held_out, validation, seed)
    return chosen._replace(training=fewer(chosen.training, episodes, seed))


def prepare_split(
    data: BagData,
    recording: RecordingConfig,
    options: BagOptions,
    recipe: Recipe,
    chosen: Split,
    given: Mapping[str, Any] | None = None,
    decisions: str = AUTO,
    told: Told | None = None,
) -> Prepared:
    """`prepare` for a split that is there. Whatever depends on episodes depends on those of training alone.

    given: values of a run's configuration, which of the recipe stay as they are whatever the episodes are like.
    told: by this split, where it was prepared for another memory before.
    """
    told = told or _tell(data, recording, options, chosen, decisions)
    motion, (training, validation, held_out) = told.motion, told.decisions.sides
    design = bag_design(options, recording, data.action_names, motion.clock)
    prepared = prepare_unpaired(design, motion.state, training, validation, held_out, told.source, motion.shows)
    fitted = bag_recipe(recipe, recording.observation.tick_period_ms, training)
    return Prepared(design, with_values(fitted, given or {}), prepared, told)


def _tell(data: BagData, recording: RecordingConfig, options: BagOptions, chosen: Split, decisions: str) -> Told:
    """What a split's episodes say; decisions: see `BagsSection`."""
    sides = [[data.episodes[i] for i in indices] for indices in chosen]
    motion = motion_of(options, recording, sides[0])
    if decisions == NONE:
        return Told(motion, without_decisions(sides), FOUND)
    if decisions == ANNOTATED or (decisions == AUTO and data.labels):
        return Told(motion, Decisions(sides, data.labels), data.source)
    design = bag_design(options, recording, data.action_names, motion.clock)
    period_ms = recording.observation.tick_period_ms
    found = find_decisions(sides, period_ms, design.least_state, design.least_action, design.action_names)
    return Told(motion, found, FOUND)


def fewer(indices: list[int], most: int | None, seed: int) -> list[int]:
    """At most `most` of the indices, at random."""
    if most is None or most >= len(indices):
        return indices
    if most < 1:
        raise ValueError(f"episodes is {most}: train on at least 1")
    return sorted(np.random.default_rng([seed, 1]).choice(indices, most, replace=False).tolist())
