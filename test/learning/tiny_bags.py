"""Small made-up bags of a robot that is not the arm tasks': one camera or more, three joints and a gripper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.observation.config import (
    CameraConfig,
    ObservationConfig,
    SensorConfig,
)
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.streams.twist import BASE_MOTION

TICKS = 24
BRANCH_TICK = 16
PERIOD_NS = 100_000_000
START_NS = 5_000_000_000
JOINTS = ("shoulder", "elbow", "wrist")
ACTIONS = ("elbow", "shoulder", "wrist", "gripper")


def recording(cameras: int = 1, annotated: bool = True, base: bool = False) -> RecordingConfig:
    """What is what in these bags."""
    joints = SensorConfig("joints", "joints", 250, select={"position": JOINTS})
    wheels = SensorConfig("wheels", "wheels", 250, type=fields.ODOMETRY)
    state = (*(wheels.channels if base else [f"masked.{name}" for name in BASE_MOTION]), *joints.channels)
    observation = ObservationConfig(
        cameras=tuple(CameraConfig(f"eye_{i}", f"eye_{i}/image", 250) for i in range(cameras)),
        streams=(joints, wheels) if base else (joints,),
        state=state,
        path=state,
        image_px=16,
        thumbnail_px=8,
    )
    return RecordingConfig(
        observation,
        ActionConfig.of_trajectory("targets", ACTIONS),
        EpisodeRule("topic", "episode") if annotated else EpisodeRule(),
        BranchConfig(topic="branch") if annotated else None,
    )


def config_file(folder: Path, config: RecordingConfig) -> Path:
    """The configuration as a file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "observation.yaml"
    path.write_text(yaml.safe_dump(config.to_dict()), encoding="utf-8")
    return path


def places(folder: Path) -> list[str]:
    """A command's arguments: the bags of a folder, its configuration, and where the cache and what comes out go."""
    named = {"--config": "observation.yaml", "--cache": "cache", "--out": "out"}
    return [str(folder / "bags"), *(word for name, at in named.items() for word in (name, str(folder / at)))]


def write_bag(bag: Path, scene: int, side: int, config: RecordingConfig, lost: tuple[int, ...] = ()) -> None:
    """One episode: a colour in the first four images, and at the branch the elbow goes that way.

    lost: ticks from which on, until the next, the joints were not recorded.
    """
    rng = np.random.default_rng([scene, side])
    path = rng.normal(0.0, 0.15, (TICKS, len(JOINTS))).cumsum(axis=0)
    cameras = [camera.topic for camera in config.observation.cameras]
    topics = dict.fromkeys(cameras, fields.IMAGE) | {"joints": fields.JOINTS, "targets": fields.TRAJECTORY}
    topics |= {"wheels": fields.ODOMETRY, "episode": fields.STATUS, "branch": fields.TEXT}
    with BagFileWriter(bag, topics) as writer:
        for tick in range(TICKS):
            now = START_NS + tick * PERIOD_NS
            for topic in cameras:
                picture = rng.integers(90, 130, (20, 20, 3)).astype(np.uint8)
                if tick < 4:
                    picture[2:18, 2:18] = (230, 30, 30) if side else (30, 30, 230)
                writer.write(topic, messages.image(picture, now), now + 1)
            if tick not in lost:
                writer.write("joints", messages.joint_state(JOINTS, path[tick], now), now + 2)
            writer.write("wheels", messages.odometry((0.1 * side, 0.0, 0.0), now), now + 3)
            status = messages.episode_status(now, task="tiny", seed=scene, phase=1)
            writer.write("episode", status, now + 4)
            if tick == BRANCH_TICK:
                writer.write("branch", messages.text(("left", "right")[side]), now + 5)
            targets = dict(zip(JOINTS, path[tick], strict=True)) | {"gripper": float(tick > BRANCH_TICK)}
            targets["elbow"] += (side - 0.5) * (tick >= BRANCH_TICK)
            answer = messages.trajectory(ACTIONS, [targets[name] for name in ACTIONS], now, PERIOD_NS)
            writer.write("targets", answer, now + 6)


def write_bags(folder: Path, scenes: int, config: RecordingConfig) -> None:
    """Both sides of every scene."""
    for scene in range(scenes):
        for side in (0, 1):
            write_bag(folder / f"{scene:02d}_{side}", scene, side, config)
