"""MIKASA's process, asked from ours."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from studies.grid import say
from studies.mikasa import driver
from studies.mikasa.names import CAMERAS, PX, RATE_HZ
from studies.mikasa.robot import Recorded, Seen
from studies.worlds.client import World
from studies.worlds.environment import interpreter

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
MODULE = "studies.mikasa.world"
TOLD_EVERY = 25
LEAST_TRIED = 20


class Acted(NamedTuple):
    """What a step led to. success: of this tick alone.

    at_right: whether of all choices the right one is nearest to the hand. beside_m: from the hand, on the table.
    touched: how many things were touched rightly, where several are to be.
    """

    seen: Seen
    success: bool
    done: bool
    at_right: bool
    beside_m: float
    touched: int


class MikasaWorld(World):
    """One task at a time, one episode at a time. Raises `Unavailable` where packages or driver cannot be had."""

    def __init__(self, packages: Path) -> None:
        super().__init__(interpreter(REQUIREMENTS, packages), MODULE, driver.variables(packages.with_name("vulkan")))

    def task(self, task: str) -> dict[str, Any]:
        """What the benchmark says of a task. Raises RuntimeError for another control rate than ours."""
        found = self._ask("describe", task=task)
        if found["rate_hz"] != RATE_HZ:
            raise RuntimeError(f"{task} is controlled at {found['rate_hz']} Hz, and the robot's ticks at {RATE_HZ} Hz")
        return found

    def record(self, task: str, seed: int, file: Path) -> None:
        """The expert's episode of a seed, into a file, a failed one too."""
        file.parent.mkdir(parents=True, exist_ok=True)
        self._ask("record", task=task, seed=seed, file=str(file.absolute()))

    def check(self, task: str, seed: int) -> dict[str, Any]:
        """Whether the expert succeeds at a seed, undisturbed; nothing is rendered."""
        return self._ask("check", task=task, seed=seed)

    def start(self, task: str, seed: int) -> Seen:
        """Begin an episode; what its first tick shows."""
        return _seen(self._ask("begin", task=task, seed=seed))

    def move(self, action: Sequence[float]) -> Acted:
        """Do `(7,)` in the episode that was begun."""
        told = self._ask("act", action=[float(number) for number in action])
        where = bool(told["at_right"]), float(told["beside_m"]), int(told["touched"])
        return Acted(_seen(told), bool(told["success"]), bool(told["done"]), *where)


def _seen(told: dict[str, Any]) -> Seen:
    pictures = [np.frombuffer(base64.b64decode(one), np.uint8).reshape(PX, PX, 3) for one in told["pictures"]]
    return Seen(dict(zip(CAMERAS, pictures, strict=True)), np.asarray(told["proprio"], np.float32))


def recorded(world: MikasaWorld, folder: Path, task: str, count: int) -> Iterator[Recorded]:
    """The first seeds' recordings of a task, with those that failed, until `count` succeeded; made if missing.

    Raises RuntimeError where the expert fails most of the time.
    """
    succeeded = seed = 0
    while succeeded < count:
        if seed >= LEAST_TRIED and succeeded < seed / 2:
            raise RuntimeError(f"{task}: the expert solved {succeeded} of {seed} episodes: its gains do not suit it")
        file = _file(folder, task, seed)
        if not _there(file):
            world.record(task, seed, file)
            if seed % TOLD_EVERY == 0:
                say(f"{task}: demonstration {seed} recorded")
        found = Recorded(file)
        succeeded += found.success
        seed += 1
        yield found


def recordings_there(folder: Path, task: str, count: int) -> list[Recorded]:
    """What there is of `recorded`."""
    found: list[Recorded] = []
    while sum(one.success for one in found) < count and _there(file := _file(folder, task, len(found))):
        found.append(Recorded(file))
    return found


def _file(folder: Path, task: str, seed: int) -> Path:
    return folder / task / f"{seed}.npz"


def _there(file: Path) -> bool:
    return file.exists() and Recorded(file).current
