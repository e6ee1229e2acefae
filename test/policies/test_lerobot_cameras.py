"""Cameras of a LeRobot policy and those of an observation, without LeRobot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from trace_memory_ros.observation.images import prepare
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint
from trace_memory_ros.policies.lerobot.names import camera_names
from trace_memory_ros.policies.lerobot.pictures import fitted, side_for
from trace_memory_ros.policies.lerobot.runner import LerobotRunner

SIDE = 4
SHAPE = ConditionShape(tokens=1, width=2, address=0)


class Looking:
    """Answers with the mean of every picture, in the order of its features."""

    def __init__(self, *keys: str) -> None:
        features = {key: SimpleNamespace(shape=(3, SIDE, SIDE)) for key in keys}
        self.config = SimpleNamespace(image_features=features, env_state_feature=None)
        self.base, self.options = SimpleNamespace(name="act"), SimpleNamespace(condition=SHAPE)

    def eval(self) -> Looking:
        return self

    def select_action(self, batch: dict[str, Tensor]) -> Tensor:
        return torch.stack([batch[key].mean() for key in self.config.image_features])[None]


def acted(
    keys: tuple[str, ...], images: dict[str, int], sides: tuple[int, ...] = (SIDE,) * 3, px: int | None = None
) -> list[float]:
    policy: Any = Looking(*keys)
    runner = LerobotRunner(LerobotCheckpoint(policy, lambda batch: batch, lambda action: action), image_px=px)
    seen = {
        name: np.full((side, side, 3), value, np.uint8)
        for (name, value), side in zip(images.items(), sides, strict=False)
    }
    none = np.zeros(0, np.float32)
    tokens, weights = np.zeros((1, 2), np.float32), np.ones(1, np.float32)
    condition = SimpleNamespace(tokens=tokens, vector=tokens[0], read_weights=weights, address=none)
    action = runner.act(SimpleNamespace(images=seen, state=np.zeros(1)), condition)
    return [round(255 * float(value)) for value in action]


def test_a_camera_is_found_by_the_name_that_training_on_its_dataset_gives_it() -> None:
    keys = ("observation.images.top-view", "observation.images.wrist.cam", "observation.image")
    assert list(camera_names(keys)) == ["top_view", "wrist_cam", "image"]
    assert acted(keys, {"image": 30, "wrist_cam": 20, "top_view": 10}) == [10, 20, 30]


def test_a_camera_of_the_policys_very_own_name_comes_first() -> None:
    assert acted(("observation.images.a-b",), {"a_b": 10, "a-b": 20}) == [20]


def test_a_camera_that_is_missing_is_named() -> None:
    with pytest.raises(ValueError, match=r"looks at observation\.images\.top-view, .* the cameras side"):
        acted(("observation.images.top-view",), {"side": 10})


def test_cameras_of_unlike_sizes_are_shrunk_for_a_policy_that_was_trained_here() -> None:
    keys, images = ("observation.images.wide", "observation.images.wrist"), {"wide": 10, "wrist": 20}
    assert acted(keys, images, (4 * SIDE, SIDE), SIDE) == [10, 20]
    with pytest.raises(ValueError, match="set the observation's image_px to 4"):
        acted(keys, images, (4 * SIDE, SIDE))


@pytest.mark.parametrize("shape", [(48, 64), (64, 36), (64, 64)])
def test_pictures_that_an_observation_squeezed_get_their_shape_back(shape: tuple[int, int]) -> None:
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    wave = 127 + 100 * np.sin(columns / 5) * np.cos(rows / 7)
    picture = np.stack([wave, wave.max() - wave, np.full(shape, 40.0)], axis=-1).astype(np.uint8)
    side = side_for((3, *shape))
    squeezed = torch.from_numpy(prepare(picture, side)).permute(2, 0, 1)[None].float() / 255
    again = fitted(squeezed, (3, *shape))[0].permute(1, 2, 0).numpy() * 255
    assert again.shape == picture.shape
    inner = np.abs(again - picture)[3:-3, 3:-3]
    assert inner.max() < 6 and inner.mean() < 1


def test_a_policy_of_wide_pictures_is_given_wide_ones() -> None:
    key = "observation.images.wide"
    policy: Any = Looking(key)
    policy.config.image_features[key].shape = (3, SIDE - 1, SIDE)
    given: list[Tensor] = []
    runner = LerobotRunner(LerobotCheckpoint(policy, lambda batch: given.append(batch[key]) or batch, lambda a: a))
    tokens, weights = np.zeros((1, 2), np.float32), np.ones(1, np.float32)
    condition = SimpleNamespace(tokens=tokens, vector=tokens[0], read_weights=weights, address=np.zeros(0, np.float32))
    images = {"wide": np.full((SIDE, SIDE, 3), 30, np.uint8)}
    runner.act(SimpleNamespace(images=images, state=np.zeros(1)), condition)
    assert given[0].shape == (1, 3, SIDE - 1, SIDE)
    torch.testing.assert_close(given[0], torch.full_like(given[0], 30 / 255))
