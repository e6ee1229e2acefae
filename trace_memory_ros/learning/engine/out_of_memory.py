"""What to do when a training needs more memory than there is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.report.progress import MEMORY

ON_HOST = ("DefaultCPUAllocator", "not enough memory", "Cannot allocate memory")
"""In what torch says when the host's memory is used up, as a plain RuntimeError."""


@contextmanager
def naming_the_setting(recipe: Recipe, phase: str) -> Iterator[None]:
    """Turn being out of memory, on whatever device, into a MemoryError that says which setting halves it."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        where = "GPU memory" if isinstance(error, torch.OutOfMemoryError) else "memory"
        raise MemoryError(f"out of {where} in the {phase} phase: {_remedy(recipe, phase)}") from error


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(text in str(error) for text in ON_HOST)


def _remedy(recipe: Recipe, phase: str) -> str:
    """Batches in halves as long as they can be halved, then reads."""
    prefix, of = ("recipe.memory_first", recipe.memory_first) if phase == MEMORY else ("recipe", recipe)
    name = "batch_pairs" if of.batch_pairs > 1 else "reads"
    value = getattr(of, name)
    if value == 1:
        return "batches cannot be smaller: choose a smaller observation.image_px, or memory.width"
    return f"--set {prefix}.{name}={value // 2} halves what a step needs (it is {value})"
