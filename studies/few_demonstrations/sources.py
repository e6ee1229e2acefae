"""Bags of made-up robots, of the same guided by hand, and of the arm's tasks, one answer a scene, and as many more
that no training sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from studies.robots.robots import ROBOTS, Robot
from studies.scenes import LAPS, with_laps
from trace_memory_ros.arm.recorder import arm_recording, record_bags
from trace_memory_ros.bags.inspection import inspect
from trace_memory_ros.bags.recording import BranchConfig, RecordingConfig
from trace_memory_ros.learning.bags.data import BagData
from trace_memory_ros.learning.bags.training import read_bags
from trace_memory_ros.runtime.actions import ActionConfig

CONFIGS = Path(__file__).parents[2] / "config" / "robots"
TASKS = ("origin", "colour")
TRAIN, FRESH = "train", "fresh"
FIRST_FRESH = 100_000
ROBOT_FRESH = 1_000
INSPECTED_S = 4.0

Record = Callable[[Path, int], Path]


@dataclass(frozen=True)
class Source:
    """Where bags come from.

    described: what is in them. record: the bag of a scene, at a folder. fresh: the first scene that no training sees.
    """

    name: str
    described: Callable[[], RecordingConfig]
    record: Record
    fresh: int

    @property
    def recording(self) -> RecordingConfig:
        """How they are read."""
        return self.described()

    def bags(self, folder: Path, kind: str, count: int) -> Iterator[Path]:
        """The first `count` bags of a kind, recorded where they are not there yet."""
        first = self.fresh if kind == FRESH else 0
        for scene in range(first, first + count):
            yield self.record(folder / self.name / kind, scene)


def sources(seconds: float) -> dict[str, Source]:
    """All by name. seconds: length of a robot's episode."""
    robots = {
        name: Source(name, partial(_annotated, name), partial(_record_robot, robot, seconds), ROBOT_FRESH)
        for name, robot in ROBOTS.items()
    }
    by_hand = {
        name: Source(name, partial(_proposed, robot), partial(_record_robot, robot, seconds), ROBOT_FRESH)
        for name, robot in GUIDED.items()
    }
    arm = {
        name: Source(name, arm_recording, partial(_record_arm, task, laps), FIRST_FRESH)
        for task in TASKS
        for laps in (1, *LAPS)
        for name in [delayed(task, laps)]
    }
    return {**robots, **by_hand, **arm}


def delayed(source: str, laps: int) -> str:
    """The name of a task's bags in which the arms go round the stations so many times."""
    return source if laps == 1 else f"{source}_x{laps}"


@lru_cache(maxsize=4)
def data_of(source: str, folder: Path, cache: Path, kind: str, count: int, seconds: float) -> BagData:
    """The decoded bags of a kind. Raises ValueError where one cannot be used."""
    found = sources(seconds)[source]
    data, failed = read_bags(list(found.bags(folder, kind, count)), found.recording, cache)
    if failed or data.left_out:
        raise ValueError(f"{(failed or data.left_out)[0]}: delete the bag, it is recorded again")
    return data


def _annotated(robot: str) -> RecordingConfig:
    """The shipped configuration of a robot, and where its bags say what was right."""
    return replace(RecordingConfig.load(CONFIGS / f"{robot}.yaml"), branches=BranchConfig(topic="/branch"))


def _without_commands(robot: Robot) -> Robot:
    """The same robot, recorded without what it was told."""
    actions = RecordingConfig.load(CONFIGS / f"{robot.name}.yaml").actions
    assert actions is not None
    told = {f"/{part.topic}" for part in actions.parts}
    return replace(robot, topics=tuple(topic for topic in robot.topics if topic.name not in told))


GUIDED = {f"{name}_guided": _without_commands(robot) for name, robot in ROBOTS.items()}
"""Robots that were guided by hand, so that nothing says what they were told."""


@cache
def _proposed(robot: Robot) -> RecordingConfig:
    """What `bags inspect` proposes for a robot's bag, what was measured being its commands."""
    with TemporaryDirectory() as folder:
        proposal = inspect(robot.record(Path(folder) / "bag", 0, INSPECTED_S))
    assert proposal.recording is not None
    return replace(proposal.recording, actions=ActionConfig.from_dict(proposal.measured))


def _record_robot(robot: Robot, seconds: float, folder: Path, scene: int) -> Path:
    # Episodes of other lengths, as of a quick run, lie beside.
    return robot.recorded(folder / f"{seconds:g}s" / f"{scene:04d}", scene, seconds)


def _record_arm(task: str, laps: int, folder: Path, scene: int) -> Path:
    """Even scenes have one answer, odd ones the other: there are no twins."""
    return next(iter(record_bags([with_laps(laps, task, scene, scene % 2)], folder)))
