"""Chunks that a thread computes, and what becomes of those of an episode that has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node

from trace_memory_ros.nodes.policy.acting import ChunkByChunk
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.receding import RecedingHorizon

WAIT_S = 20.0
NOTHING = np.zeros(0, np.float32)


class Gated:
    """Computes a chunk once it is let; `asked` are the ticks that it was asked from."""

    action_names = ("a",)
    condition = ConditionShape(0, 1, 0)

    def __init__(self) -> None:
        self.horizon = RecedingHorizon(4, 1)
        self.gate, self.begun = threading.Event(), threading.Event()
        self.asked: list[int] = []

    def reset(self) -> None:
        self.horizon.reset()

    def act(self, observation: Any, condition: Any) -> Any:
        raise AssertionError("policies of chunks are asked for chunks")

    def chunk(self, observation: Any, condition: Any) -> Any:
        self.asked.append(condition.tick)
        self.begun.set()
        assert self.gate.wait(WAIT_S)
        return np.full((8, 1), condition.tick, np.float32)


@pytest.fixture
def node(domain_id: int) -> Iterator[Node]:
    context = Context()
    rclpy.init(context=context, domain_id=domain_id)
    node = rclpy.create_node("acting_test", context=context)
    yield node
    node.destroy_node()
    rclpy.shutdown(context=context)


def begin(acting: ChunkByChunk, tick: int) -> None:
    condition: Any = SimpleNamespace(
        tick=tick, tokens=NOTHING, vector=np.zeros(1, np.float32), address=NOTHING, read_weights=NOTHING
    )
    observation: Any = None
    acting.begin(observation, condition)


def computed(acting: ChunkByChunk, tick: int) -> None:
    """Wait for what the tick awaits."""
    deadline = time.monotonic() + WAIT_S
    while acting.awaited(tick):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_chunks_of_ended_episodes_are_not_computed_before_those_of_the_present(node: Node) -> None:
    policy = Gated()
    acting = ChunkByChunk(policy, node, lambda: None)
    ticks = (0, 10, 20, 30)
    for tick in ticks:
        acting.reset()
        begin(acting, tick)
        assert policy.begun.wait(WAIT_S)
    policy.gate.set()
    computed(acting, ticks[-1])
    assert policy.asked == [ticks[0], ticks[-1]], "one was being computed; of those that waited only the newest counts"
    action = acting.action(ticks[-1])
    assert action is not None and action.tolist() == [ticks[-1]]
    acting.close()


def test_after_an_outage_a_tick_awaits_its_chunk_and_says_so(node: Node) -> None:
    policy = Gated()
    acting = ChunkByChunk(policy, node, lambda: None)
    policy.gate.set()
    begin(acting, 0)
    computed(acting, 0)
    assert acting.action(0) is not None
    policy.gate.clear()
    begin(acting, 20)
    assert acting.awaited(20)
    assert acting.action(20) is None and "after an outage the next is still being computed" in acting.why_none()
    policy.gate.set()
    computed(acting, 20)
    action = acting.action(20)
    assert action is not None and action.tolist() == [20]
    acting.close()
