"""Tokens that say where they are: of things, wherever these lie, and not of a picture's places one by one."""

from __future__ import annotations

import math

import torch
from torch import Tensor

WHERE = 2
"""Numbers at the end of such a token: down and right."""
EDGE = math.sqrt(3.0)
"""Where a picture ends: its places have unit variance."""


def apart(tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens `(..., d + 2)` as what is there `(..., d)` and where `(..., 2)`."""
    return tokens[..., :-WHERE], tokens[..., -WHERE:]


def there(tokens: Tensor) -> Tensor:
    """Which tokens `(..., d)` are of something, `(...)` bool: those that are not all zeros."""
    return tokens.any(dim=-1)


def of_things(scores: Tensor, some: Tensor) -> Tensor:
    """Attention scores of which those count for nothing where nothing is, `some` being False."""
    # Not minus infinity: there may be nothing at all.
    return scores.masked_fill(~some, torch.finfo(scores.dtype).min / 2)
