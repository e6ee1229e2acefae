"""Every image's way into the package: message fields to RGB, RGB to the square sizes that policy and memory see."""

from trace_memory_ros.observation.images.compressed import PackedImage, decode_compressed, open_compressed, reduction
from trace_memory_ros.observation.images.depth import DEPTH_RANGE_M, depth_to_rgb, refuse_colour
from trace_memory_ros.observation.images.raw import ENCODINGS, check_layout, decode
from trace_memory_ros.observation.images.sizes import prepare, shrunk
from trace_memory_ros.observation.images.types import Buffer, Crop, Image, ImageError, Range
from trace_memory_ros.observation.images.video import VideoDecoder

__all__ = [
    "DEPTH_RANGE_M",
    "ENCODINGS",
    "Buffer",
    "Crop",
    "Image",
    "ImageError",
    "PackedImage",
    "Range",
    "VideoDecoder",
    "check_layout",
    "decode",
    "decode_compressed",
    "depth_to_rgb",
    "open_compressed",
    "prepare",
    "reduction",
    "refuse_colour",
    "shrunk",
]
