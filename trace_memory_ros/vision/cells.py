"""Mean colours of square cells: no weights, nothing of shapes, and every colour as it is."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from trace_memory_ros.files.strict import require_int
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig

COLOURS = 3


class CellsBackbone(VisualBackbone):
    """A token of three numbers, the mean colour in 0..1, for each cell of `cell_px` pixels; cut off at the edges.

    Deeper features of a small thing are of its surroundings too: that one colour is another again is told by its pixels
    alone. Option `cell_px`: side of a cell, as small as what must be told apart.
    """

    width = COLOURS

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__(config, px)
        self.cell_px = self._side(**config.options)

    @staticmethod
    def _side(cell_px: int = 4) -> int:
        require_int(cell_px, "backbone cells: cell_px", 1)
        return cell_px

    def token_grid(self, px: int) -> tuple[int, int]:
        side = -(-px // self.cell_px)
        return side, side

    def look(self, images: Tensor) -> Features:
        cells = functional.avg_pool2d(images, self.cell_px, ceil_mode=True)
        tokens = cells.flatten(2).transpose(1, 2)
        return Features(tokens, images.mean(dim=(2, 3)))
