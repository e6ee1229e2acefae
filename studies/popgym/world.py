"""POPGym's environments and their teachers, under the Python of POPGym's environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import popgym.envs  # noqa: F401  registers the environments

from studies.popgym.names import environment_id, kind
from studies.popgym.teachers import table
from studies.worlds.server import Teacher


def make(task: str) -> gym.Env:
    """The environment of a task such as `RepeatFirstEasy`."""
    return gym.make(environment_id(task), disable_env_checker=True)


def teacher(task: str) -> Teacher:
    """The teacher of a task."""
    return table.TEACHERS[kind(task)].make(make(task).unwrapped)


def describe(env: gym.Env, task: str) -> dict[str, Any]:
    """What gymnasium does not know of a task."""
    return {
        "previous_action": bool(getattr(env.unwrapped, "obs_requires_prev_action", False)),
        "teacher": table.TEACHERS[kind(task)].words,
    }
