"""Images kept once per camera, and cameras of their own sizes and crops from message to episode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from studies import tiny_bags as tiny
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.cache import load_episodes
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.files.stored import StoredArray
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig
from trace_memory_ros.observation.frames import Frames, at, of_stack, resized, stacked
from trace_memory_ros.observation.images import open_compressed, prepare

TICKS = 8
HALF = (0.5, 0.0, 1.0, 1.0)


def pixels(count: int, px: int = 4) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, px, px, 3), dtype=np.uint8)


def test_ticks_that_hold_one_image_share_it() -> None:
    kept, index = pixels(3), np.array([0, 0, 1, 2, 2])
    frames = Frames(kept, index)
    assert len(frames) == 5 and frames.px == 4
    assert np.array_equal(frames[np.array([4, 1])], kept[[2, 0]])
    assert np.array_equal(frames[2], kept[1])
    cut = frames.at(slice(1, 4))
    assert np.array_equal(cut[:], kept[[0, 1, 2]]) and cut.pixels is kept
    assert frames.shrunk(2).pixels.shape == (3, 2, 2, 3)


@pytest.mark.parametrize("index", [[0, 3], [-1, 0]])
def test_an_index_beyond_the_images_is_refused(index: list[int]) -> None:
    with pytest.raises(ValueError, match="does not point into 3 images"):
        Frames(pixels(3), np.array(index))


def test_cameras_of_unlike_sizes_stack_only_at_one_size() -> None:
    cameras = {"front": Frames.of(pixels(5, 8)), "hand": Frames.of(pixels(5, 4))}
    with pytest.raises(ValueError, match="cameras of unlike sizes cannot be stacked: {'front': 8, 'hand': 4}"):
        stacked(cameras, 0)
    small = stacked(resized(at(cameras, [3, 1]), 4), slice(None))
    assert small.shape == (2, 2, 4, 4, 3)
    assert np.array_equal(small[1, 0], prepare(cameras["front"][1], 4))
    assert np.array_equal(stacked(of_stack(("a", "b"), small), slice(None)), small)


def config(**changes: object) -> ObservationConfig:
    front, hand = tiny.OBSERVATION.cameras
    return replace(tiny.OBSERVATION, cameras=(replace(front, **changes), hand))  # type: ignore[arg-type]


def episode(tmp_path: Path, observation: ObservationConfig) -> BagEpisode:
    bag = tiny.write(tmp_path / "bag", tiny.recording_of(TICKS))
    ((made,), _) = decode_bag(bag, replace(tiny.RECORDING, observation=observation))
    return made


def test_a_camera_has_its_own_size_and_crop_from_bag_to_cache(tmp_path: Path) -> None:
    own = config(image_px=6, crop=HALF)
    made = episode(tmp_path, own)
    recording = replace(tiny.RECORDING, observation=own)
    (kept,) = load_episodes([tmp_path / "bag"], recording, tmp_path / "cache")
    assert isinstance(kept, BagEpisode)
    for tick in range(TICKS):
        right = tiny.pixels(tick, 0)[:, tiny.WIDTH // 2 :]
        assert np.array_equal(made.images["front"][tick], prepare(right, 6))
        assert np.array_equal(made.images["hand"][tick], prepare(tiny.pixels(tick, 1), tiny.IMAGE_PX))
        for name in made.cameras:
            assert np.array_equal(kept.images[name][tick], made.images[name][tick])
    assert isinstance(kept.images["front"].pixels, StoredArray)
    assert ObservationConfig.from_dict(own.to_dict()) == own


def test_fast_ticks_keep_each_image_once(tmp_path: Path) -> None:
    """The joints come at every tick; at a fifth of the tick period each image is held five times."""
    fast = replace(tiny.OBSERVATION, tick_period_ms=20)
    made = episode(tmp_path, fast)
    frames = made.images["hand"]
    assert len(frames) > 4 * len(frames.pixels)
    assert np.array_equal(np.unique(frames.index), np.arange(len(frames.pixels)))


def test_a_cropped_jpeg_is_unpacked_large_enough() -> None:
    noise = cv2.resize(pixels(1, 20)[0], (640, 480), interpolation=cv2.INTER_CUBIC)
    packed = open_compressed(cv2.imencode(".jpg", noise)[1], "jpeg")
    whole = packed.rgb()
    for crop in (HALF, (0.4, 0.4, 0.6, 0.6), (0.0, 0.5, 1.0, 0.51)):
        gap = np.abs(packed.policy_image(48, crop).astype(int) - prepare(whole, 48, crop))
        assert gap.mean() < 2.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"crop": (0.5, 0.0, 0.5, 1.0)}, "left must be less than right"),
        ({"crop": (0.0, 0.0, 1.0, 1.2)}, "none above 1"),
        ({"crop": (0.0, 1.0)}, "give left, top, right and bottom as shares"),
        ({"image_px": 0}, "image_px = 0"),
    ],
)
def test_a_camera_that_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        CameraConfig("eye", "eye/image", 250, **changes)  # type: ignore[arg-type]


def test_what_the_memory_sees_is_no_larger_than_any_camera() -> None:
    with pytest.raises(ConfigError, match=r"images of image_px = 1 \(camera 'front'\) and cannot be larger"):
        config(image_px=1)
