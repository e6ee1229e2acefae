"""Small made-up counterfactual pairs: the cue is a colour in the first ticks, the branch comes later."""

import numpy as np

from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.frames import of_stack
from trace_memory_ros.runtime.clock import EveryTicks
from trace_memory_ros.streams.twist import BASE_MOTION

TICKS = 24
BRANCH_TICK = 16
STAMPS_NS = np.arange(TICKS) * 100_000_000
JOINTS = ("shoulder", "elbow", "wrist")
ACTIONS = (*JOINTS, "gripper")
STATE = (*(f"masked.{name}" for name in BASE_MOTION), *(f"joints.position.{name}" for name in JOINTS))
OBSERVATION = ObservationConfig(
    cameras=tuple(CameraConfig(name, f"{name}/image", 250) for name in ("overhead", "wrist")),
    streams=(SensorConfig("joints", "joints", 250, select={"position": JOINTS}),),
    state=STATE,
    path=STATE,
    image_px=16,
    thumbnail_px=8,
)


COLOURS = ((30, 30, 220), (220, 30, 30), (30, 220, 30))


def pair(seed: int, twins: int = 2) -> tuple[Demonstration, ...]:
    """The same walk and noise; only the first four overhead images and the actions after the branch differ."""
    rng = np.random.default_rng(seed)
    walk = rng.normal(0, 0.1, (TICKS, len(JOINTS))).cumsum(axis=0)
    state = np.concatenate([np.zeros((TICKS, 3)), walk], axis=1)
    images = rng.integers(90, 130, (TICKS, 2, 16, 16, 3)).astype(np.uint8)
    demos = []
    for cue in range(twins):
        seen = images.copy()
        seen[:4, 0, 2:14, 2:14] = COLOURS[cue]
        actions = np.zeros((TICKS, len(ACTIONS)), np.float32)
        actions[BRANCH_TICK:, 0] = (-1.0, 1.0, 4.0)[cue]
        demos.append(
            Demonstration(
                f"{seed} {cue}",
                str(seed),
                STAMPS_NS,
                of_stack(OBSERVATION.camera_names, seen),
                state,
                actions,
                (BRANCH_TICK,),
                (cue,),
            )
        )
    return tuple(demos)


def design(memory: str, **changes: object) -> Design:
    """A small design for `memory` that writes at every other tick."""
    sizes: dict[str, object] = {"depth": 2 if memory == "trace" else 0, "slots": 3, "width": 16, "chunk": 4}
    return Design(
        memory=memory,
        options={"address_width": 8, "hidden": 16, "routing_width": 8} if memory == "trace" else {},
        observation=OBSERVATION,
        action_names=ACTIONS,
        clock=EveryTicks(2),
        **(sizes | changes),  # type: ignore[arg-type]
    )
