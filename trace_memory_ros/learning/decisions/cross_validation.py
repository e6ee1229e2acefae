"""How well what is learned holds on other episodes, where too few are there to hold some out for good."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trace_memory_ros.learning.decisions.candidates import Candidate, Trial, hardly_behind, nothing_ahead
from trace_memory_ros.measure.accuracy import Accuracy

FOLDS = 5
KEPT = "cross_validation.json"
"""Name of the file beside a checkpoint."""
LEAST_SCENES = 4
"""With fewer there is nothing to fold."""
Found = Mapping[tuple[int, Candidate], Trial]


@dataclass(frozen=True)
class CrossValidation:
    """Decisions of all folds, each by a training that never saw the fold.

    accuracy, train: of the candidate that the other folds chose; a decision is trained on in all folds but its own.
    chosen: the candidate that all choose. tried: what each was chosen by, decisions of all folds.
    """

    folds: int
    accuracy: Accuracy
    train: Accuracy | None
    chosen: Candidate
    tried: Mapping[Candidate, Accuracy]

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for summaries."""
        return {
            "folds": self.folds,
            "accuracy": self.accuracy.to_dict(),
            "train": None if self.train is None else self.train.to_dict(),
            **self.chosen._asdict(),
            "tried": [{**candidate._asdict(), **found.to_dict()} for candidate, found in self.tried.items()],
        }


def deal(kinds: Sequence[Sequence[str]], most: int = FOLDS) -> list[set[str]]:
    """Scenes in up to `most` folds, those of each kind dealt out in turn; none where they are too few."""
    scenes = [scene for kind in kinds for scene in kind]
    count = min(most, len(scenes))
    return [set(scenes[k::count]) for k in range(count)] if len(scenes) >= LEAST_SCENES else []


def cross_validate(
    folds: int, candidates: Sequence[Candidate], trial: Callable[[int, Candidate], Trial]
) -> CrossValidation | None:
    """Train each candidate once per fold and pool the folds' decisions; None where none can be judged.

    The candidate that a fold's decisions are reported of is chosen by the decisions of the other folds, so that none
    is reported by what it chose. None is tried once no other could be ahead of what is taken.
    """
    found: dict[tuple[int, Candidate], Trial] = {}
    by_candidate: dict[Candidate, Accuracy] = {}
    judged: list[int] = []
    for candidate in candidates:
        found |= {(fold, candidate): trial(fold, candidate) for fold in range(folds)}
        judged = [fold for fold in range(folds) if found[fold, candidate].held_out]
        if not judged:
            return None
        by_candidate[candidate] = _pooled(found, candidate, judged)
        if nothing_ahead(by_candidate):
            break
    reported = [
        found[fold, _best(found, list(by_candidate), [other for other in judged if other != fold] or judged)]
        for fold in judged
    ]
    held = [one.held_out for one in reported if one.held_out]
    trained = [one.train for one in reported if one.train]
    return CrossValidation(
        folds, Accuracy.pooled(held), _trained_on(trained), hardly_behind(by_candidate), by_candidate
    )


def _trained_on(parts: Sequence[Accuracy]) -> Accuracy | None:
    """Training decisions of all folds: the same ones, each asked in every fold but that which holds it out."""
    return replace(Accuracy.pooled(parts), repeats=max(1, len(parts) - 1)) if parts else None


def _pooled(found: Found, candidate: Candidate, folds: Sequence[int]) -> Accuracy:
    parts = (found[fold, candidate].decided for fold in folds)
    return Accuracy.pooled([part for part in parts if part])


def _best(found: Found, candidates: Sequence[Candidate], folds: Sequence[int]) -> Candidate:
    return hardly_behind({candidate: _pooled(found, candidate, folds) for candidate in candidates})
