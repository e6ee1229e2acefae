"""Any network that timm has, by its name there: `timm:vit_small_patch14_dinov2.lvd142m`."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trace_memory_ros.files.strict import ConfigError, check_keys, require_int
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.pretrained import as_features
from trace_memory_ros.vision.torchvision import torchvision
from trace_memory_ros.vision.weights import WeightsError


class TimmBackbone(VisualBackbone):
    """A convolutional network or a vision transformer of timm; a transformer's tokens are its patches.

    Option `px`: side that images are resized to; a transformer's is a multiple of its patch, and otherwise that nearest
    above the images' own. Weights come from the hub that timm names, or from a file of them.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__(config, px)
        self.model = config.name.partition(":")[2]
        options = check_keys(config.options, ("px",), (), f"options of backbone {config.name}")
        self.fixed, self.patch = self._demands()
        self.net_px = options.get("px", -(-px // self.patch) * self.patch)
        require_int(self.net_px, f"backbone {config.name}: px", self.patch)
        if self.net_px % self.patch:
            raise ConfigError(
                f"backbone {config.name}: px = {self.net_px}: its patches need a multiple of {self.patch}"
            )
        self.network = self._made()
        self.width = int(self.network.num_features)
        given = _timm("timm.data").resolve_data_config({}, model=self.network)
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(given[name]).reshape(3, 1, 1), persistent=False)
        self._grid = self._places()

    def token_grid(self, px: int) -> tuple[int, int]:
        return self._grid

    def look(self, images: Tensor) -> Features:
        side = (self.net_px, self.net_px)
        if images.shape[-2:] != side:
            images = functional.interpolate(images, side, mode="bilinear", antialias=True, align_corners=False)
        return self._read(self.network.forward_features((images - self.mean) / self.std))

    def _read(self, found: Tensor) -> Features:
        if found.ndim == 4:
            return as_features(self._channels_first(found))
        pooled: Tensor = self.network.forward_head(found, pre_logits=True)
        return Features(found[:, getattr(self.network, "num_prefix_tokens", 0) :], pooled)

    def _channels_first(self, grid: Tensor) -> Tensor:
        """Some, such as Swin, keep the numbers of a place behind its row and column."""
        behind = grid.shape[1] != self.width and grid.shape[-1] == self.width
        return grid.movedim(-1, 1) if behind else grid

    def pretrained(self, source: Path | None) -> tuple[dict[str, Tensor], str]:
        where = "timm" if source is None else str(source)
        if source is not None and not source.is_file():
            raise WeightsError(f"weights of backbone {self.config.name}: {source} is no file: check the path")
        file = {} if source is None else {"pretrained_cfg_overlay": {"file": str(source)}}
        try:
            network = self._made(pretrained=True, **file)
        except Exception as error:
            raise WeightsError(
                f"weights of backbone {self.config.name} cannot be had from {where}: {error}. Without a network give a "
                "file of them, as the hub has it (model.safetensors), or ask for `random` ones"
            ) from error
        return {f"network.{name}": tensor for name, tensor in network.state_dict().items()}, where

    def _made(self, **more: Any) -> Any:
        sizes = {"img_size": self.net_px} if self.fixed else {}
        return _timm().create_model(self.model, num_classes=0, **sizes, **more)

    def _demands(self) -> tuple[bool, int]:
        """Whether the network is built for one size of images, and what that must be a multiple of."""
        timm = _timm()
        if not timm.is_model(self.model):
            near = ", ".join(timm.list_models(f"*{self.model.partition('.')[0].partition('_')[0]}*")[:5])
            raise ConfigError(f"backbone {self.config.name}: timm has no such model; names like it: {near or 'none'}")
        fixed = bool(getattr(timm.get_pretrained_cfg(self.model), "fixed_input_size", False))
        if not fixed:
            return False, 1
        with torch.device("meta"):
            embed = getattr(timm.create_model(self.model, num_classes=0), "patch_embed", None)
        # Where convolutions come first, a patch is of what they leave.
        return True, 1 if embed is None or not hasattr(embed, "feat_ratio") else int(embed.feat_ratio())

    def _places(self) -> tuple[int, int]:
        """Rows and columns of what it makes of a picture; Swin and networks that begin by convolutions have fewer than
        they have patches. Raises ConfigError for what is no grid.
        """
        blank = torch.zeros(1, 3, self.net_px, self.net_px)
        self.network.eval()
        try:
            with torch.no_grad():
                found = self.network.forward_features(blank)
                features = self._read(found)
        except (AttributeError, RuntimeError) as error:
            if blank.is_meta and isinstance(error, RuntimeError):
                raise
            raise ConfigError(
                f"backbone {self.config.name} cannot look at pictures of {self.net_px} pixels ({error}): set option px "
                "to the side that it was made for, or take another network"
            ) from error
        places = features.tokens.shape[1]
        rows, columns = self._channels_first(found).shape[-2:] if found.ndim == 4 else (math.isqrt(places),) * 2
        if rows * columns != places or any(part.shape[-1] != self.width or part.ndim < 2 for part in features):
            raise ConfigError(
                f"backbone {self.config.name}: it makes {tuple(features.tokens.shape[1:])} of a picture, which is no "
                f"grid of {self.width} numbers a place: take a convolutional network or a vision transformer"
            )
        return int(rows), int(columns)


def _timm(module: str = "timm") -> Any:
    try:
        torchvision()
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'backbones of timm need {error.name}, which an extra brings: pip install "trace_memory_ros[timm]"'
        ) from error
