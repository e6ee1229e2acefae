"""How far the arms have moved, from joint states of any order and quality."""

import math

import pytest
from nodes.panel import diagnostics, joints, picture, words
from sensor_msgs.msg import JointState

from trace_memory_ros.nodes.markers import colours
from trace_memory_ros.nodes.markers.joints import ArmDistances


def test_arm_distances_by_name_in_any_order():
    arms = ArmDistances("left_", "right_")
    arms.take(joints(gripper=9.0))
    moved = joints(left_joint_1=0.1 + 0.3, left_joint_2=0.2 + 0.4, gripper=0.0)
    arms.take(JointState(name=moved.name[::-1], position=moved.position[::-1]))
    assert arms.distances_rad() == pytest.approx((0.5, 0.0))
    arms.restart()
    assert arms.distances_rad() == (0.0, 0.0)


def test_bad_joint_states_are_named_and_the_last_good_one_stays():
    arms = ArmDistances("left_", "right_")
    assert "no message yet" in arms.fault
    arms.take(joints())
    assert arms.fault == ""
    fewer = joints()
    fewer.name.pop()
    without = JointState(name=fewer.name, position=fewer.position[:-1])
    other = JointState(name=["elbow"], position=[0.0])
    for message, named in (
        (joints(left_joint_3=math.nan), "left_joint_3 is nan"),
        (fewer, "13 names but 14 positions"),
        (without, "right_joint_7 is missing"),
        (other, "is missing"),
    ):
        arms.take(message)
        assert named in arms.fault
        assert arms.distances_rad() == (0.0, 0.0)
    assert "no message yet" in words(picture([diagnostics()], with_joints=False), colours.WARNING)
