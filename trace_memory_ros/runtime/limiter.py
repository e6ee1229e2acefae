"""Keeps commands within limits of position, step, velocity and acceleration, and says which one was met."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import copysign, floor, inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.runtime.limits import OutputLimit

Values = NDArray[np.float64]
ROUNDING = 1e-6
"""Policies give float32: what differs by less is not beyond a limit."""


class Limited(NamedTuple):
    """targets: `(A,)` within the limits. aims: what they approach. met: limits that were asked to be passed."""

    targets: Values
    aims: Values
    met: tuple[str, ...]


class Limiter:
    """Commands of one robot, one after the other; `begin` where the one before does not count any more.

    velocity: which outputs are velocities, whose max_velocity bounds the value and max_acceleration its step. A step is
    bounded by a tick's share of a limit even where ticks were left out, as a controller executes it within one tick.
    """

    def __init__(
        self, names: Sequence[str], limits: Sequence[OutputLimit], velocity: Sequence[bool], period_ns: int
    ) -> None:
        self._names = tuple(names)
        self._velocity = np.array(velocity, dtype=bool)
        period_s = 1e-9 * period_ns
        low, high, step, speed, gain = np.array(
            [(one.min, one.max, one.max_step, one.max_velocity, one.max_acceleration) for one in limits]
        ).T
        self._low = np.where(self._velocity, np.maximum(low, -speed), low)
        self._high = np.where(self._velocity, np.minimum(high, speed), high)
        self._bounds = {
            "max_step": step,
            "max_velocity": np.where(self._velocity, inf, speed * period_s),
            "max_acceleration": np.where(self._velocity, gain * period_s, inf),
        }
        self._most = np.minimum.reduce(list(self._bounds.values()))
        # By how much a position's step may differ from the one before.
        self._gain = np.where(self._velocity, inf, gain * period_s**2)
        said = {"min": self._low, "max": self._high, "max_step": step, "max_velocity": speed, "max_acceleration": gain}
        self._text = {
            key: tuple(f"{name}: {key} = {value:g}" for name, value in zip(names, values, strict=True))
            for key, values in said.items()
        }
        # A velocity is bounded by its max_velocity where that is tighter: what was given is what is named.
        for key, given, bound in (("min", low, self._low), ("max", high, self._high)):
            texts = zip(self._text[key], self._text["max_velocity"], given == bound, strict=True)
            self._text[key] = tuple(own if kept else speed for own, speed, kept in texts)
        self.begin(np.full(len(self._names), np.nan))

    def begin(self, measured: Values) -> None:
        """Steps count from where the robot is: `measured` `(A,)`, NaN where nothing tells."""
        self._last = self._aims = np.where(self._velocity, 0.0, measured)
        self._step = np.zeros(len(self._names))

    def sent(self, targets: Values, aims: Values) -> None:
        """The command that was sent, from which the next one counts, and what it approached."""
        step = targets - self._last
        self._step = np.where(np.isfinite(step), step, 0.0)
        self._last, self._aims = targets.copy(), aims.copy()

    def apply(self, wanted: Values, ramp: Callable[[Values], Values] = np.asarray) -> Limited:
        """The nearest targets that may be commanded next; `sent` is the caller's to say.

        ramp: from where the robot is, which may be beyond a bound, to targets within them.
        """
        inside = ramp(np.clip(wanted, self._low, self._high))
        known = np.isfinite(self._last)
        last = np.where(known, self._last, inside)
        inside = np.clip(inside, np.minimum(self._low, last), np.maximum(self._high, last))
        distance = inside - last
        step = np.clip(distance, -self._most, self._most)
        for row in np.flatnonzero(known & np.isfinite(self._gain)).tolist():
            step[row] = self._accelerated(row, float(inside[row]), float(last[row]))
        # An arm that already is beyond a bound comes back step by step, and goes no further.
        near = np.clip(last + step, np.minimum(self._low, last), np.maximum(self._high, last))
        targets = np.where(step == distance, inside, near)  # to the bit, where nothing bounds the step
        return Limited(targets, inside, self._met(wanted, inside, targets, np.where(known, distance, 0.0)))

    def _accelerated(self, row: int, aim: float, last: float) -> float:
        """A step that differs from the one before by no more than it may, and can be braked at the bounds.

        It follows the aim's own step, and makes up for a lag as fast as it can without passing the aim.
        """
        gain, before, most = float(self._gain[row]), float(self._step[row]), float(self._most[row])
        moved, lag = aim - float(self._aims[row]), float(self._aims[row]) - last
        step = moved + copysign(_step_to_stop(abs(lag), gain), lag)
        step = min(max(step, before - gain, -most), before + gain, most)
        up, down = float(self._high[row]) - last, last - float(self._low[row])
        return max(min(step, _step_to_stop(max(up, 0.0), gain)), -_step_to_stop(max(down, 0.0), gain))

    def _met(self, wanted: Values, inside: Values, targets: Values, distance: Values) -> tuple[str, ...]:
        slack = ROUNDING * np.maximum(1.0, np.abs(wanted))
        rules = {
            "min": wanted < self._low - slack,
            "max": wanted > self._high + slack,
            **{key: np.abs(distance) > bound + slack for key, bound in self._bounds.items()},
        }
        rules["max_acceleration"] |= np.abs(distance - self._step) > self._gain + slack
        met = [[key for key, beyond in rules.items() if beyond[row]] for row in range(len(self._names))]
        for row in np.flatnonzero(np.abs(targets - inside) > slack).tolist():
            met[row] = met[row] or ["max_acceleration"]  # braking before a bound
        return tuple(self._text[key][row] for row, keys in enumerate(met) for key in keys[:1])


def _step_to_stop(distance: float, gain: float) -> float:
    """The largest step after which steps that shrink by `gain` each end within `distance`."""
    if distance == inf:
        return inf
    units = distance / gain
    whole = floor((sqrt(1 + 8 * units) - 1) / 2)
    return gain * (units + whole * (whole + 1) / 2) / (whole + 1)
