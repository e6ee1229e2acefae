"""What competes to be trained, what a trial of it found, and which is taken: of nearly equal ones the simplest."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from trace_memory_ros.files import atomic
from trace_memory_ros.learning.sizes import USUAL
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.measure.summary import known

NEARLY_ALL = 0.9
"""Where only errors can be compared: the share of the best one's gain over the simplest that is as good as all."""
NOTHING = 0.05
"""The share of the simplest one's error by which the best has to be better."""
NO_ERROR = 1e-3
"""Of a chunk, in standard deviations of the actions: less than this is none, and nothing is gained by less still."""
BEHIND = 0.05
"""The share of decisions by which a simpler one may be behind and still be taken: one of 24 tells nothing."""


class Candidate(NamedTuple):
    """A memory by its registry name, and how many times as strong as usual the noise over its signatures is."""

    memory: str
    noise: float = 1.0

    def __str__(self) -> str:
        return self.memory if self.noise == 1.0 else f"{self.memory}, noise x{self.noise:g}"


class Trial(NamedTuple):
    """Of one training: decisions of the episodes it learned from, of others, and of these after longer delays.

    chunk_error: on the others, for where nothing is decided. What cannot be judged is None.
    """

    train: Accuracy | None
    held_out: Accuracy | None
    longer: Accuracy | None = None
    chunk_error: float | None = None

    @property
    def decided(self) -> Accuracy | None:
        """Those of the others after all delays, which candidates are compared by: the same, asked several times."""
        parts = [part for part in (self.held_out, self.longer) if part is not None]
        return Accuracy.asked_again(parts) if parts else None

    @property
    def judges(self) -> bool:
        """Whether it says anything of episodes that were not learned from."""
        return self.decided is not None or self.chunk_error is not None

    def __str__(self) -> str:
        judged = [f"train {self.train}", f"others {self.held_out}"]
        judged += [f"after longer delays {self.longer}"] if self.longer is not None else []
        judged += [f"chunk error {self.chunk_error:.3f}"] if self.decided is None and self.chunk_error else []
        return ", ".join(judged)

    def to_plain(self) -> dict[str, Any]:
        """Plain mapping that `from_plain` inverts."""
        parts = self._asdict()
        return {name: part.to_plain() if isinstance(part, Accuracy) else part for name, part in parts.items()}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Trial:
        """What `to_plain` gave. Raises KeyError and ValueError for anything else."""
        error = data["chunk_error"]
        train, held_out, longer = (data[name] and Accuracy.from_plain(data[name]) for name in cls._fields[:3])
        return cls(train, held_out, longer, error)

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for summaries."""
        parts = self._asdict() | {"chunk_error": known(self.chunk_error)}
        return {name: part.to_dict() if isinstance(part, Accuracy) else part for name, part in parts.items()}


NOT_JUDGED = Trial(None, None)


class KeptTrials:
    """Trials in a JSON file by name, so that what was interrupted goes on where it was.

    settings: plain content that they depend on. reuse: whether those in the file count, if they are of these settings.
    """

    def __init__(self, file: Path, settings: Mapping[str, Any], reuse: bool) -> None:
        self._file, self._settings = file, json.loads(json.dumps(settings))
        self._trials: dict[str, Any] = self._read() if reuse else {}

    def get(self, name: str, trial: Callable[[], Trial]) -> Trial:
        """The trial as kept, or done now and kept."""
        if name not in self._trials:
            self._trials[name] = trial().to_plain()
            content = {"settings": self._settings, "trials": self._trials}
            self._file.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(self._file, json.dumps(content, indent=1))
        return Trial.from_plain(self._trials[name])

    def _read(self) -> dict[str, Any]:
        """What the file holds; nothing where it is missing, damaged or of other settings."""
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            trials = {str(name): dict(trial) for name, trial in found["trials"].items()}
            return trials if found["settings"] == self._settings else {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}


@dataclass(frozen=True)
class Selection:
    """Which candidate is taken, and the trials of those that were tried, the simplest first."""

    chosen: Candidate
    tried: Mapping[Candidate, Trial]

    @property
    def learned(self) -> bool:
        """Whether the trial of what is taken has trained its memory."""
        return self.tried.get(self.chosen, NOT_JUDGED).judges

    def __str__(self) -> str:
        trial = self.tried.get(self.chosen, NOT_JUDGED)
        if not trial.judges:
            return (
                f"{self.chosen}: no episode is there to choose by, raise bags.validation (recipe.validation_pairs of a "
                "simulated task)"
            )
        found = trial.held_out or trial.decided
        if found is None:
            return f"{self.chosen}: what else was tried gains little over it"
        few = "" if found.tells else f"; {found.count} decisions are too few to know it by"
        return f"{self.chosen}: nothing that was tried decides clearly more rightly, and it is the simplest{few}"

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for summaries."""
        tried = [{**candidate._asdict(), **trial.to_dict()} for candidate, trial in self.tried.items()]
        return {**self.chosen._asdict(), "tried": tried}


def select(candidates: Sequence[Candidate], trial: Callable[[Candidate], Trial]) -> Selection:
    """Try candidates, the simplest first, and take the simplest that is hardly behind, once no other could be ahead.

    Where the first trial judges nothing no other would: the usual one is taken untried, or the last.
    """
    tried: dict[Candidate, Trial] = {}
    judged: dict[Candidate, Accuracy] = {}
    for candidate in candidates:
        tried[candidate] = found = trial(candidate)
        if not found.judges:
            return Selection(next((one for one in candidates if one.memory == USUAL), candidates[-1]), tried)
        if found.decided is not None:
            judged[candidate] = found.decided
            if nothing_ahead(judged):
                break
    if judged:
        return Selection(hardly_behind(judged), tried)
    errors = {one: found.chunk_error for one, found in tried.items() if found.chunk_error is not None}
    return Selection(list(errors)[simplest(list(errors.values()))], tried)


def nothing_ahead(found: Mapping[Candidate, Accuracy]) -> bool:
    """Whether what is taken of these would be taken beside another that decides all rightly, too."""
    taken = found[hardly_behind(found)]
    return taken.value >= enough_beside(taken.all_right())


def hardly_behind(found: Mapping[Candidate, Accuracy]) -> Candidate:
    """The first, which is the simplest, that the one with the largest share of right decisions is not clear of."""
    enough = enough_beside(max(found.values(), key=lambda accuracy: accuracy.value))
    return next(candidate for candidate, accuracy in found.items() if accuracy.value >= enough)


def enough_beside(best: Accuracy) -> float:
    """The share from which on the best is not clear: behind by no more than `BEHIND`, and within its interval."""
    return max(best.low, best.value - BEHIND)


def simplest(errors: Sequence[float]) -> int:
    """Which of errors, the simplest candidate's first, gains nearly all that the best gains over the first.

    Above `NO_ERROR` an error falls to no floor that is known, so that a share of it says little; and of two that
    imitate alike, the one that has less to go by was seen to drive better (docs/explanation/worlds/popgym.md).
    A training whose error is no finite number is not taken, unless all are like that.
    """
    finite = [index for index, error in enumerate(errors) if math.isfinite(error)]
    if 0 < len(finite) < len(errors):
        return finite[simplest([errors[index] for index in finite])]
    if not finite:
        return 0
    gains = [errors[0] - error for error in errors]
    if max(gains) <= NOTHING * errors[0]:
        return 0
    enough = (e <= NO_ERROR or gain >= NEARLY_ALL * max(gains) for e, gain in zip(errors, gains, strict=True))
    return next(i for i, found in enumerate(enough) if found)
