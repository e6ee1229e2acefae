"""From folders of bags to batch builders: what the command line and the benchmark share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from trace_memory_ros.bags.cache import BagSource, EpisodeResult, Report, Source, load_episodes
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.layout import find_bags
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, Split, from_episodes, split
from trace_memory_ros.learning.bags.design import BagOptions, bag_design, bag_recipe, options_of
from trace_memory_ros.learning.build import Design, prepare_unpaired
from trace_memory_ros.learning.data.batches import BatchBuilder, Data
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.cross_validation import CrossValidation
from trace_memory_ros.learning.decisions.found import Decisions, find_decisions, without_decisions
from trace_memory_ros.learning.lerobot.source import DatasetSource, episodes_of, is_dataset
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import AUTO, NONE, BagsSection, RunConfig, with_values
from trace_memory_ros.measure.accuracy import ANNOTATED, FOUND
from trace_memory_ros.moments.find import Found
from trace_memory_ros.signature.normalise import Standardiser

HELD_OUT, VALIDATION = 1 / 6, 1 / 10
"""Shares of the scenes."""


@dataclass(frozen=True)
class Prepared:
    """Everything that a training needs. state: statistics of the training episodes.

    labels: of the answers. moments: what was searched for them, where they were not annotated.
    """

    design: Design
    recipe: Recipe
    state: Standardiser
    data: Data
    labels: tuple[str, ...] = ()
    moments: Found | None = None

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


def bags_under(sources: Sequence[str | Path]) -> list[Path]:
    """All bags at or below `sources`, and the episodes of LeRobotDatasets among them, each once.

    Raises BagFault for a folder that holds none.
    """
    found = (episodes_of(source) if is_dataset(source) else find_bags(Path(source)) for source in sources)
    return list(dict.fromkeys(bag for bags in found for bag in bags))


def read_bags(
    bags: Sequence[Path], recording: RecordingConfig, cache: Path, workers: int = 1, report: Report | None = None
) -> tuple[BagData, list[BagVerdict]]:
    """What the bags hold to learn from, and the verdicts of those that hold nothing that can be used.

    Raises ValueError where nothing is left.
    """
    results = _load(bags, recording, cache, workers, report)
    failed = [result for result in results if isinstance(result, BagVerdict)]
    episodes = [result for result in results if isinstance(result, BagEpisode)]
    if not episodes:
        raise ValueError(f"none of the {len(bags)} recordings can be used: see what is wrong with each, above")
    return from_episodes(episodes, recording.observation.tick_period_ms), failed


def _load(
    bags: Sequence[Path], recording: RecordingConfig, cache: Path, workers: int, report: Report | None
) -> list[EpisodeResult]:
    """What `load_episodes` makes of bags, then of episodes of LeRobotDatasets."""
    groups: list[tuple[list[Path], Source]] = [
        ([bag for bag in bags if not is_dataset(bag)], BagSource()),
        ([bag for bag in bags if is_dataset(bag)], DatasetSource()),
    ]
    done = 0

    def counted(group_done: int, _: int, verdict: BagVerdict) -> None:
        if report is not None:
            report(done + group_done, len(bags), verdict)

    results: list[EpisodeResult] = []
    for group, source in groups:
        results += load_episodes(group, recording, cache, workers, counted, source)
        done += len(group)
    return results


def prepare(
    data: BagData,
    recording: RecordingConfig,
    options: BagOptions,
    recipe: Recipe,
    held_out: float = HELD_OUT,
    split_seed: int = 0,
    episodes: int | None = None,
    given: Mapping[str, Any] | None = None,
    validation: float = VALIDATION,
    decisions: str = AUTO,
) -> Prepared:
    """Split the episodes, choose what depends on them and make builders.

    episodes: train on that many at most. given: values of a run's configuration, which of the recipe stay as they are
    whatever the episodes are like. decisions: see `BagsSection`.
    """
    chosen = split(data.episodes, held_out, validation, split_seed)
    chosen = chosen._replace(training=fewer(chosen.training, episodes, split_seed))
    return prepare_split(data, recording, options, recipe, chosen, given, decisions)


def prepare_split(
    data: BagData,
    recording: RecordingConfig,
    options: BagOptions,
    recipe: Recipe,
    chosen: Split,
    given: Mapping[str, Any] | None = None,
    decisions: str = AUTO,
) -> Prepared:
    """`prepare` for a split that is there. Whatever depends on episodes depends on those of training alone."""
    sides = [[data.episodes[i] for i in indices] for indices in chosen]
    design, state, shows = bag_design(options, recording, data.action_names, sides[0])
    told, source = Decisions(sides, data.labels), data.source
    if decisions != ANNOTATED and (decisions != AUTO or not data.labels):
        told, source = _not_annotated(decisions, design, sides), FOUND
    training, validation, held_out = told.sides
    prepared = prepare_unpaired(design, state, training, validation, held_out, source, shows)
    fitted = bag_recipe(recipe, recording.observation.tick_period_ms, training)
    return Prepared(design, with_values(fitted, given or {}), state, prepared, told.labels, told.moments)


def _not_annotated(decisions: str, design: Design, sides: Sequence[Sequence[Demonstration]]) -> Decisions:
    """Decisions that are found, or none, in place of those that are annotated."""
    if decisions == NONE:
        return without_decisions(sides)
    period_ms = design.observation.tick_period_ms
    return find_decisions(sides, period_ms, design.least_state, design.least_action, design.action_names)


def prepare_run(
    data: BagData,
    recording: RecordingConfig,
    config: RunConfig,
    given: Mapping[str, Any],
    folded: CrossValidation | None = None,
) -> Prepared:
    """`prepare` as a run's configuration asks for; `given`: the values in it that are not defaults.

    folded: what was found by cross-validation, after which all episodes are trained on, with the noise that it chose;
    without, it is of the first strength.
    """
    bags, options = config.bags or BagsSection(), options_of(config)
    if folded is None:
        shares = bags.held_out, bags.split_seed, bags.episodes
        plan = prepare(data, recording, options, config.recipe, *shares, given, bags.validation, bags.decisions)
        return replace(plan, recipe=with_noise(plan.recipe, strengths(bags, given)[0]))
    chosen = Split(fewer(list(range(len(data.episodes))), bags.episodes, bags.split_seed), [], [])
    plan = prepare_split(data, recording, options, config.recipe, chosen, given, bags.decisions)
    return replace(plan, recipe=with_noise(plan.recipe, folded.chosen.noise))


def strengths(bags: BagsSection, given: Mapping[str, Any]) -> tuple[float, ...]:
    """Strengths of noise to choose of; as it is where the run's configuration gives noise of its own."""
    own = given.get("recipe", {}).get("augmentation", {})
    return (1.0,) if any(name.startswith("signature_") for name in own) else bags.noise


def with_noise(recipe: Recipe, times: float) -> Recipe:
    """The recipe with noise over signatures so many times as strong."""
    return replace(recipe, augmentation=recipe.augmentation.stronger(times))


def fewer(indices: list[int], most: int | None, seed: int) -> list[int]:
    """At most `most` of the indices, at random."""
    if most is None or most >= len(indices):
        return indices
    if most < 1:
        raise ValueError(f"episodes is {most}: train on at least 1")
    return sorted(np.random.default_rng([seed, 1]).choice(indices, most, replace=False).tolist())
