"""What of a picture is unusual for its place, of which attention then has to choose."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

MOST = 128
"""Places of a picture that are looked at."""
DRAWS = 2.0
"""How much what is unusual draws attention at first: a score for each standard deviation of all that is seen."""
FULLY = 2.5
"""Standard deviations from which on something counts as unusual as anything: a thing is none the more for its colour,
and of several that are shown together none may outweigh the others."""
HIDDEN = 0.3
"""Share of the places that attention over what is unusual does not see in training: all of them together, each
partly of the table, are a fingerprint by which an episode is known again."""
MODES, ALIKE, LEAST_SHARE = 4, 0.3, 0.1
"""What is usual at a place: at most so many sights, each of what is so much alike and makes up such a share."""


class Salience(nn.Module):
    """The `MOST` tokens of a picture that are least like what is usual at their place in the training pictures.

    What is small and shown once is otherwise not found: until it is looked at no gradient tells that it matters. What
    is left out costs nothing. Several sights may be usual, such as a gripper open and closed, or the table below it
    (the background of Stauffer and Grimson 1999).

    usual `(M, C, K, d)`: sights of each camera's each place, repeated where there are fewer.
    """

    usual: Tensor

    def __init__(self, cameras: int, places: int, width: int) -> None:
        super().__init__()
        self.count = min(MOST, places)
        self.register_buffer("usual", torch.zeros(MODES, cameras, places, width))

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Of standardised tokens `(..., C, K, d)` how unusual the most unusual are, at most `FULLY`, and their places
        `(..., C, k)`.
        """
        found = self.unusual(tokens).topk(self.count, dim=-1)
        return found.values.clamp_(max=FULLY), found.indices

    @torch.no_grad()
    def unusual(self, tokens: Tensor) -> Tensor:
        """How far tokens `(..., C, K, d)` are from the nearest usual sight of their place `(..., C, K)`."""
        # A product with this takes the mean of few numbers ten times as fast as a mean does.
        mean = tokens.new_full((tokens.shape[-1],), 1.0 / tokens.shape[-1])
        nearest = torch.stack([(tokens - sight).square_() @ mean for sight in self.usual]).amin(dim=0)
        return nearest.sqrt_()

    @torch.no_grad()
    def calibrate(self, tokens: Tensor) -> None:
        """Take what is usual from these `(..., C, K, d)`."""
        seen = tokens.flatten(0, -4)
        for camera in range(seen.shape[1]):
            for place in range(seen.shape[2]):
                self.usual[:, camera, place] = _modes(seen[:, camera, place])


def _modes(seen: Tensor) -> Tensor:
    """The most common sights `(M, d)` of a place, of `(N, d)`: each the middle of those that are like one of them."""
    alike = torch.cdist(seen, seen) <= ALIKE * math.sqrt(seen.shape[-1])
    left = torch.ones(len(seen), dtype=torch.bool, device=seen.device)
    modes: list[Tensor] = []
    while len(modes) < MODES and left.any():
        counts = (alike & left).sum(dim=1) * left
        first = counts.argmax()
        if modes and counts[first] < LEAST_SHARE * len(seen):
            break
        group = alike[first] & left
        modes.append(seen[group].median(dim=0).values)
        left = left & ~group
    return torch.stack([*modes, *[modes[0]] * (MODES - len(modes))])


def at(tokens: Tensor, places: Tensor) -> Tensor:
    """Those of tokens `(..., K, d)` at places `(..., k)`: `(..., k, d)`."""
    return tokens.gather(-2, places[..., None].expand(*places.shape, tokens.shape[-1]))


def partly_hidden(scores: Tensor) -> Tensor:
    """Attention scores `(..., k, heads)` of which `HIDDEN` of the places count for nothing, other ones at each call."""
    hidden = torch.rand(scores.shape[:-1], device=scores.device) < HIDDEN
    # Not minus infinity: all places may be hidden where there are few.
    return scores.masked_fill(hidden[..., None], torch.finfo(scores.dtype).min / 2)
