"""From message contents to observations: nothing unusable gets through, and everything is named."""

from __future__ import annotations

from array import array

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import ObservationConfig, SensorConfig, default_arm
from trace_memory_ros.observation.content import CompressedImage, JointPositions, Live, RawImage
from trace_memory_ros.observation.images import prepare
from trace_memory_ros.observation.lockstep import LockstepObserver, base_message
from trace_memory_ros.observation.observer import MAX_FAULTS, Observer
from trace_memory_ros.observation.types import Observation

CONFIG = default_arm()
PERIOD = CONFIG.period_ns
JOINTS = [one.output for one in CONFIG.streams[0].selected]
ANGLES = {joint: 0.1 * (i + 1) for i, joint in enumerate(JOINTS)}


def picture(seed: int = 0, size: int = 96) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (size, size, 3), dtype=np.uint8)


def push_image(
    observer: Observer, camera: str, stamp: int, pixels: NDArray[np.uint8], encoding: str = "rgb8"
) -> Verdict:
    height, width = pixels.shape[:2]
    data = array("B")
    data.frombytes(pixels.tobytes())
    return observer.push(camera, stamp, stamp, RawImage(data, encoding, height, width, 3 * width, 0))


def push_joints(observer: Observer, stream: str, stamp: int, angles: dict[str, float]) -> Verdict:
    positions = array("d", angles.values())
    return observer.push(stream, stamp, stamp, Live(JointPositions(list(angles), positions)))


def push_base(observer: Observer, stamp: int, *velocity: float) -> Verdict:
    return observer.push("odom", stamp, stamp, Live(base_message(np.array(velocity))))


def push_tick(observer: Observer, k: int, angles: dict[str, float] | None = None, skip: str = "") -> None:
    for camera in CONFIG.camera_names:
        if camera != skip:
            push_image(observer, camera, k * PERIOD, picture(k))
    if skip != "joint_states":
        push_joints(observer, "joint_states", k * PERIOD, angles or ANGLES)


def one(observer: Observer, now: int) -> Observation:
    (observation,) = observer.poll(now)
    return observation


def test_a_whole_tick() -> None:
    observer = Observer(CONFIG)
    push_tick(observer, 0)
    observation = one(observer, 0)
    assert observation.usable
    np.testing.assert_array_equal(observation.state, [0, 0, 0, *ANGLES.values()])
    assert list(observation.images) == list(CONFIG.camera_names)
    np.testing.assert_array_equal(observation.images["overhead"], prepare(picture(0), 48))
    assert observation.input_stamps_ns == dict.fromkeys([s.name for s in CONFIG.inputs], 0)
    assert observation.newest_arrival_ns == 0


def test_joints_come_by_name_in_any_order_with_extras() -> None:
    observer = Observer(CONFIG)
    shuffled = {"left_suction": 9.0, **dict(reversed(ANGLES.items())), "finger": np.nan}
    push_tick(observer, 0, shuffled)
    np.testing.assert_array_equal(one(observer, 0).state, [0, 0, 0, *ANGLES.values()])
    push_tick(observer, 1)
    np.testing.assert_array_equal(one(observer, PERIOD).state, [0, 0, 0, *ANGLES.values()])


@pytest.mark.parametrize(
    ("angles", "message"),
    [
        (
            {k: v for k, v in ANGLES.items() if k != "right_joint_4"},
            "joint right_joint_4 is missing from",
        ),
        ({**ANGLES, "left_joint_2": float("nan")}, "position of left_joint_2 is not finite"),
        ({**ANGLES, "left_joint_2": float("inf"), "right_joint_1": float("nan")}, "left_joint_2, right_joint_1"),
    ],
)
def test_bad_joints_are_named_and_nothing_is_made_up(angles: dict[str, float], message: str) -> None:
    observer = Observer(CONFIG)
    push_tick(observer, 0)
    assert one(observer, 0).usable
    push_tick(observer, 1, angles)
    observation = one(observer, PERIOD)
    assert not observation.usable
    assert observation.state is None
    assert message in observation.faults["joint_states"]
    assert len(observer.faults) == 1
    assert message in next(iter(observer.faults))
    assert observer.counters["joint_states"].rejected == 1
    push_tick(observer, 2)
    assert one(observer, 2 * PERIOD).usable


def test_names_without_positions_are_refused() -> None:
    observer = Observer(CONFIG)
    push_tick(observer, 0, skip="joint_states")
    observer.push("joint_states", 0, 0, Live(JointPositions(list(ANGLES), [])))
    assert "14 joint names with 0 positions" in one(observer, 0).faults["joint_states"]


