"""Video by packets: the right picture for each, begun at key frames, with every loss named until the next one."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.images import ImageError, prepare
from trace_memory_ros.observation.images.bitstream import UNKNOWN, BitstreamError, H264Reader, H265Reader, nal_units
from trace_memory_ros.observation.images.video import VideoDecoder, codec_of
from trace_memory_ros.observation.samples import Deferred, InputError, SampleReader

av = pytest.importorskip("av", reason="PyAV comes with the extra [video]")

SIZE = (120, 162)
KEY_EVERY, COUNT = 10, 35
_X265 = f"log-level=none:keyint={KEY_EVERY}:min-keyint={KEY_EVERY}:scenecut=0"
ENCODERS = {
    "x264 fast": ("libx264", {"preset": "ultrafast", "tune": "zerolatency"}),
    "x264 medium": ("libx264", {"preset": "medium", "sc_threshold": "0"}),
    "x264 slices": ("libx264", {"preset": "fast", "tune": "zerolatency", "slices": "4"}),
    "openh264": ("libopenh264", {}),
    "x265 fast": ("libx265", {"preset": "ultrafast", "tune": "zerolatency", "x265-params": _X265}),
    "x265 medium": ("libx265", {"preset": "medium", "x265-params": f"{_X265}:bframes=0:rc-lookahead=0"}),
}


def picture(k: int) -> NDArray[np.uint8]:
    """A bar that moves with k before a slope."""
    image = np.zeros((*SIZE, 3), np.uint8)
    image[..., 1] = np.linspace(20, 200, SIZE[1], dtype=np.uint8)
    image[20:90, (4 * k) % 130 : (4 * k) % 130 + 24] = (230, 40, 20)
    return image


@cache
def packets(encoder: str, b_frames: int = 0) -> tuple[bytes, ...]:
    """A key frame every `KEY_EVERY`; the k-th packet belongs to `picture(k)` unless there are B-frames."""
    name, options = ENCODERS[encoder]
    context = av.CodecContext.create(name, "w")
    context.height, context.width, context.pix_fmt = *SIZE, "yuv420p"
    context.time_base, context.framerate = Fraction(1, 30), Fraction(30)
    context.gop_size, context.max_b_frames, context.bit_rate = KEY_EVERY, b_frames, 800_000
    if "x265-params" in options and b_frames:
        options = options | {"x265-params": f"{_X265}:bframes={b_frames}"}
    context.options = options
    sent: list[bytes] = []
    for k in range(COUNT):
        frame = av.VideoFrame.from_ndarray(picture(k), format="rgb24")
        frame.pts = k
        sent += [bytes(packet) for packet in context.encode(frame)]
    return (*sent, *(bytes(packet) for packet in context.encode(None)))


def codec(encoder: str) -> str:
    return "h265" if "265" in encoder else "h264"


def decode(sent: Iterable[bytes], layout: str) -> list[NDArray[np.uint8] | str]:
    """Of each packet its picture, or the reason why there is none."""
    decoder = VideoDecoder()
    out: list[NDArray[np.uint8] | str] = []
    for packet in sent:
        try:
            out.append(decoder.push(packet, layout).rgb())
        except ImageError as error:
            out.append(str(error))
    return out


def nearest_picture(image: NDArray[np.uint8]) -> int:
    return int(np.argmin([np.abs(image.astype(int) - picture(k)).mean() for k in range(COUNT)]))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_packet_gives_its_own_picture(encoder: str) -> None:
    out = decode(packets(encoder), codec(encoder))
    assert [nearest_picture(image) for image in out if not isinstance(image, str)] == list(range(COUNT))
    first = VideoDecoder().push(packets(encoder)[0], codec(encoder))
    assert first.size == SIZE
    np.testing.assert_array_equal(first.policy_image(16), prepare(first.rgb(), 16))


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("lost", [0, 1, 4, 9, 10, 19])
def test_a_lost_packet_is_named_until_the_next_key_frame(encoder: str, lost: int) -> None:
    whole = decode(packets(encoder), codec(encoder))
    kept = [k for k in range(COUNT) if k != lost]
    out = dict(zip(kept, decode([packets(encoder)[k] for k in kept], codec(encoder)), strict=True))
    dark = range(lost + 1, -(-(lost + 1) // KEY_EVERY) * KEY_EVERY)
    for k, image in out.items():
        if k in dark:
            why = "no key frame has come yet" if lost == 0 else "a packet is missing"
            assert isinstance(image, str)
            assert why in image
            assert "key frame" in image.rpartition(": ")[2]
        else:
            np.testing.assert_array_equal(image, whole[k])
    # One outage is one fault, however long.
    assert len({image for image in out.values() if isinstance(image, str)}) == bool(dark)


@pytest.mark.parametrize("encoder", ["x264 fast", "x265 fast"])
def test_decoding_may_begin_anywhere(encoder: str) -> None:
    whole = decode(packets(encoder), codec(encoder))
    out = decode(packets(encoder)[13:], codec(encoder))
    assert all(isinstance(image, str) and "no key frame has come yet" in image for image in out[:7])
    for image, expected in zip(out[7:], whole[20:], strict=True):
        np.testing.assert_array_equal(image, expected)


@given(st.sampled_from(["x264 fast", "x265 fast", "openh264"]), st.sets(st.integers(0, COUNT - 1), max_size=12))
@settings(max_examples=40, deadline=None)
def test_what_is_shown_after_losses_is_right(encoder: str, lost: set[int]) -> None:
    whole = decode(packets(encoder), codec(encoder))
    kept = [k for k in range(COUNT) if k not in lost]
    for k, image in zip(kept, decode([packets(encoder)[k] for k in kept], codec(encoder)), strict=True):
        begun = k // KEY_EVERY * KEY_EVERY
        if lost.isdisjoint(range(begun, k)):
            np.testing.assert_array_equal(image, whole[k])
        else:
            assert isinstance(image, str)


@pytest.mark.parametrize("encoder", ["x264 fast", "x265 fast"])
def test_a_broken_packet_is_named(encoder: str) -> None:
    sent = list(packets(encoder))
    for broken in (b"", b"\0" * 50, b"rubbish of no kind", sent[4][:6]):
        out = decode([*sent[:4], broken, *sent[5:]], codec(encoder))
        assert all(isinstance(image, str) for image in out[4:10]), broken
        assert all(not isinstance(image, str) for image in [*out[:4], *out[10:]])
        assert codec_of(codec(encoder)) in str(out[4])


def test_a_packet_that_the_decoder_refuses_is_named_until_the_next_key_frame() -> None:
    sent = list(packets("x264 fast"))
    sent[3] = sent[3][:40] + bytes(value ^ 0xFF for value in sent[3][40:])
    out = decode(sent, "h264")
    assert "cannot be decoded" in str(out[3])
    assert all("a packet before could not be decoded" in str(image) for image in out[4:10])
    assert all(not isinstance(image, str) for image in out[10:])


@pytest.mark.parametrize("encoder", ["x264 medium", "x265 medium"])
def test_reordered_pictures_are_never_shown_for_one_another(encoder: str) -> None:
    out = decode(packets(encoder, b_frames=2), codec(encoder))
    reasons = [image for image in out if isinstance(image, str)]
    assert len(reasons) == COUNT
    assert "no picture at once" in reasons[0]
    assert all("B-frames" in reason for reason in reasons)


def test_parameter_sets_may_come_once_and_alone() -> None:
    sent = [list(nal_units(packet)) for packet in packets("x264 fast")]
    sets = b"".join(b"\0\0\0\1" + unit for unit in sent[0] if unit[0] & 31 in (7, 8))
    bare = [b"".join(b"\0\0\1" + unit for unit in units if unit[0] & 31 not in (7, 8)) for units in sent]
    out = decode([sets, *bare], "h264")
    assert "holds no picture" in str(out[0])
    for image, expected in zip(out[1:], decode(packets("x264 fast"), "h264"), strict=True):
        np.testing.assert_array_equal(image, expected)
    # After a loss a fresh decoder needs them again.
    out = decode([sets, *bare[:3], *bare[4:]], "h264")
    assert all(isinstance(image, str) for image in out[4:10])
    assert all(not isinstance(image, str) for image in out[10:])
    assert "parameter sets were not sent" in str(decode(bare[:1], "h264")[0])


@pytest.mark.parametrize("encoder", ["x264 fast", "x265 fast"])
def test_a_packet_that_comes_twice_is_no_loss(encoder: str) -> None:
    twice = [packet for packet in packets(encoder) for _ in range(2)]
    for image, expected in zip(
        decode(twice, codec(encoder))[1::2], decode(packets(encoder), codec(encoder)), strict=True
    ):
        np.testing.assert_array_equal(image, expected)


def video_config() -> ObservationConfig:
    camera = CameraConfig("eye", "eye", 250, "video")
    return ObservationConfig((camera,), (SensorConfig("joints", "joints", 250, select=("x",)),), image_px=16)


@pytest.mark.parametrize("defer", [False, True])
def test_the_reader_makes_policy_images_of_packets(defer: bool) -> None:
    reader = SampleReader(video_config(), defer)
    whole = decode(packets("x264 fast"), "h264")
    for k, packet in enumerate(packets("x264 fast")):
        if k == 5:
            continue
        if k == 8:
            reader.reset()  # an episode may begin within a stream
        if 5 < k < 10:
            with pytest.raises(InputError, match="h264 video: a packet is missing"):
                reader.video("eye", packet, "h264")
            continue
        value = reader.video("eye", packet, "h264")
        assert isinstance(value, Deferred) == defer
        image = value.image if isinstance(value, Deferred) else value
        np.testing.assert_array_equal(image, prepare(np.asarray(whole[k]), 16))


def test_the_same_packets_give_the_same_bits() -> None:
    for encoder in ENCODERS:
        for one, two in zip(*(decode(packets(encoder), codec(encoder)) for _ in range(2)), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("name", ["h264", "H264", "libx264", "h264_nvenc", "avc1", "h264;yuv420p;bgr8;bgr8"])
def test_names_of_h264(name: str) -> None:
    assert codec_of(name) == "h264"


@pytest.mark.parametrize("name", ["h265", "hevc", "libx265", "hevc_vaapi", "hevc;nv12;bgr8;bgr8"])
def test_names_of_h265(name: str) -> None:
    assert codec_of(name) == "hevc"


@pytest.mark.parametrize("name", ["av1", "vp9", "", "jpeg"])
def test_other_codecs_are_refused(name: str) -> None:
    with pytest.raises(ImageError, match=f"'{name}' is not supported: encode h264 or h265"):
        VideoDecoder().push(b"\0\0\1", name)


def test_without_pyav_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match=r'pip install "trace_memory_ros\[video\]"') as error:
        VideoDecoder()
    assert error.value.name is None


@given(st.binary(max_size=80), st.sampled_from(["x264 fast", "x265 fast"]), st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_rubbish_is_read_or_refused(rubbish: bytes, encoder: str, kept: int) -> None:
    reader = H265Reader() if "265" in encoder else H264Reader()
    try:
        access = reader.read(packets(encoder)[0][:kept] + b"\0\0\1" + rubbish)
    except BitstreamError:
        return
    assert access.number == UNKNOWN or 0 <= access.number < access.modulus
