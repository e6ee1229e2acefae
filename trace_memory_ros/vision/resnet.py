"""ResNet-18 (He et al., 2016) as torchvision has it, and as LeRobot's policies use it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import Tensor

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.pretrained import PretrainedBackbone, as_features
from trace_memory_ros.vision.torchvision import torchvision
from trace_memory_ros.vision.weights import WeightsError, read_source

LAST = {8: ("layer2", 128), 16: ("layer3", 256), 32: ("layer4", 512)}
"""The last layer that is kept at a stride, and its channels."""
LAYERS = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4")
CLASSIFIER = "fc."


class ResNet18(PretrainedBackbone):
    """Images to 512 numbers per 32 pixels, or 256 per 16, or 128 per 8 by option `stride`; trained on ImageNet.

    Weights come from torchvision's server, or from a file as that gives it.
    """

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__(config, px)
        network = _models().resnet18(weights=None)
        last, self.width = LAST[self.stride]
        self.layers = LAYERS[: LAYERS.index(last) + 1]
        for name in self.layers:
            self.add_module(name, getattr(network, name))

    def look(self, images: Tensor) -> Features:
        x = self.normalised(images)
        for name in self.layers:
            x = getattr(self, name)(x)
        return as_features(x)

    def pretrained(self, source: Path | None) -> tuple[dict[str, Tensor], str]:
        where = "torchvision" if source is None else str(source)
        given = self._downloaded() if source is None else read_source(source, self.config.name)
        wanted = self.state_dict()
        # Frozen batch norms, as LeRobot's, count no batches.
        counts = {name: wanted[name] for name in wanted if name.endswith("num_batches_tracked")}
        kept = {name: tensor for name, tensor in given.items() if name.partition(".")[0] in self.layers}
        return {**counts, **kept}, where

    @staticmethod
    def _downloaded() -> dict[str, Tensor]:
        try:
            weights = _models().ResNet18_Weights.IMAGENET1K_V1
            return dict(weights.get_state_dict(progress=False, check_hash=True))
        except OSError as error:
            raise WeightsError(
                f"weights of backbone resnet18 cannot be fetched ({error}): copy torchvision's file "
                "(resnet18-f37072fd.pth) here and name it, or ask for `random` ones"
            ) from error


def _models() -> Any:
    try:
        return torchvision("torchvision.models")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'backbone resnet18 needs {error.name}, which an extra brings: pip install "trace_memory_ros[vision]"'
        ) from error
