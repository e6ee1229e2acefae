"""One way in for every raw encoding, at odd sizes, with padded rows and either byte order."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trace_memory_ros.observation.images import ENCODINGS, ImageError, check_layout, decode, prepare, shrunk

SIZES = [(1, 1), (7, 13), (48, 48), (33, 96)]


def picture(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, 3), dtype=np.uint8)


def packed(pixels: NDArray[np.generic], padding: int) -> tuple[bytes, int]:
    """Row-major bytes with `padding` bytes of rubbish behind each row, and the step."""
    rows = np.ascontiguousarray(pixels).view(np.uint8).reshape(pixels.shape[0], -1)
    filler = np.full((len(rows), padding), 0xAB, np.uint8)
    return np.concatenate([rows, filler], axis=1).tobytes(), rows.shape[1] + padding


def as_encoded(rgb: NDArray[np.generic], encoding: str) -> NDArray[np.generic]:
    if encoding in ("mono8", "mono16", "8UC1"):
        return rgb[..., 0]
    alpha = np.full((*rgb.shape[:2], 1), 77, rgb.dtype)
    ordered = rgb if encoding.startswith("rgb") else rgb[..., ::-1]
    return np.concatenate([ordered, alpha], axis=-1) if "a" in encoding or encoding == "8UC4" else ordered


@pytest.mark.parametrize("padding", [0, 1, 5])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8", "mono8", "8UC1", "8UC3", "8UC4"])
def test_colour_encodings_keep_their_values(encoding: str, size: tuple[int, int], padding: int) -> None:
    rgb = picture(*size)
    data, step = packed(as_encoded(rgb, encoding), padding)
    expected = np.repeat(rgb[..., :1], 3, axis=-1) if "1" in encoding or "mono" in encoding else rgb
    for buffer in (data, bytearray(data), np.frombuffer(data, np.uint8)):
        result = decode(buffer, encoding, *size, step, 0)
        assert result.dtype == np.uint8
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("bigendian", [0, 1])
@pytest.mark.parametrize("padding", [0, 2, 3])
@pytest.mark.parametrize("encoding", ["rgb16", "bgr16", "rgba16", "bgra16", "mono16"])
def test_16_bits_are_scaled_to_8(encoding: str, padding: int, bigendian: int) -> None:
    rgb = np.random.default_rng(3).integers(0, 65536, (7, 13, 3)).astype(np.uint16)
    rgb[0, :3, 0] = 0, 65535, 257
    pixels = as_encoded(rgb, encoding)
    data, step = packed(pixels.byteswap() if bigendian else pixels, padding)
    expected = np.rint(rgb / 257.0)
    result = decode(data, encoding, 7, 13, step, bigendian)
    np.testing.assert_array_equal(result, np.repeat(expected[..., :1], 3, -1) if encoding == "mono16" else expected)


def yuv_planes(height: int, width: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Random luma `(h, w)` and chroma `(h, w, 2)` (Cb, Cr), full resolution."""
    rng = np.random.default_rng(height * width)
    return rng.integers(16, 236, (height, width), np.uint8), rng.integers(60, 190, (height, width, 2), np.uint8)


def rgb_of_yuv(luma: NDArray[np.uint8], chroma: NDArray[np.uint8]) -> NDArray[np.float64]:
    """ITU-R BT.601, limited range."""
    y = 1.164 * (luma.astype(float) - 16)
    cb, cr = chroma[..., 0].astype(float) - 128, chroma[..., 1].astype(float) - 128
    return np.clip(np.stack([y + 1.596 * cr, y - 0.392 * cb - 0.813 * cr, y + 2.017 * cb], -1), 0, 255)


@pytest.mark.parametrize("padding", [0, 6])
@pytest.mark.parametrize("encoding", ["uyvy", "yuv422", "yuyv", "yuv422_yuy2"])
def test_yuv_with_a_colour_per_pair(encoding: str, padding: int) -> None:
    luma, chroma = yuv_planes(5, 14)
    chroma = np.repeat(chroma[:, ::2], 2, axis=1)
    pixels = np.empty((5, 14, 2), np.uint8)
    first = int(encoding.startswith(("uy", "yuv422")) and encoding != "yuv422_yuy2")
    pixels[..., first] = luma
    pixels[:, ::2, 1 - first], pixels[:, 1::2, 1 - first] = chroma[:, ::2, 0], chroma[:, 1::2, 1]
    data, step = packed(pixels, padding)
    assert np.abs(decode(data, encoding, 5, 14, step, 0) - rgb_of_yuv(luma, chroma)).max() <= 2


@pytest.mark.parametrize("padding", [0, 6])
@pytest.mark.parametrize("encoding", ["nv12", "nv21", "nv24"])
def test_yuv_with_a_plane_of_colours(encoding: str, padding: int) -> None:
    every = 1 if encoding == "nv24" else 2
    luma, chroma = yuv_planes(6, 14)
    small = chroma[::every, ::every]
    chroma = small.repeat(every, axis=0).repeat(every, axis=1)
    first, step = packed(luma, padding)
    second, _ = packed(small[..., ::-1] if encoding == "nv21" else small, padding * (2 if encoding == "nv24" else 1))
    for data in (first + second, (first + second)[: len(first + second) - padding * (3 - every)]):
        assert np.abs(decode(data, encoding, 6, 14, step, 0) - rgb_of_yuv(luma, chroma)).max() <= 2
    with pytest.raises(ImageError, match=f"{encoding} image of 14x6"):
        decode((first + second)[: len(first + second) - padding * (3 - every) - 1], encoding, 6, 14, step, 0)


