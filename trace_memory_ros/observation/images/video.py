"""Compressed video by packets: those of foxglove_msgs/msg/CompressedVideo and of ffmpeg_image_transport_msgs.

Pictures build on those before them. Decoding begins at a key frame; where a packet is missing or broken, what follows
is named and not shown until the next one, since a decoder would go on with wrong pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from trace_memory_ros.observation.images.bitstream import H264, H265, Access, BitstreamError, H264Reader, H265Reader
from trace_memory_ros.observation.images.sizes import prepare
from trace_memory_ros.observation.images.types import Buffer, Crop, Image, ImageError

_READERS: dict[str, Callable[[], H264Reader | H265Reader]] = {H264: H264Reader, H265: H265Reader}
_NAMES = {H264: ("264", "avc"), H265: ("265", "hevc")}
_NO_KEY = "no key frame has come yet"
_REMEDY = "send a key frame with its parameter sets every second, without B-frames (bf=0, tune=zerolatency), reliably"
MISSING = 'cameras of transport video need PyAV: pip install "trace_memory_ros[video]"'


@dataclass(frozen=True)
class Picture:
    """A decoded picture; its colours are made on demand."""

    frame: Any

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.frame.height, self.frame.width

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return sum(plane.buffer_size for plane in self.frame.planes)

    def policy_image(self, px: int, crop: Crop | None = None) -> Image:
        """`(px, px, 3)` uint8 RGB."""
        return prepare(self.rgb(), px, crop)

    def rgb(self) -> Image:
        """`(h, w, 3)` uint8."""
        return np.asarray(self.frame.to_ndarray(format="rgb24"), dtype=np.uint8)


class VideoDecoder:
    """Decodes one stream on one thread, so that the same packets give the same pictures.

    Every packet has to be pushed, in order, whether its picture is needed or not; one that comes twice in a row gives
    its picture again. Raises ImportError without PyAV.
    """

    def __init__(self) -> None:
        try:
            import av
        except ImportError:
            raise ImportError(MISSING) from None
        self._av = av
        self._codec = ""
        self._reader: H264Reader | H265Reader = H264Reader()
        self._decoder: Any = None
        self._sets = b""
        self._waits = _NO_KEY
        self._expected = 0
        self._pushed = 0
        self._newest: tuple[bytes, Picture] | None = None

    def push(self, data: Buffer, format: str) -> Picture:  # noqa: A002 - the message's own field name
        """The picture of one packet. Raises ImageError, with the reason, where there is none.

        format: of a CompressedVideo, or the encoding of an FFMPEGPacket: `h264`, `hevc`, `libx264`,
        `h264;yuv420p;bgr8`.
        """
        codec = codec_of(format)
        if codec != self._codec:
            self._codec, self._reader, self._sets, self._waits = codec, _READERS[codec](), b"", _NO_KEY
            self._newest = None
        packet = np.frombuffer(data, np.uint8).tobytes()
        if self._newest is None or self._newest[0] != packet:
            self._newest = packet, self._decode(self._in_order(packet))
        return self._newest[1]

    def _in_order(self, packet: bytes) -> bytes:
        """What the decoder is to be given next."""
        codec = self._codec
        access = self._read(packet)
        if not access.picture:
            raise ImageError(f"{codec} video: the packet holds no picture: {_REMEDY}")
        if access.key:
            self._begin()
            packet = packet if access.sets else self._sets + packet
        elif not self._waits and not access.gaps and access.number != self._expected:
            self._waits = "a packet is missing, or pictures are not sent in the order in which they are shown"
        if self._waits:
            raise ImageError(f"{codec} video: {self._waits}; pictures go on with the next key frame: {_REMEDY}")
        self._expected = (access.number + access.reference) % access.modulus
        return packet

    def _read(self, packet: bytes) -> Access:
        try:
            access = self._reader.read(packet)
        except BitstreamError as error:
            self._waits = self._waits or "a packet before could not be read"
            raise ImageError(f"{self._codec} video: the packet cannot be read, {error}: {_REMEDY}") from error
        self._sets = access.sets or self._sets
        return access

    def _begin(self) -> None:
        # After a loss a fresh decoder: it holds no picture of before.
        if self._waits:
            self._waits = ""
            self._decoder = self._av.CodecContext.create(self._codec, "r")
            self._decoder.thread_count = 1
            self._decoder.flags |= self._av.codec.context.Flags.low_delay
            self._decoder.options = {"err_detect": "explode"}

    def _decode(self, packet: bytes) -> Picture:
        self._pushed += 1
        sent = self._av.Packet(packet)
        sent.pts = self._pushed
        try:
            frames = [frame for frame in self._decoder.decode(sent) if frame.pts == sent.pts and not frame.is_corrupt]
        except self._av.FFmpegError as error:
            self._waits = "a packet before could not be decoded"
            raise ImageError(f"{self._codec} video: the packet cannot be decoded: {_REMEDY}") from error
        if not frames:
            self._waits = "a packet before gave no picture"
            raise ImageError(f"{self._codec} video: the packet gives no picture at once: {_REMEDY}")
        return Picture(frames[-1])


def codec_of(format: str) -> str:  # noqa: A002
    """FFmpeg's name of a message's codec. Raises ImageError for one that is not supported."""
    name = format.partition(";")[0].strip().lower()
    for codec, parts in _NAMES.items():
        if any(part in name for part in parts):
            return codec
    raise ImageError(f"video of format {format!r} is not supported: encode h264 or h265")
