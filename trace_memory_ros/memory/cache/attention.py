"""Attention to cached entries by key and by number, which may find that none of them fits.

Symbols: e content, h the inner mechanism's vector, k and v an entry's key and value, s its number in the order of
writes, t the newest entry's, c(s) code of a number, q and u a head's query for keys and for numbers.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.cache.config import CachedConfig

CYCLE = 1024
"""Numbers that are this far apart have one code."""
COUNTED = 8.0
"""A counting head's sum is given as a share of so many entries."""
REFUSES = -2.0
"""Logit of a counting head at the start, at which it counts next to nothing."""


class CacheAttention(nn.Module):
    """Multi-query attention: all heads share an entry's key and value.

    score = q·k/√d_k + position · u·c(s), with q and u linear in (e, h, c(t)). Of the `heads` each takes a softmax over
    the entries and a learned score of none; each of the `counters` adds up sigmoids, so that it can tell how often.
    """

    codes: Tensor

    def __init__(self, content: int, width: int, config: CachedConfig) -> None:
        super().__init__()
        self.config = config
        self.count = config.heads + config.counters
        self.register_buffer("codes", number_codes(), persistent=False)
        asked = content + width + self.codes.shape[1]
        self.to_entry = nn.Linear(content + width, config.key + config.value)
        self.to_key_query = nn.Linear(asked, self.count * config.key)
        self.to_number_query = nn.Linear(asked, self.count * self.codes.shape[1])
        self.none = nn.Parameter(torch.zeros(config.heads, 1))
        self.refusal = nn.Parameter(torch.full((config.counters, 1), REFUSES))
        self.out = nn.Linear(self.count * config.value, width)

    def entry(self, content: Tensor, vector: Tensor) -> Tensor:
        """Key and value side by side `(..., d_k + d_v)` of what one write saw and left."""
        made: Tensor = self.to_entry(torch.cat((content, vector), dim=-1))
        return made

    def forward(
        self, content: Tensor, vector: Tensor, newest: Tensor, entries: Tensor, numbers: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What is recalled `(B, Q, d)`, and how much of each entry `(B, Q, M)`: the mean over the choosing heads.

        content, vector `(B, Q, ...)` ask; newest int64 `(B, Q)` is the last number that was written. entries
        `(B, M, d_k + d_v)` with int64 numbers `(B, M)`, of which a query may see those where seen `(B, Q, M)`.
        """
        batch, queries = newest.shape
        key, value = entries[..., : self.config.key], entries[..., self.config.key :]
        weights = self._weights(torch.cat((content, vector, self._code(newest)), dim=-1), key, numbers, seen)
        found = (weights.flatten(1, 2) @ value).reshape(batch, queries, -1)
        return self.out(found), weights[:, :, : self.config.heads].mean(dim=2)

    def _weights(self, asked: Tensor, key: Tensor, numbers: Tensor, seen: Tensor) -> Tensor:
        """`(B, Q, heads + counters, M)`."""
        batch, queries = asked.shape[:2]
        by_key = self.to_key_query(asked).reshape(batch, queries * self.count, -1) @ key.transpose(1, 2)
        by_number = self.to_number_query(asked).reshape(batch, queries * self.count, -1)
        by_number = by_number @ self._code(numbers).transpose(1, 2)
        score = by_key / math.sqrt(self.config.key) + self.config.position * by_number
        score = score.reshape(batch, queries, self.count, -1)
        hidden = ~seen[:, :, None]
        choosing = score[:, :, : self.config.heads].masked_fill(hidden, torch.finfo(score.dtype).min)
        none = self.none.expand(batch, queries, -1, -1)
        chosen = torch.softmax(torch.cat((choosing, none), dim=-1), dim=-1)[..., :-1]
        counted = torch.sigmoid(score[:, :, self.config.heads :] + self.refusal).masked_fill(hidden, 0.0)
        return torch.cat((chosen, counted / COUNTED), dim=2)

    def _code(self, numbers: Tensor) -> Tensor:
        return self.codes[numbers % CYCLE]


def number_codes() -> Tensor:
    """c(s) `(CYCLE, 20)`: sines and cosines of the periods 2, 4, .. CYCLE.

    A rotation leads from one number's code to another's, so a query that is linear in c(t) can ask for an age.
    """
    periods = 2.0 ** torch.arange(1, int(math.log2(CYCLE)) + 1, dtype=torch.float64)
    angle = 2 * math.pi * torch.arange(CYCLE, dtype=torch.float64)[:, None] / periods
    return torch.cat((angle.sin(), angle.cos()), dim=-1).float()
