"""A world's process of the standard library and numpy: symbols that are to be said back, as `studies.worlds.server`."""

import json
import random
import sys
from typing import Any

import numpy as np

SYMBOLS, TICKS = 3, 5


class Echo:
    """The right action is the symbol that is seen; every tick is worth its share of 1."""

    def __init__(self) -> None:
        self.episodes: list[list[int]] = []
        self.tick = 0

    def answer(self, do: str, task: str = "", seeds: list[int] = [], **rest: Any) -> dict[str, Any]:  # noqa: B006
        """What the request asks for."""
        if do == "describe":
            action = {"choices": [SYMBOLS], "numbers": 0, "low": 0.0, "high": 0.0, "previous_action": False}
            return {"observation": SYMBOLS, **action, "teacher": f"says what it sees in {task}"}
        if do == "judge":
            return {"returns": [1.0] * len(seeds), "successes": [True] * len(seeds), "steps": [TICKS] * len(seeds)}
        if do == "act":
            said = [int(action[0]) for action in rest["actions"]]
            rewards = [(says == shown[self.tick]) / TICKS for says, shown in zip(said, self.episodes, strict=True)]
            self.tick += 1
            over = [self.tick == TICKS] * len(said)
            return {"observations": self.seen(), "rewards": rewards, "done": over, "successes": [False] * len(said)}
        self.episodes, self.tick = [random.Random(seed).choices(range(SYMBOLS), k=TICKS) for seed in seeds], 0
        if do == "teach":
            shown = np.concatenate(self.episodes)
            actions = shown[:, None].astype(np.float32)
            lengths = [TICKS] * len(seeds)
            observations = np.eye(SYMBOLS, dtype=np.float32)[shown]
            np.savez(rest["file"], lengths=lengths, observations=observations, actions=actions, executed=actions)
            return {}
        return {"observations": self.seen()}

    def seen(self) -> list[list[float]]:
        """What every episode shows; nothing once it is over."""
        over = self.tick == TICKS
        return [[0.0] * SYMBOLS if over else np.eye(SYMBOLS)[shown[self.tick]].tolist() for shown in self.episodes]


if __name__ == "__main__":
    world = Echo()
    for line in sys.stdin:
        print(json.dumps(world.answer(**json.loads(line))), flush=True)
