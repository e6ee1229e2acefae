"""From a checkpoint to a policy that is ready to act."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.robot_topics import actions_in
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.policies.base import Policy, check_actions, check_numbers
from trace_memory_ros.policies.families import UnknownFamily, family
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart
from trace_memory_ros.runtime.checkpoint import Checkpoint, CheckpointError
from trace_memory_ros.runtime.limits import EFFORT_UNITS, is_velocity, velocity_columns

COMMAND = "command"
LENGTHS = ("rad", "m")
FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class _Nothing:
    """A condition of zeros."""

    tokens: FloatArray
    vector: FloatArray
    read_weights: FloatArray
    address: FloatArray


def load_policy(loaded: Checkpoint) -> Policy:
    """The checkpoint's policy. Raises `CheckpointError` when it has none or one of an unknown family."""
    policy = loaded.policy
    try:
        return family(policy.family).load(policy.options, loaded.tensors_of("policy."))
    except UnknownFamily as error:
        raise CheckpointError(f"{loaded.folder}: {error}") from error


def ready_policy(loaded: Checkpoint, actuators: str) -> Policy:
    """The checkpoint's policy, warmed up. Raises as `load_policy` does.

    actuators: the robot's, by comma; `ActionMismatch` where the policy's are others. Empty for any.
    """
    policy = load_policy(loaded)
    if robot := [name.strip() for name in actuators.split(",") if name.strip()]:
        check_actions(policy.action_names, robot, "parameter actuators")
    warm_up(policy, loaded.config.observation)
    return policy


def actions_of(loaded: Checkpoint, policy: Policy, actions_file: str = "") -> ActionConfig:
    """What the policy's outputs are; where nothing says it, one JointTrajectory on `command`.

    actions_file: YAML whose `actions` count in place of the checkpoint's, their outputs in any order. Raises
    CheckpointError where the checkpoint, ConfigError where the file says it of other outputs, in another sense or not
    at all.
    """
    actions = loaded.config.actions
    if actions_file:
        actions = actions_in(actions_file)
        if sorted(actions.names) != sorted(policy.action_names):
            raise ConfigError(
                f"{actions_file}: outputs are {', '.join(actions.names)}, the policy's are "
                f"{', '.join(policy.action_names)}: give its parts names, or its outputs, {{select: {{NAME: FIELD}}}}"
            )
        if loaded.config.actions is not None:
            _check_meaning(actions, loaded.config.actions, actions_file)
        return actions
    if actions is None:
        return ActionConfig.of_trajectory(COMMAND, policy.action_names)
    if actions.names != tuple(policy.action_names):
        raise CheckpointError(
            f"{loaded.folder}: actions are {', '.join(actions.names)}, the policy's outputs "
            f"{', '.join(policy.action_names)}: correct actions in its config.yaml, or train again"
        )
    return actions


def check_commanded(actions: ActionConfig) -> None:
    """Raise ConfigError for a topic that says where something is: nobody obeys it; and for what no stop would end."""
    for part in actions.parts:
        for name in _going_on(part):
            raise ConfigError(
                f"{part.where}: fixed: {name} = {part.fixed[name]:g} is a velocity that would go on when commands "
                "stop: leave it out, or let the policy command it"
            )
        if part.ahead_ms:
            raise ConfigError(
                f"{part.where}: it says where the robot is (ahead_ms = {part.ahead_ms}): give the topic or the action "
                "that it is commanded by, with outputs of the same names, in actions_file"
            )


def _going_on(part: ActionPart) -> list[str]:
    """Fixed numbers that no stop would end: velocities beside outputs that are all velocities, which are stopped."""
    if not all(velocity_columns(ActionConfig((part,)))):
        return []
    return [name for name, number in part.fixed.items() if number and is_velocity(part.kind.fields(name)[0].unit)]


def _check_meaning(given: ActionConfig, learned: ActionConfig, path: str) -> None:
    """Raise ConfigError for numbers that would mean another motion than was learned: differences, or velocities."""
    units, relative = dict(zip(learned.names, learned.units, strict=True)), _relative(learned)
    for name, unit in zip(given.names, given.units, strict=True):
        if (name in _relative(given)) != (name in relative):
            said = "relative to the state: give its part" if name in relative else "as an absolute target: leave out"
            raise ConfigError(f"{path}: output {name!r} was learned {said} relative: true")
        said = f"{path}: output {name!r} was learned in {units[name] or 'no unit'}, and is in {unit or 'none'} here: "
        if is_velocity(unit) != is_velocity(units[name]):
            raise ConfigError(
                f"{said}select what it was, or give its unit (units: {{OUTPUT: UNIT}}); velocities are stopped, not "
                "repeated"
            )
        # Where a type says no unit, it may be either.
        if any(one in EFFORT_UNITS and other in LENGTHS for one, other in permutations((unit, units[name]))):
            raise ConfigError(f"{said}a joint's name alone selects its position, {{effort: [JOINT]}} its effort")


def _relative(actions: ActionConfig) -> set[str]:
    return {name for part in actions.parts if part.relative for name in part.names}


def warm_up(policy: Policy, config: ObservationConfig) -> None:
    """Act a few times on black images, then forget it: first calls are slow. Raises ValueError for no action."""
    shape = policy.condition
    condition = _Nothing(
        np.zeros((shape.tokens, shape.width), np.float32),
        np.zeros(shape.width, np.float32),
        np.zeros(shape.tokens, np.float32),
        np.zeros(shape.address, np.float32),
    )
    observation = Observation(0, 0, config.black_images(), np.zeros(config.state_dim), {}, {})
    for _ in range(3):
        check_numbers(policy.act(observation, condition), len(policy.action_names))
    policy.reset()
