"""Observations of a simulator in the same process, which hands over all its streams at every tick."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.content import JointPositions, Live, Pixels
from trace_memory_ros.observation.images import Image
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.streams.joint_state import JOINT_STATE


class LockstepObserver:
    """An `Observer` fed with complete ticks, one period apart from stamp 0."""

    def __init__(self, config: ObservationConfig) -> None:
        self._observer = Observer(config)
        self._stamp_ns = 0

    def reset(self) -> None:
        """Begin an episode at tick 0."""
        self._observer.reset()
        self._stamp_ns = 0

    def observe(
        self,
        images: Mapping[str, Image],
        joint_positions: Mapping[str, float],
        base_velocity: NDArray[np.float64] | None = None,
    ) -> Observation:
        """This tick's observation from `(h, w, 3)` uint8 images, joint angles (rad) and base velocity `(3,)` (SI).

        Raises KeyError for a camera that is not rendered, ValueError for a missing base velocity.
        """
        observer, config, stamp_ns = self._observer, self._observer.config, self._stamp_ns
        for camera in config.camera_names:
            observer.push(camera, stamp_ns, stamp_ns, Pixels(images[camera]))
        joints = JointPositions(list(joint_positions), list(joint_positions.values()))
        for stream in config.streams:
            message: Any = joints
            if stream.kind is not JOINT_STATE:
                if base_velocity is None:
                    raise ValueError("base_velocity is missing: the observation config's base is not masked")
                message = base_message(base_velocity)
            observer.push(stream.name, stamp_ns, stamp_ns, Live(message))
        self._stamp_ns += config.period_ns
        (observation,) = observer.poll(stamp_ns)
        return observation


def base_message(velocity: NDArray[np.float64]) -> Any:
    """vx, vy (m/s) and yaw rate (rad/s) as an Odometry message has them."""
    vx, vy, yaw_rate = (float(value) for value in velocity)
    nowhere = SimpleNamespace(x=0.0, y=0.0, z=0.0)
    twist = SimpleNamespace(
        linear=SimpleNamespace(x=vx, y=vy, z=0.0), angular=SimpleNamespace(x=0.0, y=0.0, z=yaw_rate)
    )
    pose = SimpleNamespace(position=nowhere, orientation=SimpleNamespace(x=0.0, y=0.0, z=0.0, w=1.0))
    return SimpleNamespace(twist=SimpleNamespace(twist=twist), pose=SimpleNamespace(pose=pose))
