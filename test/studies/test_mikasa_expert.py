"""MIKASA's demonstrator: how it moves, what it does next, and when an episode is over."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from studies.mikasa.expert import ABOVE, ARC_MIDDLE, LOW_M, TRAVEL_M, disturbed, nth_along_arc, touching, towards
from studies.mikasa.goals import CLEAR_M, DEEP_M, HIGHER_M, MOST_TICKS, choices, goal_of


def test_the_expert_moves_towards_the_target_and_is_left_alone_beside_it() -> None:
    rng = np.random.default_rng(0)
    far, near = np.array([0.0, 0.3, -0.2]), np.array([0.0, 0.01, 0.0]) - ABOVE
    np.testing.assert_allclose(towards(far), [0, 1, -1, 0, 0, 0, 0])
    np.testing.assert_allclose(towards(near)[:3], [0, 0.06, 0], atol=1e-6)
    moved = disturbed(towards(far), far, rng)
    assert (moved[:3] != towards(far)[:3]).any() and not moved[3:].any() and abs(moved).max() <= 1.0
    np.testing.assert_array_equal(disturbed(towards(near), near, rng), towards(near))


def test_what_is_to_be_touched_is_gone_to_over_the_others_and_from_above() -> None:
    far = np.array([0.2, -0.2, -0.1])
    np.testing.assert_allclose(touching(far, TRAVEL_M)[:3], [1, -1, 0])
    low = touching(far, LOW_M)
    assert low[2] > 0 and not low[:2].any(), "up first"
    np.testing.assert_allclose(touching(np.array([0.01, 0.0, -0.07]), TRAVEL_M)[:3], [0.06, 0, -0.42], atol=1e-6)


class Table:
    """Nine cubes along an arc, as the simulator says it. key 0 is the last of them."""

    CUBE_HALFSIZE = 0.02

    def __init__(self, asked: tuple[int, ...], ordered: bool) -> None:
        angles = np.pi * np.arange(4, -5, -1) / 9
        places = np.stack([0.3 * np.cos(angles) - 0.25, 0.3 * np.sin(angles), np.full(9, 0.02)], 1)
        tensors = [torch.tensor(place[None], dtype=torch.float32) for place in places]
        self.cubes = {key: SimpleNamespace(pose=SimpleNamespace(p=place)) for key, place in enumerate(tensors)}
        self.initial_poses = dict(enumerate(tensors))
        self.true_color_indices = torch.tensor([asked])
        self.touched_cubes = torch.zeros(1, 9, dtype=torch.bool)
        if ordered:
            self.touched_cubes_idx = torch.full((1, len(asked)), -1)
        self.agent = SimpleNamespace(tcp=SimpleNamespace(pose=SimpleNamespace(p=torch.tensor([[0.0, 0.0, 0.2]]))))
        self.button_xy, self.button_top_z = torch.tensor([[-0.1, 0.0]]), torch.tensor([0.06])
        self.button_pressed = self.pending_press = torch.tensor([False])
        self.press_start_tcp_z, self.elapsed_steps = torch.tensor([0.07]), torch.tensor([20])

    def touch(self, key: int) -> None:
        if hasattr(self, "touched_cubes_idx"):
            self.touched_cubes_idx[0, int(self.touched_cubes.sum())] = key
        self.touched_cubes[0, key] = True


@pytest.mark.parametrize(("ordered", "answers"), [(True, [6, 1, 3]), (False, [1, 3, 6])])
def test_things_are_touched_in_the_order_shown_or_along_their_arc(ordered: bool, answers: list[int]) -> None:
    base, goal = Table((2, 7, 5), ordered), goal_of("ChainOfColors3" if ordered else "BunchOfColors3")
    for number, answer in enumerate(answers):
        offset = goal.offset_m(base, {})
        assert (goal.done(base), goal.answer(base, offset), goal.over(base, False)) == (number, answer, False)
        above_top = base.cubes[8 - answer].pose.p[0].numpy() + np.array([0, 0, 0.025])
        np.testing.assert_allclose(offset, above_top - np.array([0, 0, 0.2]), atol=1e-6)
        base.touch(8 - answer)
    assert (goal.done(base), goal.answer(base, goal.offset_m(base, {}))) == (3, 9), "the button"
    np.testing.assert_allclose(goal.offset_m(base, {}), [-0.1, 0.0, -0.14], atol=1e-6)
    assert goal.over(base, True) and not goal.over(base, False)
    base.pending_press = torch.tensor([True])
    base.agent.tcp.pose.p[0] = torch.tensor([-0.1, 0.0, 0.06 + DEEP_M + 0.001])
    assert goal.action(base, np.array([0.0, 0.0, -0.01]))[2] < 0, "deeper than a press has to be"
    base.agent.tcp.pose.p[0, 2] = 0.06 + DEEP_M - 0.001
    assert goal.action(base, np.zeros(3))[2] > 0
    base.agent.tcp.pose.p[0, 2] = 0.07 + HIGHER_M + 0.01
    assert goal.action(base, np.zeros(3))[2] < 0, "it is higher than it has to be raised"
    base.button_pressed = torch.tensor([True])
    assert not goal.action(base, np.zeros(3)).any()


@pytest.mark.parametrize("wrong", [4, 7])
def test_an_episode_is_over_when_a_wrong_thing_was_touched(wrong: int) -> None:
    base, goal = Table((2, 7, 5), True), goal_of("ChainOfColors3")
    base.touch(2)
    base.touch(wrong)
    assert goal.over(base, False) == (wrong != 7)
    base.elapsed_steps = torch.tensor([4 * MOST_TICKS])
    assert goal.over(base, False)


class Lamp:
    """A lamp that blinked twice, and its two buttons, as the simulator says it."""

    def __init__(self) -> None:
        self.agent = SimpleNamespace(tcp=SimpleNamespace(pose=SimpleNamespace(p=torch.tensor([[0.0, 0.0, 0.2]]))))
        self.target_blinks, self.press_count = torch.tensor([2]), torch.tensor([0])
        self.button_xy, self.button_top_z = torch.tensor([[-0.1, 0.0]]), torch.tensor([0.06])
        self.confirm_button_xy, self.confirm_button_top_z = torch.tensor([[-0.1, 0.16]]), torch.tensor([0.06])
        self.pending_press, self.failed = torch.tensor([False]), torch.tensor([False])
        self.press_start_tcp_z, self.elapsed_steps = torch.tensor([0.07]), torch.tensor([20])


def test_a_button_is_pressed_as_often_as_the_lamp_blinked_then_the_other_one() -> None:
    base, goal = Lamp(), goal_of("BlinkCountButtonPressEasy")
    for presses, (answer, y) in enumerate([(0, 0.0), (0, 0.0), (1, 0.16)]):
        base.press_count = torch.tensor([presses])
        offset = goal.offset_m(base, {})
        assert (goal.done(base), goal.answer(base, offset), goal.over(base, False)) == (presses, answer, False)
        np.testing.assert_allclose(offset, [-0.1, y, -0.14], atol=1e-6)
        np.testing.assert_allclose(choices(base)[answer], base.agent.tcp.pose.p[0, :2] + offset[:2], atol=1e-6)
    assert goal.over(base, True)
    assert goal.action(base, np.array([0.0, 0.0, -0.14]))[2] < 0
    base.agent.tcp.pose.p[0] = torch.tensor([-0.1, 0.0, 0.06 + DEEP_M + 0.001])
    base.press_count, base.pending_press = torch.tensor([1]), torch.tensor([True])
    assert goal.action(base, np.zeros(3))[2] < 0, "deeper than a press has to be"
    base.agent.tcp.pose.p[0, 2] = 0.06 + DEEP_M - 0.001
    assert goal.action(base, np.zeros(3))[2] > 0, "up, before the press counts"
    base.agent.tcp.pose.p[0, 2], base.pending_press = 0.07 + CLEAR_M - 0.01, torch.tensor([False])
    base.press_count = torch.tensor([2])
    assert goal.action(base, goal.offset_m(base, {}))[2] > 0 and goal.done(base) == 1, "counted, not high enough yet"
    before = goal.offset_m(base, {})
    base.agent.tcp.pose.p[0, 2] = 0.07 + CLEAR_M + 0.01
    assert before[1] == 0.0 and goal.action(base, before)[1] > 0 and goal.done(base) == 2, "over to the other button"
    base.failed = torch.tensor([True])
    assert goal.over(base, False), "pressed once too often"


def test_one_thing_is_gone_to_and_its_episode_is_never_over() -> None:
    base, goal = Table((2,), True), goal_of("RememberColor3")
    offset = goal.offset_m(base, {"obj_to_goal_pos": torch.tensor([[*base.cubes[5].pose.p[0, :2], -0.2]])})
    assert (goal.answer(base, offset), goal.done(base), goal.over(base, True)) == (3, 0, False)
    np.testing.assert_allclose(goal.action(base, offset), towards(offset))


def test_choices_are_counted_along_their_arc() -> None:
    angles = np.pi * np.arange(-4, 5) / 9
    arc = ARC_MIDDLE + 0.3 * np.stack([np.cos(angles), np.sin(angles)], 1)
    arc[:, 1] -= 0.025 * np.arange(-4, 5)
    # The benchmark moves each by about a centimetre: here the outermost is less far to the side than its neighbour.
    arc[8] += (0.0, -0.015)
    assert arc[8, 1] < arc[7, 1]
    shuffled = np.random.default_rng(0).permutation(9)
    assert [nth_along_arc(arc[shuffled], arc[nth] + 0.005) for nth in range(9)] == list(range(9))
    row = np.stack([np.zeros(3), [0.1, -0.1, 0.0]], 1)
    assert [nth_along_arc(row, target) for target in row] == [2, 0, 1]
