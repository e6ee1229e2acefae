"""Whether a present tells the way."""

import numpy as np

from trace_memory_ros.moments.visible import parted, visibility

RNG = np.random.default_rng(3)
WAYS = np.arange(40) % 2


def test_a_present_that_shows_the_way_tells_it_and_another_does_not() -> None:
    blind = RNG.normal(size=(40, 200)).astype(np.float32)
    shown = blind.copy()
    shown[:, :20] += 3.0 * WAYS[:, None]
    told, untold = (visibility(rows, WAYS, np.arange(40), np.random.default_rng(0)) for rows in (shown, blind))
    assert told.right > 0.9 and told.p < 0.01
    assert untold.right < 0.75 and untold.p > 0.05


def test_the_first_of_the_ticks_from_which_on_actions_part() -> None:
    changes = [0.1 * RNG.normal(size=(40, 3)).astype(np.float32) for _ in range(6)]
    for late in changes[4:]:
        late[:, 1] += WAYS
    assert parted(changes, WAYS, np.arange(40), np.random.default_rng(0)) == 4


def test_two_of_many_episodes_are_read_by_one_another() -> None:
    ways, episodes = np.array([0, 1] * 4), np.repeat([3, 17], 4)
    presents = ways[:, None].astype(np.float32)
    told = [visibility(presents, ways, episodes, np.random.default_rng(seed)).right for seed in range(60)]
    assert told == [1.0] * 60
