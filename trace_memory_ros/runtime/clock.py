"""When the memory is written: one rule, saved in the checkpoint, for training, replay and the live node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import check_keys, require_choice, require_int, require_positive

StateArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class EveryTicks:
    """Write every `n` ticks, the first included."""

    n: int = 1

    def __post_init__(self) -> None:
        require_int(self.n, "clock every: n", 1)

    @property
    def deadband(self) -> float:
        """Every movement is path."""
        return 0.0

    def reached(self, ticks: int, path: float) -> bool:
        """`n` ticks have passed."""
        return ticks >= self.n

    def to_dict(self) -> dict[str, Any]:
        """`{"kind": "every", "n": n}`; `rule_from_dict` inverts it."""
        return {"kind": "every", "n": self.n}


@dataclass(frozen=True)
class PathLength:
    """Write when the standardised state has travelled `threshold` (L2, unitless) since the last write.

    Travel is counted from the last counted state and only once it exceeds `deadband`: sensor jitter of a standing arm
    stays within the deadband for ever, while slow motion leaves it and is counted.
    """

    threshold: float
    deadband: float = 0.0

    def __post_init__(self) -> None:
        require_positive(self.threshold, "clock path_length: threshold")
        require_positive(self.deadband, "clock path_length: deadband", zero=True)

    def reached(self, ticks: int, path: float) -> bool:
        """`threshold` has been travelled."""
        return path >= self.threshold

    def to_dict(self) -> dict[str, Any]:
        """`{"kind": "path_length", "threshold": ..., "deadband": ...}`; `rule_from_dict` inverts it."""
        return {"kind": "path_length", "threshold": float(self.threshold), "deadband": float(self.deadband)}


ClockRule = EveryTicks | PathLength


def rule_from_dict(data: object, where: str = "clock") -> ClockRule:
    """Read a rule strictly. Raises ConfigError naming unknown keys or kinds."""
    kind = check_keys(data, ("kind", "n", "threshold", "deadband"), ("kind",), where)["kind"]
    require_choice(kind, ("every", "path_length"), f"{where}.kind")
    if kind == "every":
        return EveryTicks(check_keys(data, ("kind", "n"), ("n",), where)["n"])
    values = check_keys(data, ("kind", "threshold", "deadband"), ("threshold",), where)
    return PathLength(values["threshold"], values.get("deadband", 0.0))


class UpdateClock:
    """A rule and where it stands in one episode."""

    def __init__(self, rule: ClockRule) -> None:
        self.rule = rule
        self.reset()

    def reset(self) -> None:
        """Before the first tick of an episode."""
        self._last: Sequence[float] | None = None
        self._path = 0.0
        self._path_at_write = 0.0
        self._ticks = 0

    @property
    def path_length(self) -> float:
        """Counted standardised state path since reset, unitless."""
        return self._path

    def due(self, state_std: StateArray) -> bool:
        """Advance by one tick with standardised state `(d_s,)`; True if this tick writes. The first always does."""
        return self._advance(state_std.tolist())

    def write_mask(self, states_std: StateArray) -> NDArray[np.bool_]:
        """What `due` answers over a fresh episode of standardised states `(T, d_s)`, as `(T,)`; the clock stays put."""
        fresh = UpdateClock(self.rule)
        return np.array([fresh._advance(state) for state in states_std.tolist()], dtype=bool)

    def _advance(self, state: Sequence[float]) -> bool:
        if self._last is None:
            self._last = state
            return True
        step = math.dist(state, self._last)
        if step > self.rule.deadband:
            self._path += step
            self._last = state
        self._ticks += 1
        write = self.rule.reached(self._ticks, self._path - self._path_at_write)
        if write:
            self._ticks = 0
            self._path_at_write = self._path
        return write

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `restore` accepts."""
        last = [] if self._last is None else list(self._last)
        return {
            "last_state": np.array(last, dtype=np.float64),
            "path": np.array([self._path, self._path_at_write], dtype=np.float64),
            "ticks": np.array([self._ticks], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Stand where `snapshot` was taken."""
        last = arrays["last_state"]
        self._last = last.tolist() if last.size else None
        self._path, self._path_at_write = (float(value) for value in arrays["path"])
        self._ticks = int(arrays["ticks"][0])

    def to_dict(self) -> dict[str, Any]:
        """The rule's mapping."""
        return self.rule.to_dict()

    @classmethod
    def from_dict(cls, data: object, where: str = "clock") -> UpdateClock:
        """A clock at the start of an episode from its rule's mapping. Raises ConfigError."""
        return cls(rule_from_dict(data, where))
