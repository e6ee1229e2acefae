"""From folders of bags to batch builders: what the command line and the benchmark share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trace_memory_ros.bags.cache import Report, load_episodes
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.layout import find_bags
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, from_episodes, split
from trace_memory_ros.learning.bags.design import BagOptions, bag_design, bag_recipe, options_of
from trace_memory_ros.learning.batches import BatchBuilder, Data
from trace_memory_ros.learning.build import Design, prepare_unpaired
from trace_memory_ros.learning.demonstration import Demonstration
from trace_memory_ros.learning.found import Decisions, find_decisions, without_decisions
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import BagsSection, RunConfig, with_values
from trace_memory_ros.signature.normalise import Standardiser

HELD_OUT = 1 / 6


@dataclass(frozen=True)
class Prepared:
    """Everything that a training needs. state: statistics of the training episodes.

    moments: what was looked for because nobody annotated it; None where it was not looked for.
    """

    design: Design
    recipe: Recipe
    state: Standardiser
    data: Data
    moments: Decisions | None = None

    @property
    def training(self) -> BatchBuilder:
        """Batches of the training split."""
        return self.data.training

    @property
    def held_out(self) -> BatchBuilder:
        """Batches of the held-out split."""
        return self.data.held_out

    @property
    def writes(self) -> float:
        """Median of the training episodes' writes."""
        episodes = self.training.data.episodes
        return float(np.median([episode.write_mask(self.training.clock).sum() for episode in episodes]))


def bags_under(sources: Sequence[str | Path]) -> list[Path]:
    """All bags at or below `sources`, each once. Raises BagFault for a folder that holds none."""
    return list(dict.fromkeys(bag for source in sources for bag in find_bags(Path(source))))


def read_bags(
    bags: Sequence[Path], recording: RecordingConfig, cache: Path, workers: int = 1, report: Report | None = None
) -> tuple[BagData, list[BagVerdict]]:
    """What the bags hold to learn from, and the verdicts of those that hold nothing that can be used.

    Raises ValueError where nothing is left.
    """
    results = load_episodes(bags, recording, cache, workers, report)
    failed = [result for result in results if isinstance(result, BagVerdict)]
    episodes = [result for result in results if isinstance(result, BagEpisode)]
    if not episodes:
        raise ValueError(f"none of the {len(bags)} bags can be used: see what is wrong with each, above")
    return from_episodes(episodes, recording.observation.tick_period_ms), failed


def prepare(
    data: BagData,
    recording: RecordingConfig,
    options: BagOptions,
    recipe: Recipe,
    held_out: float = HELD_OUT,
    split_seed: int = 0,
    episodes: int | None = None,
    given: Mapping[str, Any] | None = None,
    decisions: str = "auto",
) -> Prepared:
    """Split the episodes, choose what depends on them and make builders.

    episodes: train on that many at most. given: values of a run's configuration, which of the recipe stay as they are
    whatever the episodes are like. decisions: see `BagsSection`.
    """
    train_at, held_at = split(data.episodes, held_out, split_seed)
    training = [data.episodes[i] for i in _fewer(train_at, episodes, split_seed)]
    design, state = bag_design(options, recording, data.action_names, training)
    held = [data.episodes[i] for i in held_at]
    moments = _moments(decisions, data, design, training, held)
    if moments is not None:
        training, held = moments.training, moments.held_out
    prepared = prepare_unpaired(design, state, training, held)
    fitted = bag_recipe(recipe, recording.observation.tick_period_ms, training)
    return Prepared(design, with_values(fitted, given or {}), state, prepared, moments)


def prepare_run(data: BagData, recording: RecordingConfig, config: RunConfig, given: Mapping[str, Any]) -> Prepared:
    """`prepare` as a run's configuration asks for; `given`: the values in it that are not defaults."""
    bags = config.bags or BagsSection()
    shares = bags.held_out, bags.split_seed, bags.episodes
    return prepare(data, recording, options_of(config), config.recipe, *shares, given, bags.decisions)


def _moments(
    decisions: str,
    data: BagData,
    design: Design,
    training: Sequence[Demonstration],
    held_out: Sequence[Demonstration],
) -> Decisions | None:
    """Decisions in place of the annotated ones, where these are not to be used; None where they are."""
    if decisions == "annotated" or (decisions == "auto" and data.labels):
        return None
    if decisions == "none":
        return without_decisions(training, held_out)
    period_ms = design.observation.tick_period_ms
    return find_decisions(training, held_out, period_ms, design.least_state, design.least_action)


def _fewer(indices: list[int], most: int | None, seed: int) -> list[int]:
    """At most `most` of the indices, at random."""
    if most is None or most >= len(indices):
        return indices
    if most < 1:
        raise ValueError(f"episodes is {most}: train on at least 1")
    return sorted(np.random.default_rng([seed, 1]).choice(indices, most, replace=False).tolist())
