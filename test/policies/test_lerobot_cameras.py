"""Cameras of a LeRobot policy and those of an observation, without LeRobot."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint
from trace_memory_ros.policies.lerobot.names import camera_names
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
    with pytest.raises(ValueError, match="set the observation's image size to the policy's"):
        acted(keys, images, (4 * SIDE, SIDE))
