"""Message contents to checked values, and a tick's values to an `Observation`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.alignment import AlignedTick, Sample
from trace_memory_ros.observation.config import ObservationConfig, SensorConfig
from trace_memory_ros.observation.content import (
    CompressedImage,
    Content,
    Live,
    Pixels,
    RawImage,
    Recorded,
    VideoPacket,
)
from trace_memory_ros.observation.images import (
    Buffer,
    Image,
    ImageError,
    VideoDecoder,
    check_layout,
    decode,
    open_compressed,
    prepare,
    refuse_colour,
)
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.streams.base import ReadError, RecordedReader

VIDEO = ("video", "ffmpeg")


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
    """Turns what messages hold into what streams hold: policy images, and the numbers that streams select.

    A camera keeps the size of its first image until `reset`; not so without `one_size`, where somebody else judges it.

    Compressed images are checked by header and end at once, and unpacked on demand. defer: so are raw images, with the
    same results. For bags, where images lie still; a live node would keep every waiting one in memory. What an image
    came in must stay as it is until then.
    """

    def __init__(self, config: ObservationConfig, defer: bool = False, one_size: bool = True) -> None:
        self.config = config
        self._defer, self._one_size = defer, one_size
        self._readers = {stream.name: stream.reader() for stream in config.streams}
        self._places = {s.name: _places(config, s) for s in config.streams}
        self._views = {camera.name: (config.px_of(camera.name), camera.crop) for camera in config.cameras}
        self._ranges_m = {camera.name: camera.range_m for camera in config.cameras}
        self._decoders = {camera.name: VideoDecoder() for camera in config.cameras if camera.transport in VIDEO}
        self.reset()

    def reset(self) -> None:
        """Let cameras come with another size; video goes on."""
        self._sizes: dict[str, tuple[int, int]] = {}

    def read(self, stream: str, content: Content) -> object:
        """What a tick of that stream holds. Raises InputError for unusable content, CdrError for an unreadable one."""
        match content:
            case Live(message):
                return self._numbers(stream, self._readers[stream].live, message)
            case Recorded(cdr):
                return self._numbers(stream, cast("RecordedReader", self._readers[stream]).recorded, cdr)
            case RawImage():
                return self.image(stream, *content)
            case CompressedImage():
                return self.compressed(stream, *content)
            case Pixels(rgb):
                return self.rgb(stream, rgb)
            case VideoPacket():
                return self.video(stream, *content)

    @staticmethod
    def _numbers(stream: str, read: Callable[[Any], NDArray[np.float64]], source: Any) -> NDArray[np.float64]:
        try:
            return read(source)
        except ReadError as error:
            raise InputError(str(error)) from error
        except (AttributeError, TypeError) as error:
            raise InputError(f"message has not the fields of its type ({error}): check the stream's type") from error

    def image(
        self, camera: str, data: Buffer, encoding: str, height: int, width: int, step: int, is_bigendian: int
    ) -> Image | Deferred:
        """The fields of a sensor_msgs/Image to a policy image `(P, P, 3)` uint8."""
        layout, view, range_m = (encoding, height, width, step), self._views[camera], self._ranges_m[camera]
        try:
            if not self._defer:
                return self.rgb(camera, decode(data, *layout, is_bigendian, range_m))
            check_layout(data, *layout, range_m)
        except ImageError as error:
            raise InputError(str(error)) from error
        self._check_size(camera, (height, width))
        return Deferred(lambda: prepare(decode(data, *layout, is_bigendian, range_m), *view), step * height)

    def compressed(self, camera: str, data: Buffer, format: str) -> Deferred:  # noqa: A002 - the message's own field name
        """The fields of a sensor_msgs/CompressedImage to a policy image `(P, P, 3)` uint8."""
        try:
            packed = open_compressed(data, format, self._ranges_m[camera])
        except ImageError as error:
            raise InputError(str(error)) from error
        self._check_size(camera, packed.size)
        return Deferred(partial(packed.policy_image, *self._views[camera]), len(packed.data))

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
        return Deferred(partial(picture.policy_image, *self._views[camera]), picture.nbytes)

    def rgb(self, camera: str, pixels: Image) -> Image:
        """`(h, w, 3)` uint8 RGB to a policy image `(P, P, 3)` uint8."""
        try:
            image = prepare(pixels, *self._views[camera])
        except ImageError as error:
            raise InputError(str(error)) from error
        self._check_size(camera, (pixels.shape[0], pixels.shape[1]))
        return image

    def _check_size(self, camera: str, size: tuple[int, int]) -> None:
        first = self._sizes.setdefault(camera, size)
        if self._one_size and size != first:
            raise InputError(
                f"image size changed from {first[1]}x{first[0]} to {size[1]}x{size[0]}: restore the camera's mode, or "
                "reset the episode to accept the new size"
            )

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
        order = [stream.name for stream in self.config.inputs]
        return images, {name: faults[name] for name in order if name in faults}

    def _state(self, samples: Mapping[str, Sample], faults: Mapping[str, str]) -> NDArray[np.float64] | None:
        if any(name in faults for name in self._places):
            return None
        state = np.zeros(self.config.state_dim)
        for name, (rows, columns) in self._places.items():
            state[rows] = cast("NDArray[Any]", samples[name].value)[columns]
        return state


def _places(config: ObservationConfig, stream: SensorConfig) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a stream's numbers stand in the state: rows of the state, and columns of the numbers."""
    pairs = [(config.state.index(name), k) for k, name in enumerate(stream.channels) if name in config.state]
    rows, columns = np.array(pairs, dtype=np.int64).T
    return rows, columns


def _image_of(sample: Sample) -> Image:
    value = sample.value
    return value.image if isinstance(value, Deferred) else cast("Image", value)
