"""Routing by distance to prototype signatures, an alternative to TRACE's eq. 26 that learns from fewer episodes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PrototypeRoute(nn.Module):
    """Route logits `(..., K)` of signatures `(..., S)`: minus half the scaled squared distance to K learned centres."""

    scale: Tensor

    def __init__(self, slots: int, signature: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(slots, signature))
        self.register_buffer("scale", torch.tensor(float(signature)))

    def forward(self, xi: Tensor) -> Tensor:
        """Logits without the part that all slots share, so that large signatures cost no precision."""
        half_norms = self.centres.square().sum(dim=-1) / 2
        return (xi @ self.centres.T - half_norms) / self.scale

    @torch.no_grad()
    def fit(self, xi: Tensor, rounds: int = 20) -> None:
        """Place the centres by k-means on `(n, S)`; the scale becomes the mean squared distance to the own centre.

        Raises ValueError with fewer signatures than slots.
        """
        slots = self.centres.shape[0]
        if xi.shape[0] < slots:
            raise ValueError(f"{xi.shape[0]} signatures for {slots} prototypes: give at least one per slot")
        centres = k_means(xi, slots, rounds)
        self.centres.copy_(centres)
        spread = torch.cdist(xi, centres).min(dim=1).values.square().mean()
        self.scale.copy_(spread.clamp_min(1e-6))


def k_means(points: Tensor, count: int, rounds: int) -> Tensor:
    """Centres `(count, S)` of `points` `(n, S)`; deterministic, begun at points that lie far from each other."""
    centres = points.mean(dim=0, keepdim=True)
    chosen = torch.cdist(points, centres).argmin().reshape(1)
    while chosen.numel() < count:
        chosen = torch.cat((chosen, torch.cdist(points, points[chosen]).min(dim=1).values.argmax().reshape(1)))
    centres = points[chosen].clone()
    for _ in range(rounds):
        nearest = torch.cdist(points, centres).argmin(dim=1)
        members = torch.nn.functional.one_hot(nearest, count).to(points.dtype)
        size = members.sum(dim=0)[:, None]
        centres = torch.where(size > 0, (members.T @ points) / size.clamp_min(1), centres)
    return centres
