"""What a policy receives and promises, whichever family it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.policies.adapters import ConditionShape


class ObservationLike(Protocol):
    """The part of an observation a policy reads: images by camera `(P, P, 3)` uint8 RGB, state `(d_s,)` SI units."""

    @property
    def images(self) -> Mapping[str, NDArray[np.uint8]]: ...

    @property
    def state(self) -> NDArray[np.float64] | None: ...


class ConditionLike(Protocol):
    """The part of a memory condition a policy reads; shapes as in `MemoryCondition.msg`."""

    @property
    def tokens(self) -> NDArray[np.float32]: ...

    @property
    def vector(self) -> NDArray[np.float32]: ...

    @property
    def read_weights(self) -> NDArray[np.float32]: ...

    @property
    def address(self) -> NDArray[np.float32]: ...


class Policy(Protocol):
    """A policy at run time: one absolute action per control tick."""

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions, in order."""

    @property
    def condition(self) -> ConditionShape:
        """Shape of the conditions it takes."""

    def reset(self) -> None:
        """Forget everything about the episode so far."""

    def act(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """The action `(A,)` for this tick, in the units of `action_names`."""


class ConditionMismatch(ValueError):
    """A condition does not have the shape this policy was trained with."""
