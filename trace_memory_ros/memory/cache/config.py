"""Settings of the attention cache behind a mechanism."""

from __future__ import annotations

from dataclasses import dataclass

from trace_memory_ros.memory.wrapped import WrappedConfig


@dataclass(frozen=True)
class CachedConfig(WrappedConfig):
    """Settings of the cache; `inner` holds the options of the mechanism that it stands behind.

    window: writes remembered, n. first: of these, the first of an episode, never given up. key, value: widths
    of an entry's two halves. heads: that choose among the entries. counters: heads that add up every entry that fits.
    position: weight of an entry's age beside its key. clock_dropout: share of the training reads that are not told how
    many writes there were, as no read is once there were more than in training.
    """

    window: int = 240
    first: int = 16
    key: int = 32
    value: int = 32
    heads: int = 8
    counters: int = 2
    position: float = 2.0
    clock_dropout: float = 0.15

    def __post_init__(self) -> None:
        for name in ("window", "key", "value", "heads"):
            if getattr(self, name) < 1:
                raise ValueError(f"CachedConfig.{name} = {getattr(self, name)}: must be at least 1")
        if not 1 <= self.first < self.window:
            raise ValueError(
                f"CachedConfig.first = {self.first}: must be at least 1, and less than window = {self.window}"
            )
        if not 0 <= self.clock_dropout <= 1:
            raise ValueError(f"CachedConfig.clock_dropout = {self.clock_dropout}: must lie between 0 and 1")
        if self.counters < 0:
            raise ValueError(f"CachedConfig.counters = {self.counters}: must not be negative")
        if self.position < 0:
            raise ValueError(f"CachedConfig.position = {self.position}: must not be negative")
