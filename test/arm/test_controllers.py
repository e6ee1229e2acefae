"""Each rule of ros2_control's controllers at its edge, and how an accepted trajectory is followed."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
import pytest

from trace_memory_ros.arm.controllers.config import FORWARD, TRAJECTORY, ControllerConfig, check_apart, read_controllers
from trace_memory_ros.arm.controllers.following import FORGET_NS, Following, Held
from trace_memory_ros.arm.controllers.rules import (
    LEAST_VELOCITY,
    SECOND_NS,
    Point,
    Trajectory,
    forward_refusal,
    trajectory_refusal,
)
from trace_memory_ros.arm.controllers.simulated import CONTROLLERS, write_robot
from trace_memory_ros.arm.nodes.controller_board import ControllerBoard
from trace_memory_ros.files.strict import ConfigError

JOINTS = ("shoulder", "elbow")
ARM = ControllerConfig("arm_controller", TRAJECTORY, JOINTS)
GRIPPER = ControllerConfig("gripper_controller", FORWARD, ("finger",))
NOW = 100 * SECOND_NS
GOOD = Trajectory(JOINTS, (Point(50, (0.1, 0.2)), Point(100, (0.3, 0.4))))


def rule(trajectory: Trajectory, config: ControllerConfig = ARM) -> str:
    refusal = trajectory_refusal(config, trajectory, NOW)
    return "" if refusal is None else refusal.rule


def with_point(**changes: object) -> Trajectory:
    return replace(GOOD, points=(GOOD.points[0], replace(GOOD.points[1], **changes)))


@pytest.mark.parametrize(
    ("trajectory", "broken"),
    [
        (GOOD, ""),
        (replace(GOOD, joints=("elbow", "shoulder")), ""),
        (replace(GOOD, joints=()), "no_joints"),
        (replace(GOOD, joints=("shoulder", "wrist")), "unknown_joint"),
        (replace(GOOD, joints=("shoulder", "shoulder")), "repeated_joint"),
        (Trajectory(("elbow",), (Point(50, (0.1,)),)), "partial"),
        (replace(GOOD, points=()), "no_points"),
        (replace(GOOD, stamp_ns=NOW - 100), ""),
        (replace(GOOD, stamp_ns=NOW - 101), "ended"),
        (replace(GOOD, stamp_ns=NOW + SECOND_NS), ""),
        (with_point(velocities=(0.0, 0.0)), ""),
        (with_point(velocities=(0.0, -LEAST_VELOCITY)), ""),
        (with_point(velocities=(0.0, -2 * LEAST_VELOCITY)), "end_velocity"),
        (with_point(after_ns=51), ""),
        (with_point(after_ns=50), "time_order"),
        (with_point(after_ns=49), "time_order"),
        (with_point(positions=()), "point_size"),
        (with_point(positions=(0.1,)), "point_size"),
        (with_point(velocities=(0.0,)), "point_size"),
        (with_point(accelerations=(0.0, 0.0, 0.0)), "point_size"),
        (with_point(positions=(0.1, nan)), "not_finite"),
        (with_point(positions=(-inf, 0.1)), "not_finite"),
        (with_point(effort=(1.0, 1.0)), "effort"),
    ],
)
def test_a_trajectory_is_refused_by_the_rule_that_it_breaks(trajectory: Trajectory, broken: str) -> None:
    assert rule(trajectory) == broken


def test_options_allow_what_they_are_called_after() -> None:
    moving = with_point(velocities=(0.0, 1.0))
    assert rule(moving, replace(ARM, allow_nonzero_velocity_at_trajectory_end=True)) == ""
    partial = Trajectory(("elbow",), (Point(50, (0.1,)),))
    assert rule(partial, replace(ARM, allow_partial_joints_goal=True)) == ""


@pytest.mark.parametrize(
    ("values", "broken"),
    [((0.5,), ""), ((), "size"), ((0.5, 0.5), "size"), ((nan,), "not_finite"), ((inf,), "not_finite")],
)
def test_a_forward_command_has_a_finite_number_per_joint(values: tuple[float, ...], broken: str) -> None:
    refusal = forward_refusal(GRIPPER, values)
    assert ("" if refusal is None else refusal.rule) == broken


def following(config: ControllerConfig = ARM, trajectory: Trajectory = GOOD, at_ns: int = NOW) -> Following:
    one = Following(config)
    one.take(trajectory, at_ns, np.array([-0.1, 0.0]))
    return one


def told(one: Following, after_ns: int) -> list[float]:
    desired = one.desired(NOW + after_ns)
    assert desired is not None
    return [round(float(value), 9) for value in desired]


def test_joints_go_in_straight_lines_from_where_they_are_to_each_point_and_stay_at_the_last() -> None:
    one = following()
    assert told(one, 0) == [-0.1, 0.0]
    assert told(one, 25) == [0.0, 0.1]
    assert told(one, 50) == [0.1, 0.2]
    assert told(one, 75) == [0.2, 0.3]
    assert told(one, 100) == told(one, FORGET_NS) == [0.3, 0.4]
    assert one.desired(NOW + 101 + FORGET_NS) is None
    assert list(one.end) == [0.3, 0.4]


def test_points_that_are_over_are_left_out() -> None:
    one = following(trajectory=replace(GOOD, stamp_ns=NOW - 60))
    assert told(one, 0) == [-0.1, 0.0]
    assert told(one, 20) == [0.1, 0.2], "half way to the point that is left"
    assert told(one, 40) == [0.3, 0.4]


def test_joints_are_found_by_name_and_those_not_named_stay() -> None:
    partial = replace(ARM, allow_partial_joints_goal=True)
    one = following(partial, Trajectory(("elbow",), (Point(100, (1.0,)),)))
    assert told(one, 50) == [-0.1, 0.5]


def test_the_next_trajectory_begins_where_the_joints_are_or_where_they_were_to_be() -> None:
    for desired, first in ((False, [-0.1, 0.0]), (True, [0.1, 0.2])):
        one = following(replace(ARM, interpolate_from_desired_state=desired))
        one.take(GOOD, NOW + 50, np.array([-0.1, 0.0]))
        assert told(one, 50) == first


@pytest.mark.parametrize(("error", "held"), [(0.1, None), (0.11, Held.PATH)])
def test_beyond_the_path_tolerance_the_place_is_held(error: float, held: Held | None) -> None:
    one = following(replace(ARM, path_tolerance=0.1))
    place = np.array([0.0, 0.1 + error])
    assert one.update(NOW + 25, place) is held
    assert told(one, 30) == ([0.0, round(0.1 + error, 9)] if held else [0.02, 0.12])


def test_the_goal_must_be_reached_within_its_time() -> None:
    config = replace(ARM, goal_tolerance=0.1, goal_time=1e-7)  # 100 ns
    far, near = np.array([0.3, 0.3 - 1e-6]), np.array([0.3, 0.4 - 0.09])
    one = following(config)
    assert one.update(NOW + 199, far) is None and one.running
    assert one.update(NOW + 200, far) is Held.GOAL and not one.running
    one = following(config)
    assert one.update(NOW + 200, near) is None and not one.running


@pytest.mark.parametrize("refused", range(3))
def test_a_lock_step_tick_is_whole_or_told_not_at_all(refused: int) -> None:
    board = ControllerBoard((ARM, ControllerConfig("other_arm", TRAJECTORY, ("hip", "knee")), GRIPPER))
    board.positions = dict.fromkeys(board.joints, 0.0)

    def tick(number: float, bad: int | None = None) -> list[list[float]]:
        told = []
        for place, config in enumerate((ARM, board.controllers["other_arm"].config, GRIPPER)):
            value = nan if place == bad else number
            if config.type == FORWARD:
                board.numbers(config.name, [value], round(number))
            else:
                point = Point(100, (value,) * len(config.joints))
                board.trajectory(config.name, Trajectory(config.joints, (point,)), round(number))
            targets = board.complete()
            told += [] if targets is None else [targets.tolist()]
        return told

    assert tick(1.0) == [[1.0] * 5]
    assert tick(2.0, bad=refused) == []
    assert tick(3.0) == [[3.0] * 5], "nothing of the tick before"
    assert tick(4.0) == [[4.0] * 5]


def test_a_refused_lock_step_tick_may_be_sent_again() -> None:
    board = ControllerBoard((GRIPPER, ControllerConfig("hook_controller", FORWARD, ("hook",))))
    assert board.numbers(GRIPPER.name, [nan], NOW) is not None
    assert board.numbers("hook_controller", [1.0], NOW) is None
    board.numbers(GRIPPER.name, [2.0], NOW)
    assert board.complete() is None
    board.numbers("hook_controller", [3.0], NOW)
    targets = board.complete()
    assert targets is not None
    assert targets.tolist() == [2.0, 3.0]


def test_a_file_of_controllers_is_read_strictly(tmp_path: object) -> None:
    path = write_robot(tmp_path / "robot.yaml")  # type: ignore[operator]
    assert read_controllers(path) == CONTROLLERS
    with pytest.raises(ConfigError, match="joint elbow of two controllers"):
        check_apart((ARM, replace(GRIPPER, joints=("elbow",))), "robot.yaml")
    with pytest.raises(ConfigError, match=r"type = 'diff_drive'.*one of joint_trajectory_controller"):
        replace(ARM, type="diff_drive")
    with pytest.raises(ConfigError, match=r"controllers_file = nowhere\.yaml"):
        read_controllers("nowhere.yaml")
