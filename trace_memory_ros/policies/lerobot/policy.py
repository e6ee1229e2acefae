"""A memory for LeRobot's own policies, without editing LeRobot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.policies.lerobot.act import ActMemory
from trace_memory_ros.policies.lerobot.compatible import check_base
from trace_memory_ros.policies.lerobot.diffusion import DiffusionMemory
from trace_memory_ros.policies.lerobot.prefix import EXPERTS, PrefixMemory

MEMORY_KEYS = {field: f"observation.memory.{field}" for field in Readout._fields}
"""Where a batch holds the memory's readout. LeRobot's processors let keys under `observation.` through unchanged."""
TOKEN_MASK = "observation.memory.token_mask"
"""Where a batch may say which memory tokens count, `(B, N)` bool; without it all do."""
FAMILIES = ("act", "diffusion", *EXPERTS)


@dataclass(frozen=True)
class MemoryOptions:
    """How a memory is added. condition: shape of its readout. frozen: LeRobot's weights stay as they are.

    hidden: width of the adapter's hidden layer. gate: of memory tokens at the beginning (not for diffusion); 0 begins
    as the plain policy, 1 with tokens that are plainly appended, for a policy that learns from scratch.
    """

    condition: ConditionShape
    frozen: bool = True
    hidden: int = 128
    gate: float = 0.0

    def __post_init__(self) -> None:
        if self.hidden < 1:
            raise ValueError(f"MemoryOptions.hidden = {self.hidden}: must be at least 1")

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping; `from_dict` inverts it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MemoryOptions:
        """Raises ValueError or TypeError for what is missing or unknown."""
        values = dict(data)
        return cls(ConditionShape(**values.pop("condition", {})), **values)


class MemoryPolicy(nn.Module):
    """A LeRobot policy that is given a memory's readout with every batch, under `MEMORY_KEYS`.

    It is called as LeRobot's policies are. `base` remains LeRobot's own object: called directly, it is the plain one.
    Its queues of observations and actions are its own, so a memory goes into a chunk when the chunk is computed; a
    memory that advances on every tick loses nothing meanwhile. While frozen, `base` stays in evaluation mode (no
    dropout, no running statistics) and is given no gradient; its weights go on saying `requires_grad`, since torch
    computes with others by other kernels, whose last bits differ. Raises ValueError for a policy of another family,
    IncompatibleLerobot for one whose modules are not those that a memory is attached to.
    """

    adapter: ActMemory | DiffusionMemory | PrefixMemory

    def __init__(self, base: Any, options: MemoryOptions) -> None:
        super().__init__()
        family = getattr(base, "name", type(base).__name__)
        if family not in FAMILIES:
            raise ValueError(f"a LeRobot policy {family!r} cannot be given a memory: choose from {', '.join(FAMILIES)}")
        check_base(base)
        self.base = base
        self.options = options
        if family == "diffusion":
            self.adapter = DiffusionMemory(base, options.condition, options.hidden)
        else:
            kind = ActMemory if family == "act" else PrefixMemory
            self.adapter = kind(base, options.condition, options.hidden, options.gate)
        self.adapter.to(next(base.parameters()).device)
        self.train(base.training)

    @property
    def config(self) -> Any:
        """LeRobot's configuration of the policy."""
        return self.base.config

    def train(self, mode: bool = True) -> MemoryPolicy:
        """As `nn.Module.train`, a frozen base excepted."""
        super().train(mode)
        if self.options.frozen:
            self.base.eval()
        return self

    def forward(self, batch: dict[str, Tensor]) -> tuple[Tensor, dict[str, Any] | None]:
        """LeRobot's loss and what it reports with it.

        A frozen ACT with a VAE is trained at the latent's prior mean, as it acts: its posterior sees the very actions
        that it is to predict from memory.
        """
        with self._given(batch), self._held():
            return self.base(self._own(batch))

    @torch.no_grad()
    def predict_action_chunk(self, batch: dict[str, Tensor], **options: Any) -> Tensor:
        """LeRobot's chunk `(B, H, A)`, not yet unnormalised."""
        self.eval()
        with self._given(batch):
            return self.base.predict_action_chunk(self._own(batch), **options)

    @torch.no_grad()
    def select_action(self, batch: dict[str, Tensor], **options: Any) -> Tensor:
        """LeRobot's action `(B, A)` for this tick, not yet unnormalised."""
        self.eval()
        with self._given(batch):
            return self.base.select_action(self._own(batch), **options)

    def reset(self) -> None:
        """Empty LeRobot's queues; the memory is reset where it runs."""
        self.base.reset()

    def get_optim_params(self) -> list[dict[str, Any]]:
        """Parameter groups: LeRobot's own, where they are trained, and the adapter's."""
        own: Any = [] if self.options.frozen else self.base.get_optim_params()
        groups = list(own) if isinstance(own, list) else [{"params": list(own)}]
        return [*groups, {"params": list(self.adapter.parameters())}]

    def release(self) -> Any:
        """Take the memory off again and return LeRobot's policy."""
        for hook in self.adapter.hooks:
            hook.remove()
        return self.base

    @staticmethod
    def _own(batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {key: value for key, value in batch.items() if key not in (*MEMORY_KEYS.values(), TOKEN_MASK)}

    @contextmanager
    def _given(self, batch: Mapping[str, Tensor]) -> Iterator[None]:
        self.adapter.give(batch_readout(batch, self.options.condition), batch_mask(batch, self.options.condition))
        try:
            yield
        finally:
            self.adapter.give(None)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """A frozen base records no gradient for its weights, and no posterior."""
        if not self.options.frozen:
            yield
            return
        config, trained = self.base.config, [p for p in self.base.parameters() if p.requires_grad]
        posterior = getattr(config, "use_vae", None)
        for parameter in trained:
            parameter.requires_grad_(False)
        if posterior:
            config.use_vae = False
        try:
            yield
        finally:
            for parameter in trained:
                parameter.requires_grad_(True)
            if posterior:
                config.use_vae = posterior


def memory_batch(readout: Readout, visible: Tensor | None = None) -> dict[str, Tensor]:
    """A readout as the entries that a batch must hold for a `MemoryPolicy`. visible: `(B, N)`, see `TOKEN_MASK`."""
    entries = {key: getattr(readout, field) for field, key in MEMORY_KEYS.items()}
    return entries if visible is None else entries | {TOKEN_MASK: visible}


def batch_readout(batch: Mapping[str, Tensor], shape: ConditionShape) -> Readout:
    """The readout in a batch. Raises ConditionMismatch naming keys that are missing or of another shape."""
    missing = [key for key in MEMORY_KEYS.values() if key not in batch]
    if missing:
        raise ConditionMismatch(
            f"the batch has no {', '.join(missing)}: add `memory_batch(readout)` to it, or call the policy's `base`"
        )
    readout = Readout(**{field: batch[key] for field, key in MEMORY_KEYS.items()})
    want = Readout((shape.tokens, shape.width), (shape.width,), (shape.tokens,), (shape.address,))  # type: ignore[arg-type]
    for field, key in MEMORY_KEYS.items():
        got = tuple(getattr(readout, field).shape[1:])
        if got != getattr(want, field):
            raise ConditionMismatch(
                f"{key} is (B, {', '.join(map(str, got))}); this policy was given a memory of {getattr(want, field)} "
                "after the batch. Use the memory that it was trained with."
            )
    return readout


def batch_mask(batch: Mapping[str, Tensor], shape: ConditionShape) -> Tensor | None:
    """Which memory tokens count, where a batch says so. Raises ConditionMismatch for another shape or type."""
    mask = batch.get(TOKEN_MASK)
    if mask is not None and (mask.dtype != torch.bool or tuple(mask.shape[1:]) != (shape.tokens,)):
        raise ConditionMismatch(
            f"{TOKEN_MASK} is {tuple(mask.shape)} {mask.dtype}: give truth values (B, {shape.tokens}), one to a token"
        )
    return mask
