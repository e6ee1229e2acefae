"""PRISM's encoders, and full attention over all local tokens, as classifiers of every tick of a stream."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.prism.layers import LocalEncoder
from trace_memory_ros.memory.prism.ring import GlobalEncoder


class TickTokens(nn.Module):
    """The symbols of a tick `(..., F)` as F local tokens `(..., F, w)`."""

    def __init__(self, fields: tuple[int, ...], width: int) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(size, width) for size in fields)
        self.norm = nn.RMSNorm(width)

    def forward(self, symbols: Tensor) -> Tensor:
        tokens = [embed(symbols[..., index]) for index, embed in enumerate(self.embeddings)]
        normed: Tensor = self.norm(torch.stack(tokens, dim=-2))
        return normed


class Hierarchy(nn.Module):
    """Local encoder, resampler to one summary per tick, global encoder, broadcast back (PRISM, section 3.3).

    Local tokens `(B, T, k, w)` to fused tokens of the same shape.
    """

    def __init__(self, width: int, heads: int, layers: int, hidden: int, gate: str, window: int) -> None:
        super().__init__()
        self.local = LocalEncoder(width, heads, hidden, gate, width)
        self.encoder = GlobalEncoder(width, heads, hidden, layers, window, gate, width)

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens + self.encoder.whole(self.local(tokens)).y[..., None, :]


class FullAttention(nn.Module):
    """Gated causal blocks over all local tokens of all ticks, in temporal order; shapes as `Hierarchy`."""

    def __init__(self, width: int, heads: int, layers: int, hidden: int, gate: str, window: int) -> None:
        super().__init__()
        self.encoder = GlobalEncoder(width, heads, hidden, layers, window, gate, width)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.encoder.whole(tokens.flatten(1, 2)).y.reshape(tokens.shape)


class TickClassifier(nn.Module):
    """Logits `(B, T, classes)` of symbols `(B, T, F)`, from the last local token of every tick."""

    def __init__(self, fields: tuple[int, ...], classes: int, width: int, history: nn.Module) -> None:
        super().__init__()
        self.tokens = TickTokens(fields, width)
        self.history = history
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, symbols: Tensor) -> Tensor:
        logits: Tensor = self.head(self.norm(self.history(self.tokens(symbols))[..., -1, :]))
        return logits


def parameter_count(module: nn.Module) -> int:
    """All trained numbers."""
    return sum(parameter.numel() for parameter in module.parameters())
