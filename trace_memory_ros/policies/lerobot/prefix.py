"""Memory tokens for LeRobot's vision-language-action policies: appended to the prefix that their actions attend to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import ConditionShape, RegressionAdapter

EXPERTS = {"smolvla": "vlm_with_expert", "pi0": "paligemma_with_expert", "pi05": "paligemma_with_expert"}
"""Families, and where in `policy.model` each keeps its language model and action expert."""
CLOSED = 1e-7
"""Weight of a memory token in a softmax where its gate begins at 0: too little to show, enough for a gradient."""
_LEAST = 1e-12
_HIDDEN = torch.finfo(torch.float32).min


class PrefixMemory(nn.Module):
    """Appends memory tokens to the prefix (images, language, state) of a SmolVLA, pi0 or pi0.5 policy.

    Actions attend to prefix and memory, the memory to the prefix and itself, the prefix to itself alone: what a trained
    language model makes of images and language stays as it is. A memory token n has the weight `gate_n * exp(score)` in
    every softmax, its gate being added to the scores as a logarithm. At gate 1 that is plain appending; a gate that
    begins at 0 begins at `CLOSED`, where outputs are the plain policy's within rounding and the gate's own gradient is
    not small. No token moves: memory tokens have the position of the prefix's last, and are told apart by `place`.

    LeRobot's code runs as it is. On this one object, `embed_prefix` and what takes the attention mask are shadowed by
    functions that call LeRobot's own; `hooks` removes them. Raises ValueError for a policy that is compiled.
    """

    def __init__(self, base: Any, shape: ConditionShape, hidden: int, gate: float) -> None:
        super().__init__()
        if base.config.compile_model:
            raise ValueError(
                f"this {base.name} policy has compile_model = true: its compiled model would not see what a memory "
                "adds. Load it with compile_model = false."
            )
        width = prefix_width(base)
        self.shape = shape
        self.adapter = RegressionAdapter(shape, width, hidden)
        self.norm = nn.LayerNorm(width)
        self.place = nn.Parameter(torch.randn(shape.tokens + 1, width) * 0.2)
        self.gate = nn.Parameter(torch.full((shape.tokens + 1,), max(gate, CLOSED)))
        self._tokens: Tensor | None = None
        self._visible: Tensor | None = None
        self._prefix: Tensor | None = None
        model = base.model
        self._hooks = [Shadow(model, "embed_prefix", self._embed_prefix)]
        if base.name == "smolvla":
            expert = getattr(model, EXPERTS[base.name])
            self._hooks.append(Shadow(expert, "forward", self._with_open_mask))
            self._hooks.append(Shadow(expert, "eager_attention_forward", self._attend))
        else:
            self._hooks.append(Shadow(model, "_prepare_attention_masks_4d", self._added_mask))

    @property
    def hooks(self) -> list[Shadow]:
        """What holds this memory to its policy."""
        return self._hooks

    def give(self, memory: Readout | None, visible: Tensor | None = None) -> None:
        """Let the policy's next calls see `memory`; None for nothing. visible: `(B, N)` bool, tokens that count."""
        self._tokens = self._prefix = None
        if memory is None:
            return
        tokens = memory.tokens
        everything = torch.ones(len(tokens), self.shape.tokens + 1, dtype=torch.bool, device=tokens.device)
        if visible is not None:
            tokens = tokens.where(visible[..., None], 0.0)
            everything[:, :-1] = visible
        self._visible = everything
        self._tokens = self.norm(self.adapter(tokens, memory.vector, memory.address)) + self.place

    @property
    def _bias(self) -> Tensor:
        """What is added to the scores of the memory's tokens `(N + 1,)`."""
        return self.gate.abs().clamp_min(_LEAST).log()

    def _embed_prefix(self, own: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Embeddings `(B, P, W)`, padding `(B, P)` and blocks `(B, P)` with the memory's tokens behind LeRobot's.

        They are given as padding, so that LeRobot counts no position for them; the mask is opened where it is used.
        """
        embeddings, valid, blocks = own(*args, **kwargs)
        if self._tokens is None:
            return embeddings, valid, blocks
        self._prefix = valid
        added = self._tokens.to(embeddings.dtype)
        nothing = torch.zeros(added.shape[:2], dtype=torch.bool, device=valid.device)
        return torch.cat([embeddings, added], 1), torch.cat([valid, nothing], 1), torch.cat([blocks, nothing], 1)

    def _opened(self, mask: Tensor) -> Tensor:
        """The mask `(B, L, K)` bool with the memory's columns. Its rows are actions alone where L < K."""
        assert self._prefix is not None and self._visible is not None
        begin = self._prefix.shape[1]
        end = begin + self._visible.shape[1]
        mask, visible = mask.clone(), self._visible[:, None]
        if mask.shape[1] < mask.shape[2]:
            mask[:, :, begin:end] = visible
            return mask
        mask[:, begin:, begin:end] = visible
        mask[:, begin:end, :begin] = self._prefix[:, None]
        return mask

    def _added_mask(self, own: Callable[[Tensor], Tensor], mask: Tensor) -> Tensor:
        """pi0, pi0.5: what is added to the scores `(B, 1, L, K)`."""
        if self._prefix is None:
            return own(mask)
        added = own(self._opened(mask))
        begin = self._prefix.shape[1]
        count = len(self.gate)
        bias = nn.functional.pad(self._bias, (begin, mask.shape[2] - begin - count))
        return added + bias.to(added.dtype)

    def _with_open_mask(self, own: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """SmolVLA: its two models on embeddings, with the mask opened."""
        if self._prefix is None:
            return own(*args, **kwargs)
        return own(*args, **{**kwargs, "attention_mask": self._opened(kwargs["attention_mask"])})

    def _attend(
        self,
        own: Callable[..., Tensor],
        mask: Tensor,
        batch_size: int,
        head_dim: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
    ) -> Tensor:
        """SmolVLA's attention: query `(B, L, h, E)`, key and value `(B, K, g, E)` -> `(B, L, h * E)`.

        LeRobot's takes a mask of truth values, which has no room for a gate.
        """
        if self._prefix is None:
            return own(mask, batch_size, head_dim, query, key, value)
        shared = query.shape[2] // key.shape[2]
        key, value = key.repeat_interleave(shared, 2), value.repeat_interleave(shared, 2)
        scores = torch.einsum("blhe,bkhe->bhlk", query.float(), key.float()) * head_dim**-0.5
        begin = self._prefix.shape[1]
        bias = nn.functional.pad(self._bias, (begin, key.shape[1] - begin - len(self.gate)))
        weights = torch.where(mask[:, None], scores + bias, _HIDDEN).softmax(-1).to(value.dtype)
        return torch.einsum("bhlk,bkhe->blhe", weights, value).flatten(2)


class Shadow:
    """A function in place of a bound method of one object, which is handed that method first; until removed."""

    def __init__(self, owner: Any, name: str, function: Callable[..., Any]) -> None:
        own = getattr(owner, name)
        self.owner, self.name = owner, name
        # Not through nn.Module, which would own the memory's parameters.
        object.__setattr__(owner, name, lambda *args, **kwargs: function(own, *args, **kwargs))

    def remove(self) -> None:
        """Let the object be as it was."""
        if self.name in vars(self.owner):
            object.__delattr__(self.owner, self.name)


def prefix_width(base: Any) -> int:
    """Width of the prefix's embeddings."""
    expert = getattr(base.model, EXPERTS[base.name])
    config = expert.config if base.name == "smolvla" else expert.paligemma.config
    return int(config.text_config.hidden_size)