def test_a_bad_image_spoils_its_tick_alone() -> None:
    observer = Observer(CONFIG)
    for k, (encoding, size) in enumerate([("rgb8", 96), ("8SC3", 96), ("rgb8", 64), ("rgb8", 96)]):
        push_tick(observer, k, skip="left_wrist")
        push_image(observer, "left_wrist", k * PERIOD, picture(k, size), encoding)
        observation = one(observer, k * PERIOD)
        assert observation.usable == (k in (0, 3))
        assert ("left_wrist" in observation.images) == observation.usable
        assert observation.state is not None
    named = list(observer.faults)
    assert "left_wrist: image encoding '8SC3' (96x96)" in named[0]
    assert "left_wrist: image size changed from 96x96 to 64x64" in named[1]
    assert observer.counters["left_wrist"].rejected == 2
    observer.reset()
    assert not observer.faults
    push_tick(observer, 4, skip="left_wrist")
    push_image(observer, "left_wrist", 4 * PERIOD, picture(0, 64))
    assert one(observer, 4 * PERIOD).usable


def test_distinct_faults_are_bounded() -> None:
    observer = Observer(CONFIG)
    for k in range(3 * MAX_FAULTS):
        observer.push("overhead", k, k, CompressedImage(b"cut", f"jpeg {k}"))
    assert len(observer.faults) == MAX_FAULTS


def test_compressed_equals_raw() -> None:
    observer = Observer(CONFIG)
    push_tick(observer, 0, skip="overhead")
    png = cv2.imencode(".png", picture(5)[..., ::-1])[1]
    observer.push("overhead", 0, 0, CompressedImage(array("B", png.tobytes()), "rgb8; png compressed bgr8"))
    np.testing.assert_array_equal(one(observer, 0).images["overhead"], prepare(picture(5), 48))


def test_base_and_split_joint_streams_fill_the_state() -> None:
    config = ObservationConfig(
        cameras=CONFIG.cameras[:1],
        streams=(
            SensorConfig("l", "l", 250, select={"position": ("c", "a")}),
            SensorConfig("r", "r", 250, select={"position": ("b",)}),
            SensorConfig("odom", "odom", 250, type="nav_msgs/msg/Odometry"),
        ),
        state=(
            "odom.linear.x",
            "odom.linear.y",
            "odom.angular.z",
            *(f"{s}.position.{j}" for s, j in ("la", "rb", "lc")),
        ),
    )
    observer = Observer(config)
    push_image(observer, "overhead", 0, picture())
    push_joints(observer, "l", 0, {"a": 1.0, "c": 3.0})
    push_joints(observer, "r", 0, {"b": 2.0})
    assert observer.poll(0) == []
    push_base(observer, 0, 0.1, 0.2, 0.3)
    np.testing.assert_array_equal(one(observer, 0).state, [0.1, 0.2, 0.3, 1, 2, 3])
    push_image(observer, "overhead", PERIOD, picture())
    push_joints(observer, "l", PERIOD, {"a": 1.0, "c": 3.0})
    push_joints(observer, "r", PERIOD, {"b": 2.0})
    push_base(observer, PERIOD, 0.1, np.nan, np.inf)
    observation = one(observer, 0)
    assert observation.state is None
    assert "linear.y, angular.z is not finite" in observation.faults["odom"]


def test_lockstep_equals_messages() -> None:
    config = default_arm(base_masked=False)
    lockstep, observer = LockstepObserver(config), Observer(config)
    for k in range(3):
        images = dict.fromkeys(config.camera_names, picture(k))
        velocity = np.array([0.1, 0.2, k])
        direct = lockstep.observe(images, ANGLES, velocity)
        push_tick(observer, k)
        push_base(observer, k * PERIOD, 0.1, 0.2, k)
        through = one(observer, k * PERIOD)
        assert (direct.tick, direct.stamp_ns) == (k, k * PERIOD) == (through.tick, through.stamp_ns)
        assert direct.usable
        np.testing.assert_array_equal(direct.state, through.state)
        for name, image in through.images.items():
            np.testing.assert_array_equal(direct.images[name], image)
    lockstep.reset()
    assert lockstep.observe(images, ANGLES, velocity).tick == 0
    with pytest.raises(ValueError, match="base_velocity is missing"):
        lockstep.observe(images, ANGLES)
