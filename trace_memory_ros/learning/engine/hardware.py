"""What a training runs on: the device, the precision of its networks, and how many threads make batches."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import nn

DEVICES = ("auto", "cpu", "cuda", "mps")
PRECISIONS = ("auto", "float32", "bf16")
LOADERS = 2


@dataclass(frozen=True)
class Hardware:
    """device: where networks and batches are. bf16: encoder and policy in bfloat16 where autocast deems it safe.

    Memories stay in float32: what is solved or summed over an episode does not survive eight bits of mantissa.
    compiled: encoder and policy by `torch.compile`. loaders: threads that make batches ahead of the step; 0 for none.
    """

    device: torch.device = field(default_factory=partial(torch.device, "cpu"))
    bf16: bool = False
    compiled: bool = False
    loaders: int = 0

    def __post_init__(self) -> None:
        if self.loaders < 0:
            raise ValueError(f"loaders = {self.loaders}: must not be negative; 0 makes batches within the step")

    @classmethod
    def chosen(
        cls, device: str = "auto", precision: str = "auto", compiled: bool = False, loaders: int = LOADERS
    ) -> Hardware:
        """What a command line asks for, of `DEVICES` and `PRECISIONS`; `auto` takes the best there is.

        Raises ValueError for a device that is not there, saying what to do.
        """
        name = _best() if device == "auto" else _present(device)
        # Of several processes on a machine each has a GPU of its own.
        where = torch.device(
            f"cuda:{os.environ['LOCAL_RANK']}" if name == "cuda" and "LOCAL_RANK" in os.environ else name
        )
        if precision not in PRECISIONS:
            raise ValueError(f"precision {precision!r}: choose from {', '.join(PRECISIONS)}")
        half = precision == "bf16" or (
            precision == "auto" and where.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        )
        return cls(where, half, compiled, loaders)

    def half(self) -> AbstractContextManager[Any]:
        """Under which encoder and policy run."""
        return torch.autocast(self.device.type, torch.bfloat16) if self.bf16 else nullcontext()

    def whole(self) -> AbstractContextManager[Any]:
        """Under which a memory runs, inside of `half` too."""
        return torch.autocast(self.device.type, enabled=False) if self.bf16 else nullcontext()

    def compile(self, modules: list[nn.Module], backend: str | Callable[..., Any] = "inductor") -> None:
        """Have the forward of `modules` compiled at its first call, if that was asked for; the weights stay theirs."""
        for module in modules if self.compiled else ():
            module.compile(backend=backend, dynamic=True)

    def wait(self) -> None:
        """Until all that was begun on the device is done, so that a clock means something."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        elif self.device.type == "mps":
            torch.mps.synchronize()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a summary; the device by its model."""
        name = torch.cuda.get_device_name(self.device) if self.device.type == "cuda" else self.device.type
        precision = "bf16" if self.bf16 else "float32"
        return {"device": name, "precision": precision, "compiled": self.compiled, "loaders": self.loaders}


CPU = Hardware()
"""One thread, in float32."""


def _best() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _present(device: str) -> str:
    """`device`, if it is there."""
    kind, colon, index = device.partition(":")
    if kind not in DEVICES or (colon and (kind != "cuda" or not index.isdecimal())):
        raise ValueError(f"device {device!r}: choose from {', '.join(DEVICES)}, or cuda:N for the GPU of that number")
    if kind == "cuda" and not torch.cuda.is_available():
        why = "torch finds no GPU that its driver can use"
        if torch.version.cuda is None:
            why = f"torch {torch.__version__} is built without CUDA"
        raise ValueError(
            f"device cuda was asked for, but {why}: see `nvidia-smi`, install a CUDA build of torch, or train with "
            "--device cpu"
        )
    if kind == "cuda" and colon and int(index) >= torch.cuda.device_count():
        raise ValueError(
            f"device {device} was asked for, but torch finds {torch.cuda.device_count()} GPUs, counted from 0: see "
            "`nvidia-smi` and CUDA_VISIBLE_DEVICES, or train with --device cuda"
        )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError("device mps was asked for, but this is no Mac with Metal: train with --device cpu")
    return device
