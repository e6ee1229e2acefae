"""Turns of the circle of hues: a thing is then known again by being alike, not by which colour it has."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.placed import there

GREY = 0.5
"""What colours are turned about where nothing is known of the episode, so that few leave 0..1."""


def turned(images: Tensor, matrices: Tensor, about: Tensor) -> Tensor:
    """Images `(B, T, C, 3, P, P)` with colours turned by `(B, 3, 3)` about `(B, 3)`, alike over an episode.

    Not cut off at 0 and 1, where colours that were unlike would become alike.
    """
    middle = about[:, None, None, :, None, None]
    return torch.einsum("bij,btcjhw->btcihw", matrices, images - middle) + middle


def turned_features(features: Features, matrices: Tensor, mask: Tensor, colours: int) -> Callable[[Features], Features]:
    """Turns the first `colours` numbers of features `(B, T, C, K, d)`, as images are, about the episode's mean colour.

    features, mask `(B, T)`: of the writes, whose mean it is.
    """
    first = features.tokens[..., :colours]
    some = there(features.tokens) & mask[..., None, None]
    count = some.flatten(1).sum(dim=1).clamp_min(1)[:, None]
    middle = (first * some[..., None]).flatten(1, -2).sum(dim=1) / count

    def turn(seen: Features) -> Features:
        colour, rest = seen.tokens[..., :colours], seen.tokens[..., colours:]
        # As pictures of a pixel a token.
        other = turned(colour.mT[..., None], matrices, middle)[..., 0].mT
        tokens = torch.cat([torch.where(there(seen.tokens)[..., None], other, colour), rest], dim=-1)
        return Features(tokens, tokens.mean(dim=-2))

    return turn


def turns(turn: Tensor, mirror: Tensor, hue: float) -> Tensor:
    """Matrices of colours `(B, 3, 3)` that leave grey as it is, by uniform noise of unit variance `(B,)`."""
    angle = turn * (math.pi * hue / math.sqrt(3.0))
    # Rodrigues' rotation, about (1, 1, 1).
    cross = torch.tensor([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]], device=turn.device) / math.sqrt(3.0)
    sine, cosine = angle.sin()[:, None, None], angle.cos()[:, None, None]
    matrix = torch.eye(3, device=turn.device) + sine * cross + (1.0 - cosine) * (cross @ cross)
    if hue < 1.0:
        return matrix
    return torch.where(mirror[:, None, None] > 0.0, matrix.flip(-1), matrix)
