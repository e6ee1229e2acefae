"""The models that MQAR compares: one backbone, one layer of memory or attention that differs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from studies.recall.streams.mqar import VOCABULARY
from trace_memory_ros.memory.fast_weights import elu_feature, unit
from trace_memory_ros.memory.rank_one_scan import Writes, rank_one_reads
from trace_memory_ros.memory.vla.scan import Refresh, penalty_scan

LAMBDA_0 = 0.1
REFRESH = Refresh(20, 1e-3)
FLOOR = 1e-4


@dataclass(frozen=True)
class Backbone:
    """Sizes and front end shared by all mechanisms.

    shift: every key, query and value is made of a token and the one before it. positions: learned absolute positions.
    """

    width: int = 64
    heads: int = 1
    head_width: int = 32
    layers: int = 1
    hidden: int = 128
    shift: bool = True
    positions: int = 0


class Mixer(nn.Module):
    """Projections, the previous-token mix, and the output map around a mechanism on `(B * H, T, d_h)`."""

    def __init__(self, backbone: Backbone) -> None:
        super().__init__()
        self.backbone = backbone
        inner = backbone.heads * backbone.head_width
        self.qkv = nn.ModuleList(nn.Linear(backbone.width, inner) for _ in range(3))
        # Shares of the token itself and of the one before it, per channel.
        self.mix = nn.Parameter(torch.full((3, 2, backbone.width), 0.5)) if backbone.shift else None
        self.norm = nn.LayerNorm(backbone.head_width)
        self.out = nn.Linear(inner, backbone.width)

    def forward(self, x: Tensor) -> Tensor:
        """`(B, T, width)` to `(B, T, width)`."""
        batch, steps, _ = x.shape
        sources = [x] * 3
        if self.mix is not None:
            before = functional.pad(x, (0, 0, 1, 0))[:, :-1]
            sources = [mine * x + previous * before for mine, previous in self.mix]
        shape = (batch, steps, self.backbone.heads, self.backbone.head_width)
        q, k, v = (
            layer(source).reshape(shape).transpose(1, 2).flatten(0, 1)
            for layer, source in zip(self.qkv, sources, strict=True)
        )
        read = self.norm(self.recall(q, k, v, sources[1]))
        return self.out(read.unflatten(0, (batch, -1)).transpose(1, 2).flatten(2))

    def recall(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        """What the mechanism reads at every step, `(B * H, T, d_h)`, after the step's own write."""
        raise NotImplementedError

    def empty(self, k: Tensor) -> Tensor:
        """S before the first write."""
        return k.new_zeros(k.shape[0], k.shape[2], k.shape[2])


class Softmax(Mixer):
    """VLA, eq. 2."""

    def recall(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Linear(Mixer):
    """VLA, eq. 3."""

    def recall(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        q, k = elu_feature(q), elu_feature(k)
        reads, _ = rank_one_reads(self.empty(k), Writes(k, k, v, residual=False), q)
        return reads / (q * k.cumsum(dim=1)).sum(dim=-1, keepdim=True).clamp(min=FLOOR)


class Delta(Mixer):
    """DeltaNet: beta is the strength of a write; keys of any sign."""

    feature: Callable[[Tensor], Tensor] = staticmethod(functional.silu)
    decays = False

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        self.beta = nn.Linear(backbone.width, backbone.heads)
        nn.init.constant_(self.beta.bias, 3.0 if self.decays else 0.0)

    def recall(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        beta = torch.sigmoid(self.beta(x)).transpose(1, 2).flatten(0, 1)
        q, k = unit(self.feature(q)), unit(self.feature(k))
        writes = Writes(k, k, v, beta.log()) if self.decays else Writes(k, beta[..., None] * k, v)
        return rank_one_reads(self.empty(k), writes, q)[0]


class PaperDelta(Delta):
    """VLA, eq. 4: beta fades the whole state; ELU + 1 keys."""

    feature = staticmethod(elu_feature)
    decays = True


class Vla(Mixer):
    """VLA, eq. 8-11."""

    penalty = 1.0
    adapts = True
    exact = False

    def __init__(self, backbone: Backbone) -> None:
        super().__init__(backbone)
        width = backbone.head_width
        self.w_u = nn.Parameter(torch.eye(width).repeat(backbone.heads, 1, 1))
        self.b_u = nn.Parameter(torch.ones(backbone.heads, 1, width))

    def recall(self, q: Tensor, k: Tensor, v: Tensor, x: Tensor) -> Tensor:
        raw = k.unflatten(0, (-1, self.backbone.heads))
        u = self.penalty * unit(raw @ self.w_u + self.b_u).flatten(0, 1)
        q, k = elu_feature(q), elu_feature(k)
        k_hat = unit(k)
        alpha = self._direction(u, k_hat) if self.adapts else k_hat
        alpha = alpha / (alpha * k_hat).sum(dim=-1, keepdim=True) if self.exact else unit(alpha)
        reads, _ = rank_one_reads(self.empty(k), Writes(k_hat, alpha, v), q)
        return reads / (q * k.cumsum(dim=1)).sum(dim=-1, keepdim=True).clamp(min=FLOOR)

    @staticmethod
    def _direction(u: Tensor, k_hat: Tensor) -> Tensor:
        start = torch.eye(u.shape[-1]).expand(u.shape[0], -1, -1) / LAMBDA_0
        written = torch.ones(u.shape[:2], dtype=torch.bool)
        return penalty_scan(start, torch.zeros(u.shape[0]), u, k_hat, written, REFRESH, every_step=False).alpha


class WeakVla(Vla):
    """VLA with algorithm 1's shorter u."""

    penalty = 1 / math.sqrt(32)


class FixedVla(Vla):
    """VLA without the penalty: A stays 10 I (ablation of table 4)."""

    adapts = False


class ExactVla(Vla):
    """VLA whose write stores exactly: alpha / (alpha . k)."""

    exact = True


class Block(nn.Module):
    """Mixer and MLP, each after a norm and beside a residual path."""

    def __init__(self, mixer: type[Mixer], backbone: Backbone) -> None:
        super().__init__()
        width = backbone.width
        self.mixer = nn.Sequential(nn.LayerNorm(width), mixer(backbone))
        self.mlp = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, backbone.hidden), nn.GELU(), nn.Linear(backbone.hidden, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """`(B, T, width)` to the same."""
        x = x + self.mixer(x)
        return x + self.mlp(x)


class MqarModel(nn.Module):
    """Tokens to logits: embedding, blocks, and the embedding as the head."""

    def __init__(self, mixer: type[Mixer], backbone: Backbone) -> None:
        super().__init__()
        width = backbone.width
        self.embedding = nn.Embedding(VOCABULARY, width)
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        self.positions = nn.Parameter(0.02 * torch.randn(backbone.positions, width)) if backbone.positions else None
        self.blocks = nn.Sequential(*(Block(mixer, backbone) for _ in range(backbone.layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Tensor, answers: int) -> Tensor:
        """Logits `(B, answers, VOCABULARY)` at the last `answers` tokens of `(B, T)`."""
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions[: tokens.shape[1]]
        return self.norm(self.blocks(x)[:, -answers:]) @ self.embedding.weight.T
