"""Views of an image before a frozen backbone: as it is, or perturbed as training perturbs pixels, from a fixed set."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.learning.features.hue import GREY, turns
from trace_memory_ros.learning.recipe import Augmentation
from trace_memory_ros.observation.images import Image

HUE, MOVE = 1_000, 1_001
"""Where the noise of a view's turn of colours, and of where it lies, is drawn: further than there are cameras."""
PLAIN = 0
"""The view of an image as it is, which is what a live memory sees."""


def seen(images: Image, rows: NDArray[np.int64], camera: int, view: int, strength: Augmentation) -> Image:
    """A view of images `(n, P, P, 3)`; view 0 is the images themselves.

    A view has one turn of all colours, one brightness, one way that it is moved, and one colour gain per camera, alike
    for every image, and noise drawn per row.
    """
    if view == PLAIN:
        return images
    gain = 1.0 + strength.brightness * _noise(np.random.default_rng([view]), ())
    gain = gain + strength.colour_gain * _noise(np.random.default_rng([view, camera]), (3,))
    turned = _moved(images, view, strength.memory_shift).astype(np.float32)
    if strength.hue:
        turn, mirror = torch.from_numpy(_noise(np.random.default_rng([view, HUE]), (2, 1)))
        matrix = turns(turn, mirror, strength.hue)[0].numpy()
        turned = (turned - 255.0 * GREY) @ matrix.T + 255.0 * GREY
    grain = np.stack([_noise(np.random.default_rng([view, camera, int(row)]), images.shape[1:]) for row in rows])
    perturbed = turned * gain + 255.0 * strength.pixel_noise * grain
    return np.rint(np.clip(perturbed, 0.0, 255.0)).astype(np.uint8)


def _moved(images: Image, view: int, share: float) -> Image:
    """Images moved by up to a share of their side, repeating the border."""
    side = images.shape[1]
    down, right = np.rint(np.random.default_rng([view, MOVE]).uniform(-share, share, 2) * side).astype(int)
    reach = max(abs(down), abs(right))
    padded = np.pad(images, ((0, 0), (reach, reach), (reach, reach), (0, 0)), mode="edge")
    return padded[:, reach + down : reach + down + side, reach + right : reach + right + side]


def _noise(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Uniform, of unit variance."""
    return ((rng.random(shape, dtype=np.float32) - 0.5) * math.sqrt(12.0)).astype(np.float32)
