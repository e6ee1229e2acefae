"""The tasks by name."""

from __future__ import annotations

from trace_memory_ros.arm.sim.names import TASK_NAMES
from trace_memory_ros.arm.sim.tasks.base import Task
from trace_memory_ros.arm.sim.tasks.colour import ColourTask
from trace_memory_ros.arm.sim.tasks.count import CountTask
from trace_memory_ros.arm.sim.tasks.cups import CupsTask
from trace_memory_ros.arm.sim.tasks.detail import GlyphTask, SmallColourTask
from trace_memory_ros.arm.sim.tasks.match import MatchTask
from trace_memory_ros.arm.sim.tasks.origin import OriginTask
from trace_memory_ros.arm.sim.tasks.put_back import PutBackTask
from trace_memory_ros.arm.sim.tasks.sequence import SequenceTask
from trace_memory_ros.arm.sim.tasks.when import WhenTask

_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        OriginTask(),
        ColourTask(),
        SequenceTask(),
        SmallColourTask(),
        GlyphTask(),
        CupsTask(),
        WhenTask(),
        CountTask(),
        MatchTask(),
        PutBackTask(),
    )
}


def task_of(name: str) -> Task:
    """The task of that name; raises ValueError naming the known ones."""
    if name not in _TASKS:
        raise ValueError(f"unknown arm task {name!r}: choose one of {', '.join(TASK_NAMES)}")
    return _TASKS[name]