def demosaiced(mosaic: NDArray[np.uint16], pattern: str, y: int, x: int, colour: str) -> float:
    """A pixel's colour: the measured one, or the mean of those measured next to it."""

    def measured(v: int, u: int) -> bool:
        return pattern[v % 2 * 2 + u % 2] == colour

    around = [(v, u) for v in (y - 1, y, y + 1) for u in (x - 1, x, x + 1)]
    taken = [(y, x)] if measured(y, x) else [at for at in around if measured(*at)]
    return float(np.mean([mosaic[at] for at in taken]))


@pytest.mark.parametrize("bits", [8, 16])
@pytest.mark.parametrize("pattern", ["rggb", "bggr", "gbrg", "grbg"])
def test_bayer_patterns_are_resolved(pattern: str, bits: int) -> None:
    mosaic = np.random.default_rng(5).integers(0, 2**bits, (9, 12)).astype(f"uint{bits}")
    data, step = packed(mosaic, 4)
    result = decode(data, f"bayer_{pattern}{bits}", 9, 12, step, 0)
    for y, x in np.ndindex(7, 10):
        expected = [demosaiced(mosaic, pattern, y + 1, x + 1, c) for c in "rgb"]
        assert np.abs(result[y + 1, x + 1] - np.array(expected) * 255 / (2**bits - 1)).max() <= 0.51


@pytest.mark.parametrize(
    ("encoding", "values"),
    [(f"{name}{bits}", len(name)) for name in ("rgb", "bgr", "rgba", "bgra") for bits in (8, 16)]
    + [("mono8", 1), ("mono16", 1)]
    + [(f"bayer_{pattern}{bits}", 1) for pattern in ("rggb", "bggr", "gbrg", "grbg") for bits in (8, 16)]
    + [("yuv422", 2), ("yuv422_yuy2", 2)],
)
def test_cv_bridge_gives_the_same(encoding: str, values: int) -> None:
    cv_bridge = pytest.importorskip("cv_bridge", reason="cv_bridge comes with a ROS install")
    bits = 16 if encoding.endswith("16") else 8
    pixels = np.random.default_rng(2).integers(0, 2**bits, (8, 14 * values)).astype(f"uint{bits}")
    fields = {"encoding": encoding, "height": 8, "width": 14, "step": pixels.strides[0], "is_bigendian": 0}
    expected = cv_bridge.CvBridge().imgmsg_to_cv2(SimpleNamespace(data=pixels.tobytes(), **fields), "rgb8")
    np.testing.assert_array_equal(decode(pixels.tobytes(), **fields), expected)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoding": "8SC1"}, "'8SC1' \\(5x4\\).*publish one of rgb8"),
        ({"step": 14}, "rgb8 image of 5x4, step 14.*step >= 15"),
        ({"data": bytes(59)}, "59 bytes.*>= 60 bytes"),
        ({"height": 0}, "5x0"),
        ({"width": -1}, "-1x4"),
        ({"data": b""}, "0 bytes"),
        ({"encoding": "yuv422"}, "yuv422 image of 5x4: .*width must be even"),
        ({"encoding": "nv12", "height": 3}, "nv12 image of 5x3: .*width and height must be even"),
        ({"encoding": "bayer_rggb8", "height": 2}, "5x2.*at least 3x3"),
        ({"encoding": "mono16", "step": 9}, "step >= 10"),
    ],
)
def test_bad_raw_images_are_named(changes: dict[str, object], message: str) -> None:
    fields = {"data": bytes(60), "encoding": "rgb8", "height": 4, "width": 5, "step": 15, "is_bigendian": 0}
    with pytest.raises(ImageError, match=message):
        decode(**(fields | changes))  # type: ignore[arg-type]


@given(st.sampled_from(ENCODINGS), st.tuples(*[st.integers(-1, 9)] * 2), st.integers(-1, 80), st.integers(0, 900))
@settings(max_examples=600, deadline=None)
def test_what_passes_the_check_decodes(encoding: str, size: tuple[int, int], step: int, length: int) -> None:
    data, refused = bytes(length), ""
    try:
        check_layout(data, encoding, *size, step)
    except ImageError as error:
        refused = str(error)
    if refused:
        with pytest.raises(ImageError, match=re.escape(refused)):
            decode(data, encoding, *size, step, 0)
    else:
        assert decode(data, encoding, *size, step, 1).shape == (*size, 3)


def test_prepare_averages_areas() -> None:
    rgb = picture(96, 96)
    blocks = rgb.reshape(48, 2, 48, 2, 3).mean(axis=(1, 3))
    assert np.abs(prepare(rgb, 48) - blocks).max() <= 0.5
    assert prepare(picture(33, 95), 16).shape == (16, 16, 3)
    np.testing.assert_array_equal(prepare(rgb, 96), rgb)
    with pytest.raises(ImageError, match=r"\(4, 4\)"):
        prepare(np.zeros((4, 4), np.uint8), 2)


def test_thumbnails_are_prepared_images() -> None:
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 48, 48, 3), dtype=np.uint8)
    small = shrunk(images, 16)
    assert small.shape == (2, 3, 16, 16, 3)
    np.testing.assert_array_equal(small[1, 2], prepare(images[1, 2], 16))
    assert np.abs(small[0, 0] - images[0, 0].reshape(16, 3, 16, 3, 3).mean(axis=(1, 3))).max() <= 0.5
