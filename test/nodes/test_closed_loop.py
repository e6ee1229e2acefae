"""Simulator, memory and policy, three processes, closed over DDS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.msg import EpisodeStatus, MemoryCondition
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeGroup

TICKS = 30
PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def client(nodes: NodeGroup, domain_id: int) -> Iterator[EpisodeClient]:
    with EpisodeClient(domain_id, "loop") as client:
        client.wait_active(("arm_sim_node", "memory_node", "policy_node"))
        yield client


def run_some_ticks(client: EpisodeClient, mode: str) -> list[int]:
    """Start an episode, wait for `TICKS` of its conditions, stop; returns their stamps."""
    client.begin(Scenario("origin", seed=3, cue=1), mode)
    assert client.spin_until(lambda: len(client.received) >= TICKS, PATIENCE_S), client.received
    client.trigger("arm_sim_node/stop")
    received = client.received[:TICKS]
    assert [condition.tick for condition in received] == list(range(TICKS))
    return [condition.stamp_ns for condition in received]


def test_lock_step_runs_tick_by_tick_and_stamps_increase_across_episodes(
    client: EpisodeClient, nodes: NodeGroup
) -> None:
    first, second = (run_some_ticks(client, "lockstep") for _ in range(2))
    assert {condition.status for condition in client.received} == {MemoryCondition.OK}
    for stamps in (first, second):
        assert {after - before for before, after in zip(stamps, stamps[1:], strict=False)} == {100_000_000}
    assert second[0] > first[-1]
    assert "no command within" not in nodes["loop/arm_sim_node"].log


def test_status_tells_the_episode(client: EpisodeClient) -> None:
    client.begin(Scenario("colour", seed=4, cue=1), "lockstep")
    seen: list[EpisodeStatus] = []
    client.on_status = seen.append
    assert client.spin_until(lambda: len(seen) >= 3, PATIENCE_S)
    client.trigger("arm_sim_node/stop")
    status = seen[0]
    assert (status.task, status.seed, status.cue, status.phase) == ("colour", 4, 1, EpisodeStatus.RUNNING)
    assert status.cue_visible
    assert stamp_ns(seen[1].header.stamp) > stamp_ns(seen[0].header.stamp)
    assert client.spin_until(lambda: seen[-1].phase == EpisodeStatus.IDLE, PATIENCE_S)


def test_a_wrong_scenario_is_refused_with_the_reason(client: EpisodeClient) -> None:
    with pytest.raises(EpisodeFailed, match="cue"):
        client.set_parameters("arm_sim_node", {"cue": 7})
    with pytest.raises(EpisodeFailed, match="laundry"):
        client.set_parameters("arm_sim_node", {"task": "laundry"})


def refused_unheard(client: EpisodeClient) -> bool:
    """Whether an episode isn't begun because nobody listens; one that is begun is stopped."""
    try:
        client.trigger("arm_sim_node/start")
    except EpisodeFailed as error:
        if "nobody subscribes to" not in str(error):
            raise
        return True
    client.trigger("arm_sim_node/stop")
    return False


def test_lock_step_without_listeners_is_refused(client: EpisodeClient) -> None:
    client.set_parameters("arm_sim_node", {"mode": "lockstep"})
    listeners = ("memory_node", "policy_node")
    for node in listeners:
        client.change_state(node, "deactivate")
        client.change_state(node, "cleanup")
    try:
        # The arm hears of listeners that left by discovery, a moment after they did.
        assert client.spin_until(lambda: refused_unheard(client), PATIENCE_S)
    finally:
        for node in listeners:
            client.change_state(node, "configure")
            client.change_state(node, "activate")


def test_real_time_stamps_are_of_the_wall_clock(client: EpisodeClient) -> None:
    stamps = run_some_ticks(client, "realtime")
    assert {after - before for before, after in zip(stamps, stamps[1:], strict=False)} == {100_000_000}
    assert all(condition.latency_ms > 0 for condition in client.received)
