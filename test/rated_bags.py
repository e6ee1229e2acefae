"""Bags of a small robot whose cameras, joints, commands and ticks come at any rate, told apart by their stamps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.rates import deadline_ms, stale_after_ms
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.runtime.actions import ActionConfig

START_NS = 1_700_000_000_000_000_000
LEAD_NS = 250_000_000
"""How long the other streams run before the clock camera."""
TAIL_NS = 120_000_000
"""How long they run on after it."""
MS = 1_000_000
JOINTS = ("shoulder", "elbow", "wrist")
TOPICS = {"joints": "joint_states", "targets": "command"}


@dataclass(frozen=True)
class RatedRobot:
    """tick_ms: tick period; cameras: Hz by name, the first is the clock. late_ms: of a camera's messages, by name.

    pauses: begin and end in s since the clock camera's first image, by stream, in which it is silent. branch_s: when
    the elbow begins to go to one side.
    """

    tick_ms: int
    cameras: Mapping[str, float] = field(default_factory=lambda: {"front": 30.0, "top": 7.0})
    joints_hz: float = 100.0
    commands_hz: float = 20.0
    late_ms: Mapping[str, float] = field(default_factory=dict)
    pauses: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    branch_s: float | None = None

    @property
    def rates(self) -> dict[str, float]:
        """Hz of every stream."""
        return {**self.cameras, "joints": self.joints_hz}

    @property
    def recording(self) -> RecordingConfig:
        """What is what in the bags, with the limits that are proposed for such rates."""
        limits = {name: stale_after_ms(1e3 / hz, self.tick_ms) for name, hz in self.rates.items()}
        observation = ObservationConfig(
            cameras=tuple(CameraConfig(name, f"{name}/image", limits[name]) for name in self.cameras),
            streams=(SensorConfig("joints", TOPICS["joints"], limits["joints"], select={"position": JOINTS}),),
            image_px=16,
            thumbnail_px=8,
            tick_period_ms=self.tick_ms,
            deadline_ms=deadline_ms([1e3 / hz for hz in self.rates.values()]),
        )
        return RecordingConfig(
            observation,
            ActionConfig.of_trajectory(TOPICS["targets"], JOINTS),
            EpisodeRule(),
            None if self.branch_s is None else BranchConfig(topic="branch"),
        )

    def stamps(self, stream: str, seconds: float) -> list[int]:
        """Header stamps, ns, of a stream or of the commands in an episode of `seconds` of the clock camera."""
        clock = next(iter(self.cameras))
        hz = self.commands_hz if stream == "targets" else self.rates[stream]
        lead = 0 if stream == clock else LEAD_NS
        count = int((seconds + 1e-9 * (lead + (lead and TAIL_NS))) * hz) + 1
        # Unlike phases: no two streams are stamped alike but by chance.
        phase = 0 if stream == clock else 1_234_567 * (1 + sorted((*self.rates, "targets")).index(stream))
        begin, end = self.pauses.get(stream, (0.0, 0.0))
        times = [k * 1_000_000_000 // round(hz * 1000) * 1000 + phase - lead for k in range(count)]
        return [START_NS + t for t in times if not begin * 1e9 < t < end * 1e9]

    def write(self, bag: Path, seconds: float, scene: int = 0, side: int = 0) -> Path:
        """Record an episode: in its first second the images show the side, and after the branch the elbow goes there.

        Images of stamps are told apart by noise; joints and commands move smoothly.
        """
        topics = {f"{name}/image": fields.IMAGE for name in self.cameras}
        topics |= {"joint_states": fields.JOINTS, "command": fields.TRAJECTORY, "branch": fields.TEXT}
        rows = [row for stream in (*self.rates, "targets") for row in self._rows(stream, seconds, scene, side)]
        if self.branch_s is not None:
            at = START_NS + round(self.branch_s * 1e9)
            rows.append((at, "branch", messages.text(("left", "right")[side])))
        with BagFileWriter(bag, topics) as writer:
            for log_ns, topic, message in sorted(rows, key=lambda row: row[0]):
                writer.write(topic, message, log_ns)
        return bag

    def _rows(self, stream: str, seconds: float, scene: int, side: int) -> list[tuple[int, str, object]]:
        rng = np.random.default_rng([scene, side, len(stream)])
        rows: list[tuple[int, str, object]] = []
        for stamp in self.stamps(stream, seconds):
            log = stamp + round(self.late_ms.get(stream, 1.0) * MS)
            time_s = (stamp - START_NS) * 1e-9
            if stream in self.cameras:
                picture = rng.integers(90, 130, (20, 20, 3)).astype(np.uint8)
                if time_s < 1.0:
                    picture[2:18, 2:18] = (230, 30, 30) if side else (30, 30, 230)
                rows.append((log, f"{stream}/image", messages.image(picture, stamp)))
            elif stream == "joints":
                rows.append((log, "joint_states", messages.joint_state(JOINTS, self.posture(time_s, scene), stamp)))
            else:
                targets = self.posture(time_s + 0.1, scene)
                if self.branch_s is not None and time_s >= self.branch_s:
                    targets[1] += side - 0.5
                rows.append((log, "command", messages.trajectory(JOINTS, targets, stamp, self.tick_ms * MS)))
        return rows

    @staticmethod
    def posture(time_s: float, scene: int) -> np.ndarray:
        """Joint angles `(3,)`, rad."""
        return np.array([0.4, 0.5, 0.6]) * np.sin(np.array([0.9, 1.3, 1.7]) * time_s + scene)


def held_stamps(streams: Mapping[str, Sequence[int]], clock: str, period_ns: int) -> list[dict[str, int]]:
    """What every tick holds, said directly: of each stream the newest sample at or before the tick."""
    ticks, at = [], streams[clock][0]
    while all(stamps[-1] >= at for stamps in streams.values()):
        ticks.append({name: max(stamp for stamp in stamps if stamp <= at) for name, stamps in streams.items()})
        at += period_ns
    return ticks
