"""A token for each small thing of one colour: its colour, its outline and where it is, and nothing around it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trace_memory_ros.files.strict import ConfigError, require_int
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.placed import EDGE, WHERE
from trace_memory_ros.vision.regions import COLOURS, WIDTH, Floats, Things, labels, things


class ThingsBackbone(VisualBackbone):
    """The largest `most_things` things of a picture, each a token of its colour, outline, row and column; else zeros.

    A thing is a region of neighbouring pixels of one hue. Its colour is its own, not mixed with the table's, and its
    outline is the same wherever it lies; deeper features of so few pixels are of their surroundings. Greys are left
    out: so are a robot's own parts, by which a training episode is known again; and what has the hue of the largest
    region, which things lie on and which is seen through holes in them. Options `least_px`: pixels of the
    smallest thing; `most_px`: side of the largest; `colourful`: least difference between its brightest and darkest
    colour, of 0..1.
    """

    width = WIDTH + WHERE
    colours = COLOURS
    placed = True
    revision = 1

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__(config, px)
        self._take(**config.options)
        # Compiled now, in a second or two, and not at a robot's first tick.
        labels(np.zeros((1, 1, COLOURS), np.float32))

    def _take(self, most_things: int = 24, least_px: int = 6, most_px: int = 48, colourful: float = 0.3) -> None:
        for name, value in (("most_things", most_things), ("least_px", least_px), ("most_px", most_px)):
            require_int(value, f"backbone things: {name}", 1)
        if not 0.0 <= colourful < 1.0:
            raise ConfigError(f"backbone things: colourful = {colourful}: must be at least 0 and less than 1")
        self.most_things, self.least_px, self.most_px, self.colourful = most_things, least_px, most_px, colourful

    def token_grid(self, px: int) -> tuple[int, int]:
        return self.most_things, 1

    @torch.no_grad()
    def look(self, images: Tensor) -> Features:
        tokens = torch.zeros(len(images), self.most_things, self.width)
        sides = np.maximum(np.array(images.shape[-2:]) - 1, 1)
        for each, image in zip(tokens, images.movedim(1, -1).cpu().contiguous().numpy(), strict=True):
            found = self.things(image)
            where = EDGE * (2.0 * found.middles / sides - 1.0)
            whole = np.concatenate([found.looks, where], axis=1)[: self.most_things]
            each[: len(whole)] = torch.from_numpy(whole)
        tokens = tokens.to(images)
        return Features(tokens, tokens.mean(dim=1))

    def things(self, image: Floats) -> Things:
        """All things of a picture `(h, w, 3)` in 0..1; the first `most_things` become tokens."""
        return things(image, self.least_px, self.most_px, self.colourful)
