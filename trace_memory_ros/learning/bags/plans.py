"""What each memory of a run would be trained on, and what is found once for all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, Split
from trace_memory_ros.learning.bags.design import of_memory, options_of
from trace_memory_ros.learning.bags.training import Prepared, Told, fewer, prepare_split, split_of
from trace_memory_ros.learning.build import with_features
from trace_memory_ros.learning.engine.keeping import digest
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import BagsSection, RunConfig


class Plans:
    """Plans of a run, by memory, noise and split.

    given: values of the run's configuration that are not defaults. features: where those of frozen eyes are kept.
    """

    def __init__(
        self, data: BagData, recording: RecordingConfig, config: RunConfig, given: Mapping[str, Any], features: Path
    ) -> None:
        self.data, self.config = data, config
        self.bags = config.bags or BagsSection()
        self._recording, self._given, self._features = recording, given, features
        self._told: dict[str, Told] = {}

    def learned_from(self, indices: Sequence[int]) -> dict[str, Any]:
        """What trials of these episodes depend on beside the run's configuration, as plain values."""
        demos = [self.data.episodes[i] for i in indices]
        return {
            "episodes": [demo.name for demo in demos],
            "numbers": digest(demo.digest for demo in demos),
            "observation": self._recording.observation.to_dict(),
        }

    @property
    def digest(self) -> str:
        """Of all episodes and the observation, to tell trainings of the same from those of others."""
        learned_from = self.learned_from(range(len(self.data.episodes)))
        return digest(json.dumps(part, sort_keys=True) for part in learned_from.values())

    @property
    def used(self) -> list[int]:
        """Indices of the episodes that are used where all are trained on."""
        return fewer(list(range(len(self.data.episodes))), self.bags.episodes, self.bags.split_seed)

    @property
    def split(self) -> Split:
        """As the configuration asks for."""
        bags = self.bags
        return split_of(self.data, bags.held_out, bags.validation, bags.split_seed, bags.episodes)

    @property
    def strengths(self) -> tuple[float, ...]:
        """Of noise, to choose of; as it is where the run's configuration gives noise of its own."""
        own = self._given.get("recipe", {}).get("augmentation", {})
        return (1.0,) if any(name.startswith("signature_") for name in own) else self.bags.noise

    def of(self, memory: str, chosen: Split, noise: float) -> Prepared:
        """What a memory is trained on, and how, with noise over signatures so many times as strong as usual."""
        config, bags = of_memory(self.config, memory), self.bags
        options, kept = options_of(config), str(chosen)
        plan = prepare_split(
            self.data,
            self._recording,
            options,
            config.recipe,
            chosen,
            self._given,
            bags.decisions,
            self._told.get(kept),
        )
        self._told[kept] = plan.told
        recipe = with_noise(plan.recipe, noise)
        seen = with_features(plan.data, plan.design, recipe.augmentation, self._features)
        return replace(plan, recipe=recipe, data=seen)


def with_noise(recipe: Recipe, times: float) -> Recipe:
    """The recipe with noise over signatures so many times as strong."""
    return replace(recipe, augmentation=recipe.augmentation.stronger(times))
