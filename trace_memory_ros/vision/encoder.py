"""The memory's eyes: pictures and state to one content feature e_t = [v_t, p_t] (TRACE A.9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trace_memory_ros.files.strict import ConfigError, check_keys, require_choice, require_int
from trace_memory_ros.vision import registry
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.placed import WHERE, apart, of_things, there
from trace_memory_ros.vision.salience import DRAWS, Salience, at, partly_hidden

POOLINGS = ("mean", "attention", "salience")
FEW = 16
"""Fewer numbers than this of a place, such as its colour, go through a perceptron of `HIDDEN`, not a linear map."""
HIDDEN = 32
LEAST_SPREAD = 1e-3
"""What a feature is divided by at least."""
SIZES = ("cameras", "thumbnail_px", "state_dim", "visual_width", "state_width", "channels")


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of a `ContentEncoder`. cameras: C. visual_width, state_width: widths of v_t and p_t; d_e is their sum.

    thumbnail_px: side of the pictures. channels: of the first convolution of backbone `small`. pooling: how a picture's
    features become one vector: the backbone's own `mean`, a learned `attention` over its tokens, or one that begins at
    those that are unusual for their place, `salience`. shared: the backbone
    is the policy's too, so that one pass serves both.
    """

    cameras: int
    thumbnail_px: int = 16
    state_dim: int = 17
    visual_width: int = 64
    state_width: int = 32
    channels: int = 16
    backbone: BackboneConfig = field(default_factory=BackboneConfig)
    pooling: str = "mean"
    shared: bool = False

    def __post_init__(self) -> None:
        for name in SIZES:
            require_int(getattr(self, name), f"EncoderConfig.{name}", 1)
        require_choice(self.pooling, POOLINGS, "EncoderConfig.pooling")

    @property
    def content_dim(self) -> int:
        """d_e."""
        return self.visual_width + self.state_width

    @property
    def own_small(self) -> bool:
        """Whether it has convolutions of its own, which end in v_t without anything between."""
        return self.backbone.is_small and not self.shared

    @property
    def attends(self) -> bool:
        """Whether places of a picture are told apart."""
        return self.pooling != "mean" and not self.own_small

    @property
    def vision(self) -> BackboneConfig:
        """The backbone with everything that building it needs."""
        if not self.own_small:
            return self.backbone
        sizes = {"layout": "vector", "width": self.visual_width, "channels": self.channels}
        return replace(self.backbone, options={**sizes, **self.backbone.options})

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping without what is left at its default, but for sizes; `from_dict` inverts it."""
        plain, usual = asdict(self) | {"backbone": self.backbone.to_dict()}, type(self)(1)
        return {key: value for key, value in plain.items() if key in SIZES or getattr(self, key) != getattr(usual, key)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "encoder") -> EncoderConfig:
        """Read a mapping strictly. Raises ConfigError."""
        values = dict(check_keys(data, [f.name for f in fields(cls)], ("cameras",), where))
        if "backbone" in values:
            values["backbone"] = BackboneConfig.from_dict(values["backbone"], f"{where}.backbone")
        return cls(**values)


class ContentEncoder(nn.Module):
    """e_t = [v_t, p_t]: v_t = mean over cameras of rho(f_vis(o_c) + embedding_c), p_t = phi_s(state) (TRACE A.9).

    f_vis is shared by the cameras; the embedding tells them apart, so that left and right wrist don't average out. It
    is a backbone, and a linear map of what that pools. vision: the backbone, where there is one already, such as the
    policy's; otherwise it is built, with its weights from the user's cache. Raises WeightsError where these are not
    there.
    """

    def __init__(self, config: EncoderConfig, vision: VisualBackbone | None = None) -> None:
        super().__init__()
        self.config = config
        self.vision = registry.build(config.vision, config.thumbnail_px) if vision is None else vision
        self.pool: nn.Module = nn.Identity()
        if not config.own_small:
            rows, columns = self.vision.token_grid(config.thumbnail_px)
            sizes = (config.cameras, rows * columns, self.vision.width, config.visual_width)
            self.pool = Pool(config.pooling, *sizes, placed=self.vision.placed)
        self.camera = nn.Parameter(0.1 * torch.randn(config.cameras, config.visual_width))
        width = config.state_width
        self.proprioception = nn.Sequential(nn.Linear(config.state_dim, width), nn.ReLU(), nn.Linear(width, width))
        self.rho = nn.GELU()

    def forward(self, seen: Tensor | Features, state: Tensor) -> Tensor:
        """Pictures `(..., C, 3, px, px)`, uint8 or float in 0..1, or their features, and state to `(..., d_e)`.

        state: standardised `(..., d_s)`. Raises ValueError naming the given and the configured shape.
        """
        if isinstance(seen, Features):
            return self.encode(seen, state)
        self._check(seen, state)
        return self.encode(self.features(seen), state)

    def features(self, images: Tensor) -> Features:
        """The backbone's features of pictures `(..., C, 3, px, px)`: tokens `(..., C, K, d)`, pooled `(..., C, d)`.

        Neither camera embedding nor anything that is trained with a frozen backbone has a part in them.
        """
        return self.vision.features(images)

    def encode(self, features: Features, state: Tensor) -> Tensor:
        """Content `(..., d_e)` of features, as `features` gives them, and standardised state `(..., d_s)`."""
        vectors = features.pooled if isinstance(self.pool, nn.Identity) else self.pool(features)
        visual = self.rho(vectors + self.camera).mean(dim=-2)
        return torch.cat([visual, self.proprioception(state)], dim=-1)

    def _check(self, images: Tensor, state: Tensor) -> None:
        lead = tuple(state.shape[:-1])
        px = self.config.thumbnail_px
        want = (*lead, self.config.cameras, 3, px, px)
        if tuple(images.shape) != want or state.shape[-1] != self.config.state_dim:
            raise ValueError(
                f"encoder input: images {tuple(images.shape)} and state {tuple(state.shape)}, configured for "
                f"{want} and (..., {self.config.state_dim}); prepare them with this checkpoint's observation config"
            )


class FeatureNorm(nn.Module):
    """Features `(..., d)` around 0 and of unit variance: each by itself over many pictures, then all of a token.

    Not all of a token that has but few, such as a colour, of which that would take the brightness. centre, spread
    `(d,)`: of each feature, by `calibrate`; what is rare then stands out from the first step, however small it is in
    the picture.
    """

    centre: Tensor
    spread: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width) if width >= FEW else nn.Identity()
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("spread", torch.ones(width))

    def forward(self, values: Tensor) -> Tensor:
        normal: Tensor = self.norm((values - self.centre) / self.spread)
        return normal

    @torch.no_grad()
    def calibrate(self, values: Tensor) -> None:
        """Standardise features by these `(..., d)`, but for those of nothing; one alone has no spread to go by."""
        seen = values[there(values)]
        if len(seen) < 2:
            return
        self.centre.copy_(seen.mean(dim=0))
        self.spread.copy_(seen.std(dim=0).clamp_min(LEAST_SPREAD))


class Pool(nn.Module):
    """Features `(..., C, K, d)` to a vector a picture `(..., C, w)`: a linear map of the pooled ones, or attention.

    Attention: one learned query per head, each over all K places, whose keys carry a learned embedding of the place.
    Salience: the same over the places at which something unusual is, the most unusual of which draw attention at first.
    placed: of tokens that say where they are, which only the attention goes by. Raises ConfigError for anything but
    attention over these.
    """

    def __init__(
        self, pooling: str, cameras: int, places: int, width: int, out: int, heads: int = 8, placed: bool = False
    ) -> None:
        super().__init__()
        if placed and pooling != "attention":
            raise ConfigError(f"eyes.pooling = {pooling}: things are told apart by eyes.pooling = attention alone")
        self.pooling = pooling
        self.norm = FeatureNorm(width)
        self.map = read_by(width - WHERE if placed else width, out)
        self.salience: Salience | None = None
        if pooling == "salience":
            self.salience = Salience(cameras, places, width)
            self.gain = nn.Parameter(torch.tensor(DRAWS))
        if pooling != "mean":
            self.heads = heads if out % heads == 0 else 1
            self.place = nn.Linear(WHERE, out) if placed else nn.Parameter(0.02 * torch.randn(places, out))
            self.scores = nn.Linear(out, self.heads)

    def forward(self, features: Features) -> Tensor:
        if self.pooling == "mean":
            mean: Tensor = self.map(self.norm(features.pooled))
            return mean
        tokens, scores = self._scored(features.tokens)
        weights = scores.softmax(dim=-2)
        parts: Tensor = tokens.unflatten(-1, (self.heads, -1))
        return (weights[..., None] * parts).sum(dim=-3).flatten(-2)

    def _scored(self, given: Tensor) -> tuple[Tensor, Tensor]:
        """Of tokens `(..., K, d)` those that are looked at, mapped `(..., k, w)`, and scores `(..., k, heads)`."""
        seen: Tensor = self.norm(given)
        if isinstance(self.place, nn.Linear):
            tokens = self.map(apart(seen)[0])
            scores = self.scores(torch.tanh(tokens + self.place(apart(given)[1])))
            return tokens, of_things(scores, there(given)[..., None])
        if self.salience is None:
            tokens = self.map(seen)
            return tokens, self.scores(torch.tanh(tokens + self.place))
        unusual, places = self.salience(seen)
        tokens = self.map(at(seen, places))
        scores = self.scores(torch.tanh(tokens + self.place[places])) + self.gain * unusual[..., None]
        return tokens, partly_hidden(scores) if self.training else scores

    def calibrate(self, features: Features) -> None:
        """Standardise features by those of the pictures given."""
        self.norm.calibrate(features.pooled if self.pooling == "mean" else features.tokens)
        if self.salience is not None:
            self.salience.calibrate(self.norm(features.tokens))


def read_by(width: int, out: int) -> nn.Module:
    """From `width` standardised numbers of a place to `out`. Of few, one may lie between two others: not linearly."""
    if width >= FEW:
        return nn.Linear(width, out)
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, out))


def pixels_of(images: NDArray[np.uint8]) -> Tensor:
    """Images `(..., P, P, 3)` uint8 as the networks take them: `(..., 3, P, P)` float32 in 0..1."""
    return torch.from_numpy(images).movedim(-1, -3).float().div_(255.0)
