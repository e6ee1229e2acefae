"""What policy_node rebuilds from stamps is what memory_node observed, faults of pixels included; it does not grow."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import pytest

from trace_memory_ros.nodes.policy import sample_store
from trace_memory_ros.nodes.policy.sample_store import SampleStore
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.content import CompressedImage, JointPositions, Live, RawImage
from trace_memory_ros.observation.observer import Observer

MS = 1_000_000
CONFIG = ObservationConfig(
    cameras=(CameraConfig("a", "a", 250, "compressed"), CameraConfig("b", "b", 250)),
    streams=(SensorConfig("joints", "joints", 250, select={"position": ("x",)}),),
    image_px=8,
    thumbnail_px=4,
)


def jpeg(seed: int, damaged: bool = False) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    whole = cv2.imencode(".jpg", pixels)[1].tobytes()
    at = whole.index(b"\xff\xc4") + 5
    return whole[:at] + b"\xff" * 16 + whole[at + 16 :] if damaged else whole


def test_the_store_rebuilds_the_observation() -> None:
    observer, store = Observer(CONFIG), SampleStore(CONFIG)
    seen: list[Any] = []
    for k in range(31):
        stamp = k * 100 * MS // 3
        data = jpeg(k, damaged=k % 5 == 0)[: -7 if k % 9 == 0 else None]
        for sink in (observer, store):
            sink.push("a", stamp, stamp, CompressedImage(data, "jpeg"))
            sink.push("b", stamp, stamp, RawImage(bytes(12 * 16 * 3), "rgb8", 12, 16, 48, 0))
            sink.push("joints", stamp, stamp, Live(JointPositions(["x"], [0.1 * k])))
        seen += observer.poll(stamp)
    assert {len(observation.faults) for observation in seen} == {0, 1}
    for observation in seen:
        rebuilt = store.observation(observation.tick, observation.stamp_ns, observation.input_stamps_ns)
        assert rebuilt.faults == observation.faults
        assert rebuilt.usable == observation.usable
        assert {name: image.tolist() for name, image in rebuilt.images.items()} == {
            name: image.tolist() for name, image in observation.images.items()
        }


def test_a_new_episode_s_first_images_may_be_of_another_size_before_its_first_condition_comes() -> None:
    observer, store = Observer(CONFIG), SampleStore(CONFIG)
    for stamp, side in ((0, 12), (100 * MS, 24)):
        observer.reset()
        for sink in (observer, store):
            sink.push("a", stamp, stamp, CompressedImage(jpeg(0), "jpeg"))
            sink.push("b", stamp, stamp, RawImage(bytes(side * side * 3), "rgb8", side, side, 3 * side, 0))
            sink.push("joints", stamp, stamp, Live(JointPositions(["x"], [0.1])))
        (observation,) = observer.poll(stamp)
        assert observation.usable
        assert store.observation(observation.tick, observation.stamp_ns, observation.input_stamps_ns).usable


def test_compressed_images_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = jpeg(0)
    monkeypatch.setattr(sample_store, "KEPT_BYTES", 10 * len(data))
    store = SampleStore(CONFIG)
    for k in range(40):
        assert store.push("a", k, k, CompressedImage(data, "jpeg")) is Verdict.ACCEPTED
        store.push("joints", k, k, Live(JointPositions(["x"], [0.0])))
    assert [k for k in range(40) if not store.missing({"a": k})] == list(range(30, 40))
    assert store.missing({"joints": 0}) == []
