"""Bags through the same `MemoryRuntime.tick` as the live node's, compared with what it published."""
