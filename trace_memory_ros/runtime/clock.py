"""When the memory is written: one rule, saved in the checkpoint, for training, replay and the live node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import check_keys, require_choice, require_int, require_positive

StateArray = NDArray[np.floating[Any]]
StampArray = NDArray[np.int64]


class SinceWrite(NamedTuple):
    """What lies between the last write and this tick: ticks, counted path (standardised, unitless), time."""

    ticks: int
    path: float
    known_ns: int | None

    @property
    def elapsed_ns(self) -> int:
        """Between the stamps of the two ticks. Raises ValueError where the clock is given none."""
        if self.known_ns is None:
            raise ValueError("the update clock's rule needs stamps and is given none: give the ticks' header stamps")
        return self.known_ns


class ClockRule(Protocol):
    """Decides at each tick whether it writes; frozen, and plain data in a checkpoint."""

    @property
    def deadband(self) -> float:
        """Standardised movement (L2) that is not yet path."""
        ...

    def reached(self, since: SinceWrite) -> bool:
        """Whether a tick so far from the last write writes."""
        ...

    def scaled(self, factor: float) -> ClockRule:
        """A rule of the same kind that writes about `factor` times more rarely."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping; `rule_from_dict` inverts it."""
        ...


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

    def reached(self, since: SinceWrite) -> bool:
        """`n` ticks have passed."""
        return since.ticks >= self.n

    def scaled(self, factor: float) -> EveryTicks:
        """Every so many more ticks, to a whole number, at least 1."""
        return EveryTicks(max(1, round(self.n * factor)))

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

    def reached(self, since: SinceWrite) -> bool:
        """`threshold` has been travelled."""
        return since.path >= self.threshold

    def scaled(self, factor: float) -> PathLength:
        """So much farther, with the same dead band."""
        return replace(self, threshold=self.threshold * factor)

    def to_dict(self) -> dict[str, Any]:
        """`{"kind": "path_length", "threshold": ..., "deadband": ...}`; `rule_from_dict` inverts it."""
        return {"kind": "path_length", "threshold": float(self.threshold), "deadband": float(self.deadband)}


def ticks_apart(travelled: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    """Ticks that `PathLength(threshold)` writes at, from the path `(T,)` that was counted after each, however fine.

    Many thresholds are tried on one episode in training; the ticks need not be gone through again for each.
    """
    ticks = [0] if len(travelled) else []
    while ticks:
        written = travelled[ticks[-1]]
        # The sum may round to either side of what the difference below does.
        tick = max(int(np.searchsorted(travelled, (written + threshold) * (1.0 - 1e-9))), ticks[-1] + 1)
        while tick < len(travelled) and travelled[tick] - written < threshold:
            tick += 1
        if tick >= len(travelled):
            break
        ticks.append(tick)
    return np.array(ticks, dtype=np.int64)


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
        self._written_ns: int | None = None

    @property
    def path_length(self) -> float:
        """Counted standardised state path since reset, unitless."""
        return self._path

    def due(self, state_std: StateArray, stamp_ns: int | None = None) -> bool:
        """Advance by one tick with standardised state `(d_s,)`; True if this tick writes. The first always does.

        stamp_ns: the tick's header stamp, which rules of time need.
        """
        return self._advance(state_std.tolist(), stamp_ns)

    def write_mask(self, states_std: StateArray, stamps_ns: StampArray | None = None) -> NDArray[np.bool_]:
        """What `due` answers over a fresh episode of standardised states `(T, d_s)` and stamps `(T,)`, as `(T,)`.

        The clock stays put.
        """
        fresh, states = UpdateClock(self.rule), states_std.tolist()
        stamps = [None] * len(states) if stamps_ns is None else stamps_ns.tolist()
        return np.array([fresh._advance(*tick) for tick in zip(states, stamps, strict=True)], dtype=bool)

    def _advance(self, state: Sequence[float], stamp_ns: int | None) -> bool:
        if self._last is None:
            self._last, self._written_ns = state, stamp_ns
            return True
        step = math.dist(state, self._last)
        if step > self.rule.deadband:
            self._path += step
            self._last = state
        self._ticks += 1
        elapsed_ns = None if stamp_ns is None or self._written_ns is None else stamp_ns - self._written_ns
        write = self.rule.reached(SinceWrite(self._ticks, self._path - self._path_at_write, elapsed_ns))
        if write:
            self._written_ns = stamp_ns
            self._ticks = 0
            self._path_at_write = self._path
        return write

    def travelled(self, states_std: StateArray) -> NDArray[np.float64]:
        """Counted path `(T,)` after each tick of a fresh episode; it depends on the dead band alone."""
        fresh, states = UpdateClock(self.rule), states_std.tolist()
        path = np.empty(len(states))
        for tick, state in enumerate(states):
            fresh._advance(state, 0)
            path[tick] = fresh._path
        return path

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `restore` accepts."""
        last = [] if self._last is None else list(self._last)
        return {
            "last_state": np.array(last, dtype=np.float64),
            "path": np.array([self._path, self._path_at_write], dtype=np.float64),
            "ticks": np.array([self._ticks], dtype=np.int64),
            "written_ns": np.array([] if self._written_ns is None else [self._written_ns], dtype=np.int64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Stand where `snapshot` was taken."""
        last = arrays["last_state"]
        self._last = last.tolist() if last.size else None
        self._path, self._path_at_write = (float(value) for value in arrays["path"])
        self._ticks = int(arrays["ticks"][0])
        written = arrays["written_ns"].tolist()
        self._written_ns = written[0] if written else None

    def to_dict(self) -> dict[str, Any]:
        """The rule's mapping."""
        return self.rule.to_dict()

    @classmethod
    def from_dict(cls, data: object, where: str = "clock") -> UpdateClock:
        """A clock at the start of an episode from its rule's mapping. Raises ConfigError."""
        return cls(rule_from_dict(data, where))
