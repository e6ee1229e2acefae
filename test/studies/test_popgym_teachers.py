"""POPGym's teachers, on games played by hand: what they know, they were shown."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from studies.popgym import names
from studies.popgym.teachers import cards, control, games, mazes


def acts(teacher, observations) -> list:
    teacher.begin(None)
    return [teacher.act(seen) for seen in observations]


def test_card_teachers() -> None:
    assert acts(cards.RepeatFirst(None), [2, 0, 1]) == [2, 2, 2]
    assert acts(cards.RepeatPrevious(SimpleNamespace(k=2)), [3, 1, 0, 2]) == [0, 3, 1, 0]
    shown = [(1, 3), (1, 2), (0, 1), (0, 0), (0, 0)]
    assert acts(cards.Autoencode(None), shown) == [0, 0, 1, 2, 3]
    assert acts(cards.CountRecall(None), np.array([[1, 0], [1, 1], [0, 1], [1, 0]])) == [0, 2, 2, 1]


def test_higher_or_lower_by_the_cards_that_are_left() -> None:
    teacher = cards.HigherLower(SimpleNamespace(num_decks=1))
    assert acts(teacher, [0, 12, 5, 7]) == [0, 1, 0, 1]
    # Every card above 6 is gone: the middle card is the highest left.
    assert acts(teacher, [rank for rank in range(7, 13) for _ in range(4)] + [6])[-1] == 1


def test_an_episode_forgets_the_one_before() -> None:
    teacher = cards.RepeatFirst(None)
    assert acts(teacher, [2])[0] == 2 and acts(teacher, [1, 3])[1] == 1


def test_bandit_leaves_a_machine_that_does_not_pay() -> None:
    teacher = games.Bandit(SimpleNamespace(num_bandits=3))
    teacher.begin(None)
    paid, played = 0, []
    for _ in range(200):
        played.append(teacher.act(paid))
        paid = int(played[-1] == 2)
    assert played[-50:].count(2) > 45 and set(played) == {0, 1, 2}


def test_concentration_matches_every_pair_it_has_seen() -> None:
    deck = np.array([0, 1, 2, 0, 2, 1])
    hidden, teacher, up, turn = 9, games.Concentration(None), set(), []
    teacher.begin(None)
    shown, turns = np.full(6, hidden), 0
    while len(up) < 6:
        turn.append(teacher.act(shown))
        shown = np.full(6, hidden)
        lying = [*up, *turn]
        shown[lying] = deck[lying]
        assert turn[-1] not in up
        if len(turn) == 2:
            turns += 1
            if deck[turn[0]] == deck[turn[1]]:
                assert turn[0] != turn[1]
                up |= set(turn)
            turn = []
    assert turns <= 6


MAZE = ("#S#####", "#...#.#", "#.#.#.#", "#.#...#", "###.#.#", "#...#.G", "#######")


def test_a_hand_on_the_wall_goes_through_a_maze_and_into_its_exit() -> None:
    cells = np.array([[{"#": 1, ".": 0, "S": 2, "G": 3}[cell] for cell in row] for row in MAZE])
    for wanted in ("exit", "all"):
        grid = cells if wanted == "exit" else np.where(cells == 3, 1, cells)
        teacher, place, last, seen = mazes.Labyrinth(None), (0, 1), mazes.NONE, {(0, 1)}
        for _ in range(2 * int((grid == 0).sum())):
            # As POPGym shows it: not centred where the border cuts it, walls beyond.
            y, x = place
            view = grid[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
            padded = np.pad(view, [(0, 3 - view.shape[0]), (0, 3 - view.shape[1])], constant_values=1)
            last = teacher.act(np.array([*padded.ravel(), last]))
            place = (y + mazes.STEPS[last][0], x + mazes.STEPS[last][1])
            assert grid[place] in (0, 3), "never into a wall, nor back out of the entrance"
            seen.add(place)
            if grid[place] == 3 or seen == {(int(r), int(c)) for r, c in np.argwhere(grid != 1)}:
                break
        assert (place == (5, 6)) if wanted == "exit" else len(seen) == int((grid == 0).sum()) + 1


@pytest.mark.parametrize("seed", range(3))
def test_battleship_needs_fewer_shots_than_sweeping(seed: int) -> None:
    board = np.zeros((8, 8), int)
    board[seed, 1:5] = board[6, 3:5] = 1
    teacher = games.Battleship(SimpleNamespace(board_size=8, ship_sizes=[2, 4]))
    teacher.begin(None)
    hit, shots = 0, set()
    while board.sum():
        place = tuple(teacher.act(hit))
        assert place not in shots
        shots.add(place)
        hit, board[place] = int(board[place]), 0
    assert len(shots) < 45


def test_minesweeper_opens_what_the_numbers_prove_safe() -> None:
    teacher = games.MineSweeper(SimpleNamespace(dims=(1, 5), num_mines=1))
    teacher.begin(None)
    mine, opened = 4, []
    seen = 0
    for _ in range(4):
        opened.append(int(teacher.act(seen)[1]))
        seen = int(abs(opened[-1] - mine) == 1)
    assert opened[0] == 0 and sorted(opened) == [0, 1, 2, 3]


@pytest.mark.parametrize(("noise", "least"), [(0.0, 200), (0.03, 200)])
def test_cart_balances_what_it_sees_in_part(noise: float, least: int) -> None:
    rng = np.random.default_rng(0)
    teacher = control.Cart(SimpleNamespace(noise_sigma=noise), (0, 2))
    teacher.begin(None)
    state, steps = rng.uniform(-0.05, 0.05, 4), 0
    while abs(state[2]) < 0.2 and abs(state[0]) < 2.4 and steps < 200:
        push = teacher.act(state[[0, 2]] + rng.normal(0, noise, 2))
        force, (_, speed, angle, turning) = (10.0 if push else -10.0), state
        pushed = (force + 0.05 * turning**2 * np.sin(angle)) / 1.1
        angular = (9.8 * np.sin(angle) - np.cos(angle) * pushed) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        state = state + 0.02 * np.array([speed, pushed - 0.05 * angular * np.cos(angle) / 1.1, turning, angular])
        steps += 1
    assert steps >= least


def test_pendulum_swings_up_and_stays() -> None:
    teacher = control.Pendulum(SimpleNamespace())
    teacher.begin(None)
    angle, turning, heights = np.pi, 0.5, []
    for _ in range(200):
        torque = float(teacher.act(np.array([np.cos(angle), np.sin(angle)]))[0])
        turning = float(np.clip(turning + 0.05 * (15 * np.sin(angle) + 3 * torque), -8, 8))
        angle += 0.05 * turning
        heights.append(np.cos(angle))
    assert min(heights[-30:]) > 0.99 and abs(torque) < 0.1


def test_every_environment_has_a_family_and_an_id() -> None:
    assert len(names.ALL) == len(set(names.ALL)) == 48
    assert names.kind("VelocityOnlyCartPoleHard") == "VelocityOnlyCartPole"
    assert names.environment_id("VelocityOnlyCartPoleHard") == "popgym-VelocityOnlyCartpoleHard-v0"
    assert all(sum(task in tasks for tasks in names.TASKS.values()) == 1 for task in names.ALL)
    with pytest.raises(ValueError, match="LabyrinthTrivial"):
        names.kind("LabyrinthTrivial")
