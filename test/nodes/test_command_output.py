"""What of a policy's answers is sent, without ROS: by age, by permission, within limits, from where the arm is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.policy.commands import CommandOutput, Guards
from trace_memory_ros.nodes.policy.guarding import guards_of
from trace_memory_ros.nodes.policy.one_memory import OneMemory
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.policy.permission import Permission
from trace_memory_ros.nodes.policy.ramp import Ramp
from trace_memory_ros.nodes.policy.timeliness import Timeliness
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.condition import Condition, ConditionStatus
from trace_memory_ros.runtime.limiter import Limiter
from trace_memory_ros.runtime.limits import OutputLimit
from trace_memory_ros.streams.base import ReadError

MS = 1_000_000
PERIOD_MS, LATENCY_MS = 50, 20
START_MS = 1_000_000


class Desk:
    """A CommandOutput of one position and one velocity, what it sent, and a clock in ms that the test sets."""

    def __init__(self, **changes: Any) -> None:
        given: dict[str, Any] = {"age_ms": 500, "hold_ms": 500, "ramp_ms": 0, "limit": OutputLimit(), "enabled": True}
        given |= {"refuse": False, "outage_s": 0.0} | changes
        velocity = (False, True)
        limits = (given["limit"], OutputLimit())
        self.permission = Permission(given["enabled"])
        guards = Guards(
            Timeliness(given["age_ms"], PERIOD_MS * MS),
            self.permission,
            Limiter(("joint", "speed"), limits, velocity, PERIOD_MS * MS),
            Ramp(given["ramp_ms"] * MS),
            given["hold_ms"],
            PERIOD_MS * MS,
            given["refuse"],
            np.array(velocity),
            given["outage_s"],
        )
        self.sent: list[tuple[int, float, float]] = []
        self.faults: list[str] = []
        self.stills = self.deferred = self.now_ms = self.frozen_ms = 0
        self.output = CommandOutput(self, guards, lambda _, text: self.faults.append(text), self.clock, self.defer)

    def clock(self) -> int:
        return self.now_ms * MS

    def defer(self) -> None:
        self.deferred += 1

    def messages(self, targets: np.ndarray, stamp_ns: int) -> list[Any]:
        if targets[0] == 666.0:
            raise ReadError("no such place")
        self.now_ms += self.frozen_ms
        return [(stamp_ns // MS - START_MS, *targets.tolist())]

    def publish(self, messages: Sequence[Any]) -> None:
        self.sent += messages

    def still(self, stamp_ns: int) -> None:
        self.stills += 1

    def tick(self, at_ms: int, target: float | None, place: float = 0.0, age_ms: int = LATENCY_MS) -> None:
        """The tick stamped `at_ms` is answered at the age given; without a target it is to be held."""
        self.now_ms = START_MS + at_ms + age_ms
        stamp_ns = (START_MS + at_ms) * MS
        if target is None:
            self.output.hold(stamp_ns, "memory", "stale")
        else:
            self.output.command(np.array([target, 1.0]), np.array([place, 0.0]), stamp_ns)

    @property
    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.output.counts.items() if count}


def test_after_a_freeze_only_the_newest_is_sent_and_what_is_old_never() -> None:
    desk = Desk()
    for k in range(20):
        desk.tick(50 * k, 1.0)
    assert len(desk.sent) == 20 and not desk.deferred
    desk.sent.clear()
    for k in range(20, 50):  # 1.5 s, answered within a few ms
        desk.tick(50 * k, 2.0 + k, age_ms=50 * (50 - k) + LATENCY_MS)
    assert desk.sent == []
    desk.output.flush()
    assert desk.sent == [(50 * 49, 51.0, 1.0)]
    assert desk.counts == {"commands": 21, "late_commands": 21, "superseded": 8}
    assert any("older than command_age_limit_ms = 500 ms" in fault for fault in desk.faults)
    desk.tick(50 * 50, 3.0)
    assert desk.sent[-1] == (2500, 3.0, 1.0)


def test_what_waited_too_long_for_younger_ones_is_late() -> None:
    desk = Desk()
    desk.tick(0, 1.0, age_ms=400)
    assert desk.deferred == 1
    desk.now_ms += 200
    desk.output.flush()
    assert desk.sent == [] and desk.counts == {"late_commands": 1}


def test_what_is_frozen_while_it_is_made_is_late() -> None:
    desk = Desk()
    desk.tick(0, 1.0)
    desk.frozen_ms = 1_500
    desk.tick(50, 2.0)
    desk.tick(100, None)
    assert [stamp for stamp, *_ in desk.sent] == [0]
    assert desk.counts == {"commands": 1, "late_commands": 1, "no_command": 1}


def test_after_an_outage_nothing_stale_is_held() -> None:
    desk = Desk()
    desk.tick(0, 1.0)
    for k in range(1, 93):  # 4.6 s of ticks that come together when the inputs are back
        desk.tick(50 * k, None, age_ms=50 * (93 - k) + LATENCY_MS)
    desk.output.flush()
    assert [stamp for stamp, *_ in desk.sent] == [0]
    desk.tick(50 * 93, 1.5)
    assert desk.sent[-1] == (4650, 1.5, 1.0)


def test_a_hold_lasts_from_the_last_good_command_on_and_stops_velocities() -> None:
    desk = Desk(hold_ms=120)
    desk.tick(0, 1.0)
    for at_ms in (50, 100, 150, 200):
        desk.tick(at_ms, None)
    assert desk.sent == [(0, 1.0, 1.0), (50, 1.0, 0.0), (100, 1.0, 0.0)]
    assert desk.counts == {"commands": 1, "holds": 2, "no_command": 2}
    assert "commands stopped, after 120 ms of: stale" in desk.faults
    desk.output.stop()  # another episode
    desk.tick(250, None)
    assert len(desk.sent) == 3


def test_stamps_of_another_clock_move_nothing_and_lock_step_takes_any() -> None:
    desk = Desk()
    for k in range(3):
        desk.tick(50 * k, 1.0, age_ms=-3_600_000)
        desk.tick(50 * k, 1.0, age_ms=56 * 365 * 86_400_000)
    assert desk.sent == [] and desk.counts == {"late_commands": 6}
    assert any("ahead of the clock" in fault and "use_sim_time" in fault for fault in desk.faults)
    lockstep = Desk(age_ms=0)
    for k, age_ms in enumerate((0, 10**9, -(10**9))):
        lockstep.tick(50 * k, 1.0, age_ms=age_ms)
    assert len(lockstep.sent) == 3 and not lockstep.deferred


def test_late_alone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    desk = Desk()
    desk.tick(0, 1.0)
    desk.tick(50, 1.0, age_ms=1_200)
    assert not desk.output.error
    now[0] += 4.0
    desk.tick(4_000, 1.0, age_ms=1_200)
    assert "lighten the load" in desk.output.error
    desk.tick(4_050, 1.0)
    desk.output.flush()
    assert not desk.output.error


def test_a_stop_lasts_until_it_is_enabled_and_begins_where_the_arm_is() -> None:
    desk = Desk(enabled=False, ramp_ms=200)
    desk.tick(0, 8.0, place=4.0)
    assert desk.sent == [] and "start_enabled is false" in desk.faults[0] and "~/enable" in desk.faults[0]
    desk.permission.enable()
    for at_ms in (50, 100, 150, 200, 250, 300):
        desk.tick(at_ms, 8.0, place=4.0)
    assert [joint for _, joint, _ in desk.sent] == [4.0, 5.0, 6.0, 7.0, 8.0, 8.0]
    assert [speed for *_, speed in desk.sent] == [0.0, 0.25, 0.5, 0.75, 1.0, 1.0]
    desk.permission.stop("~/stop")
    desk.output.stop()
    assert desk.stills == 1
    desk.tick(350, 8.0, place=6.0)
    desk.output.stop()
    desk.permission.new_episode()
    desk.tick(400, None)
    assert len(desk.sent) == 6 and "(~/stop)" in desk.permission.reason
    desk.permission.enable()
    desk.tick(450, 8.0, place=6.0)
    assert desk.sent[-1] == (450, 6.0, 0.0)


def test_after_an_outage_too_commands_begin_where_the_arm_is() -> None:
    desk = Desk(ramp_ms=200, limit=OutputLimit(max_step=0.5))
    for k in range(10):
        desk.tick(50 * k, 1.0, place=1.0)
    desk.tick(2_000, 1.0, place=3.0)
    assert desk.sent[-1][1] == 3.0
    desk.tick(2_050, 1.0, place=3.0)
    assert desk.sent[-1][1] == 2.5


@pytest.mark.parametrize("refuse", [False, True])
def test_an_arm_that_begins_beyond_a_bound_comes_back_within_the_ramp(refuse: bool) -> None:
    desk = Desk(ramp_ms=200, limit=OutputLimit(min=-1.0, max=1.0), refuse=refuse)
    for at_ms in (0, 50, 100, 150, 200):
        desk.tick(at_ms, 0.0, place=-4.0)
    assert [joint for _, joint, _ in desk.sent] == [-4.0, -3.0, -2.0, -1.0, 0.0]
    assert desk.counts == {"commands": 5}
    clamping = Desk(ramp_ms=200, limit=OutputLimit(min=-1.0, max=1.0))
    for at_ms in (0, 100, 200, 250):
        clamping.tick(at_ms, -3.0, place=-5.0)
    assert [joint for _, joint, _ in clamping.sent] == [-5.0, -3.0, -1.0, -1.0]
    assert clamping.counts == {"commands": 4, "clamped": 4}


def test_a_fault_stop_ends_with_the_episode() -> None:
    desk = Desk()
    desk.permission.fail("two memories")
    desk.tick(0, 1.0)
    assert desk.sent == [] and "two memories: no command" in desk.faults[0]
    desk.permission.new_episode()
    desk.tick(50, 1.0)
    assert len(desk.sent) == 1


def test_after_a_long_outage_a_person_has_to_enable(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock_s[0])
    desk = Desk(outage_s=30.0)
    desk.tick(0, 1.0)
    clock_s[0] += 30.0
    desk.tick(PERIOD_MS, 1.0)
    assert len(desk.sent) == 2, "not longer than the limit"
    clock_s[0] += 30.1
    desk.tick(2 * PERIOD_MS, 1.0)
    assert len(desk.sent) == 2
    assert "no command was sent for 30 s, enable_after_outage_s = 30" in desk.faults[-1]
    clock_s[0] += 60.0
    desk.output.allow()
    desk.permission.enable()
    desk.tick(3 * PERIOD_MS, 1.0)
    assert len(desk.sent) == 3


def test_others_on_a_topic_block_commands_for_as_long_as_they_are_there() -> None:
    desk = Desk()
    desk.permission.block("also commanded by /other")
    desk.tick(0, 1.0)
    assert not desk.sent and desk.faults == ["also commanded by /other"]
    desk.permission.block("")
    desk.tick(PERIOD_MS, 1.0)
    assert len(desk.sent) == 1 and not desk.stills
    desk.permission.block("also commanded by /other")
    for k in (2, 3, 4):
        desk.tick(k * PERIOD_MS, 1.0)
    assert (len(desk.sent), desk.stills) == (1, 1), "what moves is told to stand, once"


def test_what_is_beyond_a_limit_is_clamped_or_refused_and_named() -> None:
    limit = OutputLimit(max=2.0, max_step=0.5)
    clamping, refusing = Desk(limit=limit), Desk(limit=limit, refuse=True)
    for desk in (clamping, refusing):
        desk.tick(0, 1.9, place=1.8)
        desk.tick(50, 9.0)
        assert any(fault.startswith("joint: max = 2") for fault in desk.faults)
    assert [joint for _, joint, _ in clamping.sent] == [1.9, 2.0]
    assert clamping.counts == {"commands": 2, "clamped": 1}
    assert [joint for _, joint, _ in refusing.sent] == [1.9, 1.9]
    assert refusing.counts == {"commands": 1, "holds": 1, "refused": 1}
    refusing.tick(10_000, 9.0)
    assert any("commands stopped" in fault and "more than joint: max = 2" in fault for fault in refusing.faults)


def test_radians_of_a_urdf_bound_no_output_of_a_robot_that_counts_otherwise(tmp_path: Path) -> None:
    """As a LeRobot dataset is proposed: degrees or percent, which its state says and its actions do not."""
    urdf, listed = tmp_path / "robot.urdf", tmp_path / "limits.yaml"
    urdf.write_text('<robot><joint name="elbow" type="revolute"><limit lower="-1.7" upper="1.7"/></joint></robot>')
    listed.write_text("limits: {elbow: {min: -97, max: 97}}")
    streams = (SensorConfig("arm", "joint_states", 100, select={"position": ["elbow"]}),)
    cameras, actions = (CameraConfig("eye", "image", 100),), ActionConfig.of_trajectory("command", ["elbow"])

    def bounded(unit: str, **files: str) -> tuple[str, ...]:
        seen = ObservationConfig(cameras, streams, units={"arm.position.elbow": unit})
        guards = guards_of(PolicyNodeParameters(urdf=str(urdf), **files), actions, seen, Permission(True))
        return guards.limiter.apply(np.array([-200.0])).met

    assert bounded("rad") == ("elbow: min = -1.7",)
    with pytest.raises(ConfigError, match=r"joint of elbow: its limits are in rad or m, the output is in 'raw'"):
        bounded("raw")
    assert bounded("raw", limits_file=str(listed)) == ("elbow: min = -97",)


def test_an_action_that_is_no_command_is_held() -> None:
    desk = Desk()
    desk.tick(0, 1.0)
    desk.tick(50, 666.0)
    assert [joint for _, joint, _ in desk.sent] == [1.0, 1.0]
    assert any("no such place" in fault for fault in desk.faults)


def condition(instance: int, restored: bool = False) -> Condition:
    none = np.zeros(0, np.float32)
    return Condition(
        0, 7, 0, ConditionStatus.OK, "", "trace", "id", none, none, none, none, False, {}, instance, restored, 3
    )


def test_another_memory_in_mid_episode_is_a_fault() -> None:
    memory = OneMemory(accept_restored=False)
    assert not memory.problem(condition(5)) and not memory.problem(condition(5))
    for instance, other in ((6, 5), (5, 6)):  # two that take turns
        assert f"from instance {other} to {instance} (at tick 7)" in memory.problem(condition(instance))
    assert "restored, 3 ticks missing" in memory.problem(condition(8, restored=True))
    memory.forget()
    assert not memory.problem(condition(9))


def test_a_restored_memory_is_taken_where_it_is_allowed() -> None:
    memory = OneMemory(accept_restored=True)
    assert not memory.problem(condition(5)) and not memory.problem(condition(6, restored=True))
    assert memory.problem(condition(7))
