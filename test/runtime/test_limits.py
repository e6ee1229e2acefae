"""Limits of outputs: read from YAML and URDF, and kept by every command."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart
from trace_memory_ros.runtime.limiter import Limiter
from trace_memory_ros.runtime.limits import OutputLimit, limits_of, velocity_columns

ARRAY, TRAJECTORY = "std_msgs/msg/Float64MultiArray", "trajectory_msgs/msg/JointTrajectory"
ARM = ActionPart("arm/commands", ARRAY, {"elbow": 0, "wrist": 1}, stamp="received")
LEFT = ActionPart("left/trajectory", TRAJECTORY, {"position": ["j1", "j2"]}, name="left")
LAMP = ActionPart("lamp", "std_msgs/msg/UInt8", {"lamp": "data"}, stamp="received")
BASE = ActionPart("cmd_vel", "geometry_msgs/msg/Twist", ("linear.x",), stamp="received")
ACTIONS = ActionConfig((ARM, LEFT, LAMP, BASE))
PERIOD_NS = 50_000_000

URDF = """<robot name="r">
  <joint name="elbow" type="revolute"><limit lower="-2.0" upper="2.5" velocity="1.5" effort="9"/></joint>
  <joint name="wrist" type="continuous"><limit velocity="3" effort="9"/></joint>
  <joint name="j2" type="prismatic"><limit upper="0.4" velocity="0" effort="9"/></joint>
  <joint name="tool" type="fixed"/>
