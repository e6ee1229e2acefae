"""One task of a world as a process of the world's own Python: `python -m studies.worlds.server MODULE`.

MODULE offers `make(task) -> gymnasium.Env`, `teacher(task) -> Teacher` and `describe(env, task) -> dict`, the last with
what gymnasium cannot know of `protocol.Interface`; or a `Server` of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class Teacher(Protocol):
    """Plays one episode after the other, from what it is shown."""

    def begin(self, env: gym.Env) -> None:
        """A new episode; env is for teachers that say that they look into it."""
        ...

    def act(self, observation: Any) -> Any:
        """The action at an observation as the environment gives it."""
        ...


class Step(NamedTuple):
    """observation `(W,)`; success: whether the world said so."""

    observation: np.ndarray
    reward: float
    done: bool
    success: bool


class Episode(NamedTuple):
    """observations, each `(W,)`, and the actions at them; the sum of its rewards; whether the world said success."""

    observations: list[np.ndarray]
    actions: list[np.ndarray]
    reward: float
    success: bool


class Server:
    """A task, its teacher, and the episodes that are being played."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._task: str | None = None
        self._playing: list[gym.Env] = []
        self._ended: list[bool] = []

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Do what a request asks for."""
        return getattr(self, f"do_{request.pop('do')}")(**request)

    def do_describe(self, task: str) -> dict[str, Any]:
        env = self._world.make(task)
        space = env.action_space
        if isinstance(space, spaces.Box):
            numbers = {
                "numbers": int(np.prod(space.shape)),
                "low": float(space.low.min()),
                "high": float(space.high.max()),
            }
            action: dict[str, Any] = {"choices": [], **numbers}
        else:
            options = [space.n] if isinstance(space, spaces.Discrete) else space.nvec.tolist()  # type: ignore[attr-defined]
            action = {"choices": [int(n) for n in options], "numbers": 0, "low": 0.0, "high": 0.0}
        return {
            "observation": spaces.flatdim(env.observation_space),
            **action,
            **self._world.describe(env, task),
        }

    def do_teach(self, task: str, seeds: list[int], steps: int, file: str) -> dict[str, Any]:
        observations, actions = [], []
        for episode in self._taught(task, seeds, steps):
            observations.append(np.stack(episode.observations))
            actions.append(np.stack(episode.actions).astype(np.float32))
        lengths = [len(shown) for shown in observations]
        np.savez(file, lengths=lengths, observations=np.concatenate(observations), actions=np.concatenate(actions))
        return {}

    def do_judge(self, task: str, seeds: list[int]) -> dict[str, Any]:
        episodes = list(self._taught(task, seeds, None))
        return {
            "returns": [episode.reward for episode in episodes],
            "successes": [episode.success for episode in episodes],
            "steps": [len(episode.actions) for episode in episodes],
        }

    def _taught(self, task: str, seeds: list[int], steps: int | None) -> Iterator[Episode]:
        """The teacher's episodes, cut after `steps`."""
        env, teacher = self._world.make(task), self._world.teacher(task)
        for seed in seeds:
            observations, actions = [], []
            seen, _ = env.reset(seed=seed)
            teacher.begin(env)
            total, success, over = 0.0, False, False
            while not over:
                action = teacher.act(seen)
                observations.append(_flat(env, seen))
                actions.append(np.atleast_1d(action))
                seen, reward, terminated, truncated, info = env.step(action)
                total += float(reward)
                success = success or bool(info.get("success", False))
                over = bool(terminated or truncated) or len(actions) == steps
            yield Episode(observations, actions, total, success)

    def do_begin(self, task: str, seeds: list[int]) -> dict[str, Any]:
        if task != self._task:
            self._playing, self._task = [], task
        while len(self._playing) < len(seeds):
            self._playing.append(self._world.make(task))
        shown = [_flat(env, env.reset(seed=seed)[0]) for env, seed in zip(self._playing, seeds, strict=False)]
        self._ended = [False] * len(seeds)
        return {"observations": [row.tolist() for row in shown]}

    def do_act(self, actions: list[list[float]]) -> dict[str, Any]:
        found = [self._act(place, action) for place, action in enumerate(actions)]
        return {
            "observations": [step.observation.tolist() for step in found],
            "rewards": [step.reward for step in found],
            "done": [step.done for step in found],
            "successes": [step.success for step in found],
        }

    def _act(self, place: int, action: list[float]) -> Step:
        """A step of one episode; one that has ended stays as it is."""
        env = self._playing[place]
        if self._ended[place]:
            return Step(np.zeros(spaces.flatdim(env.observation_space), np.float32), 0.0, True, False)
        seen, reward, terminated, truncated, info = env.step(_given(env, action))
        self._ended[place] = bool(terminated or truncated)
        return Step(_flat(env, seen), float(reward), self._ended[place], bool(info.get("success", False)))


def _flat(env: gym.Env, observation: Any) -> np.ndarray:
    return np.asarray(spaces.flatten(env.observation_space, observation), dtype=np.float32)


def _given(env: gym.Env, action: list[float]) -> Any:
    if isinstance(env.action_space, spaces.Box):
        return np.asarray(action, dtype=env.action_space.dtype)
    whole = np.asarray(action, dtype=np.int64)
    return int(whole[0]) if isinstance(env.action_space, spaces.Discrete) else whole


def main() -> None:
    """Answer requests until there are no more. What the world prints goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    world = import_module(sys.argv[1])
    server = getattr(world, "Server", Server)(world)
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
