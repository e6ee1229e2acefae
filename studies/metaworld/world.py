"""Meta-World's environments with a goal that is shown and then hidden, under the Python of Meta-World's environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import metaworld.env_dict
import numpy as np
from metaworld.policies import ENV_POLICY_MAP

from studies.metaworld.names import MOVES, Cue
from studies.worlds.server import Teacher

GOAL = slice(-3, None)
HAND = (0, 1, 2, 3)
"""Position of the hand and opening of the gripper: the path of a trajectory."""


class ShownGoal(gym.Wrapper):
    """Zeroes the goal once it was shown long enough, and holds the arm at first; success ends an episode."""

    def __init__(self, env: gym.Env, cue: Cue) -> None:
        super().__init__(env)
        self._cue = cue
        self._tick = self._held = 0
        self._seen = np.zeros(0)
        space = env.observation_space
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, space.shape, np.float64)  # type: ignore[assignment]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        rng = np.random.default_rng(seed)
        self._tick, self._held = 0, int(rng.integers(self._cue.least, self._cue.most + 1))
        self.unwrapped.seed(seed)  # type: ignore[attr-defined]
        self._seen, info = self.env.reset()
        return self._shown(), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        self._tick += 1
        if self._tick <= self._held:
            return self._shown(), 0.0, False, False, {}
        self._seen, reward, _, _, info = self.env.step(np.clip(action, -1.0, 1.0))
        truncated = self._tick - self._held >= MOVES
        return self._shown(), float(reward), bool(info["success"]), truncated, info

    def _shown(self) -> np.ndarray:
        shown = self._seen.copy()
        if self._tick >= self._cue.shown:
            shown[GOAL] = 0.0
        return shown


class Remembering:
    """Meta-World's scripted policy, which goes on seeing the goal that it was shown first."""

    def __init__(self, task: str) -> None:
        self._policy = ENV_POLICY_MAP[f"{task}-v3"]()
        self._goal: np.ndarray | None = None

    def begin(self, env: gym.Env) -> None:
        self._goal = None

    def act(self, observation: np.ndarray) -> np.ndarray:
        if self._goal is None:
            self._goal = observation[GOAL].copy()
        whole = np.concatenate([observation[:-3], self._goal])
        return np.clip(self._policy.get_action(whole), -1.0, 1.0)


def make(task: str) -> gym.Env:
    """The environment of a task with its cue, `names.Cue.of`."""
    name, cue = Cue.parse(task)
    env = metaworld.env_dict.ALL_V3_ENVIRONMENTS_GOAL_OBSERVABLE[f"{name}-v3-goal-observable"](seed=0)
    env._freeze_rand_vec, env.seeded_rand_vec = False, True
    return ShownGoal(env, cue)


def teacher(task: str) -> Teacher:
    """Meta-World's own policy."""
    return Remembering(Cue.parse(task)[0])


def describe(env: gym.Env, task: str) -> dict[str, Any]:
    """What gymnasium does not know of a task."""
    return {"previous_action": False, "teacher": "Meta-World's scripted policy, with the goal remembered", "path": HAND}
