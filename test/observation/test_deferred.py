"""Images made on demand give what images made at once give: observations, faults, counters, verdicts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_memory_ros.observation import samples
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.content import Content, JointPositions, Live, RawImage
from trace_memory_ros.observation.observer import Observer

CONFIG = ObservationConfig(
    cameras=(CameraConfig("a", "a", 250), CameraConfig("b", "b", 150)),
    streams=(SensorConfig("joints", "joints", 250, select={"position": ("x",)}),),
    image_px=8,
    thumbnail_px=4,
)
MS = 1_000_000
ENCODINGS = ("rgb8", "bgr8", "mono8", "bgra8", "16UC1", "bayer_rggb8")
BYTES = {"rgb8": 3, "bgr8": 3, "mono8": 1, "bgra8": 4, "16UC1": 2, "bayer_rggb8": 1}


@st.composite
def messages(draw: st.DrawFn) -> list[tuple[str, int, Content]]:
    """Streams on a shaky grid: repeated and early stamps, changed sizes, encodings, cut and padded rows."""
    out: list[tuple[str, int, Content]] = []
    for k in range(draw(st.integers(1, 40))):
        stamp = (35 * k + draw(st.integers(-40, 40))) * MS
        stream = draw(st.sampled_from(("a", "b", "joints")))
        if stream == "joints":
            angle = draw(st.sampled_from((0.5, float("nan"))))
            out.append((stream, stamp, Live(JointPositions(["x"], [angle]))))
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


def test_only_held_images_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    prepare = samples.prepare
    monkeypatch.setattr(samples, "prepare", lambda pixels, px: made.append(px) or prepare(pixels, px))
    observer = Observer(CONFIG, defer=True)
    ticks = []
    for k in range(31):
        data, stamp = bytes(12 * 16 * 3), k * 100 * MS // 3
        for camera in ("a", "b"):
            observer.push(camera, stamp, stamp, RawImage(data, "rgb8", 12, 16, 48, 0))
        observer.push("joints", stamp, stamp, Live(JointPositions(["x"], [0.0])))
        ticks += observer.poll(stamp)
    assert len(ticks) == 11
    assert len(made) == 22


def test_an_image_that_two_ticks_hold_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    prepare = samples.prepare
    monkeypatch.setattr(samples, "prepare", lambda pixels, px: made.append(px) or prepare(pixels, px))
    reader = samples.SampleReader(CONFIG, defer=True)
    sample = reader.image("a", bytes(12 * 16 * 3), "rgb8", 12, 16, 48, 0)
    assert isinstance(sample, samples.Deferred)
    assert sample.image is sample.image
    assert made == [CONFIG.image_px]
