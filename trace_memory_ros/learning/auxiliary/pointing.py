"""Naming answers that are places, by where attention to the present lies."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from trace_memory_ros.policies.places import HEADS, KEY, WAVES, Places, in_waves
from trace_memory_ros.vision.placed import EDGE, WHERE

HIDDEN = 64
NOWHERE = 1.5 * EDGE
"""Row and column of what is no place in the picture."""


class Pointing(nn.Module):
    """Answers by pointing: of each thing how much attention it has, and of its place which answers lie there.

    A pointer sum (Kadlec et al. 2016): P(a) = sum over heads h and things k of P(h) P(k | h) P(a | place of k).
    Attention goes by looks alone, so with hues turned no episode's answers are learned by heart. What is no place in
    the picture, such as that nothing is left to do, is pointed at beside it. Of the `coming` answers the present one
    is asked for as the policy asks; each later one by a map of its own, so that all are kept from the first on, and
    which comes next is learned apart from what they are.

    places: another module's. asked, known: widths of what is asked with, and of what tells which head to follow.
    """

    def __init__(self, places: Places, asked: int, known: int, answers: int, coming: int) -> None:
        super().__init__()
        # In a tuple, so that its weights are not this module's as well.
        self._places = (places,)
        self.nowhere = nn.Parameter(torch.randn(HEADS, KEY))
        told = WHERE * (1 + 2 * WAVES) + places.cameras
        self.where = nn.Sequential(nn.Linear(told, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, answers))
        self.follow = nn.Sequential(nn.Linear(known, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HEADS))
        self.later = nn.ModuleList(nn.Linear(asked, places.cameras * HEADS * KEY) for _ in range(coming - 1))

    def forward(self, asked: Tensor, known: Tensor, tokens: Tensor) -> Tensor:
        """Log-probabilities `(N, coming, answers)` of questions `(N, w)`, what is known `(N, v)` and tokens
        `(N, C, K, d)`.
        """
        places = self._places[0]
        queries = torch.stack([places.queries(asked, query) for query in (None, *self.later)])
        scores, grid = places.scores(queries, tokens)
        beside = torch.einsum("jnchd,hd->jnch", queries, nn.functional.normalize(self.nowhere, dim=-1))
        beside = beside * places.sharpness.exp()[:, 0]
        attention = torch.cat([scores, beside[..., None]], dim=-1).log_softmax(dim=-1)
        grid = grid.expand(*scores.shape[1:3], -1, -1)
        grid = torch.cat([grid, torch.full_like(grid[:, :, :1], NOWHERE)], dim=2)
        found = (attention[..., None] + self._lie(grid)[:, :, None]).logsumexp(dim=4)
        # Cameras count alike; so do the heads that ask for what comes later.
        followed = self.follow(known).log_softmax(dim=-1)
        heads = torch.stack([followed, *[torch.full_like(followed, -math.log(HEADS))] * len(self.later)])
        joint = found + heads[:, :, None, :, None] - math.log(places.cameras)
        return joint.flatten(2, 3).logsumexp(dim=2).transpose(0, 1)

    def _lie(self, grid: Tensor) -> Tensor:
        """Log-probabilities `(N, C, k, answers)` of what lies at places `(N, C, k, 2)`."""
        camera = torch.eye(grid.shape[1], device=grid.device)[:, None].expand(*grid.shape[:3], -1)
        logits: Tensor = self.where(torch.cat([in_waves(grid), camera], dim=-1))
        return logits.log_softmax(dim=-1)
