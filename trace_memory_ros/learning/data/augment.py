"""Perturbed batches: what of a disturbance is slow is alike over a whole episode."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from trace_memory_ros.learning.data.batches import EpisodeBatch, Evidence, on_seen
from trace_memory_ros.learning.features.hue import turned, turned_features, turns
from trace_memory_ros.learning.features.noise import Draw, feature_noise
from trace_memory_ros.learning.recipe import Augmentation
from trace_memory_ros.vision.base import Features, VisualBackbone


def augment(
    batch: EpisodeBatch,
    rng: torch.Generator,
    strength: Augmentation,
    rows: slice = slice(None),
    whole: int | None = None,
    eyes: VisualBackbone | None = None,
) -> EpisodeBatch:
    """Perturb colours, pixels, framing, state and signature, the slow part of each alike over a whole episode.

    rows: which of a batch of `whole` episodes these are; they get the noise that they have in the whole batch.
    eyes: the backbone of kept features, of which those that are a colour are turned as those of images are.
    """
    size = whole or len(batch.mask)

    def noise(*shape: int) -> Tensor:
        # Uniform of unit variance: a depth-3 signature has so many numbers that normal draws would cost half the step.
        drawn = torch.rand(size, *shape[1:], generator=rng, device=rng.device)
        return (drawn[rows] - 0.5) * math.sqrt(12.0)

    first = batch.writes.thumbnails
    cameras = (first.pooled if isinstance(first, Features) else first).shape[2]
    gain = 1.0 + strength.brightness * noise(size, 1, 1, 1, 1, 1)
    gain = gain + strength.colour_gain * noise(size, 1, cameras, 3, 1, 1)
    offset = strength.state_offset * noise(size, 1, batch.writes.state.shape[-1])
    drift = strength.signature_offset * noise(size, 1, batch.writes.xi.shape[-1])
    seen, pixels = Looks(batch.mask, strength, noise, gain).of(first, eyes)

    def evidence(e: Evidence) -> Evidence:
        return Evidence(
            seen(e.thumbnails),
            e.state + offset + strength.state_noise * noise(*e.state.shape),
            e.xi + drift + strength.signature_noise * noise(*e.xi.shape),
            e.delta + strength.signature_noise * noise(*e.delta.shape),
        )

    changed = batch._replace(
        writes=evidence(batch.writes),
        reads=evidence(batch.reads),
        images=shift(pixels(batch.images), rng, strength.shift_px, rows, size)
        if batch.images.shape[2]
        else batch.images,
    )
    return changed if not strength.memory_shift else moved(changed, rng, strength.memory_shift, rows, size)


def moved(batch: EpisodeBatch, rng: torch.Generator, share: float, rows: slice, whole: int) -> EpisodeBatch:
    """What the memory sees, and what it is to foresee, moved by up to a share of its side, an episode's alike.

    Kept features stay as they are: their views were moved before they were looked at (`features/views.py`).
    """
    if isinstance(batch.writes.thumbnails, Features):
        return batch
    ways = (2.0 * torch.rand(whole, 2, generator=rng, device=rng.device)[rows] - 1.0) * share

    def alike(images: Tensor) -> Tensor:
        return translated(images, ways * images.shape[-1])

    writes, reads = (part._replace(thumbnails=on_seen(alike, part.thumbnails)) for part in (batch.writes, batch.reads))
    future = None if batch.future is None else alike(batch.future.movedim(-1, -3)).movedim(-3, -1)
    return batch._replace(writes=writes, reads=reads, future=future)


class Looks(NamedTuple):
    """How what is seen is perturbed. mask `(B, T)`: of writes; draw: noise of a shape; gain `(B, 1, C, 3, 1, 1)`."""

    mask: Tensor
    strength: Augmentation
    draw: Draw
    gain: Tensor

    def of(
        self, first: Tensor | Features, eyes: VisualBackbone | None
    ) -> tuple[Callable[[Any], Any], Callable[[Tensor], Tensor]]:
        """What perturbs what the memory sees, of which the writes saw `first`; what perturbs the policy's images."""
        if isinstance(first, Features):
            return self.features(first, eyes), self.brightened
        pixels = self.images(first)
        return pixels, pixels

    def brightened(self, images: Tensor) -> Tensor:
        """Images `(B, T, C, 3, P, P)` brighter or darker, with noise."""
        return (images * self.gain + self.strength.pixel_noise * self.draw(*images.shape)).clamp_(0.0, 1.0)

    def images(self, first: Tensor) -> Callable[[Tensor], Tensor]:
        """What perturbs images, of which the writes saw `first`."""
        turn = self._turn()
        if turn is None:
            return self.brightened
        # About the mean colour of what is written, so that what is unusual in an episode stays so.
        middle = _mean_colour(first, self.mask)

        def perturbed(images: Tensor) -> Tensor:
            noise = self.strength.pixel_noise * self.draw(*images.shape)
            return turned(images, turn, middle) * self.gain + noise

        return perturbed

    def features(self, first: Features, eyes: VisualBackbone | None) -> Callable[[Features], Features]:
        """What perturbs features of `eyes`, of which the writes saw `first`."""
        noisy = feature_noise(first, self.mask, self.strength, self.draw, eyes is not None and eyes.placed)
        turn = self._turn()
        if turn is None or eyes is None or not eyes.colours:
            return noisy
        other = turned_features(first, turn, self.mask, eyes.colours)
        return lambda features: noisy(other(features))

    def _turn(self) -> Tensor | None:
        """Of each episode's hues `(B, 3, 3)`."""
        strength = self.strength.hue
        return turns(self.draw(0), self.draw(0), strength) if strength else None


def _mean_colour(images: Tensor, mask: Tensor) -> Tensor:
    """Of each episode's images `(B, T, C, 3, P, P)` where there are writes, `(B, 3)`."""
    each = images.mean(dim=(2, 4, 5))
    return (each * mask[..., None]).sum(dim=1) / mask.sum(dim=1)[:, None]


def shift(
    images: Tensor, rng: torch.Generator, reach_px: int, rows: slice = slice(None), whole: int | None = None
) -> Tensor:
    """Translate the `(B, R, C, 3, P, P)` images of each episode by up to `reach_px` pixels, repeating the border.

    rows, whole: as of `augment`.
    """
    if reach_px == 0:
        return images
    moves = torch.randint(0, 2 * reach_px + 1, (whole or len(images), 2), generator=rng, device=rng.device)[rows]
    return translated(images, moves - reach_px)


def translated(images: Tensor, ways_px: Tensor) -> Tensor:
    """Images `(B, ..., P, P)`, each episode's moved up and left by `ways_px` `(B, 2)`, whole pixels; borders repeat."""
    side, ways = images.shape[-1], ways_px.round().long()
    reach = int(ways.abs().max())
    padded = torch.nn.functional.pad(images.flatten(1, -3), [reach] * 4, mode="replicate")
    corners = (ways + reach).tolist()
    there = [episode[:, y : y + side, x : x + side] for episode, (y, x) in zip(padded, corners, strict=True)]
    return torch.stack(there).reshape(images.shape)
