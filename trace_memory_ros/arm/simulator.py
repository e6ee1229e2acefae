"""The simulated arm as an observation configuration sees it: these cameras, rendered as fine as they are kept."""

from __future__ import annotations

from math import ceil

from trace_memory_ros.arm.sim.env import CAMERA_PX, ArmEnv
from trace_memory_ros.arm.sim.names import CAMERA_NAMES
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import ObservationConfig

MOST_PX = 960
"""Side of the largest picture that the simulator's buffer holds."""


def simulator(task: str, config: ObservationConfig, frame_s: float = 0.0) -> ArmEnv:
    """An `ArmEnv` with the configured cameras; frame_s: as of that.

    Raises ConfigError for cameras it has not, or larger ones than it renders.
    """
    unknown = [name for name in config.camera_names if name not in CAMERA_NAMES]
    if unknown:
        raise ConfigError(
            f"cameras {', '.join(unknown)} are not the simulated arm's: configure some of {', '.join(CAMERA_NAMES)}"
        )
    return ArmEnv(task, camera_px(config), config.camera_names, frame_s)


def camera_px(config: ObservationConfig) -> int:
    """Side of the pictures to render, so that none is enlarged to what is kept of it; at least the usual one."""
    side = max(CAMERA_PX, *(_native_px(config, name) for name in config.camera_names))
    if side > MOST_PX:
        raise ConfigError(
            f"the observation needs pictures of {side} px and the simulator renders at most {MOST_PX}: give a smaller "
            "image_px, or a wider crop"
        )
    return side


def _native_px(config: ObservationConfig, camera: str) -> int:
    left, top, right, bottom = next(one.crop for one in config.cameras if one.name == camera) or (0.0, 0.0, 1.0, 1.0)
    return ceil(config.px_of(camera) / min(right - left, bottom - top))