</robot>"""


def written(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_sources_are_joined_and_the_tighter_holds(tmp_path: Path) -> None:
    urdf = written(tmp_path, "robot.urdf", URDF)
    text = "limits:\n  elbow: {max: 1.0, max_velocity: 2.0}\n  left.j1: {max_step: 0.1}\n  linear.x: {max: 0.3}\n"
    limits = dict(zip(ACTIONS.names, limits_of(ACTIONS, written(tmp_path, "limits.yaml", text), urdf), strict=True))
    assert limits["elbow"] == OutputLimit(-2.0, 1.0, max_velocity=1.5)
    assert limits["wrist"] == OutputLimit(max_velocity=3.0)
    assert limits["left.j1"] == OutputLimit(max_step=0.1)
    assert limits["left.j2"] == OutputLimit(0.0, 0.4)  # by the joint's own name; a velocity of 0 says nothing
    assert limits["lamp"] == OutputLimit(-0.5, 255.5)
    assert limits["linear.x"] == OutputLimit(max=0.3)
    assert velocity_columns(ACTIONS) == (False, False, False, False, False, True)
    assert limits_of(ActionConfig((ARM,))) == (OutputLimit(), OutputLimit())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("limits: {elbw: {max: 1}}", r"limits of 'elbw', which is no output; did you mean 'elbow'"),
        ("limits: {elbow: {maximum: 1}}", r"limits of elbow: limits: unknown key 'maximum'; did you mean 'max'"),
        ("limits: {elbow: {min: 2, max: 1}}", r"limits of elbow: min = 2, max = 1: min must be below max"),
        ("limits: {elbow: {max_step: -1}}", r"max_step = -1: must be a finite number > 0"),
        ("limits: {elbow: {max: high}}", r"max = 'high': must be a number"),
        ("limits: {elbow: {max: .nan}}", r"max = nan: must be a number"),
        ("limits: [elbow]", r"must be a mapping"),
        ("elbow: {max: 1}", r"unknown key 'elbow'"),
        ("limits: {elbow: {min: 7}}", r"elbow, together with its other limits: min = 7, max = 2.5"),
        ("limits: {elbow", r"cannot be read"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as error:
        limits_of(ACTIONS, written(tmp_path, "limits.yaml", text), written(tmp_path, "robot.urdf", URDF))
    assert "limits.yaml" in str(error.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("no xml", "cannot be read as XML"),
        ("<sdf/>", "outermost element is <sdf>"),
        ('<robot><joint name="a" type="revolute"><limit lower="0" upper="1"/></joint></robot>', "none of its joints"),
        ('<robot><joint name="elbow" type="revolute"><limit lower="${a}"/></joint></robot>', "expand a xacro file"),
        ('<robot><joint name="elbow" type="revolute"><limit upper="nan"/></joint></robot>', "is not finite"),
        ('<robot><joint name="elbow" type="revolute"><limit lower="1"/></joint></robot>', "min must be below max"),
    ],
)
def test_a_wrong_urdf_is_named(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as error:
        limits_of(ACTIONS, urdf=written(tmp_path, "robot.urdf", text))
    assert "robot.urdf" in str(error.value)


def test_an_output_in_a_unit_of_its_own_is_not_left_unlimited_beside_a_urdf(tmp_path: Path) -> None:
    degrees = ActionPart("arm/commands", ARRAY, {"elbow": 0, "wrist": 1}, stamp="received", units={"elbow": "deg"})
    efforts = ActionPart("arm/efforts", ARRAY, {"elbow": 0, "wrist": 1}, stamp="received", units={"elbow": "N m"})
    urdf, text = written(tmp_path, "robot.urdf", URDF), "limits: {elbow: {min: -110, max: 140}}"
    with pytest.raises(ConfigError, match=r"joint of elbow: its limits are in rad or m.*in 'deg' in limits_file"):
        limits_of(ActionConfig((degrees,)), urdf=urdf)
    elbow, wrist = limits_of(ActionConfig((degrees,)), written(tmp_path, "limits.yaml", text), urdf)
    assert (elbow, wrist) == (OutputLimit(-110, 140), OutputLimit(max_velocity=3.0))
    degrees = ActionPart("arm/commands", ARRAY, {"elbow": 0}, stamp="received", units={"elbow": "deg"})
    assert limits_of(ActionConfig((degrees,)), written(tmp_path, "limits.yaml", text), urdf) == (elbow,)
    assert limits_of(ActionConfig((efforts,)), urdf=urdf) == (OutputLimit(), OutputLimit(max_velocity=3.0))


@pytest.mark.parametrize(("unit", "velocity"), [("rad/s", True), ("deg/s", True), ("mm/s", True), ("m/s^2", False)])
def test_what_is_per_second_is_a_velocity(unit: str, velocity: bool) -> None:
    arm = ActionPart("arm/commands", ARRAY, {"elbow": 0, "wrist": 1}, stamp="received", units={"elbow": unit})
    assert velocity_columns(ActionConfig((arm,))) == (velocity, False)


def limiter(limit: OutputLimit, velocity: bool = False, start: float = 0.0) -> Limiter:
    made = Limiter(("elbow",), (limit,), (velocity,), PERIOD_NS)
    made.begin(np.array([start]))
    return made


def driven(made: Limiter, wanted: np.ndarray) -> tuple[np.ndarray, set[str]]:
    """What is commanded of targets one after the other, and the limits that were met."""
    out, met = [], set()
    for target in wanted:
        limited = made.apply(np.array([target]))
        made.sent(limited.targets, limited.aims)
        out.append(limited.targets[0])
        met |= set(limited.met)
    return np.array(out), met


@pytest.mark.parametrize("seed", range(5))
def test_no_command_is_beyond_any_limit(seed: int) -> None:
    limit = OutputLimit(-1.0, 1.5, max_step=0.2, max_velocity=3.0, max_acceleration=8.0)
    rng = np.random.default_rng(seed)
    wanted = np.repeat(rng.uniform(-4.0, 4.0, 40), rng.integers(1, 30, 40))
    out, met = driven(limiter(limit), wanted)
    steps = np.diff(out, prepend=0.0)
    assert out.min() >= -1.0 and out.max() <= 1.5
    assert np.abs(steps).max() <= 0.15 + 1e-9  # 3 per second in 50 ms; less than max_step
    assert np.abs(np.diff(steps, prepend=0.0)).max() <= 8.0 * 0.05**2 + 1e-9
    assert {text.split(" = ")[0] for text in met} >= {"elbow: min", "elbow: max", "elbow: max_velocity"}


def test_what_is_within_the_limits_is_not_touched() -> None:
    limit = OutputLimit(-1.0, 1.0, max_step=0.1, max_velocity=2.0, max_acceleration=10.0)
    wanted = 0.5 - 0.5 * np.cos(np.arange(200) * 0.1)
    out, met = driven(limiter(limit, start=0.0), wanted)
    np.testing.assert_allclose(out, wanted, atol=1e-12)
    assert met == set()


def test_a_far_target_is_reached_and_not_passed() -> None:
    out, _ = driven(limiter(OutputLimit(max_velocity=1.0, max_acceleration=2.0)), np.full(80, 1.0))
    assert out[-1] == pytest.approx(1.0, abs=1e-9)
    assert out.max() <= 1.0 + 1e-9
    assert np.abs(np.diff(out, n=2)).max() <= 2.0 * 0.05**2 + 1e-9


def test_an_arm_beyond_a_bound_comes_back_step_by_step() -> None:
    out, met = driven(limiter(OutputLimit(max=1.0, max_step=0.1), start=1.35), np.full(5, 3.0))
    np.testing.assert_allclose(out, [1.25, 1.15, 1.05, 1.0, 1.0])
    assert met == {"elbow: max = 1"}


def test_where_nothing_tells_the_place_the_first_command_is_only_bounded() -> None:
    out, met = driven(limiter(OutputLimit(max=1.0, max_step=0.1), start=np.nan), np.array([0.7, 0.75, 2.0]))
    np.testing.assert_allclose(out, [0.7, 0.75, 0.85])
    assert met == {"elbow: max = 1"}


def test_of_a_velocity_the_value_and_its_change_are_bounded() -> None:
    limit = OutputLimit(max_velocity=0.5, max_acceleration=2.0)
    out, met = driven(limiter(limit, velocity=True, start=3.0), np.array([2.0] * 6 + [0.0] * 2))
    np.testing.assert_allclose(out, [0.1, 0.2, 0.3, 0.4, 0.5, 0.5, 0.4, 0.3])
    assert met == {"elbow: max_velocity = 0.5", "elbow: max_acceleration = 2"}
    limit = OutputLimit(min=-0.3, max_velocity=0.5)
    out, met = driven(limiter(limit, velocity=True), np.array([2.0, -2.0]))
    np.testing.assert_allclose(out, [0.5, -0.3])
    assert met == {"elbow: max_velocity = 0.5", "elbow: min = -0.3"}


def test_float32_rounding_is_not_beyond_a_limit() -> None:
    made = limiter(OutputLimit(max=2.9), start=np.nan)
    assert made.apply(np.float64(np.float32([2.9]))).met == ()
    assert limiter(OutputLimit(max=inf)).apply(np.array([1e12])).met == ()
