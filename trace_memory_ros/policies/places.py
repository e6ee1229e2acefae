"""Where the present picture holds what the memory asks for."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from trace_memory_ros.vision.encoder import FeatureNorm, read_by
from trace_memory_ros.vision.placed import EDGE, WHERE, apart, of_things, there
from trace_memory_ros.vision.salience import DRAWS, Salience, at

HEADS, KEY = 8, 16
"""Heads that ask in each camera's picture, and the width of a key."""
SHARPNESS = 16.0
"""What the likeness of query and key, from -1 to 1, is multiplied by at first."""
LEAST = 1e-12
"""What a key's length is taken for at least."""
WAVES = 4
"""Wavelengths that a place is told in, from the side of a picture down, each half of the one before."""


def in_waves(places: Tensor) -> Tensor:
    """Places `(..., n)` with the sines and cosines of `WAVES` wavelengths `(..., n * (1 + 2 * WAVES))`.

    Which of neighbouring things lies somewhere is a steep function of rows and columns, which a perceptron is slow to
    learn (Fourier features, Tancik et al. 2020). Where it is told the readout too, it learns episodes by heart sooner
    by these.
    """
    frequencies = math.pi / EDGE * 2.0 ** torch.arange(WAVES, device=places.device)
    phases = (places[..., None] * frequencies).flatten(-2)
    return torch.cat([places, phases.sin(), phases.cos()], dim=-1)


class Places(nn.Module):
    """Attention over the present's tokens, of which only the places are told: row and column, their mean by weight.

    What was remembered is compared with what is seen by the cosine between query and key (query-key normalisation,
    Henry et al. 2020), so that "where is that colour now" is learned for all places at once. From one vector of the
    present and one of the past it has to be learned for each colour at each place, and training episodes are learned by
    heart instead; so they are while attention is still spread over the whole picture, which is why it begins sharp.

    norm, salience: of the tokens, another module's; with salience only what is unusual is looked at, first of all what
    is most so, so that what is asked for may also be what is unlike all that was remembered. asked: width of
    what is asked with. grid: rows and columns of the tokens. placed: they say themselves where they are.
    """

    grid: Tensor

    def __init__(
        self,
        norm: FeatureNorm,
        asked: int,
        cameras: int,
        grid: tuple[int, int],
        salience: Salience | None = None,
        placed: bool = False,
    ) -> None:
        super().__init__()
        # In a tuple, so that their weights are not this module's as well.
        self._norm, self._salience = (norm,), (salience,)
        self.cameras, self.placed = cameras, placed
        self.query = nn.Linear(asked, cameras * HEADS * KEY)
        self.key = read_by(len(norm.centre) - (WHERE if placed else 0), HEADS * KEY)
        self.sharpness = nn.Parameter(torch.full((HEADS, 1), math.log(SHARPNESS)))
        if salience is not None:
            self.gain = nn.Parameter(torch.tensor(DRAWS))
        down, right = (torch.linspace(-EDGE, EDGE, n) if n > 1 else torch.zeros(1) for n in grid)
        places = torch.stack(torch.meshgrid(down, right, indexing="ij"), dim=-1).reshape(-1, 2)
        self.register_buffer("grid", places, persistent=False)

    def reset(self) -> None:
        """Fresh weights."""
        self.query.reset_parameters()
        for layer in self.key.modules():
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()
        nn.init.constant_(self.sharpness, math.log(SHARPNESS))
        if self._salience[0] is not None:
            nn.init.constant_(self.gain, DRAWS)

    @property
    def width(self) -> int:
        """How many numbers it tells."""
        return 2 * self.cameras * HEADS

    def forward(self, asked: Tensor, tokens: Tensor) -> Tensor:
        """Questions `(N, w)` and tokens `(N, C, K, d)` to the places of all heads `(N, 2 * C * heads)`."""
        scores, grid = self.scores(self.queries(asked), tokens)
        return (scores.softmax(dim=-1) @ grid).flatten(1)

    def scores(self, queries: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Of queries `(..., N, C, heads, KEY)` for the k tokens looked at `(..., N, C, heads, k)`, and their places
        `(k, 2)` or `(N, C, k, 2)`.
        """
        seen, drawn = self._looks(tokens), tokens.new_zeros(())
        grid = apart(tokens)[1] if self.placed else self.grid
        if (salience := self._salience[0]) is not None:
            unusual, places = salience(seen)
            seen, grid = at(seen, places), grid[places]
            drawn = self.gain * unusual[..., None, :]
        key = self._keys(seen)
        # Keys are many and wide: the products are divided by their lengths, not they themselves.
        lengths = torch.linalg.vector_norm(key, dim=-1).clamp_min(LEAST).transpose(-1, -2)
        alike = torch.einsum("...nchd,nckhd->...nchk", queries, key) / lengths
        scores = alike * self.sharpness.exp() + drawn
        if self.placed:
            scores = of_things(scores, there(tokens)[..., None, :])
        return scores, grid

    def queries(self, asked: Tensor, query: nn.Module | None = None) -> Tensor:
        """Of questions `(N, w)` each head's in each camera's picture, of length 1 `(N, C, heads, KEY)`.

        query: another map of the questions than its own.
        """
        mapped: Tensor = (self.query if query is None else query)(asked)
        return nn.functional.normalize(mapped.unflatten(-1, (self.cameras, HEADS, KEY)), dim=-1)

    def keys(self, things: Tensor) -> Tensor:
        """Each head's of tokens `(..., d)`, of length 1 `(..., heads, KEY)`."""
        return nn.functional.normalize(self._keys(self._looks(things)), dim=-1)

    def _looks(self, tokens: Tensor) -> Tensor:
        """Standardised tokens, without where they say that they are."""
        seen: Tensor = self._norm[0](tokens)
        return apart(seen)[0] if self.placed else seen

    def _keys(self, looks: Tensor) -> Tensor:
        keys: Tensor = self.key(looks).unflatten(-1, (HEADS, KEY))
        return keys
