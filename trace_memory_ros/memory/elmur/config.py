"""Settings of ELMUR; sizes shared by every mechanism are in `MemoryDims`."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class ElmurConfig:
    """Settings of `ElmurMemory`; a size of None follows from `MemoryDims.width`.

    segment: L, writes per segment. layers: each with `MemoryDims.slots` slots of its own. heads: of every attention.
    model: d, width of tokens and slots (None: the memory's width). hidden: of the two feed-forward networks of a layer
    (None: 2 d). blend: lambda of eq. 3, share of the new content once no slot is empty. initial_scale: sigma of
    algorithm 2, spread of the embeddings that stand in empty slots. gradient_segments: the slots are detached whenever
    that many segments were written with gradient; 1 is the paper's stop-gradient, under which the memory track is
    never trained, and 0 detaches nowhere. reach: offsets in writes beyond which the relative bias stays the same
    (None: the greatest that can occur).
    Raises ValueError on a value out of range, TypeError on a value of the wrong type.
    """

    segment: int = 8
    layers: int = 2
    heads: int = 2
    model: int | None = None
    hidden: int | None = None
    blend: float = 0.5
    initial_scale: float = 0.1
    gradient_segments: int = 4
    reach: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("blend", "initial_scale"):
                self._check_number(field.name, value)
            elif value is not None or field.default is not None:
                self._check_count(field.name, value)
        if self.blend > 1:
            raise ValueError(f"ElmurConfig.blend = {self.blend}: must be between 0 and 1")
        if self.model is not None and self.model % self.heads:
            raise ValueError(f"ElmurConfig.model = {self.model}: must be a multiple of the {self.heads} heads")

    def _check_number(self, name: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"ElmurConfig.{name} = {value!r}: must be a number")
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"ElmurConfig.{name} = {value}: must be finite and not negative")

    def _check_count(self, name: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"ElmurConfig.{name} = {value!r}: must be an integer")
        least = 0 if name == "gradient_segments" else 1
        if value < least:
            raise ValueError(f"ElmurConfig.{name} = {value}: must be at least {least}")
