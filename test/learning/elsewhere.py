"""A device that is not the CPU, on machines without one: numbers lie on the CPU, under another device's name.

Where a tensor of the CPU meets one of this device in an operation, that fails as it would on a GPU, and so does
`.numpy()`. Numbers come out as on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("meta")
"""The one name besides the CPU's that a build of torch without GPUs lets autograd run under."""
MOVES = ("_to_copy", "copy_")


class Elsewhere(torch.Tensor):
    """A tensor of `DEVICE`; `here` holds its numbers."""

    here: torch.Tensor

    @staticmethod
    def __new__(cls, here: torch.Tensor) -> Elsewhere:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            here.shape,
            strides=here.stride(),
            storage_offset=here.storage_offset(),
            dtype=here.dtype,
            device=DEVICE,
        )
        made.here = here
        return made

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return carried_out(func, args, kwargs or {})

    def tolist(self) -> Any:
        """Numbers may be asked for, which a GPU is waited for."""
        return self.here.tolist()

    def __repr__(self, **_: Any) -> str:
        return f"elsewhere({self.here})"


class Apart(TorchDispatchMode):
    """Within, tensors that are asked for on `DEVICE` are made there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return carried_out(func, args, kwargs or {})


def carried_out(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Do an operation on the CPU; its result is where its inputs or its `device` say."""
    tensors = [part for part in tree_flatten((args, kwargs))[0] if isinstance(part, torch.Tensor)]
    there = [part for part in tensors if isinstance(part, Elsewhere)]
    move = any(name in func.__name__ for name in MOVES)
    # A number on the CPU may meet tensors of any device.
    strays = [part for part in tensors if not isinstance(part, Elsewhere) and part.ndim]
    if there and strays and not move:
        raise RuntimeError(f"{func}: a tensor {tuple(strays[0].shape)} of the CPU meets one of {DEVICE}")
    asked = kwargs.get("device")
    on_device = asked == DEVICE if asked is not None else bool(there)
    if move and isinstance(args[0], torch.Tensor) and asked is None:
        on_device = isinstance(args[0], Elsewhere)
    own = {key: torch.device("cpu") if key == "device" and value == DEVICE else value for key, value in kwargs.items()}
    inner = tree_map(lambda part: part.here if isinstance(part, Elsewhere) else part, (args, own))
    out = func(*inner[0], **inner[1])
    if func.__name__.partition(".")[0].endswith("_") and isinstance(args[0], Elsewhere):
        if torch.Tag.inplace_view in func.tags:
            with no_dispatch():
                func(*args, **kwargs)
        return args[0]  # what was changed in place
    return tree_map(lambda part: Elsewhere(part) if on_device and type(part) is torch.Tensor else part, out)


class ThereGenerator(torch.Generator):
    """A generator of `DEVICE`."""

    @property
    def device(self) -> torch.device:
        """Where it draws."""
        return DEVICE


def moved(module: nn.Module) -> nn.Module:
    """The module with its parameters and buffers on `DEVICE`, in place."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                part._parameters[name] = nn.Parameter(Elsewhere(parameter.detach()), parameter.requires_grad)
        for name, buffer in part._buffers.items():
            if buffer is not None:
                part._buffers[name] = Elsewhere(buffer)
    return module
