"""One task of a world as a process of the world's own Python: `python -m studies.worlds.server MODULE`.

MODULE offers `make(task) -> gymnasium.Env`, `teacher(task) -> Teacher` and `describe(env, task) -> dict`, the last with
what gymnasium cannot know of `protocol.Interface`; or a `Server` of its own.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple, Protocol, runtime_checkable

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


@runtime_checkable
class Told(Protocol):
    """A teacher whose next action depends on the last one, and that has to know when another was carried out."""

    def acted(self, action: Any) -> None:
        """What was carried out in place of its last action."""
        ...


class Step(NamedTuple):
    """observation `(W,)`; success: whether the world said so."""

    observation: np.ndarray
    reward: float
    done: bool
    success: bool


@dataclass
class Episode:
    """An episode of a teacher: what it was shown, what it would have done, and what was carried out.

    observations: each `(W,)`. reward: the sum of all. success: whether the world said so.
    """

    observations: list[np.ndarray]
    actions: list[np.ndarray]
    executed: list[np.ndarray]
    reward: float = 0.0
    success: bool = False


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

    def do_teach(self, task: str, seeds: list[int], steps: int, disturbed: float, file: str) -> dict[str, Any]:
        episodes = list(self._taught(task, seeds, steps, disturbed))
        lengths = [len(episode.actions) for episode in episodes]
        observations, actions, executed = (
            np.concatenate([np.stack(getattr(episode, name)) for episode in episodes]).astype(np.float32)
            for name in ("observations", "actions", "executed")
        )
        np.savez(file, lengths=lengths, observations=observations, actions=actions, executed=executed)
        return {}

    def do_judge(self, task: str, seeds: list[int]) -> dict[str, Any]:
        episodes = list(self._taught(task, seeds, None))
        return {
            "returns": [episode.reward for episode in episodes],
            "successes": [episode.success for episode in episodes],
            "steps": [len(episode.actions) for episode in episodes],
        }

    def _taught(self, task: str, seeds: list[int], steps: int | None, disturbed: float = 0.0) -> Iterator[Episode]:
        """The teacher's episodes, cut after `steps`. disturbed: see `_disturbed`."""
        env, teacher = self._world.make(task), self._world.teacher(task)
        for seed in seeds:
            episode, rng = Episode([], [], []), np.random.default_rng([seed, 1])
            seen, _ = env.reset(seed=seed)
            teacher.begin(env)
            over = False
            while not over:
                action = teacher.act(seen)
                executed = _disturbed(env.action_space, action, disturbed, rng)
                if isinstance(teacher, Told):
                    teacher.acted(executed)
                episode.observations.append(_flat(env, seen))
                episode.actions.append(np.atleast_1d(action))
                episode.executed.append(np.atleast_1d(executed))
                seen, reward, terminated, truncated, info = env.step(executed)
                episode.reward += float(reward)
                episode.success = episode.success or bool(info.get("success", False))
                over = bool(terminated or truncated) or len(episode.actions) == steps
            yield episode

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


def _disturbed(space: spaces.Space, action: Any, disturbed: float, rng: np.random.Generator) -> Any:
    """What is carried out in place of `action`: with this chance any option, or numbers with a normal error.

    disturbed: that chance, or the standard deviation of the error as a share of half the range.
    """
    if not disturbed:
        return action
    if isinstance(space, spaces.Box):
        error = rng.normal(0.0, disturbed, space.shape) * (space.high - space.low) / 2
        return np.clip(action + error, space.low, space.high).astype(space.dtype)
    if rng.uniform() >= disturbed:
        return action
    return rng.integers(space.n) if isinstance(space, spaces.Discrete) else rng.integers(space.nvec)  # type: ignore[attr-defined]


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
