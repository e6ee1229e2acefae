"""Images made on demand give what images made at once give: observations, faults, counters, verdicts."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_memory_ros.observation import samples
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.content import CompressedImage, Content, JointPositions, Live, RawImage
from trace_memory_ros.observation.images import ImageError, compressed, open_compressed
from trace_memory_ros.observation.observer import MAX_FAULTS, Observer

CONFIG = ObservationConfig(
    cameras=(CameraConfig("a", "a", 250), CameraConfig("b", "b", 150), CameraConfig("c", "c", 250, "compressed")),
    streams=(SensorConfig("joints", "joints", 250, select={"position": ("x",)}),),
    image_px=8,
    thumbnail_px=4,
)
MS = 1_000_000
ENCODINGS = ("rgb8", "bgr8", "mono8", "bgra8", "16UC1", "bayer_rggb8", "yuyv", "8SC1")
BYTES = {"rgb8": 3, "bgr8": 3, "mono8": 1, "bgra8": 4, "16UC1": 2, "bayer_rggb8": 1, "yuyv": 2, "8SC1": 1}


def files() -> dict[str, bytes]:
    """JPEG and PNG, whole, cut off, and whole to look at but with pixels that cannot be unpacked."""
    found = {}
    for k, (codec, size) in enumerate((("jpg", (12, 16)), ("jpg", (12, 16)), ("png", (12, 16)), ("jpg", (10, 16)))):
        pixels = np.random.default_rng(k).integers(0, 256, (*size, 3), dtype=np.uint8)
        whole = cv2.imencode("." + codec, pixels)[1].tobytes()
        found |= {f"{codec} {k}": whole, f"{codec} {k} cut": whole[:-9], f"{codec} {k} padded": whole + bytes(300)}
        at = whole.index(b"IDAT" if codec == "png" else b"\xff\xc4") + 5
        found[f"{codec} {k} damaged"] = whole[:at] + b"\xff" * 16 + whole[at + 16 :]
    return found


FILES = files()
WHOLE = [name for name in FILES if name[-1].isdigit()]


@st.composite
def messages(draw: st.DrawFn) -> list[tuple[str, int, Content]]:
    """Streams on a shaky grid: repeated and early stamps, changed sizes, encodings, cut and padded rows."""
    out: list[tuple[str, int, Content]] = []
    for k in range(draw(st.integers(1, 40))):
        stamp = (35 * k + draw(st.integers(-40, 40))) * MS
        stream = draw(st.sampled_from(("a", "b", "c", "joints")))
        if stream == "joints":
            angle = draw(st.sampled_from((0.5, float("nan"))))
            out.append((stream, stamp, Live(JointPositions(["x"], [angle]))))
            continue
        if stream == "c":
            name = draw(st.sampled_from(WHOLE[:3] * 4 + sorted(FILES)))
            out.append((stream, stamp, CompressedImage(FILES[name], name.split()[0])))
            continue
        encoding = draw(st.sampled_from(ENCODINGS[:1] * 5 + ENCODINGS))
        height, width = draw(st.sampled_from(((12, 16),) * 6 + ((10, 16), (0, 16))))
        step = width * BYTES[encoding] + draw(st.sampled_from((0, 0, 0, 5, -1)))
        size = max(0, step * height - draw(st.sampled_from((0, 0, 0, 7))))
        data = np.random.default_rng(k).integers(0, 256, size, dtype=np.uint8).tobytes()
        out.append((stream, stamp, RawImage(data, encoding, height, width, step, k % 2)))
    return out


def run(sent: list[tuple[str, int, Content]], defer: bool) -> list[Any]:
    """Everything that can be seen of an observer that is polled after every message and once at the end."""
    observer = Observer(CONFIG, horizon_ticks=5, fault_after=3, defer=defer)
    seen: list[Any] = []
    for arrival, (stream, stamp, content) in enumerate(sent):
        seen.append(observer.push(stream, stamp, arrival, content))
        for observation in observer.poll(2**62 if arrival == len(sent) - 1 else arrival):
            images = {name: image.tolist() for name, image in observation.images.items()}
            state = None if observation.state is None else observation.state.tolist()
            held = dict(observation.input_stamps_ns)
            seen.append((observation.tick, observation.stamp_ns, images, state, held, dict(observation.faults)))
    return [*seen, list(observer.faults), [repr(c) for c in observer.counters.values()], observer.aligner.stuck]


@given(messages())
@settings(max_examples=150, deadline=None)
def test_deferring_changes_nothing(sent: list[tuple[str, int, Content]]) -> None:
    assert run(sent, defer=True) == run(sent, defer=False)


@given(messages())
@settings(max_examples=150, deadline=None)
def test_a_tick_has_the_picture_or_the_fault_of_the_file_that_it_holds(sent: list[tuple[str, int, Content]]) -> None:
    observer = Observer(CONFIG, defer=True)
    ticks, taken = [], {}
    for arrival, (stream, stamp, content) in enumerate(sent):
        if observer.push(stream, stamp, arrival, content).value in ("accepted", "late") and stream == "c":
            taken[stamp] = content
        ticks += observer.poll(arrival)
    first = None
    for observation in ticks:
        at = observation.input_stamps_ns.get("c")
        if at is None or "older than" in observation.faults.get("c", ""):
            continue
        try:
            opened = open_compressed(*taken[at])
            first = first or opened.size
            expected, fault = opened.policy_image(CONFIG.image_px), ""
        except ImageError as error:
            expected, fault = None, f"c: {error}"
        if "size changed" in observation.faults.get("c", ""):
            continue
        assert observation.faults.get("c", "") == fault
        assert fault == "" or (fault in observer.faults and not observation.usable)
        if expected is None:
            assert "c" not in observation.images
        else:
            np.testing.assert_array_equal(observation.images["c"], expected)


def damaged_stream(observer: Observer) -> list[Any]:
    """Ticks of a compressed camera at 30 Hz, of whose pictures that of tick 1 is damaged."""
    ticks = []
    for k in range(13):
        stamp = k * 100 * MS // 3
        data = FILES["jpg 0 damaged"] if k == 3 else FILES["jpg 0"]
        observer.push("c", stamp, stamp, CompressedImage(data, "jpeg"))
        for camera in ("a", "b"):
            observer.push(camera, stamp, stamp, RawImage(bytes(12 * 16 * 3), "rgb8", 12, 16, 48, 0))
        observer.push("joints", stamp, stamp, Live(JointPositions(["x"], [0.0])))
        ticks += observer.poll(stamp)
    return ticks


@pytest.mark.parametrize("defer", [False, True])
def test_pixels_that_cannot_be_unpacked_are_a_fault_of_the_tick_alone(defer: bool) -> None:
    observer = Observer(CONFIG, defer=defer)
    ticks = damaged_stream(observer)
    assert [tick.usable for tick in ticks] == [True, False, True, True, True]
    assert list(ticks[1].images) == ["a", "b"]
    assert "cannot be decoded: check the publisher" in ticks[1].faults["c"]
    assert list(observer.faults) == [ticks[1].faults["c"]]
    assert observer.counters["c"].rejected == 0
    # Of 13 pictures ticks hold 5: the damage of one that none holds is not looked for.
    observer.reset()
    observer.push("c", 0, 0, CompressedImage(FILES["jpg 0 cut"], "jpeg"))
    assert "is cut off" in next(iter(observer.faults))
    assert observer.counters["c"].rejected == 1


@pytest.mark.parametrize("layout", ["jpeg", "16UC1; compressedDepth png"])
def test_cut_off_files_of_any_size_are_one_fault_and_hide_no_other(layout: str) -> None:
    observer = Observer(CONFIG)
    whole = FILES["jpg 0"]
    for k in range(2 * MAX_FAULTS):
        observer.push("c", k * MS, k * MS, CompressedImage(whole[: len(whole) - 9 - k], layout))
    observer.push("joints", 0, 0, Live(JointPositions(["x"], [float("nan")])))
    cut, other = observer.faults
    assert "is cut off" in cut
    assert "position of x is not finite" in other
    observer.push("c", 9 * MAX_FAULTS * MS, 0, CompressedImage(b"", layout))
    assert "empty compressed image" in list(observer.faults)[-1]


def test_a_fault_that_two_ticks_hold_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    reader = samples.SampleReader(CONFIG)
    sample = reader.compressed("c", FILES["jpg 0 damaged"], "jpeg")
    opened = open_compressed(FILES["jpg 0 damaged"], "jpeg")
    imdecode = cv2.imdecode
    monkeypatch.setattr(cv2, "imdecode", lambda *args: made.append(args) or imdecode(*args))
    assert sample.nbytes == len(opened.data)
    texts = set()
    for _ in range(2):
        with pytest.raises(ImageError) as error:
            _ = sample.image
        texts.add(str(error.value))
    assert len(texts) == 1
    assert len(made) == 1
    assert sample.nbytes == 0


def test_only_held_images_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    prepare = samples.prepare
    for module in (samples, compressed):
        monkeypatch.setattr(module, "prepare", lambda pixels, px, crop: made.append(px) or prepare(pixels, px, crop))
    observer = Observer(CONFIG, defer=True)
    ticks = []
    for k in range(31):
        data, stamp = bytes(12 * 16 * 3), k * 100 * MS // 3
        for camera in ("a", "b"):
            observer.push(camera, stamp, stamp, RawImage(data, "rgb8", 12, 16, 48, 0))
        observer.push("c", stamp, stamp, CompressedImage(FILES["jpg 0"], "jpeg"))
        observer.push("joints", stamp, stamp, Live(JointPositions(["x"], [0.0])))
        ticks += observer.poll(stamp)
    assert len(ticks) == 11
    assert len(made) == 33


def test_an_image_that_two_ticks_hold_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    prepare = samples.prepare
    monkeypatch.setattr(samples, "prepare", lambda pixels, px, crop: made.append(px) or prepare(pixels, px, crop))
    reader = samples.SampleReader(CONFIG, defer=True)
    sample = reader.image("a", bytes(12 * 16 * 3), "rgb8", 12, 16, 48, 0)
    assert isinstance(sample, samples.Deferred)
    assert sample.image is sample.image
    assert made == [CONFIG.image_px]
