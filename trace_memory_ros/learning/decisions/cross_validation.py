"""How well what is learned holds on other episodes, where too few are there to hold some out for good."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from trace_memory_ros.files import atomic
from trace_memory_ros.measure.accuracy import Accuracy

FOLDS = 5
KEPT = "cross_validation.json"
"""Name of the file beside a checkpoint."""
LEAST_SCENES = 4
"""With fewer there is nothing to fold."""


class Trial(NamedTuple):
    """Accuracies of one training: on what it was trained on, and on its fold."""

    train: Accuracy | None
    held_out: Accuracy | None


class KeptTrials:
    """Trials in a JSON file, so that an interrupted cross-validation goes on where it was.

    settings: plain content that they depend on. reuse: whether those in the file count, if they are of these settings.
    """

    def __init__(self, file: Path, settings: Mapping[str, Any], reuse: bool) -> None:
        self._file, self._settings = file, json.loads(json.dumps(settings))
        self._trials: dict[str, Any] = self._read() if reuse else {}

    def get(self, fold: int, noise: float, trial: Callable[[int, float], Trial]) -> Trial:
        """The trial as kept, or done now and kept."""
        name = f"{fold} {noise:g}"
        if name not in self._trials:
            self._trials[name] = [None if part is None else part.to_plain() for part in trial(fold, noise)]
            content = {"settings": self._settings, "trials": self._trials}
            self._file.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(self._file, json.dumps(content, indent=1))
        return Trial(*(None if part is None else Accuracy.from_plain(part) for part in self._trials[name]))

    def _read(self) -> dict[str, Any]:
        """What the file holds; nothing where it is missing, damaged or of other settings."""
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return dict(found["trials"]) if found["settings"] == self._settings else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}


@dataclass(frozen=True)
class CrossValidation:
    """Decisions of all folds, each by a training that never saw the fold.

    accuracy, train: with noise of the strength that the other folds chose. noise: the strength that all choose.
    by_noise: decisions of all folds, by strength.
    """

    folds: int
    accuracy: Accuracy
    train: Accuracy | None
    noise: float
    by_noise: Mapping[float, Accuracy]

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for summaries."""
        return {
            "folds": self.folds,
            "accuracy": self.accuracy.to_dict(),
            "train": None if self.train is None else self.train.to_dict(),
            "noise": self.noise,
            "by_noise": {f"{noise:g}": found.to_dict() for noise, found in self.by_noise.items()},
        }


def deal(kinds: Sequence[Sequence[str]], most: int = FOLDS) -> list[set[str]]:
    """Scenes in up to `most` folds, those of each kind dealt out in turn; none where they are too few."""
    scenes = [scene for kind in kinds for scene in kind]
    count = min(most, len(scenes))
    return [set(scenes[k::count]) for k in range(count)] if len(scenes) >= LEAST_SCENES else []


def cross_validate(
    folds: int, strengths: Sequence[float], trial: Callable[[int, float], Trial]
) -> CrossValidation | None:
    """Train once per fold and strength of noise and pool the folds' decisions; None where none can be judged.

    The strength that a fold's decisions are reported with is chosen by the decisions of the other folds, so that none
    is reported by what it chose. Of equal strengths the first is taken, so that none is tried after one with which all
    decisions are right.
    """
    found: dict[tuple[int, float], Trial] = {}
    tried: list[float] = []
    judged: list[int] = []
    for noise in strengths:
        found |= {(fold, noise): trial(fold, noise) for fold in range(folds)}
        tried.append(noise)
        judged = [fold for fold in range(folds) if found[fold, noise].held_out]
        if not judged or _pooled(found, noise, judged).value == 1.0:
            break
    if not judged:
        return None
    reported = [
        found[fold, _best(found, tried, [other for other in judged if other != fold] or judged)] for fold in judged
    ]
    held = [one.held_out for one in reported if one.held_out]
    trained = [one.train for one in reported if one.train]
    train = Accuracy.pooled(trained) if trained else None
    by_noise = {noise: _pooled(found, noise, judged) for noise in tried}
    return CrossValidation(folds, Accuracy.pooled(held), train, _best(found, tried, judged), by_noise)


def _pooled(found: Mapping[tuple[int, float], Trial], noise: float, folds: Sequence[int]) -> Accuracy:
    parts = (found[fold, noise].held_out for fold in folds)
    return Accuracy.pooled([part for part in parts if part])


def _best(found: Mapping[tuple[int, float], Trial], strengths: Sequence[float], folds: Sequence[int]) -> float:
    return max(strengths, key=lambda noise: _pooled(found, noise, folds).value)
