"""How policy_node gets a tick's action: at once, or from chunks that a thread of its own computes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rclpy.node import Node

from trace_memory_ros.observation.types import Observation
from trace_memory_ros.policies.base import ChunkPolicy, Policy, check_condition, check_numbers
from trace_memory_ros.runtime.condition import Condition

Action = NDArray[np.float32]


class Acting(Protocol):
    """For every tick in order: `begin`, then, once it is not `awaited` or was waited for long enough, `action`."""

    @property
    def took_ms(self) -> float:
        """How long the newest action or chunk took to compute."""

    def reset(self) -> None:
        """Forget the episode."""

    def begin(self, observation: Observation, condition: Condition) -> None:
        """Look at a tick. Raises `ConditionMismatch`."""

    def awaited(self, tick: int) -> bool:
        """Whether the tick's action is still being computed."""

    def first_awaited(self) -> bool:
        """Whether there is nothing else to execute meanwhile."""

    def action(self, tick: int) -> Action | None:
        """The tick's action `(A,)`; None where none reaches it. Raises what the policy raised."""

    def why_none(self) -> str:
        """Why no action reaches a tick, and what to do."""

    def close(self) -> None:
        """Stop computing."""


class TickByTick:
    """A policy that answers every tick at once."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._action: Action | None = None
        self._tick: int | None = None
        self.took_ms = 0.0

    def reset(self) -> None:
        self._tick = None
        self._policy.reset()

    def begin(self, observation: Observation, condition: Condition) -> None:
        check_condition(condition, self._policy.condition)
        if self._tick is not None and condition.tick != self._tick + 1:
            # It ages its chunks by calls, and ticks without a usable observation were none.
            self.reset()
        begun = time.perf_counter()
        self._action = check_numbers(self._policy.act(observation, condition), len(self._policy.action_names))
        self._tick = condition.tick
        self.took_ms = 1e3 * (time.perf_counter() - begun)

    def awaited(self, tick: int) -> bool:
        return False

    def first_awaited(self) -> bool:
        return False

    def action(self, tick: int) -> Action | None:
        return self._action

    def why_none(self) -> str:
        return "the policy gave no action: mend the policy, or give another checkpoint"

    def close(self) -> None:
        """Nothing runs."""


class ChunkByChunk:
    """A policy whose chunks a thread computes while the chunk before is executed; no tick waits inside a callback."""

    def __init__(self, policy: ChunkPolicy, node: Node, on_chunk: Callable[[], None]) -> None:
        self._policy = policy
        self._horizon = policy.horizon
        self._node = node
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="policy")
        self._computing: tuple[int, Future[tuple[Action, float]]] | None = None
        self._executed = False
        self._guard = node.create_guard_condition(on_chunk)
        self.took_ms = 0.0

    def reset(self) -> None:
        # What the thread still computes belongs to no episode any more; what waits for it would only delay the next.
        if self._computing is not None:
            self._computing[1].cancel()
        self._computing = None
        self._executed = False
        self._policy.reset()

    def begin(self, observation: Observation, condition: Condition) -> None:
        check_condition(condition, self._policy.condition)
        self._collect()
        if self._horizon.due(condition.tick):
            self._horizon.begin(condition.tick)
            future = self._pool.submit(self._compute, observation, condition)
            self._computing = condition.tick, future
            future.add_done_callback(lambda _: self._guard.trigger())

    def awaited(self, tick: int) -> bool:
        done = self._computing is not None and self._computing[1].done()
        return not done and self._horizon.awaited(tick)

    def first_awaited(self) -> bool:
        return not self._executed

    def action(self, tick: int) -> Action | None:
        self._collect()
        action = self._horizon.action(tick)
        self._executed = self._executed or action is not None
        return action

    def why_none(self) -> str:
        if self.first_awaited():
            return "the episode's first chunk of actions was not computed before the next tick: no command until it is"
        return (
            "no chunk of actions reaches this tick: after an outage the next is still being computed, or they take too "
            "long to compute (act_ms), and then use a policy of fewer inference steps or longer chunks"
        )

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        self._node.destroy_guard_condition(self._guard)

    def _compute(self, observation: Observation, condition: Condition) -> tuple[Action, float]:
        begun = time.perf_counter()
        chunk = self._policy.chunk(observation, condition)
        chunk = check_numbers(chunk, len(self._policy.action_names), chunk=True)
        return chunk, 1e3 * (time.perf_counter() - begun)

    def _collect(self) -> None:
        if self._computing is None or not self._computing[1].done():
            return
        tick, future = self._computing
        self._computing = None
        try:
            chunk, self.took_ms = future.result()
        except Exception:
            self._horizon.abandon(tick)
            raise
        self._horizon.offer(tick, chunk)


def acting_of(policy: Policy, node: Node, on_chunk: Callable[[], None]) -> Acting:
    """How `policy` is run; `on_chunk` is called in the executor's thread whenever a chunk was computed."""
    if isinstance(policy, ChunkPolicy):
        return ChunkByChunk(policy, node, on_chunk)
    return TickByTick(policy)


def failure(error: Exception) -> str:
    """A policy may be anybody's: what it raises stops a command, not the node."""
    return f"the policy failed: {type(error).__name__}: {error}; mend the policy, or give another checkpoint"
