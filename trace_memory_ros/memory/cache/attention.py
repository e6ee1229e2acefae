"""Attention to cached entries by key, by age, and among an episode's first by number; it may find that none fits.

Symbols: e content, h the inner mechanism's vector, k and v an entry's key and value, s its number in the order of
writes, t the newest one's, c sines and cosines of a number or age.
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
UNTRAINED = -1.0


class CacheAttention(nn.Module):
    """Multi-query attention: all heads share an entry's key and value.

    score = q·k/√d_k + position · u·c(t - s) of the last entries, q·k/√d_k + f_s of the first, with q, u and f linear in
    (e, h, c(t)). Of the `heads` each takes a softmax over the entries and a learned score of none; each of the
    `counters` adds up sigmoids, so that it can tell how often. c(t) is 0 beyond the longest episode of the training:
    what was not met there is not asked for.
    """

    codes: Tensor
    longest: Tensor

    def __init__(self, content: int, width: int, config: CachedConfig) -> None:
        super().__init__()
        self.config = config
        self.count = config.heads + config.counters
        self.register_buffer("codes", number_codes(), persistent=False)
        self.register_buffer("longest", torch.tensor(UNTRAINED))
        coded = self.codes.shape[1]
        asked = content + width + coded
        self.to_entry = nn.Linear(content + width, config.key + config.value)
        self.to_key_query = nn.Linear(asked, self.count * config.key)
        self.to_age_query = nn.Linear(asked, self.count * coded)
        self.to_first_query = nn.Linear(asked, self.count * config.first)
        self.none = nn.Parameter(torch.zeros(config.heads, 1))
        self.refusal = nn.Parameter(torch.full((config.counters, 1), REFUSES))
        # What the inner mechanism can learn alone it learns first.
        self.out = nn.Linear(self.count * config.value, width)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def entry(self, content: Tensor, vector: Tensor) -> Tensor:
        """Key and value side by side `(..., d_k + d_v)` of what one write saw and left."""
        made: Tensor = self.to_entry(torch.cat((content, vector), dim=-1))
        return made

    @torch.no_grad()
    def lived(self, newest: Tensor) -> None:
        """Told of every number that is written in training."""
        self.longest.copy_(torch.maximum(self.longest, newest.max().to(self.longest)))

    @property
    def known(self) -> Tensor:
        """Numbers and ages below this were met in training."""
        cycle = torch.full_like(self.longest, CYCLE)
        return torch.where(self.longest < 0, cycle, torch.minimum(self.longest + 1, cycle))

    def forward(
        self, content: Tensor, vector: Tensor, newest: Tensor, entries: Tensor, numbers: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What is recalled `(B, Q, d)`, and how much of each entry `(B, Q, M)`: the mean over the choosing heads.

        content, vector `(B, Q, ...)` ask; newest int64 `(B, Q)` is the last number that was written. entries
        `(B, M, d_k + d_v)` are the episode's first, as many as the configuration says, and then its last ones, of
        numbers int64 `(B, M)`; a query may see those where seen `(B, Q, M)`.
        """
        batch, queries = newest.shape
        key, value = entries[..., : self.config.key], entries[..., self.config.key :]
        asked = torch.cat((content, vector, self._clock(newest)), dim=-1)
        weights = self._weights(self._score(asked, newest, key, numbers), seen)
        found = (weights.flatten(1, 2) @ value).reshape(batch, queries, -1)
        return self.out(found), weights[:, :, : self.config.heads].mean(dim=2)

    def _clock(self, newest: Tensor) -> Tensor:
        told = newest < self.known
        # Reads without gradient only compare, and would differ by chance.
        if self.training and torch.is_grad_enabled() and self.config.clock_dropout:
            told = told & (torch.rand(newest.shape, device=newest.device) >= self.config.clock_dropout)
        return self.codes[newest % CYCLE] * told[..., None]

    def _score(self, asked: Tensor, newest: Tensor, key: Tensor, numbers: Tensor) -> Tensor:
        """`(B, Q, heads + counters, M)`."""
        shape = (*newest.shape, self.count, -1)
        by_key = self._heads(self.to_key_query(asked), shape) @ key.transpose(1, 2)
        last = numbers[:, self.config.first :]
        by_age = self._heads(_rotated(self.to_age_query(asked).reshape(shape), self.codes[newest % CYCLE]), shape)
        by_age = (by_age @ self.codes[last % CYCLE].transpose(1, 2)).reshape(shape)
        first = self.to_first_query(asked).reshape(shape)
        by_number = torch.cat((first, self.config.position * by_age), dim=-1)
        return by_key.reshape(shape) / math.sqrt(self.config.key) + by_number

    def _weights(self, score: Tensor, seen: Tensor) -> Tensor:
        hidden = ~seen[:, :, None]
        choosing = score[:, :, : self.config.heads].masked_fill(hidden, torch.finfo(score.dtype).min)
        none = self.none.expand(*seen.shape[:2], -1, -1)
        chosen = torch.softmax(torch.cat((choosing, none), dim=-1), dim=-1)[..., :-1]
        counted = torch.sigmoid(score[:, :, self.config.heads :] + self.refusal).masked_fill(hidden, 0.0)
        return torch.cat((chosen, counted / COUNTED), dim=2)

    def _heads(self, queries: Tensor, shape: tuple[int, ...]) -> Tensor:
        return queries.reshape(shape[0], shape[1] * self.count, -1)


def number_codes() -> Tensor:
    """`(CYCLE, 20)`: sines, then cosines, of the periods 2, 4, .. CYCLE."""
    periods = 2.0 ** torch.arange(1, int(math.log2(CYCLE)) + 1, dtype=torch.float64)
    angle = 2 * math.pi * torch.arange(CYCLE, dtype=torch.float64)[:, None] / periods
    return torch.cat((angle.sin(), angle.cos()), dim=-1).float()


def _rotated(query: Tensor, now: Tensor) -> Tensor:
    """u' `(B, Q, heads, 20)` for which u'·c(s) = u·c(t - s), of u and c(t) `(B, Q, 20)`."""
    by_sine, by_cosine = query.chunk(2, dim=-1)
    sine, cosine = now[:, :, None].chunk(2, dim=-1)
    return torch.cat((by_cosine * sine - by_sine * cosine, by_sine * sine + by_cosine * cosine), dim=-1)
