"""Depth on one scale per camera, raw and as compressed_depth_image_transport packs it."""

from __future__ import annotations

import struct

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trace_memory_ros.observation.images import ImageError, decode, decode_compressed, open_compressed

SIZES = [(1, 1), (7, 13), (48, 48), (33, 96)]


def packed(pixels: NDArray[np.generic], padding: int) -> tuple[bytes, int]:
    """Row-major bytes with `padding` bytes of rubbish behind each row, and the step."""
    rows = np.ascontiguousarray(pixels).view(np.uint8).reshape(pixels.shape[0], -1)
    filler = np.full((len(rows), padding), 0xAB, np.uint8)
    return np.concatenate([rows, filler], axis=1).tobytes(), rows.shape[1] + padding


@pytest.mark.parametrize("bigendian", [0, 1])
@pytest.mark.parametrize("padding", [0, 2, 3])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("encoding", ["16UC1", "32FC1"])
def test_depth_is_on_a_fixed_scale(encoding: str, size: tuple[int, int], padding: int, bigendian: int) -> None:
    millimetres = np.random.default_rng(1).integers(0, 6000, size).astype(np.uint16)
    pixels = millimetres if encoding == "16UC1" else (millimetres / 1000).astype(np.float32)
    expected = np.rint(np.clip(millimetres / 4000 * 255, 0, 255))
    data, step = packed(pixels.byteswap() if bigendian else pixels, padding)
    result = decode(data, encoding, *size, step, bigendian)
    assert np.abs(result - expected[..., None]).max() <= (0 if encoding == "16UC1" else 1)


def test_depth_without_a_reading() -> None:
    metres = np.array([[np.nan, -np.inf, np.inf, 0.0, -1.0, 4.0, 9.0, 2.0]], np.float32)
    grey = decode(metres.tobytes(), "32FC1", 1, 8, 32, 0)[0, :, 0]
    assert grey.tolist() == [0, 0, 255, 0, 0, 255, 255, 128]


@pytest.mark.parametrize("encoding", ["16UC1", "32FC1", "mono16"])
def test_a_camera_may_have_a_range_of_its_own(encoding: str) -> None:
    millimetres = np.array([[0, 100, 200, 550, 901, 1600, 1700, 65535]], np.uint16)
    pixels = (millimetres / 1000).astype(np.float32) if encoding == "32FC1" else millimetres
    grey = decode(pixels.tobytes(), encoding, 1, 8, pixels.nbytes, 0, (0.2, 1.6))
    assert grey[0, :, 0].tolist() == [0, 0, 0, 64, 128, 255, 255, 255]
    metres = np.array([[np.nan, -np.inf, np.inf]], np.float32)
    assert decode(metres.tobytes(), "32FC1", 1, 3, 12, 0, (0.2, 1.6))[0, :, 0].tolist() == [0, 0, 255]


def test_a_range_is_for_depth_alone() -> None:
    with pytest.raises(ImageError, match=r"rgb8 image of 2x1 is not depth.*range_m = \[0.2, 1.6\].*leave range_m out"):
        decode(bytes(6), "rgb8", 1, 2, 6, 0, (0.2, 1.6))
    jpeg = cv2.imencode(".jpg", np.zeros((4, 4), np.uint8))[1].tobytes()
    with pytest.raises(ImageError, match="'jpeg'.*is not depth.*leave range_m out"):
        open_compressed(jpeg, "jpeg", (0.2, 1.6))


def test_depth_png_equals_raw_depth() -> None:
    depth = np.random.default_rng(0).integers(0, 5000, (9, 11)).astype(np.uint16)
    png = cv2.imencode(".png", depth)[1].tobytes()
    raw = decode(depth.tobytes(), "16UC1", 9, 11, 22, 0)
    np.testing.assert_array_equal(decode_compressed(png, "16UC1; png compressed"), raw)
    near = decode(depth.tobytes(), "16UC1", 9, 11, 22, 0, (1.0, 2.0))
    for layout in ("16UC1; png compressed ", "mono16; png compressed ", "png"):
        np.testing.assert_array_equal(decode_compressed(png, layout, (1.0, 2.0)), near)
    grey8 = cv2.imencode(".png", depth.astype(np.uint8))[1].tobytes()
    with pytest.raises(ImageError, match=r"uint8.*16-bit"):
        decode_compressed(grey8, "16UC1; png compressed")


def test_depth_tiff_equals_raw_depth() -> None:
    metres = np.random.default_rng(0).random((9, 11), np.float32) * 5
    tiff = cv2.imencode(".tiff", metres)[1].tobytes()
    raw = decode(metres.tobytes(), "32FC1", 9, 11, 44, 0)
    np.testing.assert_array_equal(decode_compressed(tiff, "32FC1; tiff compressed "), raw)


A, B = 100.0 * 101.0, 1.0 - 100.0 * 101.0 / 10.0
"""compressed_depth_image_transport's with its defaults: depth_quantization 100, depth_max 10 m."""


def quantised(metres: NDArray[np.float32]) -> NDArray[np.uint16]:
    """As the transport does it, a pixel at a time."""
    out = np.zeros(metres.shape, np.uint16)
    for at in np.ndindex(metres.shape):
        if metres[at] < 10.0:
            out[at] = int(A / metres[at] + B)
    return out


