"""Receding horizon: what is executed when, and never a wait."""

import numpy as np

from trace_memory_ros.policies.receding import RecedingHorizon


def chunk_from(tick: int, length: int = 8) -> np.ndarray:
    """Actions that say which tick they are for and from which they were computed."""
    return np.array([[tick + i, tick] for i in range(length)], np.float32)


def run(horizon: RecedingHorizon, ticks: int, latency: int) -> list[int | None]:
    """Executes with chunks that come `latency` ticks after they were begun; the tick each action was computed from."""
    coming: list[int] = []
    executed: list[int | None] = []
    for tick in range(ticks):
        while coming and tick >= coming[0] + latency:
            begun = coming.pop(0)
            horizon.offer(begun, chunk_from(begun))
        if horizon.due(tick):
            horizon.begin(tick)
            coming.append(tick)
        if latency == 0 and coming:
            begun = coming.pop(0)
            horizon.offer(begun, chunk_from(begun))
        action = horizon.action(tick)
        assert action is None or action[0] == tick, "an action is executed at the tick that it is for"
        executed.append(None if action is None else int(action[1]))
    return executed


def test_chunks_in_time_take_over_after_the_executed_ticks() -> None:
    assert run(RecedingHorizon(4, 1), 12, latency=0) == [0] * 4 + [3] * 4 + [7] * 4
    assert run(RecedingHorizon(4, 1), 12, latency=1) == [None] + [0] * 4 + [4] * 4 + [8] * 3


def test_a_late_chunk_takes_over_when_it_comes_and_the_old_one_goes_on() -> None:
    # The first is there at tick 3 and reaches to 7; the next is begun at 6 and there at 9.
    assert run(RecedingHorizon(4, 1), 14, latency=3) == [None] * 3 + [0] * 5 + [None] + [6] * 5


def test_a_chunk_that_is_outdated_when_it_comes_moves_nothing_and_the_next_begins_at_once() -> None:
    horizon = RecedingHorizon(4, 1)
    horizon.begin(0)
    horizon.offer(0, chunk_from(0))
    assert horizon.action(9) is None
    assert horizon.due(10)
    assert run(RecedingHorizon(4, 1), 30, latency=10) == [None] * 30


def test_a_chunk_of_before_a_reset_is_ignored() -> None:
    horizon = RecedingHorizon(4, 1)
    horizon.begin(0)
    horizon.reset()
    horizon.offer(0, chunk_from(0))
    assert horizon.action(0) is None
    assert horizon.due(0)


def test_an_abandoned_chunk_is_begun_again() -> None:
    horizon = RecedingHorizon(4, 1)
    horizon.begin(0)
    assert not horizon.due(1)
    horizon.abandon(0)
    assert horizon.due(1)


def test_a_tick_awaits_only_a_chunk_that_it_should_execute() -> None:
    horizon = RecedingHorizon(4, 2)
    horizon.begin(0)
    assert horizon.awaited(0)
    horizon.offer(0, chunk_from(0))
    assert horizon.action(0) is not None
    assert [horizon.due(tick) for tick in range(4)] == [False, False, True, True]
    horizon.begin(2)
    assert [horizon.awaited(tick) for tick in (2, 3, 4)] == [False, False, True]


def test_after_ticks_without_an_observation_the_next_chunk_is_awaited_and_takes_over_at_once() -> None:
    horizon = RecedingHorizon(6, 2)
    horizon.begin(0)
    horizon.offer(0, chunk_from(0))
    assert horizon.action(0) is not None
    tick = 20  # a camera was silent meanwhile
    assert horizon.due(tick)
    horizon.begin(tick)
    assert horizon.awaited(tick)
    horizon.offer(tick, chunk_from(tick))
    action = horizon.action(tick)
    assert action is not None and action.tolist() == [tick, tick]


def test_a_chunk_that_waits_and_is_outdated_by_an_outage_does_not_put_off_the_next() -> None:
    horizon = RecedingHorizon(4, 1)
    for begun, tick in ((0, 0), (3, 3)):
        horizon.begin(begun)
        horizon.offer(begun, chunk_from(begun))
        assert horizon.action(tick) is not None
    tick = 30
    assert horizon.due(tick)
    horizon.begin(tick)
    assert horizon.action(tick) is None and horizon.awaited(tick)
    horizon.offer(tick, chunk_from(tick))
    action = horizon.action(tick)
    assert action is not None and action.tolist() == [tick, tick]
