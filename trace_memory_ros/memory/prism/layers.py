"""The blocks PRISM is made of: gated attention, the local encoder with its resampler, the global encoder's layer.

PRISM, sections 3.2 and 3.3. Every block is LLaMA-like: RMSNorm before, residual after, rotary positions (global only).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

GATES = ("feature", "blind", "none")


class Gate(nn.Module):
    """g(x) * z, what an attention block retrieved times how much of it may pass (section 3.2).

    `feature`: g is an MLP of x with a sigmoid, one value per feature. `blind`: one learned value per block, whatever x
    is (the paper's control, appendix C.3). `none`: z itself.
    """

    def __init__(self, width: int, mode: str, hidden: int) -> None:
        super().__init__()
        self.mode = mode
        if mode == "feature":
            self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, width))
        elif mode == "blind":
            self.logit = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor, z: Tensor) -> Tensor:
        if self.mode == "none":
            return z
        return self.value(x) * z

    def value(self, x: Tensor) -> Tensor:
        """g(x) in 0..1, broadcastable to x."""
        if self.mode == "feature":
            return torch.sigmoid(self.mlp(x))
        return torch.sigmoid(self.logit) if self.mode == "blind" else x.new_ones(())


class GatedLayer(nn.Module):
    """y = x + g(x) * Attn(norm x), then the feed-forward layer; what is attended to is the caller's affair."""

    frequency: Tensor

    def __init__(self, width: int, heads: int, hidden: int, gate: str, gate_hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.RMSNorm(width)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.gate = Gate(width, gate, gate_hidden)
        self.ffn_norm = nn.RMSNorm(width)
        self.ffn = nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, width))
        half = width // heads // 2
        self.register_buffer("frequency", 10_000.0 ** (-torch.arange(half) / half), persistent=False)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value `(..., w)` of inputs `(..., w)`, heads side by side, not rotated yet."""
        normed = self.norm(x)
        return self.query(normed), self.key(normed), self.value(normed)

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """The block's output from its input and what its heads retrieved `(..., H, T, w / H)`."""
        y = x + self.gate(x, self.out(merge(attended)))
        fed: Tensor = y + self.ffn(self.ffn_norm(y))
        return fed

    def turn(self, heads: Tensor, position: Tensor) -> Tensor:
        """Rotate `(..., H, T, c)` by the positions `(..., T)`: scores then depend on differences of positions only."""
        angle = (position[..., None] * self.frequency)[..., None, :, :]
        cos, sin = angle.cos(), angle.sin()
        left, right = heads.chunk(2, dim=-1)
        return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)

    def forward(self, x: Tensor) -> Tensor:
        """Attention of every token to every other, without positions, over `(..., k, w)`."""
        query, key, value = (split(part, self.heads) for part in self.project(x))
        return self.finish(x, functional.scaled_dot_product_attention(query, key, value))


class LocalEncoder(nn.Module):
    """The tokens of one tick `(..., k, w)` to one summary `(..., w)`: a gated block, then a resampler (section 3.3).

    The resampler is one learned query that attends to the block's output; its input is a constant, so it has no gate.
    """

    def __init__(self, width: int, heads: int, hidden: int, gate: str, gate_hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.block = GatedLayer(width, heads, hidden, gate, gate_hidden)
        self.norm = nn.RMSNorm(width)
        self.latent = nn.Parameter(torch.randn(width) / math.sqrt(width))
        self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(3))

    def forward(self, tokens: Tensor) -> Tensor:
        normed = self.norm(self.block(tokens))
        query = split(self.latent[None].expand(*tokens.shape[:-2], 1, -1), self.heads)
        key, value = split(self.key(normed), self.heads), split(self.value(normed), self.heads)
        summary: Tensor = self.out(merge(functional.scaled_dot_product_attention(query, key, value)))
        return summary[..., 0, :]


def split(x: Tensor, heads: int) -> Tensor:
    """`(..., T, w)` to heads `(..., H, T, w / H)`."""
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).transpose(-3, -2)


def merge(heads: Tensor) -> Tensor:
    """Heads `(..., H, T, c)` back to `(..., T, w)`."""
    return heads.transpose(-3, -2).flatten(-2)
