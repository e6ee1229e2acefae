"""Observations of a simulator in the same process, which hands over all its streams at every tick."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.images import Image
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.observation.types import Observation


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
            observer.push_rgb(camera, stamp_ns, stamp_ns, pixels=images[camera])
        names, positions = list(joint_positions), list(joint_positions.values())
        for stream in config.joint_streams:
            observer.push_joints(stream.name, stamp_ns, stamp_ns, names=names, positions=positions)
        if config.base is not None and not config.base_masked:
            if base_velocity is None:
                raise ValueError("base_velocity is missing: the observation config's base is not masked")
            vx, vy, yaw_rate = (float(value) for value in base_velocity)
            observer.push_base(config.base.name, stamp_ns, stamp_ns, vx=vx, vy=vy, yaw_rate=yaw_rate)
        self._stamp_ns += config.period_ns
        (observation,) = observer.poll(stamp_ns)
        return observation