def rvl_code(values: NDArray[np.uint16]) -> bytes:
    """Wilson's code, written naively as a text of nibbles."""
    nibbles: list[int] = []

    def number(value: int) -> None:
        while True:
            nibbles.append(value & 7 | (8 if value > 7 else 0))
            value >>= 3
            if not value:
                return

    left, last = [int(value) for value in values.reshape(-1)], 0
    while left:
        zeros = next((k for k, value in enumerate(left) if value), len(left))
        number(zeros)
        left = left[zeros:]
        run = next((k for k, value in enumerate(left) if not value), len(left))
        number(run)
        for value in left[:run]:
            delta, last = value - last, value
            number(2 * delta if delta >= 0 else -2 * delta - 1)
        left = left[run:]
    nibbles += [0] * (-len(nibbles) % 8)
    words = [int("".join(f"{n:x}" for n in nibbles[k : k + 8]), 16) for k in range(0, len(nibbles), 8)]
    return struct.pack(f"<{len(words)}I", *words)


def message(values: NDArray[np.uint16], kind: str, scale: float = 0.0, offset: float = 0.0) -> bytes:
    """The data of a CompressedImage of that transport."""
    head = struct.pack("<iff", 0, scale, offset)
    if kind == "rvl":
        return head + struct.pack("<II", values.shape[1], values.shape[0]) + rvl_code(values)
    return head + cv2.imencode(".png", values)[1].tobytes()


@pytest.mark.parametrize("kind", ["png", "rvl"])
def test_compressed_depth_in_millimetres(kind: str) -> None:
    depth = np.random.default_rng(0).integers(0, 5000, (9, 11)).astype(np.uint16)
    depth[2:5] = 0
    raw = decode(depth.tobytes(), "16UC1", 9, 11, 22, 0)
    for layout in (f"16UC1; compressedDepth {kind}", *(("16UC1; compressedDepth",) if kind == "png" else ())):
        packed_depth = open_compressed(message(depth, kind), layout)
        assert packed_depth.size == (9, 11)
        np.testing.assert_array_equal(packed_depth.rgb(), raw)


@pytest.mark.parametrize("kind", ["png", "rvl"])
def test_compressed_depth_in_inverse_metres(kind: str) -> None:
    metres = (np.random.default_rng(0).random((9, 11)) * 9 + 0.5).astype(np.float32)
    metres[0, :3] = np.nan, np.inf, 12.0
    data = message(quantised(metres), kind, A, B)
    found = decode_compressed(data, f"32FC1; compressedDepth {kind}", (0.0, 10.0))[..., 0]
    assert found[0, :3].tolist() == [0, 0, 0]  # the transport makes no reading of what is far away
    expected = np.rint(metres * 25.5).reshape(-1)[3:]
    # A step of the code at 10 m is 10 m * 10 m / A: a centimetre.
    assert np.abs(found.reshape(-1)[3:] - expected).max() <= 1


@given(st.lists(st.sampled_from((0, 0, 0, 1, 5, 1000, 65535)), min_size=1, max_size=60))
@settings(max_examples=200, deadline=None)
def test_every_rvl_code_comes_back(values: list[int]) -> None:
    depth = np.array([values], np.uint16)
    packed_depth = open_compressed(message(depth, "rvl"), "16UC1; compressedDepth rvl")
    np.testing.assert_array_equal(packed_depth.depth(), depth)  # type: ignore[union-attr]


@pytest.mark.parametrize("depth_mm", [0, 1000])
def test_a_run_may_be_as_long_as_a_picture(depth_mm: int) -> None:
    depth = np.full((480, 640), depth_mm, np.uint16)  # a covered camera, or one that sees a wall
    data = message(depth, "rvl")
    np.testing.assert_array_equal(
        decode_compressed(data, "16UC1; compressedDepth rvl"), decode(depth.tobytes(), "16UC1", 480, 640, 1280, 0)
    )


@pytest.mark.parametrize("kind", ["png", "rvl"])
def test_damaged_compressed_depth_is_named(kind: str) -> None:
    layout = f"16UC1; compressedDepth {kind}"
    whole = message(np.full((20, 30), 700, np.uint16), kind)
    for data in (b"", whole[:12], whole[:16], whole[: len(whole) - 8], whole[12:]):
        with pytest.raises(ImageError, match=f"image of format '{layout}' (is cut off|cannot be decoded)"):
            decode_compressed(data, layout)
    with pytest.raises(ImageError, match="begin with 16UC1 or 32FC1"):
        open_compressed(whole, "rgb8; compressedDepth png")
    colour = struct.pack("<iff", 0, 0, 0) + cv2.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes()
    with pytest.raises(ImageError, match="16-bit grey png"):
        open_compressed(colour, "16UC1; compressedDepth png")


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_rubbish_for_rvl_is_refused_or_read(rubbish: bytes) -> None:
    data = bytes(12) + struct.pack("<II", 5, 4) + rubbish
    try:
        assert decode_compressed(data, "16UC1; compressedDepth rvl").shape == (4, 5, 3)
    except ImageError:
        pass
