"""One way in for every encoding, at odd sizes, with padded rows and either byte order."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from trace_memory_ros.observation import image
from trace_memory_ros.observation.image import ImageError, decode, decode_compressed, prepare, thumbnails

SIZES = [(1, 1), (7, 13), (48, 48), (33, 96)]


def picture(height: int, width: int) -> NDArray[np.uint8]:
    return np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, 3), dtype=np.uint8)


def packed(pixels: NDArray[np.generic], padding: int) -> tuple[bytes, int]:
    """Row-major bytes with `padding` bytes of rubbish behind each row, and the step."""
    rows = np.ascontiguousarray(pixels).view(np.uint8).reshape(pixels.shape[0], -1)
    filler = np.full((len(rows), padding), 0xAB, np.uint8)
    return np.concatenate([rows, filler], axis=1).tobytes(), rows.shape[1] + padding


def as_encoded(rgb: NDArray[np.uint8], encoding: str) -> NDArray[np.uint8]:
    if encoding == "mono8":
        return rgb[..., 0]
    alpha = np.full((*rgb.shape[:2], 1), 77, np.uint8)
    ordered = rgb if encoding.startswith("rgb") else rgb[..., ::-1]
    return np.concatenate([ordered, alpha], axis=-1) if "a" in encoding else ordered


@pytest.mark.parametrize("padding", [0, 1, 5])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("encoding", ["rgb8", "bgr8", "rgba8", "bgra8", "mono8"])
def test_colour_encodings_keep_their_values(encoding: str, size: tuple[int, int], padding: int) -> None:
    rgb = picture(*size)
    data, step = packed(as_encoded(rgb, encoding), padding)
    expected = np.repeat(rgb[..., :1], 3, axis=-1) if encoding == "mono8" else rgb
    for buffer in (data, bytearray(data), np.frombuffer(data, np.uint8)):
        result = decode(buffer, encoding, *size, step, 0)
        assert result.dtype == np.uint8
        np.testing.assert_array_equal(result, expected)


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


def test_both_backends_agree() -> None:
    pytest.importorskip("cv_bridge", reason="cv_bridge comes with a ROS install")
    for encoding, (kind, channels) in image._LAYOUTS.items():
        pixels = np.random.default_rng(2).integers(0, 256, (7, 13 * channels)).astype(kind)
        message = image._Message(pixels.data, encoding, 7, 13, pixels.strides[0], 0)
        target = encoding if encoding in image._DEPTHS else None
        np.testing.assert_array_equal(
            image._through_cv_bridge(message, target), image._through_rosbags(message, target)
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoding": "bayer_rggb8"}, "'bayer_rggb8' \\(5x4\\).*publish one of rgb8"),
        ({"step": 14}, "rgb8 image of 5x4, step 14.*step >= 15"),
        ({"data": bytes(59)}, "59 bytes.*>= 60 bytes"),
        ({"height": 0}, "5x0"),
        ({"width": -1}, "-1x4"),
        ({"data": b""}, "0 bytes"),
    ],
)
def test_bad_raw_images_are_named(changes: dict[str, object], message: str) -> None:
    fields = {"data": bytes(60), "encoding": "rgb8", "height": 4, "width": 5, "step": 15, "is_bigendian": 0}
    with pytest.raises(ImageError, match=message):
        decode(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", SIZES)
def test_png_is_lossless_and_jpeg_is_near(size: tuple[int, int]) -> None:
    rgb = cv2.GaussianBlur(picture(*size), (5, 5), 3)
    bgr = np.ascontiguousarray(rgb[..., ::-1])
    png = cv2.imencode(".png", bgr)[1].tobytes()
    np.testing.assert_array_equal(decode_compressed(png, "rgb8; png compressed bgr8"), rgb)
    jpeg = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, 100])[1].tobytes()
    near = decode_compressed(jpeg, "bgr8; jpeg compressed bgr8")
    assert near.shape == rgb.shape
    assert np.abs(near.astype(int) - rgb).mean() < 12
    grey = cv2.imencode(".png", bgr[..., 0])[1].tobytes()
    np.testing.assert_array_equal(decode_compressed(grey, "mono8; png compressed "), np.repeat(bgr[..., :1], 3, -1))


def test_depth_png_equals_raw_depth() -> None:
    depth = np.random.default_rng(0).integers(0, 5000, (9, 11)).astype(np.uint16)
    png = cv2.imencode(".png", depth)[1].tobytes()
    raw = decode(depth.tobytes(), "16UC1", 9, 11, 22, 0)
    np.testing.assert_array_equal(decode_compressed(png, "16UC1; png compressed"), raw)
    grey8 = cv2.imencode(".png", depth.astype(np.uint8))[1].tobytes()
    with pytest.raises(ImageError, match=r"uint8.*16-bit"):
        decode_compressed(grey8, "16UC1; png compressed")


@pytest.mark.parametrize("codec", ["jpeg", "png"])
def test_bad_compressed_images_are_named(codec: str) -> None:
    whole = cv2.imencode("." + codec, picture(20, 20))[1].tobytes()
    ending = whole[-12:]
    for data in (whole[: len(whole) // 2], b"", b"nonsense", b"nonsense" + ending):
        with pytest.raises(ImageError, match=f"'{codec}'.*{len(data)} bytes"):
            decode_compressed(data, codec)


@pytest.mark.parametrize("name", ["webp", "16UC1; compressedDepth png", ""])
def test_other_formats_are_refused(name: str) -> None:
    with pytest.raises(ImageError, match="publish jpeg or png"):
        decode_compressed(b"\x89PNG", name)


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
    small = thumbnails(images, 16)
    assert small.shape == (2, 3, 16, 16, 3)
    np.testing.assert_array_equal(small[1, 2], prepare(images[1, 2], 16))
    assert np.abs(small[0, 0] - images[0, 0].reshape(16, 3, 16, 3, 3).mean(axis=(1, 3))).max() <= 0.5


def test_a_jpeg_that_claims_to_be_huge_is_refused() -> None:
    packed = bytearray(cv2.imencode(".jpg", np.zeros((16, 24, 3), np.uint8))[1].tobytes())
    size_at = packed.index(b"\xff\xc0") + 5
    packed[size_at : size_at + 4] = (65500).to_bytes(2, "big") * 2
    with pytest.raises(ImageError, match="cannot be decoded"):
        decode_compressed(bytes(packed), "rgb8; jpeg compressed bgr8")
