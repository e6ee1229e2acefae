"""Teachers of carts and pendulums: a Kalman filter on what is shown, and a feedback law."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_NOISE = 1e-3
"""Standard deviation that a filter takes exact observations for; its matrices stay invertible."""
DRIFT = 1e-4
"""Of a state per tick, in standard deviations of its first value: what the linear model leaves out."""


class Filter:
    """Extended Kalman filter: a state `(n,)`, its covariance, and rows `(m, n)` that observe it with equal noise.

    Source: Kalman, "A new approach to linear filtering and prediction problems", 1960.
    """

    def __init__(self, spread: Array, rows: Array, noise: float) -> None:
        self._first, self._rows = np.diag(spread**2), rows
        self._noise = max(noise, LEAST_NOISE) ** 2 * np.eye(len(rows))
        self.reset()

    def reset(self) -> None:
        """Begin an episode at a state of zeros."""
        self.state, self._covariance = np.zeros(len(self._first)), self._first.copy()

    def predict(self, state: Array, slope: Array) -> None:
        """Move to `state`, which depends on the one before by the matrix `slope`."""
        self.state = state
        self._covariance = slope @ self._covariance @ slope.T + DRIFT**2 * self._first

    def correct(self, error: Array, rows: Array | None = None) -> None:
        """Take in `error` `(m,)`, what was seen less what the state shows."""
        rows = self._rows if rows is None else rows
        seen = self._covariance @ rows.T
        gain = seen @ np.linalg.inv(rows @ seen + self._noise)
        self.state = self.state + gain @ error
        self._covariance = self._covariance - gain @ rows @ self._covariance


class Cart:
    """Pushes against a weighted sum of the filtered state; the model of cart and pole is Barto, Sutton and Anderson's.

    shown: which of position (m), velocity (m/s), angle (rad) and angular velocity (rad/s) are, after the first
    observation, which shows position and angle in every variant.
    """

    TICK_S, PUSH_N = 0.02, 10.0
    GAINS = np.array([0.3, 0.8, 8.0, 1.5])
    FIRST = 0.03
    """Spread of the four numbers at reset."""

    def __init__(self, env: Any, shown: tuple[int, ...]) -> None:
        noise = float(np.max(getattr(env, "noise_sigma", 0.0)))
        self._eye = np.eye(4)
        self._filter = Filter(np.full(4, self.FIRST), self._eye[list(shown)], noise)
        self._shown = list(shown)
        angular = 9.8 / (0.5 * (4 / 3 - 0.1 / 1.1))
        rates = np.zeros((4, 4))
        rates[0, 1] = rates[2, 3] = 1.0
        rates[3, 2], rates[1, 2] = angular, -0.05 / 1.1 * angular
        self._slope = self._eye + self.TICK_S * rates
        self.begin(env)

    def begin(self, env: Any) -> None:
        self._filter.reset()
        self._push: int | None = None

    def act(self, observation: NDArray[np.float32]) -> int:
        seen = np.asarray(observation, dtype=np.float64)
        if self._push is None:
            self._filter.correct(seen - self._filter.state[[0, 2]], self._eye[[0, 2]])
        else:
            self._filter.predict(self._moved(self._filter.state), self._slope)
            self._filter.correct(seen - self._filter.state[self._shown])
        self._push = int(self.GAINS @ self._filter.state > 0)
        return self._push

    def acted(self, action: int) -> None:
        self._push = int(action)

    def _moved(self, state: Array) -> Array:
        _, speed, angle, turning = state
        force = self.PUSH_N if self._push else -self.PUSH_N
        pushed = (force + 0.05 * turning**2 * math.sin(angle)) / 1.1
        angular = (9.8 * math.sin(angle) - math.cos(angle) * pushed) / (
            0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
        )
        linear = pushed - 0.05 * angular * math.cos(angle) / 1.1
        return np.asarray(state + self.TICK_S * np.array([speed, linear, turning, angular]))


class Pendulum:
    """Pumps energy until the pendulum can be caught, then holds it up, by a filter on angle and speed.

    Source: Åström and Furuta, "Swinging up a pendulum by energy control", 2000.
    """

    TICK_S, TORQUE, FASTEST = 0.05, 2.0, 8.0
    FIRST = np.array([math.pi, 0.6])
    """Spread of angle (rad) and speed (rad/s) at reset."""

    def __init__(self, env: Any) -> None:
        noise = float(np.max(getattr(env, "noise_sigma", 0.0)))
        self._filter = Filter(self.FIRST, np.array([[1.0, 0.0]]), noise)
        self.begin(env)

    def begin(self, env: Any) -> None:
        self._filter.reset()
        self._torque: float | None = None

    def act(self, observation: NDArray[np.float32]) -> NDArray[np.float32]:
        angle, turning = map(float, self._filter.state)
        if self._torque is not None:
            turning = turning + self.TICK_S * (15.0 * math.sin(angle) + 3.0 * self._torque)
            slope = np.array([[1.0 + self.TICK_S**2 * 15.0 * math.cos(angle), self.TICK_S], [0.0, 1.0]])
            slope[1, 0] = self.TICK_S * 15.0 * math.cos(angle)
            turning = min(max(turning, -self.FASTEST), self.FASTEST)
            self._filter.predict(np.array([angle + self.TICK_S * turning, turning]), slope)
        seen = math.atan2(float(observation[1]), float(observation[0]))
        self._filter.correct(np.array([math.remainder(seen - self._filter.state[0], math.tau)]))
        self._torque = self._law(math.remainder(self._filter.state[0], math.tau), float(self._filter.state[1]))
        return np.array([self._torque], dtype=np.float32)

    def acted(self, action: NDArray[np.float32]) -> None:
        self._torque = float(action[0])

    def _law(self, angle: float, turning: float) -> float:
        if abs(angle) < 0.6 and abs(turning) < 4.0:
            wanted = -(10.0 * angle + 2.0 * turning)
        else:
            # Kinetic and potential energy per inertia, 0 upright and at rest.
            energy = turning**2 / 2 + 15.0 * (math.cos(angle) - 1.0)
            wanted = -self.TORQUE * math.copysign(1.0, energy * turning)
        return min(max(wanted, -self.TORQUE), self.TORQUE)
