"""Message contents in, observations out: the one path of the live node, bag replay and the simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from numpy.typing import ArrayLike

from trace_memory_ros.observation.alignment import NEVER_NS, HoldAligner, StreamCounters, Verdict
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.images import Buffer, Image
from trace_memory_ros.observation.samples import InputError, SampleReader
from trace_memory_ros.observation.types import Observation

MAX_FAULTS = 64


class Observer:
    """A `SampleReader` in front of a `HoldAligner`.

    Every `push_*` takes the header stamp and the arrival on the caller's monotonic wall clock, both ns. Content that
    cannot be used is not an exception: the sample keeps its place in the stream, and ticks that would hold it carry its
    fault. `faults`: the first 64 distinct ones since reset, in order. defer: as of `SampleReader`.
    """

    def __init__(
        self, config: ObservationConfig, horizon_ticks: int = 50, fault_after: int = 10, defer: bool = False
    ) -> None:
        self.config = config
        self.aligner = HoldAligner(config, horizon_ticks, fault_after)
        self.reader = SampleReader(config, defer)
        self.faults: dict[str, None] = {}

    def reset(self, from_ns: int = NEVER_NS) -> None:
        """Begin an episode: the clock camera's next sample, stamped at or after `from_ns`, is tick 0."""
        self.aligner.reset(from_ns)
        self.reader.reset()
        self.faults = {}

    @property
    def counters(self) -> Mapping[str, StreamCounters]:
        """Per stream since reset, in configured order."""
        return self.aligner.counters

    def push_image(
        self,
        camera: str,
        stamp_ns: int,
        arrival_ns: int,
        *,
        data: Buffer,
        encoding: str,
        height: int,
        width: int,
        step: int,
        is_bigendian: int,
    ) -> Verdict:
        """A sensor_msgs/Image."""
        return self._push(
            camera,
            stamp_ns,
            arrival_ns,
            lambda: self.reader.image(camera, data, encoding, height, width, step, is_bigendian),
        )

    def push_compressed(self, camera: str, stamp_ns: int, arrival_ns: int, *, data: Buffer, format: str) -> Verdict:  # noqa: A002
        """A sensor_msgs/CompressedImage."""
        return self._push(camera, stamp_ns, arrival_ns, lambda: self.reader.compressed(camera, data, format))

    def push_rgb(self, camera: str, stamp_ns: int, arrival_ns: int, *, pixels: Image) -> Verdict:
        """An RGB image `(h, w, 3)` uint8 of the same process."""
        return self._push(camera, stamp_ns, arrival_ns, lambda: self.reader.rgb(camera, pixels))

    def push_joints(
        self, stream: str, stamp_ns: int, arrival_ns: int, *, names: Sequence[str], positions: ArrayLike
    ) -> Verdict:
        """A sensor_msgs/JointState; positions in rad."""
        return self._push(stream, stamp_ns, arrival_ns, lambda: self.reader.joints(stream, names, positions))

    def push_base(
        self, stream: str, stamp_ns: int, arrival_ns: int, *, vx: float, vy: float, yaw_rate: float
    ) -> Verdict:
        """The twist of an Odometry or TwistStamped: m/s, m/s, rad/s in the base frame."""
        return self._push(stream, stamp_ns, arrival_ns, lambda: self.reader.base(vx, vy, yaw_rate))

    def push_fault(self, stream: str, stamp_ns: int, arrival_ns: int, *, fault: str) -> Verdict:
        """A message whose content cannot be used; `fault` says why, and the remedy."""
        self._note(f"{stream}: {fault}")
        return self.aligner.reject(stream, stamp_ns, fault, arrival_ns)

    def poll(self, now_ns: int) -> list[Observation]:
        """The observations of all ticks that are due at `now_ns` on the wall clock, in order."""
        observations = [self.reader.observation(tick) for tick in self.aligner.poll(now_ns)]
        for observation in observations:
            self._note(*observation.faults.values())
        return observations

    def _push(self, stream: str, stamp_ns: int, arrival_ns: int, read: Callable[[], object]) -> Verdict:
        try:
            value = read()
        except InputError as error:
            return self.push_fault(stream, stamp_ns, arrival_ns, fault=str(error))
        return self.aligner.push(stream, stamp_ns, value, arrival_ns)

    def _note(self, *faults: str) -> None:
        for fault in faults:
            if len(self.faults) < MAX_FAULTS:
                self.faults[fault] = None
