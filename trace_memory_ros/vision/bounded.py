"""Whether a network is as large as the tensors that it is to be given, asked before it takes any memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules import module as registration
from torch.overrides import TorchFunctionMode

SPARE_NUMBERS, SPARE_MODULES = 2**22, 512
"""What a network may have beyond its file: buffers that are computed, layers without weights."""
BACKBONE_NUMBERS, BACKBONE_MODULES = 2**31, 2**16
"""What it may have with a backbone of another library: whole before its end is cut off, or with a file of its own."""
ELEMENTWISE = {
    "add", "cos", "div", "exp", "log", "mul", "neg", "pow", "remainder", "sin", "sub", "where", "__eq__",
    "__floordiv__", "__pow__", "__rpow__", "__rsub__",
}  # fmt: skip
"""Operations of which a result has its arguments' shape, broadcast."""
Network = TypeVar("Network", bound=nn.Module)


class TooLarge(ValueError):
    """A configuration describes a network that is larger than the weights beside it; the message names both."""


def outline(
    build: Callable[[], Network], given: Collection[Tensor], what: str, backbone: bool = False
) -> Network | None:
    """What `build` makes, without its numbers (`meta`): names and shapes for comparison. None where it cannot be asked.

    given: the tensors that are there for it. backbone: of another library, in it. Raises TooLarge at the
    first layer that is too many, and whatever `build` raises of ValueError, TypeError and KeyError.
    """
    try:
        with (
            warnings.catch_warnings(),
            torch.device("meta"),
            _ShapesAlone(),
            _at_most(given, what, backbone),
        ):
            warnings.simplefilter("ignore", UserWarning)  # weights that are read into an outline go nowhere
            return build()
    except (NotImplementedError, RuntimeError) as error:
        if "overflow" in str(error) or "too large" in str(error):
            raise TooLarge(f"{what} cannot be as large as its configuration says: {error}") from error
        return None


class _ShapesAlone(TorchFunctionMode):
    """Shapes of first numbers and of arithmetic with them, on `meta`; what is not known here is left to PyTorch.

    PyTorch works these out in Python, and imports its compiler for it: longer than all else of loading a checkpoint.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = getattr(func, "__name__", ""), kwargs or {}
        tensors = [one for one in args if isinstance(one, Tensor)]
        if tensors and name in ELEMENTWISE:
            shape = np.broadcast_shapes(*(one.shape for one in tensors))
            return torch.empty(shape, dtype=tensors[-1].dtype)
        if name == "mul_":
            return args[0]
        if "out" in given:
            return given["out"]
        if name == "randn" and "generator" not in given:
            return torch.empty(*args, **given)
        if name == "eye":
            return torch.empty(args[0], args[-1], **given)
        if name == "arange" and not {"start", "end", "step"} & given.keys():
            begin, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
            return torch.empty(ceil((end - begin) / step), **given)
        return func(*args, **given)


@contextmanager
def _at_most(given: Collection[Tensor], what: str, backbone: bool) -> Iterator[None]:
    there = sum(tensor.numel() for tensor in given)
    numbers = there + (BACKBONE_NUMBERS if backbone else SPARE_NUMBERS)
    modules = 16 * len(given) + (BACKBONE_MODULES if backbone else SPARE_MODULES)
    seen = [0, 0]

    def count(which: int, size: int, most: int, words: str) -> None:
        seen[which] += size
        if seen[which] > most:
            raise TooLarge(
                f"{what} has more than {most} {words} by its configuration, but the weights beside it are {len(given)} "
                f"tensors of {there} numbers: restore the config.yaml that was written with them"
            )

    def tensor(_: nn.Module, __: str, value: Tensor | None) -> None:
        count(0, 0 if value is None else value.numel(), numbers, "numbers")

    def child(_: nn.Module, __: str, ___: nn.Module | None) -> None:
        count(1, 1, modules, "layers")

    handles = [
        registration.register_module_parameter_registration_hook(tensor),
        registration.register_module_buffer_registration_hook(tensor),
        registration.register_module_module_registration_hook(child),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
