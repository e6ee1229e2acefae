"""Whether a camera sends one picture again and again under stamps that go on, as where its sensor or driver hangs.

No two pictures of a real camera are alike, for the noise of its sensor; those of a simulated one are where nothing
moves in its view. So a camera is told only where noise is known: its pictures, or those of all other cameras, went on
changing while the arm stood; and only while the state moves or another camera shows something else. Where no camera
changes, the state's motion is enough: not every one of them looks past the arm.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.content import CompressedImage, Content, RawImage, Sink
from trace_memory_ros.observation.images import Buffer
from trace_memory_ros.observation.types import Observation

Numbers = NDArray[np.float64]

MOVED, STILL = 0.5, 0.01
"""Standard deviations of a channel of the path: from which on the arm has moved, and up to which it stands."""
STILL_NS = 1_000_000_000
"""What is left out at both ends of a standstill, when an arm settles, or begins to move by less than is seen of it."""
NOISY = 5
"""Pictures that change during a standstill, from which on a camera has noise; a lamp that is lit is one."""
SAMPLED = 256
"""Bytes of a picture that are compared first; the others only where these are the same."""


@dataclass
class _Shown:
    """What a camera shows: the picture, since and until when by stamps, and how far the path has gone meanwhile."""

    picture: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    since_ns: int = 0
    newest_ns: int = 0
    place: Numbers | None = None
    moved: float = 0.0
    changes_ns: deque[int] = field(default_factory=lambda: deque(maxlen=256))
    noisy: bool = False

    @property
    def repeated_ns(self) -> int:
        return self.newest_ns - self.since_ns


class Repeats:
    """A `Sink` that looks at the pictures on their way to another; times are stamps.

    std: of the state's channels `(d_s,)`, inf for those that never move. Video packets are not looked at: an encoder
    makes others of the same picture.
    """

    def __init__(self, config: ObservationConfig, std: Numbers, timeout_s: float, sink: Sink) -> None:
        self._config, self._std, self._sink = config, std, sink
        self._timeout_ns = round(1e9 * timeout_s)
        self._shown: Mapping[str, _Shown] = {
            camera.name: _Shown() for camera in config.cameras if camera.transport in ("raw", "compressed")
        }
        self._rest: Numbers | None = None
        self._still_ns = 0

    def push(self, stream: str, stamp_ns: int, arrival_ns: int, content: Content) -> Verdict:
        """Look, and hand on."""
        if self._timeout_ns and isinstance(content, RawImage | CompressedImage):
            self._look(self._shown[stream], stamp_ns, content.data)
        return self._sink.push(stream, stamp_ns, arrival_ns, content)

    def ticked(self, observation: Observation) -> None:
        """Where the path is at a tick."""
        if observation.state is None or not self._timeout_ns:
            return
        place, now_ns = self._config.path_of(observation.state / self._std), observation.stamp_ns
        if self._rest is None or now_ns < self._still_ns or _distance(place, self._rest) > STILL:
            self._rest, self._still_ns = place, now_ns
        for shown in self._shown.values():
            shown.place = place if shown.place is None else shown.place
            shown.moved = max(shown.moved, _distance(place, shown.place))
            if not shown.noisy:
                begin_ns, end_ns = self._still_ns + STILL_NS, now_ns - STILL_NS
                shown.noisy = sum(begin_ns <= ns <= end_ns for ns in shown.changes_ns) >= NOISY

    def faults(self) -> dict[str, str]:
        """What is wrong, and the remedy, by camera."""
        stuck = {name: shown for name, shown in self._shown.items() if shown.repeated_ns > self._timeout_ns}
        blind = len(stuck) == len(self._shown) and all(shown.moved > MOVED for shown in stuck.values())
        return {name: self._fault(name) for name, shown in stuck.items() if blind or self._told(shown)}

    def _told(self, shown: _Shown) -> bool:
        others = [other for other in self._shown.values() if other is not shown]
        noisy = shown.noisy or (bool(others) and all(other.noisy for other in others))
        seen = any(other.since_ns > shown.since_ns for other in others)
        return noisy and (seen or shown.moved > MOVED)

    def _fault(self, name: str) -> str:
        topic = next(camera.topic for camera in self._config.cameras if camera.name == name)
        return (
            f"{name}: one and the same picture on {topic!r} for over {self._timeout_ns / 1e9:g} s while the robot "
            "moves: restart the camera and its driver; where it is simulated and sees nothing move, set "
            "repeat_timeout_s: 0"
        )

    def _look(self, shown: _Shown, stamp_ns: int, data: Buffer) -> None:
        picture = np.frombuffer(data, np.uint8)
        if stamp_ns > shown.newest_ns and _same(picture, shown.picture):
            shown.newest_ns = stamp_ns
            return
        shown.picture, shown.since_ns, shown.newest_ns = picture, stamp_ns, stamp_ns
        shown.place, shown.moved = None, 0.0
        shown.changes_ns.append(stamp_ns)


def _same(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    if one.size != other.size:
        return False
    some = slice(None, None, max(1, one.size // SAMPLED))
    return np.array_equal(one[some], other[some]) and np.array_equal(one, other)


def _distance(one: Numbers, other: Numbers) -> float:
    return float(np.abs(one - other).max(initial=0.0))
