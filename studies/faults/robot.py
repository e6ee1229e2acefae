"""A robot that nobody here owns: six joints, a jaw, two cameras, as its drivers publish, and what may go wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CompressedImage, Image, JointState
from std_msgs.msg import Float32

from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import ActionConfig

Edit = Callable[[Any], list[Any]]
Numbers = NDArray[np.float64]

NAMESPACE = "kestrel"
JOINTS = ("mast_yaw", "mast_pitch", "boom", "stick", "tilt", "roll")
PLACES = np.array([1.0, -1.6, 2.2, -2.8, 3.4, -4.0])
"""Around which the joints move: no two alike, none near 0, so that a zero or a swapped joint is seen in commands."""
SWING, SWING_S, REST_S = 0.3, 5.0, 3.0
"""How far the joints go, rad, in how long, and how long they then stand."""
PERIOD_MS = 100
EYE, WRIST, ENCODERS, JAW = "eye", "wrist", "encoders", "jaw"
RATES = {EYE: 20.0, WRIST: 10.0, ENCODERS: 100.0, JAW: 20.0}
TOPICS = {EYE: "eye/image_raw", WRIST: "wrist/image/compressed", ENCODERS: "encoders", JAW: "jaw/opening"}
KINDS = {EYE: Image, WRIST: CompressedImage, ENCODERS: JointState, JAW: Float32}
ARM, GRIP = "crane_controller/joint_trajectory", "jaw_controller/commands"
HEIGHT, WIDTH = 96, 128
SECOND_NS = 1_000_000_000
LEAD_NS = 100_000_000
"""What is made up for at once after this process did not get its turn."""
TURN_S = 0.004

OBSERVATION = ObservationConfig.from_dict(
    {
        "cameras": [
            {"name": EYE, "topic": TOPICS[EYE], "transport": "raw", "stale_after_ms": 500},
            {"name": WRIST, "topic": TOPICS[WRIST], "transport": "compressed", "stale_after_ms": 500},
        ],
        "streams": [
            {
                "name": ENCODERS,
                "topic": TOPICS[ENCODERS],
                "type": "sensor_msgs/msg/JointState",
                "select": {"position": list(JOINTS)},
                "stale_after_ms": 400,
            },
            {
                "name": JAW,
                "topic": TOPICS[JAW],
                "type": "std_msgs/msg/Float32",
                "select": {"opening": "data"},
                "stamp": "received",
                "stale_after_ms": 500,
            },
        ],
        "units": {"jaw.opening": "m"},
        "tick_period_ms": PERIOD_MS,
        "deadline_ms": 250,
    },
    "the made-up robot",
)
HEADERS_ONLY = replace(OBSERVATION, streams=OBSERVATION.streams[:1], state=(), path=(), units={})
ACTIONS = ActionConfig.from_dict(
    [
        # Relative to the very state of a tick: a command tells which joints, and which moment, it was made from.
        {
            "topic": ARM,
            "type": "trajectory_msgs/msg/JointTrajectory",
            "select": {"position": list(JOINTS)},
            "relative": True,
        },
        {"topic": GRIP, "type": "std_msgs/msg/Float64MultiArray", "select": {"opening": 0}, "stamp": "received"},
    ],
    "the made-up robot's actions",
)


def pose(ns: int) -> Numbers:
    """Where the joints are at a time, rad `(6,)`: all there is to know of the arm's motion."""
    phase = 2 * np.pi * min((ns / SECOND_NS) % (SWING_S + REST_S) / SWING_S, 1.0)
    return np.asarray(PLACES + SWING * np.sin(phase + np.arange(len(JOINTS))))


@dataclass
class Disturbance:
    """What is wrong with the robot. rates: Hz by stream, 0 for silence. edits: of messages before they are sent.

    shift_ns: of all stamps, as a clock that was set.
    """

    rates: dict[str, float] = field(default_factory=dict)
    edits: dict[str, Edit] = field(default_factory=dict)
    shift_ns: int = 0


class DisturbedRobot:
    """Publishes what the clock makes due whenever `client` handles messages, while it waits for a service too.

    node: whose publishers they are, at the next `connect`.
    """

    def __init__(self, client: NodeClient, reliability: str) -> None:
        self._reliability = reliability
        self.node = client.node
        self.disturbance = Disturbance()
        self._rng = np.random.default_rng(7)
        self._next_ns = dict.fromkeys(RATES, 0)
        self._publishers: dict[str, Any] = {}
        self._ground = self._rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        self.connect()
        client.node.create_timer(TURN_S, self.publish_due)

    def connect(self) -> None:
        """Open the drivers' topics."""
        for name, kind in KINDS.items():
            profile = (qos.sensor if name in (EYE, WRIST) else qos.state)(self._reliability)
            self._publishers[name] = self.node.create_publisher(kind, TOPICS[name], profile)

    def disconnect(self) -> None:
        """Close them, as drivers that end."""
        for publisher in self._publishers.values():
            self.node.destroy_publisher(publisher)
        self._publishers = {}

    def calm(self) -> None:
        """Nothing is wrong any more."""
        self.disturbance = Disturbance()

    @property
    def matched(self) -> int:
        """Subscribers that every stream has at least."""
        return min((p.get_subscription_count() for p in self._publishers.values()), default=0)

    def publish_due(self) -> None:
        """Send every message whose time has come."""
        now_ns = time.time_ns()
        for name in self._publishers:
            rate_hz = self.disturbance.rates.get(name, RATES[name])
            if not rate_hz:
                continue
            step_ns = round(SECOND_NS / rate_hz)
            self._next_ns[name] = max(self._next_ns[name], now_ns - LEAD_NS)
            self._next_ns[name] = min(self._next_ns[name], now_ns + step_ns)
            while self._next_ns[name] <= now_ns:
                self._send(name, time.time_ns())
                self._next_ns[name] += step_ns

    def burst(self, name: str, count: int) -> None:
        """Send messages at once, for queues to hold some."""
        for _ in range(count):
            self._send(name, time.time_ns())

    def message(self, name: str, ns: int) -> Any:
        """What a driver sends at a time."""
        stamp_ns = ns + self.disturbance.shift_ns
        if name == ENCODERS:
            return conversion.joint_message(dict(zip(JOINTS, pose(stamp_ns).tolist(), strict=True)), stamp_ns)
        if name == JAW:
            return Float32(data=0.05)
        picture = np.roll(self._ground, int(ns // 50_000_000) % WIDTH, axis=1)
        if name == EYE:
            return conversion.image_message(picture, stamp_ns, name)
        done, file = cv2.imencode(".jpg", picture)
        assert done
        return CompressedImage(header=conversion.header(stamp_ns, name), format="jpeg", data=file.tobytes())

    def _send(self, name: str, ns: int) -> None:
        message = self.message(name, ns)
        edit = self.disturbance.edits.get(name)
        for one in [message] if edit is None else edit(message):
            self._publishers[name].publish(one)
