"""How far a robot's joints have moved, from joint states of any names, topics, order and quality."""

import math

import pytest
from nodes.panel import diagnostics, joints, of, picture, scene, words
from sensor_msgs.msg import JointState

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.markers import colours
from trace_memory_ros.nodes.markers.groups import ARMS, alike, groups_in
from trace_memory_ros.nodes.markers.joints import ANY_ROBOT, JointDistances, JointSource, sources_of

TOPIC = "joint_states"
UR = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")


def test_distances_by_name_in_any_order():
    arms = JointDistances(ANY_ROBOT, groups_in(ARMS))
    arms.take(TOPIC, joints(gripper=9.0))
    moved = joints(left_joint_1=0.1 + 0.3, left_joint_2=0.2 + 0.4, gripper=0.0)
    arms.take(TOPIC, JointState(name=moved.name[::-1], position=moved.position[::-1]))
    assert arms.distances() == {"left arm": pytest.approx(0.5), "right arm": 0.0}
    arms.restart()
    assert arms.distances() == {"left arm": 0.0, "right arm": 0.0}


def test_bad_joint_states_are_named_and_the_last_good_one_stays():
    arms = JointDistances()
    assert "no message yet" in arms.fault
    arms.take(TOPIC, joints())
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
        arms.take(TOPIC, message)
        assert named in arms.fault
        assert arms.distances() == {"left": 0.0, "right": 0.0}
    assert "no message yet" in words(picture([diagnostics()], with_joints=False), colours.WARNING)


def test_limbs_are_found_by_names_that_differ_in_one_word():
    assert list(alike([f"openarm_{side}_joint{i}" for side in ("left", "right") for i in (1, 2)])) == ["left", "right"]
    assert list(alike([f"{leg}_{part}" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "calf")])) == [
        "FL", "FR", "RL", "RR",
    ]  # fmt: skip
    for one_arm in (UR, [f"fr3_joint{i}" for i in range(1, 8)], ["torso_lift", "arm_1", "arm_2"], ["a"], []):
        assert alike(one_arm) == {}


def test_each_topic_of_a_robot_is_a_curve_of_its_own():
    sources = (JointSource("left", "left/joint_states", ("joint_1", "joint_2")), JointSource("lift", "lift/state"))
    moving = JointDistances(sources)
    assert moving.topics == ("left/joint_states", "lift/state")
    assert all(math.isnan(distance) for distance in moving.distances().values())
    moving.take("left/joint_states", JointState(name=["joint_2", "joint_1", "x"], position=[0.0, 0.0, math.nan]))
    assert moving.fault == "lift/state: no message yet"
    moving.take("lift/state", JointState(name=["mast"], position=[1.0]))
    moving.take("left/joint_states", JointState(name=["joint_1", "joint_2"], position=[3.0, 4.0]))
    assert moving.distances() == {"left": 5.0, "lift": 0.0}
    moving.take("left/joint_states", JointState(name=["joint_1"], position=[3.0]))
    assert moving.fault == "left/joint_states: joint_2 is missing"


def test_joints_of_a_checkpoint_that_no_curve_asks_for_are_not_missed():
    sources = (JointSource("arm", TOPIC, ("arm_1", "arm_2", "lift")), JointSource("head", "head/state", ("pan",)))
    moving = JointDistances(sources, {"arm": "arm_*"})
    assert moving.topics == (TOPIC,)
    for reached in (0.0, 3.0):
        moving.take(TOPIC, JointState(name=["arm_1", "arm_2", "lift"], position=[reached, 0.0, reached]))
        assert moving.fault == ""
    assert moving.distances() == {"arm": 3.0}
    moving.take(TOPIC, JointState(name=["arm_1", "lift"], position=[0.0, 0.0]))
    assert moving.fault == "joint_states: arm_2 is missing"
    wrong = JointDistances(sources, {"arm": "harm_*"})
    wrong.take(TOPIC, JointState(name=["arm_1", "arm_2", "lift"], position=[0.0, 0.0, 0.0]))
    assert wrong.fault == "joint_states: no joint is called harm_*"


def test_what_to_listen_to_is_what_the_checkpoint_selects():
    robot = RecordingConfig.load("config/robots/two_arms_wrench.yaml").observation
    assert [(one.name, one.topic, len(one.joints)) for one in sources_of(robot)] == [
        ("left", "left/joint_states", 6), ("right", "right/joint_states", 6),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["[left_*]", "{left: 3}", "{", "{a: a, b: b, c: c, d: d, e: e, f: f, g: g}"])
def test_groups_that_are_none_are_named(text):
    with pytest.raises(ConfigError, match="joint_groups"):
        groups_in(text)


def test_the_arms_keep_their_colours_and_a_compact_panel_leaves_the_path_out():
    ticks = [diagnostics(tick) for tick in range(3)]
    full = picture(ticks)
    shades = [of(full, f"joints_{i}")[0].color for i in range(2)]
    assert [(c.r, c.g, c.b) for c in shades] == [pytest.approx(c[:3]) for c in colours.LIMBS]
    assert "left arm" in words(full) and "right arm" in words(full)
    compact = picture([diagnostics(3, input_stale=[True, False, False])], compact=True)
    assert len(of(compact, "slots")) == len(of(full, "slots"))
    assert not of(compact, "path_back") and "overhead is stale" in words(compact, colours.WARNING)
    assert "NO SIGNAL" in words(list(scene(compact=True).picture(0.0).markers))
    (panel,) = of(compact, "panel")
    # The middle of its lower edge stands where the panel was put.
    assert (panel.pose.position.x, panel.pose.position.z) == pytest.approx((0.0, panel.scale.z / 2))
