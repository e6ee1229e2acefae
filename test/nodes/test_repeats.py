"""A camera that repeats one picture is told where that cannot be well, and only there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from trace_memory_ros.nodes.memory.repeats import Repeats
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.content import Content, RawImage
from trace_memory_ros.observation.types import Observation

CONFIG = default_arm()
CAMERAS = CONFIG.camera_names
PERIOD_NS = CONFIG.period_ns
PX = 8
Shows = Callable[[str, int], int]
"""Which picture a camera shows at a tick, by a number."""


class Cell:
    """Ticks into `repeats`; a camera's picture is what `shows` says."""

    def __init__(self, std: float = 0.2, timeout_s: float = 3.0) -> None:
        self.tick, self.place, self.handed_on = 0, 0.0, 0
        self.repeats = Repeats(CONFIG, np.full(CONFIG.state_dim, std), timeout_s, self)

    def push(self, stream: str, stamp_ns: int, arrival_ns: int, content: Content) -> Verdict:
        self.handed_on += 1
        return Verdict.ACCEPTED

    def run(self, seconds: float, shows: Shows, speed: float = 0.0) -> set[str]:
        """Cameras that were told at any tick."""
        told: set[str] = set()
        for _ in range(round(1e9 * seconds / PERIOD_NS)):
            self.tick, self.place = self.tick + 1, self.place + speed * PERIOD_NS / 1e9
            stamp_ns = 10**15 + self.tick * PERIOD_NS
            for camera in CAMERAS:
                data = np.full(PX * PX * 3, shows(camera, self.tick) % 251, np.uint8)
                self.repeats.push(camera, stamp_ns, 0, RawImage(data, "rgb8", PX, PX, 3 * PX, 0))
            state = np.full(CONFIG.state_dim, self.place)
            self.repeats.ticked(Observation(self.tick, stamp_ns, {}, state, {}, {}))
            told |= set(self.repeats.faults())
        return told


def noise(camera: str, tick: int) -> int:
    return tick


def nothing(camera: str, tick: int) -> int:
    return 7


def all_but(*still: str) -> Shows:
    return lambda camera, tick: 7 if camera in still else tick


def test_a_hung_camera_of_a_robot_whose_cameras_have_noise_is_told_and_a_mended_one_is_not() -> None:
    cell = Cell()
    assert cell.run(5, noise) == set()
    assert cell.run(2.9, all_but(CAMERAS[1])) == set()
    assert cell.run(2, all_but(CAMERAS[1])) == {CAMERAS[1]}, "though the arm stands, the other cameras go on"
    (fault,) = cell.repeats.faults().values()
    assert "for over 3 s" in fault and "restart the camera" in fault and "repeat_timeout_s" in fault
    assert cell.run(5, noise) == set()
    assert cell.handed_on == cell.tick * len(CAMERAS)


def test_a_camera_that_hung_from_the_start_is_told_by_the_noise_of_the_others() -> None:
    cell = Cell()
    assert cell.run(8, all_but(CAMERAS[0])) == {CAMERAS[0]}


def test_all_cameras_that_hang_are_told_once_the_arm_moves() -> None:
    cell = Cell()
    assert cell.run(10, nothing) == set(), "a simulated arm that stands"
    assert cell.run(5, nothing, speed=0.1) == set(CAMERAS)


def test_a_simulated_arm_that_stands_or_moves_beside_another_is_not_told() -> None:
    cell = Cell()
    assert cell.run(10, nothing) == set()
    assert cell.run(10, all_but(CAMERAS[1]), speed=0.3) == set(), "one wrist stands while the other arm moves"
    assert cell.run(10, nothing) == set()
    lamp = cell.run(10, lambda camera, tick: tick // 30 if camera == CAMERAS[0] else 7)
    assert lamp == set(), "a lamp changes while the arm stands"
    assert cell.run(3, all_but(CAMERAS[1]), speed=4e-3) == set(), "an arm that settles shows no noise"


def test_what_moves_little_or_never_in_training_is_no_motion() -> None:
    cell = Cell(std=np.inf)
    assert cell.run(20, nothing, speed=1.0) == set()
    assert Cell(timeout_s=0.0).run(20, nothing, speed=1.0) == set()


def test_one_changed_byte_is_another_picture() -> None:
    cell = Cell()
    cell.run(0.1, noise)
    size = 640 * 480 * 3
    for k in range(60):
        data = np.zeros(size, np.uint8)
        data[-2] = k
        for camera in CAMERAS:
            image = RawImage(data, "rgb8", 480, 640, 3 * 640, 0)
            cell.repeats.push(camera, 10**16 + k * PERIOD_NS, 0, image)
        cell.repeats.ticked(Observation(k, 10**16 + k * PERIOD_NS, {}, np.full(CONFIG.state_dim, float(k)), {}, {}))
    assert cell.repeats.faults() == {}
