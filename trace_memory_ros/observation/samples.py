"""Message contents to checked values, and a tick's values to an `Observation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trace_memory_ros.files.strict import nearest
from trace_memory_ros.observation.alignment import AlignedTick, Sample
from trace_memory_ros.observation.config import BASE_CHANNELS, ObservationConfig
from trace_memory_ros.observation.images import (
    Buffer,
    Image,
    ImageError,
    VideoDecoder,
    check_layout,
    decode,
    open_compressed,
    prepare,
    range_of,
    refuse_colour,
)
from trace_memory_ros.observation.types import Observation


class InputError(ValueError):
    """A message's content cannot be used; says what is wrong and the remedy, without the stream's name."""


class Deferred:
    """A policy image that is made when a tick first holds it; most of a fast camera's images none ever does."""

    __slots__ = ("_fault", "_image", "_make", "nbytes")

    def __init__(self, make: Callable[[], Image], nbytes: int) -> None:
        self._make: Callable[[], Image] | None = make
        self._image: Image | None = None
        self._fault = ""
        self.nbytes = nbytes
        """What is kept in memory until then."""

    @property
    def image(self) -> Image:
        """`(P, P, 3)` uint8. Raises ImageError, every time, where the pixels turn out to be damaged."""
        if self._make is not None:
            try:
                self._image = self._make()
            except ImageError as error:
                self._fault = str(error)
            self._make, self.nbytes = None, 0
        if self._image is None:
            raise ImageError(self._fault)
        return self._image


