"""How far the robot's joints have moved away from the pose they began the episode in, from any joint states."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sensor_msgs.msg import JointState

from trace_memory_ros.nodes.markers.groups import MOST_CURVES, alike
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.streams.joint_state import JOINT_STATE

UNKNOWN = math.nan
USUAL_TOPIC = "joint_states"
USUAL_NAME = "joints"


@dataclass(frozen=True)
class JointSource:
    """A topic of joint states. name: of its curve. joints: those that count; empty for all that it names."""

    name: str
    topic: str
    joints: tuple[str, ...] = ()


ANY_ROBOT = (JointSource(USUAL_NAME, USUAL_TOPIC),)


def sources_of(observation: ObservationConfig) -> tuple[JointSource, ...]:
    """A robot's topics of joint states, with the joints whose positions it selects."""
    found: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for stream in observation.streams:
        fields = [one.field.name.partition(".") for one in stream.selected]
        joints = [joint for kind, _, joint in fields if kind == "position"]
        if stream.type == JOINT_STATE.name and joints:
            found.setdefault(stream.topic, []).extend(joints)
            names.setdefault(stream.topic, stream.name)
    return tuple(JointSource(names[topic], topic, tuple(joints)) for topic, joints in found.items())


class JointDistances:
    """Joint-space distance per curve: the Euclidean norm of its joints' positions less those at the start.

    groups: as of `groups_in`. The order of joints, and joints that nobody asked for, don't matter.
    """

    def __init__(self, sources: Iterable[JointSource] = ANY_ROBOT, groups: Mapping[str, str] | None = None) -> None:
        self._groups = dict(groups or {})
        every = {source.topic: source for source in sources}
        # A topic whose joints nobody asked for is neither heard nor missed, unless the patterns fit none at all.
        self._sources = {topic: one for topic, one in every.items() if not one.joints or self._asked(one)} or every
        self._held: dict[str, dict[str, float]] = {}
        self._start: dict[str, dict[str, float]] = {}
        self._faults = {topic: f"{topic}: no message yet" for topic in self._sources}

    @property
    def topics(self) -> tuple[str, ...]:
        """What to listen to."""
        return tuple(self._sources)

    @property
    def fault(self) -> str:
        """What is wrong with the first topic that is not well; empty for none."""
        return next((fault for fault in self._faults.values() if fault), "")

    def take(self, topic: str, message: JointState) -> None:
        """Hold a joint state; a bad one is refused and named in `fault`, and the last good one stays."""
        self._faults[topic] = fault = self._judged(topic, message)
        if not fault:
            self._held[topic] = self._wanted(topic, message)
            self._start.setdefault(topic, self._held[topic])

    def restart(self) -> None:
        """Measure from the pose held now."""
        self._start = dict(self._held)

    def distances(self) -> dict[str, float]:
        """Curve -> distance, in the joints' units; NaN for a curve without joints."""
        return {curve: self._distance(joints) for curve, joints in self._curves().items()}

    def _judged(self, topic: str, message: JointState) -> str:
        if len(message.name) != len(message.position):
            return f"{topic}: {len(message.name)} names but {len(message.position)} positions"
        found = self._wanted(topic, message)
        bad = sorted(name for name, value in found.items() if not math.isfinite(value))
        missing = sorted({*self._start.get(topic, ()), *self._asked(self._sources[topic])} - set(found))
        if bad:
            return f"{topic}: {bad[0]} is {found[bad[0]]}"
        if missing:
            return f"{topic}: {missing[0]} is missing"
        return "" if found else f"{topic}: no joint is called {' or '.join(self._groups.values()) or 'anything'}"

    def _wanted(self, topic: str, message: JointState) -> dict[str, float]:
        joints = self._sources[topic].joints
        positions = zip(message.name, message.position, strict=False)
        return {name: float(x) for name, x in positions if (not joints or name in joints) and self._grouped(name)}

    def _asked(self, source: JointSource) -> list[str]:
        return [joint for joint in source.joints if self._grouped(joint)]

    def _grouped(self, name: str) -> bool:
        return not self._groups or any(fnmatchcase(name, pattern) for pattern in self._groups.values())

    def _curves(self) -> dict[str, list[tuple[str, str]]]:
        """Curve -> (topic, joint) of each of its joints."""
        known = [(topic, name) for topic, held in self._start.items() for name in held]
        if self._groups:
            return {
                curve: [one for one in known if fnmatchcase(one[1], pattern)] for curve, pattern in self._groups.items()
            }
        found: dict[str, list[tuple[str, str]]] = {}
        for topic, source in self._sources.items():
            names = list(self._start.get(topic, source.joints))
            for limb, joints in (alike(names) or {"": names}).items():
                alone = len(self._sources) == 1
                curve = (limb if alone else f"{source.name} {limb}".strip()) or source.name
                found[curve] = [(topic, joint) for joint in joints]
        return found if len(found) <= MOST_CURVES else {USUAL_NAME: known}

    def _distance(self, joints: Sequence[tuple[str, str]]) -> float:
        seen = [(topic, name) for topic, name in joints if name in self._start.get(topic, ())]
        if not seen:
            return UNKNOWN
        return math.hypot(*(self._held[topic][name] - self._start[topic][name] for topic, name in seen))
