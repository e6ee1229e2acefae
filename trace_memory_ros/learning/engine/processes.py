"""Several processes that train one model together, as `torchrun` starts them: each has a share of every batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed, nn

from trace_memory_ros.memory.base import MemoryInput, State, WriteRecord

PATIENCE = timedelta(minutes=60)
"""Of the others while the first process looks at decisions."""
ENDLESS = timedelta(days=365)
"""Of the others while the first process tries candidates, which takes as long as their trainings do."""


@dataclass(frozen=True)
class Group:
    """rank: this process; size: of how many. Alone, nothing is exchanged and nothing changes.

    patient: torch's group of the same processes that others are waited for in; None for its usual one.
    """

    rank: int = 0
    size: int = 1
    patient: distributed.ProcessGroup | None = field(default=None, compare=False, repr=False)

    @classmethod
    def from_environment(cls, device: torch.device) -> Group:
        """The group that `torchrun` put this process into; alone without it."""
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return ALONE
        if device.type == "cuda":
            torch.cuda.set_device(device)
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
        # By gloo also on GPUs: who waits keeps none of them busy.
        return cls(distributed.get_rank(), size, distributed.new_group(timeout=ENDLESS, backend="gloo"))

    def leave(self) -> None:
        """End what `from_environment` began."""
        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()

    @property
    def writes(self) -> bool:
        """Whether this process is the one that prints and writes files."""
        return self.rank == 0

    @contextmanager
    def first_before_others(self) -> Iterator[None]:
        """What is kept in a cache is done by the first process, and found there by the others, who wait for it."""
        if self.size > 1 and not self.writes:
            distributed.barrier(self.patient)
        yield
        if self.size > 1 and self.writes:
            distributed.barrier(self.patient)

    def rows(self, count: int) -> slice:
        """This process's of `count` episodes. Raises ValueError where there are fewer than processes."""
        if count < self.size:
            raise ValueError(
                f"a batch of {count} episodes for {self.size} processes: raise recipe.batch_pairs (and "
                "recipe.memory_first.batch_pairs), or start fewer"
            )
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of every process's `values`, without gradient."""
        if self.size == 1:
            return values
        total = values.detach().clone()
        distributed.all_reduce(total)
        return total

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether any process has the flag up."""
        return flag if self.size == 1 else bool(self.sum(torch.tensor(float(flag), device=device)) > 0)

    def of_first(self, values: Sequence[float], device: torch.device) -> list[float]:
        """The first process's `values`, equally many in all."""
        if self.size == 1:
            return list(values)
        told = torch.tensor(list(values), dtype=torch.float64 if device.type != "mps" else torch.float32, device=device)
        distributed.broadcast(told, 0)
        return [float(value) for value in told.tolist()]

    def share_of(self, counted: Tensor) -> Tensor | float:
        """What a mean over this process's `counted` weighs, so that the processes' mean is the mean over all."""
        if self.size == 1:
            return 1.0
        here = counted.sum().to(torch.float32)
        return here * self.size / self.sum(here).clamp(min=1.0)

    def gathered(
        self, xs: MemoryInput, states: State, records: WriteRecord, mask: Tensor
    ) -> tuple[MemoryInput, State, WriteRecord, Tensor]:
        """The whole batch's inputs, states and records `(B, T, ...)` of every process's part of it.

        A loss that every process takes of these passes each part the gradient that one process would pass it, once the
        processes' gradients are averaged.
        """
        if self.size == 1:
            return xs, states, records, mask
        whole = tuple(self.whole(part) for part in states)
        return xs.map(self.whole), whole, WriteRecord(*map(self.whole, records)), self.whole(mask)

    def together(self, objective: nn.Module) -> nn.Module:
        """The module with its gradients averaged over the processes."""
        if self.size == 1:
            return objective
        # The memory's phase has no use for the policy, and a policy without memory none for its adapter.
        parallel: nn.Module = nn.parallel.DistributedDataParallel(objective, find_unused_parameters=True)
        return parallel

    def whole(self, part: Tensor) -> Tensor:
        """A tensor of every process's episodes, one after the other."""
        if self.size == 1:
            return part
        sizes = [torch.zeros(1, dtype=torch.int64, device=part.device) for _ in range(self.size)]
        distributed.all_gather(sizes, torch.tensor([len(part)], device=part.device))
        whole: Tensor = _Gather.apply(part, [int(size) for size in sizes], self.rank)
        return whole


ALONE = Group()


class _Gather(torch.autograd.Function):
    """Every process's rows, one after the other. What follows is the same in all of them, and so is its gradient."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, sizes: list[int], rank: int) -> Tensor:
        ctx.begin, ctx.rows, ctx.size = sum(sizes[:rank]), sizes[rank], len(sizes)
        flag = part.dtype == torch.bool
        sent = part.detach().to(torch.uint8 if flag else part.dtype)
        # Rows may differ by one between processes, and a gather wants them alike.
        longest = max(sizes)
        sent = torch.cat((sent, sent.new_zeros(longest - len(sent), *sent.shape[1:])))
        parts = [torch.empty_like(sent) for _ in sizes]
        distributed.all_gather(parts, sent.contiguous())
        whole = torch.cat([rows[:size] for rows, size in zip(parts, sizes, strict=True)])
        if flag or not part.is_floating_point():
            ctx.mark_non_differentiable(whole)
        return whole.bool() if flag else whole

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, None, None]:
        return grads[0][ctx.begin : ctx.begin + ctx.rows] * ctx.size, None, None
