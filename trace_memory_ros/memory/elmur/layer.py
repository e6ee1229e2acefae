"""One layer of ELMUR: token track and memory track with their relative biases (ELMUR, algorithm 1, eq. 1-2)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class BiasedAttention(nn.Module):
    """Multi-head attention softmax(Q Kᵀ / √d_h + B) V over few keys (ELMUR, section 4.5)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, queries: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
        """`(B, Q, d)`, `(B, K, d)` and a bias `(B or 1, H, Q, K)` to `(B, Q, d)`."""
        query = self._heads(self.query(queries))
        key, value = (self._heads(part) for part in self.key_value(keys).chunk(2, dim=-1))
        mixed: Tensor = self.out(
            functional.scaled_dot_product_attention(query, key, value, attn_mask=bias).transpose(1, 2).flatten(2)
        )
        return mixed

    def weighed(self, queries: Tensor, kept: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """As `forward`, with the weights `(B, H, Q, K)`; kept `(B, K, 2 d)`: what `key_value` made of the keys."""
        query = self._heads(self.query(queries))
        key, value = (self._heads(part) for part in kept.chunk(2, dim=-1))
        weights = torch.softmax(query @ key.mT / math.sqrt(query.shape[-1]) + bias, dim=-1)
        return self.out((weights @ value).transpose(1, 2).flatten(2)), weights

    def _heads(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.heads, x.shape[-1] // self.heads).transpose(1, 2)


class RelativeBias(nn.Module):
    """A learned number per head and clamped integer offset, at first 0.

    Between the tokens of a segment the paper has Transformer-XL's encodings, which depend on the content too.
    """

    def __init__(self, reach: int, heads: int) -> None:
        super().__init__()
        self.reach = reach
        self.table = nn.Parameter(torch.zeros(heads, reach + 1))

    def forward(self, offset: Tensor) -> Tensor:
        """Offsets `(B, Q, K)` in writes to biases `(B, H, Q, K)`."""
        biases: Tensor = self.table[:, offset.long().clamp(0, self.reach)].movedim(0, 1)
        return biases


class AddNorm(nn.Module):
    """LayerNorm of a sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, change: Tensor) -> Tensor:
        """LayerNorm(x + change)."""
        normed: Tensor = self.norm(x + change)
        return normed


class FeedForward(nn.Module):
    """AddNorm(x + FFN(x)) with two linear layers and GELU."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, width)
        self.add_norm = AddNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """`(..., d)` to `(..., d)`."""
        out: Tensor = self.add_norm(x, self.second(functional.gelu(self.first(x))))
        return out


class ElmurLayer(nn.Module):
    """Self-attention, mem2tok and FFN of the tokens; tok2mem and FFN of the slots."""

    def __init__(self, width: int, hidden: int, heads: int, segment: int, reach: int) -> None:
        super().__init__()
        self.self_attention = BiasedAttention(width, heads)
        self.self_bias = RelativeBias(segment, heads)
        self.self_norm = AddNorm(width)
        self.mem2tok = BiasedAttention(width, heads)
        self.mem2tok_norm = AddNorm(width)
        self.token_ffn = FeedForward(width, hidden)
        self.tok2mem = BiasedAttention(width, heads)
        self.tok2mem_norm = AddNorm(width)
        self.memory_ffn = FeedForward(width, hidden)
        self.memory_bias = RelativeBias(reach, heads)

    def token_bias(self, position: Tensor, hidden: Tensor) -> Tensor:
        """Self-attention's bias `(B or 1, H, n, n)` of tokens at positions `(B or 1, n)`.

        hidden `(B or 1, n, n)`: True where the query of a row must not see the key of a column.
        """
        bias: Tensor = self.self_bias((position[:, :, None] - position[:, None]).clamp(min=0))
        return bias.masked_fill(hidden[:, None], -math.inf)

    def attend_tokens(self, tokens: Tensor, bias: Tensor) -> Tensor:
        """Causal self-attention (algorithm 1, line 4) of tokens `(B, n, d)`, which `token_bias` makes causal."""
        normed: Tensor = self.self_norm(tokens, self.self_attention(tokens, tokens, bias))
        return normed

    def read_memory(self, tokens: Tensor, slots: Tensor, bias: Tensor) -> Tensor:
        """mem2tok and FFN (lines 5-7): tokens `(B, n, d)`, slots `(B, M, d)`, B_read `(B, H, n, M)`.

        B_read is `memory_bias` of the offsets t - p.
        """
        enriched: Tensor = self.token_ffn(self.mem2tok_norm(tokens, self.mem2tok(tokens, slots, bias)))
        return enriched

    def propose(self, slots: Tensor, tokens: Tensor, bias: Tensor) -> Tensor:
        """tok2mem and FFN (lines 12-14), with B_write = -B_read: what slots `(B, M, d)` would become."""
        proposed: Tensor = self.memory_ffn(self.tok2mem_norm(slots, self.tok2mem(slots, tokens, -bias.mT)))
        return proposed
