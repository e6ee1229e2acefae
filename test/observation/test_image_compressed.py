"""Compressed images: recognised whole or cut by head and end, unpacked when needed, a JPEG at a smaller scale."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trace_memory_ros.observation.images import ImageError, PackedImage, decode_compressed, open_compressed, prepare
from trace_memory_ros.observation.images.compressed import reduction
from trace_memory_ros.observation.images.files import FileHead, file_head

SIZES = [(1, 1), (7, 13), (48, 48), (33, 96)]
CODECS = {"jpeg": ".jpg", "png": ".png", "webp": ".webp", "tiff": ".tiff"}


def picture(height: int, width: int) -> NDArray[np.uint8]:
    noise = np.random.default_rng(height * 1000 + width).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return np.asarray(cv2.GaussianBlur(noise, (5, 5), 3), dtype=np.uint8)


def encoded(pixels: NDArray[np.generic], codec: str, *options: int) -> bytes:
    return cv2.imencode(CODECS[codec], pixels, options)[1].tobytes()


def swapped(rgb: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(rgb[..., ::-1])


@pytest.mark.parametrize("size", SIZES)
def test_png_webp_and_tiff_are_lossless_and_jpeg_is_near(size: tuple[int, int]) -> None:
    rgb = picture(*size)
    bgr = swapped(rgb)
    for codec, options in (("png", ()), ("tiff", ()), ("webp", (cv2.IMWRITE_WEBP_QUALITY, 101))):
        file = encoded(bgr, codec, *options)
        np.testing.assert_array_equal(decode_compressed(file, f"rgb8; {codec} compressed bgr8"), rgb)
    near = decode_compressed(encoded(bgr, "jpeg", cv2.IMWRITE_JPEG_QUALITY, 100), "bgr8; jpeg compressed bgr8")
    assert near.shape == rgb.shape
    assert np.abs(near.astype(int) - rgb).mean() < 12
    lossy = decode_compressed(encoded(bgr, "webp", cv2.IMWRITE_WEBP_QUALITY, 100), "webp")
    assert np.abs(lossy.astype(int) - rgb).mean() < 12
    grey = encoded(bgr[..., 0], "png")
    np.testing.assert_array_equal(decode_compressed(grey, "mono8; png compressed "), np.repeat(bgr[..., :1], 3, -1))


@pytest.mark.parametrize("codec", ["png", "tiff"])
def test_16_bits_are_scaled_as_raw_ones(codec: str) -> None:
    bgr = np.random.default_rng(0).integers(0, 65536, (7, 9, 3)).astype(np.uint16)
    expected = np.rint(bgr[..., ::-1] / 257.0)
    np.testing.assert_array_equal(decode_compressed(encoded(bgr, codec), f"bgr16; {codec} compressed bgr16"), expected)
    grey = decode_compressed(encoded(bgr[..., 0], codec), f"mono16; {codec} compressed ")
    np.testing.assert_array_equal(grey, np.repeat(expected[..., 2:], 3, -1))


@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
@pytest.mark.parametrize("codec", ["png", "webp", "tiff"])
def test_alpha_is_dropped(codec: str, kind: type[np.generic]) -> None:
    bgr = swapped(picture(6, 8)).astype(kind)
    if codec == "webp":
        bgr = bgr.astype(np.uint8)
    with_alpha = np.dstack([bgr, np.arange(48, dtype=bgr.dtype).reshape(6, 8) + 1])
    options = (cv2.IMWRITE_WEBP_QUALITY, 101) if codec == "webp" else ()
    plain, alpha = (decode_compressed(encoded(p, codec, *options), codec) for p in (bgr, with_alpha))
    np.testing.assert_array_equal(alpha, plain)


@pytest.mark.parametrize("bits", [8, 16])
def test_a_bayer_pattern_in_a_png_is_resolved(bits: int) -> None:
    mosaic = np.zeros((8, 8), f"uint{bits}")
    mosaic[::2, ::2] = 2**bits - 1
    red = decode_compressed(encoded(mosaic, "png"), f"bayer_rggb{bits}; png compressed ")
    assert red[1:-1, 1:-1].reshape(-1, 3).tolist() == [[255, 0, 0]] * 36
    # What was made grey before it was packed is no pattern any more.
    grey = decode_compressed(encoded(np.full((8, 8), 90, np.uint8), "jpeg"), "bayer_rggb8; jpeg compressed mono8")
    assert (grey == 90).all()
    with pytest.raises(ImageError, match="2x2"):
        open_compressed(encoded(mosaic[:2, :2], "png"), f"bayer_rggb{bits}; png compressed ")


@pytest.mark.parametrize("px", [30, 200, 480])
def test_a_bayer_pattern_in_a_large_jpeg_keeps_its_colour(px: int) -> None:
    mosaic = np.full((480, 640), 60, np.uint8)
    mosaic[::2, ::2], mosaic[1::2, 1::2] = 220, 30
    opened = open_compressed(encoded(mosaic, "jpeg", cv2.IMWRITE_JPEG_QUALITY, 100), "bayer_rggb8; jpeg compressed ")
    middle = opened.policy_image(px)[2:-2, 2:-2].reshape(-1, 3)
    assert np.abs(middle - np.array([220.0, 60.0, 30.0])).max() <= 4


def test_the_file_says_what_it_is() -> None:
    rgb = picture(20, 30)
    for codec in CODECS:
        file = encoded(swapped(rgb), codec)
        for layout in ("", "jpeg", "bgr8", codec.upper()):
            np.testing.assert_array_equal(decode_compressed(file, layout), decode_compressed(file, codec))


@pytest.mark.parametrize("size", [*SIZES, (480, 641)])
@pytest.mark.parametrize("codec", CODECS)
def test_the_head_says_the_size(codec: str, size: tuple[int, int]) -> None:
    for pixels in (picture(*size), picture(*size)[..., 0]):
        opened = open_compressed(encoded(pixels, codec), codec)
        assert opened.size == size == opened.rgb().shape[:2]
    lossless = encoded(picture(*size), "webp", cv2.IMWRITE_WEBP_QUALITY, 101)
    alpha = encoded(np.dstack([picture(*size), picture(*size)[..., 0]]), "webp")
    assert open_compressed(lossless, "webp").size == open_compressed(alpha, "webp").size == size


def jpegs() -> dict[str, bytes]:
    bgr = picture(40, 56)
    thumbnail = encoded(picture(8, 8), "jpeg")
    plain = encoded(bgr, "jpeg")
    exif = b"\xff\xe1" + (len(thumbnail) + 2).to_bytes(2, "big") + thumbnail
    return {
        "plain": plain,
        "progressive": encoded(bgr, "jpeg", cv2.IMWRITE_JPEG_PROGRESSIVE, 1),
        "restarts": encoded(bgr, "jpeg", cv2.IMWRITE_JPEG_RST_INTERVAL, 2),
        "thumbnail": plain[:2] + exif + plain[2:],
        "filled": plain[:2] + b"\xff\xff\xff" + plain[2:],
        "grey": encoded(bgr[..., 0], "jpeg"),
    }


FILLERS = (b"", b"\0" * 7, b"\0" * 5000, b"rubbish" * 50, b"\xff", b"\xff\xd9" * 40, b"\0" * 100 + b"x", b"\xff" * 99)


@pytest.mark.parametrize("kind", ["plain", "progressive", "restarts", "thumbnail", "filled", "grey"])
def test_a_jpeg_is_whole_whatever_lies_behind_it(kind: str) -> None:
    whole = jpegs()[kind]
    expected = decode_compressed(whole, "jpeg")
    for filler in FILLERS:
        opened = open_compressed(whole + filler, "jpeg")
        assert opened.size == (40, 56)
        np.testing.assert_array_equal(opened.rgb(), expected)


@pytest.mark.parametrize("kind", ["plain", "progressive", "restarts", "thumbnail", "filled", "grey"])
def test_a_cut_jpeg_is_not_whole(kind: str) -> None:
    whole = jpegs()[kind]
    for end in range(len(whole) - 1):
        for filler in (b"", b"\0" * 200):
            assert isinstance(file_head(memoryview(whole[:end] + filler)), str), (end, filler)


@pytest.mark.parametrize("codec", ["png", "webp", "tiff"])
def test_other_files_are_whole_or_cut_too(codec: str) -> None:
    # TIFF's directory lies at its end, and what a cut leaves of its last values is zeros.
    whole = encoded(picture(40, 56), codec)
    expected = decode_compressed(whole, codec)
    for filler in FILLERS:
        np.testing.assert_array_equal(decode_compressed(whole + filler, codec), expected)
    for end in range(0, len(whole) - 16, 7):
        assert isinstance(file_head(memoryview(whole[:end])), str), end


@pytest.mark.parametrize("codec", CODECS)
def test_bad_compressed_images_are_named(codec: str) -> None:
    whole = encoded(picture(20, 20), codec)
    ending = whole[-12:]
    for data in (whole[: len(whole) // 2], b"", b"nonsense", b"nonsense" + ending):
        with pytest.raises(ImageError, match=f"image of format '{codec}'"):
            decode_compressed(data, codec)


@given(st.binary(max_size=60), st.sampled_from(sorted(CODECS)), st.integers(0, 200))
@settings(max_examples=500, deadline=None)
def test_rubbish_is_refused_by_head(rubbish: bytes, codec: str, kept: int) -> None:
    head = file_head(memoryview(encoded(picture(9, 9), codec)[:kept] + rubbish))
    assert isinstance(head, str) or (head.codec == codec and kept > 20)


@pytest.mark.parametrize("name", ["webp", "16UC1; png compressed", ""])
def test_other_formats_are_refused(name: str) -> None:
    with pytest.raises(ImageError, match="publish jpeg or png"):
        decode_compressed(b"\x89PNG", name)


def test_video_is_pointed_to_its_own_messages() -> None:
    with pytest.raises(ImageError, match="'h264'.*is video.*CompressedVideo.*transport video"):
        open_compressed(b"\0\0\0\1\x67", "h264")


def claiming(height: int, width: int) -> bytes:
    """A small JPEG whose head says another size."""
    packed = bytearray(encoded(np.zeros((16, 24, 3), np.uint8), "jpeg"))
    size_at = packed.index(b"\xff\xc0") + 5
    packed[size_at : size_at + 4] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    return bytes(packed)


def test_a_jpeg_that_claims_to_be_huge_or_nothing_is_refused() -> None:
    with pytest.raises(ImageError, match="cannot be decoded"):
        decode_compressed(claiming(65500, 65500), "rgb8; jpeg compressed bgr8")
    with pytest.raises(ImageError, match="24x0"):
        open_compressed(claiming(0, 24), "jpeg")


def test_pixels_are_judged_when_they_are_needed() -> None:
    data = bytearray(encoded(picture(20, 20), "png"))
    at = data.index(b"IDAT") + 4
    data[at : at + 40] = b"\xff" * 40
    opened = open_compressed(bytes(data), "png")
    assert opened.size == (20, 20)
    with pytest.raises(ImageError, match="'png'.*cannot be decoded"):
        opened.policy_image(8)


@pytest.mark.parametrize(
    ("size", "px", "scale"),
    [
        ((480, 640), 48, 4),
        ((480, 640), 30, 8),
        ((480, 640), 31, 4),
        ((480, 640), 120, 2),
        ((480, 640), 121, 1),
        ((96, 96), 48, 1),
        ((95, 640), 48, 1),
        ((1080, 1920), 48, 8),
        ((48, 48), 48, 1),
    ],
)
def test_a_jpeg_is_unpacked_at_twice_the_policy_image_or_more(size: tuple[int, int], px: int, scale: int) -> None:
    assert reduction(FileHead("jpeg", *size, 8, 3), px) == scale
    assert reduction(FileHead("png", *size, 8, 3), px) == 1
    assert all(side // scale >= 2 * px for side in size) or scale == 1


def photograph(height: int, width: int) -> NDArray[np.uint8]:
    """Detail of every size, as photographs have it, and hard edges."""
    rng = np.random.default_rng(0)
    rows, columns = np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None]
    amount = 1 / np.maximum(np.hypot(rows, columns), 1 / width)
    waves = rng.normal(size=(3, *amount.shape)) + 1j * rng.normal(size=(3, *amount.shape))
    grey = np.fft.irfft2(waves * amount, s=(height, width))
    image = np.clip(128 + 50 * grey / grey.std(), 0, 255).astype(np.uint8).transpose(1, 2, 0).copy()
    for _ in range(25):
        middle = (int(rng.integers(width)), int(rng.integers(height)))
        colour = [int(value) for value in rng.integers(0, 256, 3)]
        cv2.circle(image, middle, int(rng.integers(3, 60)), colour, -1)
    return image


@pytest.mark.parametrize(("px", "most", "mean"), [(48, 20, 1.3), (96, 20, 1.3), (30, 20, 2.0)])
def test_a_reduced_jpeg_is_near_the_full_one(px: int, most: int, mean: float) -> None:
    opened = open_compressed(encoded(photograph(480, 640), "jpeg", cv2.IMWRITE_JPEG_QUALITY, 90), "jpeg")
    assert isinstance(opened, PackedImage)
    assert reduction(opened.head, px) > 1
    gap = np.abs(opened.policy_image(px).astype(int) - prepare(opened.rgb(), px))
    assert gap.max() <= most
    assert gap.mean() <= mean


@pytest.mark.parametrize("size", [(96, 96), (97, 131), (480, 640), (1080, 1920)])
def test_a_policy_image_without_reduction_is_the_prepared_one(size: tuple[int, int]) -> None:
    rgb = picture(*size)
    for codec in ("png", "webp"):
        opened = open_compressed(encoded(swapped(rgb), codec), codec)
        np.testing.assert_array_equal(opened.policy_image(48), prepare(opened.rgb(), 48))
    opened = open_compressed(encoded(swapped(rgb), "jpeg"), "jpeg")
    side = min(size)
    np.testing.assert_array_equal(opened.policy_image(side), prepare(opened.rgb(), side))
    # Colours keep their order at every scale.
    red = np.zeros((*size, 3), np.uint8)
    red[..., 2] = 255
    small = open_compressed(encoded(red, "jpeg"), "jpeg").policy_image(16)
    assert (small[..., 0] > 250).all()
    assert (small[..., 1:] < 5).all()
