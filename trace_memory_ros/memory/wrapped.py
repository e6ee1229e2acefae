"""What a write gate and an attention cache have in common: a mechanism around another one."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from torch import Tensor

from trace_memory_ros.memory.base import Memory, MemoryInput


@dataclass(frozen=True)
class WrappedConfig:
    """inner: options of the mechanism inside."""

    inner: dict[str, Any] = field(default_factory=dict)


class WrappedMemory(Memory):
    """Sees inputs as the mechanism inside does, files them under its address and is prepared as it is.

    suffix: what the name has behind the inner one's.
    """

    suffix: str = ""

    def __init__(self, inner: Memory, config: WrappedConfig) -> None:
        super().__init__(inner.dims, replace(config, inner=asdict(inner.config)))
        self.inner = inner
        self.name = inner.name + self.suffix
        self.uses_signature = inner.uses_signature

    @property
    def address_width(self) -> int:
        """a of the inner mechanism."""
        return self.inner.address_width

    def embed(self, x: MemoryInput) -> MemoryInput:
        """As the inner mechanism."""
        return self.inner.embed(x)

    def address(self, x: MemoryInput) -> Tensor:
        """As the inner mechanism."""
        return self.inner.address(x)

    def calibrate(self, xs: MemoryInput, mask: Tensor) -> None:
        """As the inner mechanism."""
        self.inner.calibrate(xs, mask)

    def demonstrated(self, updates: Tensor, seconds: Tensor) -> None:
        """As the inner mechanism."""
        self.inner.demonstrated(updates, seconds)

    def anneal(self, progress: float) -> None:
        """As the inner mechanism."""
        self.inner.anneal(progress)
