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
OUT_STD = 0.02
"""Of the output's weights at the start: little, so that what the inner mechanism can learn alone it learns first."""
UNTRAINED = -1.0


class CacheAttention(nn.Module):
    """Multi-query attention: all heads share an entry's key and value.

    score = q·k/√d_k + position · u·c(t - s) of the last entries, q·k/√d_k + f_s of the first, with q, u and f linear in
    (e, h, c(t)). Of the `heads` each takes a softmax over the entries and a learned score of none; each of the
    `counters` adds up sigmoids, so that it can tell how often. c(t) is 0 beyond the longest episode of the training:
    what was not met there is not asked for. e is normalised first: an encoder that begins with small numbers would
    leave all entries nearly alike. At the start each of the `heads` looks about an age of its own, evenly
    spaced by ratios over the window: a head that looks everywhere alike finds no age that is asked for.
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
        self.norm = nn.LayerNorm(content)
        self.to_entry = nn.Linear(content + width, config.key + config.value)
        self.to_key_query = nn.Linear(asked, self.count * config.key)
        self.to_age_query = nn.Linear(asked, self.count * coded)
        self.to_first_query = nn.Linear(asked, self.count * config.first)
        self.none = nn.Parameter(torch.zeros(config.heads, 1))
        self.refusal = nn.Parameter(torch.full((config.counters, 1), REFUSES))
        self.out = nn.Linear(self.count * config.value, width)
        nn.init.normal_(self.out.weight, std=OUT_STD)
        nn.init.zeros_(self.out.bias)
        nn.init.zeros_(self.to_age_query.bias)
        chosen = first_ages(config.heads, config.window - config.first).flatten()
        with torch.no_grad():
            self.to_age_query.bias[: len(chosen)] = chosen

    def entry(self, content: Tensor, vector: Tensor) -> Tensor:
        """Key and value side by side `(..., d_k + d_v)` of what one write saw and left."""
        made: Tensor = self.to_entry(torch.cat((self.norm(content), vector), dim=-1))
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
        heads, asked = self.config.heads, torch.cat((self.norm(content), vector, self._clock(newest)), dim=-1)
        queries, keys = self._queries(asked, newest), self._keys(entries[..., : self.config.key], numbers)
        value = nn.functional.pad(entries[..., self.config.key :], (0, 0, 0, 1))
        # The last entry is none, which the choosing heads alone may take.
        hidden, uncounted = (~nn.functional.pad(seen, (0, 1), value=none)[:, :, None] for none in (True, False))
        choosing, counting = (_products(part, keys) for part in (queries[:, :, :heads], queries[:, :, heads:]))
        chosen = choosing.masked_fill(hidden, torch.finfo(choosing.dtype).min).softmax(dim=-1)
        counted = torch.sigmoid(counting + self.refusal).masked_fill(uncounted, 0.0)
        found = (_products(part, value.transpose(1, 2)).flatten(2) for part in (chosen, counted / COUNTED))
        return self.out(torch.cat(tuple(found), dim=-1)), chosen[..., :-1].mean(dim=2)

    def _clock(self, newest: Tensor) -> Tensor:
        told = newest < self.known
        # Reads without gradient only compare, and would differ by chance.
        if self.training and torch.is_grad_enabled() and self.config.clock_dropout:
            told = told & (torch.rand(newest.shape, device=newest.device) >= self.config.clock_dropout)
        return self.codes[newest % CYCLE] * told[..., None]

    def _queries(self, asked: Tensor, newest: Tensor) -> Tensor:
        """`(B, Q, heads + counters, K)`: what is asked of an entry's key, age and number, and the score of none."""
        shape = (*newest.shape, self.count, -1)
        by_key = self.to_key_query(asked).reshape(shape) / math.sqrt(self.config.key)
        by_age = _rotated(self.to_age_query(asked).reshape(shape), self.codes[newest % CYCLE]) * self.config.position
        by_number = self.to_first_query(asked).reshape(shape)
        none = nn.functional.pad(self.none, (0, 0, 0, self.config.counters)).expand(*newest.shape, -1, -1)
        return torch.cat((by_key, by_age, by_number, none), dim=-1)

    def _keys(self, key: Tensor, numbers: Tensor) -> Tensor:
        """`(B, M + 1, K)`: of the entries, and last of none; the first have a number, the others an age."""
        first, last = self.config.first, numbers[:, self.config.first :]
        ages = nn.functional.pad(self.codes[last % CYCLE], (0, 0, first, 1))
        marks = torch.eye(first + 1, dtype=key.dtype, device=key.device)
        marks = torch.cat((marks[:first], marks.new_zeros(last.shape[1], first + 1), marks[first:]))
        return torch.cat((nn.functional.pad(key, (0, 0, 0, 1)), ages, marks.expand(len(key), -1, -1)), dim=-1)


def first_ages(heads: int, window: int) -> Tensor:
    """u `(heads, 20)` of the start, when heads look about the ages window^((i + 1/2) / heads).

    Each adds up the codes of the periods that are no shorter than twice its age: a hill as wide as the age is large.
    """
    periods = _periods().float()
    ages = window ** ((torch.arange(heads)[:, None] + 0.5) / heads)
    angle, wide = 2 * math.pi * ages / periods, periods >= 2 * ages
    return torch.cat((wide * angle.sin(), wide * angle.cos()), dim=-1)


def number_codes() -> Tensor:
    """`(CYCLE, 20)`: sines, then cosines, of the periods 2, 4, .. CYCLE."""
    angle = 2 * math.pi * torch.arange(CYCLE, dtype=torch.float64)[:, None] / _periods()
    return torch.cat((angle.sin(), angle.cos()), dim=-1).float()


def _periods() -> Tensor:
    return 2.0 ** torch.arange(1, int(math.log2(CYCLE)) + 1, dtype=torch.float64)


def _products(queries: Tensor, keys: Tensor) -> Tensor:
    """`(B, Q, H, M)` of queries `(B, Q, H, K)` and keys `(B, M, K)`."""
    products = queries.flatten(1, 2) @ keys.transpose(1, 2)
    found: Tensor = products.reshape(*queries.shape[:3], keys.shape[1])
    return found


def _rotated(query: Tensor, now: Tensor) -> Tensor:
    """u' `(B, Q, heads, 20)` for which u'·c(s) = u·c(t - s), of u and c(t) `(B, Q, 20)`."""
    by_sine, by_cosine = query.chunk(2, dim=-1)
    sine, cosine = now[:, :, None].chunk(2, dim=-1)
    return torch.cat((by_cosine * sine - by_sine * cosine, by_sine * sine + by_cosine * cosine), dim=-1)
