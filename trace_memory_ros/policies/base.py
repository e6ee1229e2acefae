"""What a policy receives and promises, whichever family it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.receding import RecedingHorizon


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


@runtime_checkable
class ChunkPolicy(Policy, Protocol):
    """A policy whose chunks may take longer than a tick: they are executed by its `horizon`, and computed meanwhile."""

    @property
    def horizon(self) -> RecedingHorizon:
        """What is executed when; `reset` resets it too."""

    def chunk(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """The chunk `(H, A)` from this tick on; may be called in another thread than the rest."""


class ConditionMismatch(ValueError):
    """A condition does not have the shape this policy was trained with."""


class ActionMismatch(ValueError):
    """A policy's actions are not those that the robot has."""


def check_condition(condition: ConditionLike, shape: ConditionShape) -> None:
    """Raise `ConditionMismatch` naming both where a condition is not of the shape that a policy was trained with."""
    sizes = (condition.tokens, condition.vector, condition.address, condition.read_weights)
    got = tuple(int(np.size(part)) for part in sizes)
    want = (shape.tokens * shape.width, shape.width, shape.address, shape.tokens)
    if got != want:
        raise ConditionMismatch(
            f"condition with {got[0]} token numbers, vector of {got[1]}, address of {got[2]}, {got[3]} read weights; "
            f"this policy was trained with {want[0]} ({shape.tokens} tokens of {shape.width}), {want[1]}, {want[2]}, "
            f"{want[3]}. Start memory_node and policy_node with the same checkpoint."
        )


def check_numbers(answer: object, outputs: int, chunk: bool = False) -> NDArray[np.float32]:
    """A policy's action `(A,)` or chunk `(H, A)` as an array. Raises ValueError where it answered something else."""
    numbers = np.asarray(answer)
    wanted = f"(H, {outputs})" if chunk else f"({outputs},)"
    if numbers.dtype.kind not in "fiu":
        raise ValueError(f"the policy answered with {type(answer).__name__} in place of numbers {wanted}")
    if numbers.shape[chunk:] != (outputs,) or not numbers.size:
        raise ValueError(f"the policy answered with numbers of shape {numbers.shape} in place of {wanted}")
    return numbers


def check_actions(names: Sequence[str], robot: Sequence[str], where: str) -> None:
    """Raise `ActionMismatch` where a policy's action `names` are not those of the robot, in any order.

    where: what says so of the robot, for the message.
    """
    unknown = [name for name in names if name not in robot]
    missing = [name for name in robot if name not in names]
    if unknown or missing:
        parts = [f"{', '.join(unknown)} that {where} does not have"] if unknown else []
        parts += [f"nothing for {', '.join(missing)} of {where}"] if missing else []
        raise ActionMismatch(
            f"the policy commands {' and '.join(parts)}: give the checkpoint of a policy that was trained for this "
            f"robot ({', '.join(robot)}), or correct its list of actuators"
        )