class SampleReader:
    """Turns what messages hold into what streams hold: policy images, joint angles, base velocities.

    A camera keeps the size of its first image until `reset`. All methods raise InputError for unusable content.

    Compressed images are checked by header and end at once, and unpacked on demand. defer: so are raw images, with the
    same results. For bags, where images lie still; a live node would keep every waiting one in memory. What an image
    came in must stay as it is until then.
    """

    def __init__(self, config: ObservationConfig, defer: bool = False) -> None:
        self.config = config
        self._defer = defer
        self._joints = {stream.name: stream.joints or config.joints for stream in config.joint_streams}
        self._channels = {
            name: np.array([len(BASE_CHANNELS) + config.joints.index(joint) for joint in joints])
            for name, joints in self._joints.items()
        }
        self._columns: dict[str, tuple[tuple[str, ...], list[int]]] = {}
        self._ranges_m = {camera.name: range_of(camera) for camera in config.cameras}
        self._decoders = {camera.name: VideoDecoder() for camera in config.cameras if camera.transport == "video"}
        self._base = None if config.base_masked or config.base is None else config.base.name
        self.reset()

    def reset(self) -> None:
        """Let cameras come with another size; video goes on."""
        self._sizes: dict[str, tuple[int, int]] = {}

    def image(
        self, camera: str, data: Buffer, encoding: str, height: int, width: int, step: int, is_bigendian: int
    ) -> Image | Deferred:
        """The fields of a sensor_msgs/Image to a policy image `(P, P, 3)` uint8."""
        layout, px, range_m = (encoding, height, width, step), self.config.image_px, self._ranges_m[camera]
        try:
            if not self._defer:
                return self.rgb(camera, decode(data, *layout, is_bigendian, range_m))
            check_layout(data, *layout, range_m)
        except ImageError as error:
            raise InputError(str(error)) from error
        self._check_size(camera, (height, width))
        return Deferred(lambda: prepare(decode(data, *layout, is_bigendian, range_m), px), step * height)

    def compressed(self, camera: str, data: Buffer, format: str) -> Deferred:  # noqa: A002 - the message's own field name
        """The fields of a sensor_msgs/CompressedImage to a policy image `(P, P, 3)` uint8."""
        try:
            packed = open_compressed(data, format, self._ranges_m[camera])
        except ImageError as error:
            raise InputError(str(error)) from error
        self._check_size(camera, packed.size)
        return Deferred(partial(packed.policy_image, self.config.image_px), len(packed.data))

    def video(self, camera: str, data: Buffer, format: str) -> Image | Deferred:  # noqa: A002
        """A packet of a camera of transport `video` to a policy image `(P, P, 3)` uint8; each must come, in order."""
        try:
            refuse_colour(f"video of format {format!r}", self._ranges_m[camera])
            picture = self._decoders[camera].push(data, format)
        except ImageError as error:
            raise InputError(str(error)) from error
        if not self._defer:
            return self.rgb(camera, picture.rgb())
        self._check_size(camera, picture.size)
        return Deferred(partial(picture.policy_image, self.config.image_px), picture.nbytes)

    def rgb(self, camera: str, pixels: Image) -> Image:
        """`(h, w, 3)` uint8 RGB to a policy image `(P, P, 3)` uint8."""
        try:
            image = prepare(pixels, self.config.image_px)
        except ImageError as error:
            raise InputError(str(error)) from error
        self._check_size(camera, (pixels.shape[0], pixels.shape[1]))
        return image

    def _check_size(self, camera: str, size: tuple[int, int]) -> None:
        first = self._sizes.setdefault(camera, size)
        if size != first:
            raise InputError(
                f"image size changed from {first[1]}x{first[0]} to {size[1]}x{size[0]}: restore the camera's mode, or "
                "reset the episode to accept the new size"
            )

    def joints(self, stream: str, names: Sequence[str], positions: ArrayLike) -> NDArray[np.float64]:
        """A JointState's names and positions (rad), in any order and with any extras, to the stream's own joints."""
        values = np.asarray(positions, dtype=np.float64)
        if values.ndim != 1 or len(values) != len(names):
            raise InputError(f"{len(names)} joint names with {values.size} positions: publish a position per name")
        known = self._columns.get(stream)
        if known is None or known[0] != tuple(names):
            known = (tuple(names), self._find(stream, names))
            self._columns[stream] = known
        found = values[known[1]]
        if not np.isfinite(found).all():
            bad = [joint for joint, value in zip(self._joints[stream], found, strict=True) if not np.isfinite(value)]
            raise InputError(f"position of {', '.join(bad)} is not finite: check the joint's encoder or driver")
        return found

    def base(self, vx: float, vy: float, yaw_rate: float) -> NDArray[np.float64]:
        """Base velocity in the base frame (m/s, m/s, rad/s) to its three state channels."""
        values = np.array([vx, vy, yaw_rate], dtype=np.float64)
        if not np.isfinite(values).all():
            bad = [name for name, value in zip(BASE_CHANNELS, values, strict=True) if not np.isfinite(value)]
            raise InputError(f"{', '.join(bad)} is not finite: check the base's odometry")
        return values

    def observation(self, tick: AlignedTick) -> Observation:
        """The observation of an aligned tick whose sample values came from this reader's methods."""
        images, faults = self._images(tick)
        return Observation(
            tick=tick.tick,
            stamp_ns=tick.stamp_ns,
            images=images,
            state=self._state(tick.samples, tick.faults),
            input_stamps_ns={name: sample.stamp_ns for name, sample in tick.samples.items()},
            faults=faults,
            newest_arrival_ns=max((sample.arrival_ns for sample in tick.samples.values()), default=-1),
        )

    def _images(self, tick: AlignedTick) -> tuple[dict[str, Image], dict[str, str]]:
        """The tick's images by camera, and its faults with those that show only when an image is made."""
        images, faults = {}, dict(tick.faults)
        for name in self.config.camera_names:
            if name not in faults:
                try:
                    images[name] = _image_of(tick.samples[name])
                except ImageError as error:
                    faults[name] = f"{name}: {error}"
        order = [stream.name for stream in self.config.streams]
        return images, {name: faults[name] for name in order if name in faults}

    def _state(self, samples: Mapping[str, Sample], faults: Mapping[str, str]) -> NDArray[np.float64] | None:
        sources = (*self._joints, *((self._base,) if self._base else ()))
        if any(name in faults for name in sources):
            return None
        state = np.zeros(self.config.state_dim)
        for name, channels in self._channels.items():
            state[channels] = cast("NDArray[Any]", samples[name].value)
        if self._base:
            state[: len(BASE_CHANNELS)] = cast("NDArray[Any]", samples[self._base].value)
        return state

    def _find(self, stream: str, names: Sequence[str]) -> list[int]:
        index = {name: i for i, name in enumerate(names)}
        absent = [joint for joint in self._joints[stream] if joint not in index]
        if absent:
            raise InputError(
                f"joint {', '.join(absent)} is missing from the message's {len(names)} joints "
                f"({nearest(absent[0], names)}): publish it, or correct the configured joint names"
            )
        return [index[joint] for joint in self._joints[stream]]


def _image_of(sample: Sample) -> Image:
    value = sample.value
    return value.image if isinstance(value, Deferred) else cast("Image", value)
