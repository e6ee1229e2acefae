"""An observation's square pictures in the shape that a LeRobot policy takes."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional


def side_for(shape: Sequence[int]) -> int:
    """The `image_px` at which an observation keeps enough of a picture for a policy's shape `(3, H, W)`."""
    return max(shape[-2:])


def fitted(pixels: Tensor, shape: Sequence[int]) -> Tensor:
    """Pictures `(B, 3, P, P)` in 0..1, squeezed as an observation's, to `(B, 3, H, W)` with `P = max(H, W)`.

    The longer side is as it was; the other is brought back to its length.
    """
    if tuple(pixels.shape[-2:]) == tuple(shape[-2:]):
        return pixels
    size = [int(side) for side in shape[-2:]]
    return functional.interpolate(pixels, size, mode="bicubic", antialias=True).clamp(0.0, 1.0)
