"""What a policy_node is tried with: the conditions that memory_node would publish, and the answers that are due."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nodes.robot import CAMERAS, Robot, picture, posture

from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.nodes import conversion
from trace_memory_ros.nodes.policy.loading import load_policy
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.condition import Condition, ConditionStatus

POLICY = "policy/policy_node"


class Partner:
    """What memory_node would publish, with random content, and what the policy should answer."""

    def __init__(self, robot: Robot, folder: Path, node: str = POLICY) -> None:
        self.robot = robot
        self.node = node
        loaded = checkpoint.load(folder)
        self.policy = load_policy(loaded)
        self.observer = LockstepObserver(loaded.config.observation)
        self.model_id = loaded.model_id
        self.tick = 0

    def condition(self, seed: int, stamp_ns: int) -> Condition:
        shape = self.policy.config.condition
        rng = np.random.default_rng(seed)
        values = (rng.standard_normal(size) for size in (shape.tokens * shape.width, shape.width, shape.address))
        tokens, vector, address = (value.astype(np.float32) for value in values)
        self.tick += 1
        return Condition(
            episode=1,
            tick=self.tick - 1,
            stamp_ns=stamp_ns,
            status=ConditionStatus.OK,
            reason="",
            mechanism="trace",
            model_id=self.model_id,
            tokens=tokens.reshape(shape.tokens, shape.width),
            vector=vector,
            read_weights=np.full(shape.tokens, 1 / shape.tokens, np.float32),
            address=address,
            wrote=False,
            input_stamps_ns=dict.fromkeys((*CAMERAS, "joint_states"), stamp_ns),
        )

    def send(self, condition: Condition) -> None:
        self.robot.condition_publisher.publish(conversion.condition_message(condition, [*condition.input_stamps_ns]))

    def observe(self, seed: int) -> Observation:
        """What a policy sees of the tick that `send_tick` draws from `seed`."""
        images = {camera: picture(10 * seed + i) for i, camera in enumerate(CAMERAS)}
        return self.observer.observe(images, posture(seed))

    def expected(self, seed: int, condition: Condition) -> np.ndarray:
        return self.policy.act(self.observe(seed), condition)

    def act(self, seed: int) -> np.ndarray:
        """A whole tick: streams, condition, and the command that comes back."""
        stamp = self.robot.send_tick(seed)
        condition = self.condition(seed, stamp)
        self.send(condition)
        return self.answer(stamp)

    def answer(self, stamp_ns: int) -> np.ndarray:
        def found() -> list[np.ndarray]:
            return [
                conversion.command_targets(message, ACTION_NAMES)
                for message in self.robot.commands
                if conversion.stamp_ns(message.header.stamp) == stamp_ns
            ]

        self.robot.wait(found, f"a command for {stamp_ns}")
        return found()[0]

    def health(self) -> Sequence[Any]:
        """The entries of the node's newest status in /diagnostics."""
        status = self.robot.health.get(self.node)
        return [] if status is None else status.values

    def wait_fault(self, *words: str) -> None:
        """Wait until one fault in /diagnostics carries all `words`."""

        def seen() -> bool:
            return any(all(word in entry.value for word in words) for entry in self.health())

        self.robot.wait(seen, f"a fault with {words} in /diagnostics")
