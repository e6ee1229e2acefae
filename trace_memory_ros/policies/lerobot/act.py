"""Memory tokens for LeRobot's ACT: appended to what its attention layers look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.hooks import RemovableHandle

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import ConditionShape, RegressionAdapter


class ActMemory(nn.Module):
    """Appends memory tokens to the keys and values of every attention over the encoder's tokens.

    These are the encoder's self-attentions and the decoder's cross-attentions. What each head h puts out becomes

        o + gate_h * share * (o_mem - o),    share = Z_mem / (Z + Z_mem)

    with o and o_mem its outputs over LeRobot's tokens alone and the memory's alone, and Z, Z_mem the sums of their
    exponentiated scores. At gate 1 that is, term by term, one softmax over both sets of tokens: plain appending. At
    gate 0 it is o exactly, since what is added is zero times something finite. Tokens that are merely zero would not
    do: every token takes its share of a softmax. Tokens hidden by a mask would not learn: their gradient is zero and
    stays so. The gate's own gradient is not zero where the gate is, so the first step opens it.

    Whatever leaves a policy unchanged for every memory passes no gradient to the memory either; from gate 0 it arrives
    with the second step. A policy that is trained from scratch with its memory starts better at gate 1.

    LeRobot's tensors keep their sizes, and LeRobot's code runs as it is: forward hooks on its `nn.MultiheadAttention`s
    add the difference, projected as the layer projects its own. While nothing is given, they add nothing.
    """

    def __init__(self, base: Any, shape: ConditionShape, hidden: int, gate: float) -> None:
        super().__init__()
        model, heads = base.config.dim_model, base.config.n_heads
        self.shape = shape
        self.adapter = RegressionAdapter(shape, model, hidden)
        self.norm = nn.LayerNorm(model)
        self.place = nn.Parameter(torch.randn(shape.tokens + 1, model) * 0.2)
        layers = list(_attentions(base))
        self.gate = nn.Parameter(torch.full((len(layers), heads), gate))
        self._tokens: Tensor | None = None
        self._hidden: Tensor | None = None
        self._hooks = [
            layer.register_forward_hook(_Append(self, index), with_kwargs=True) for index, layer in enumerate(layers)
        ]

    @property
    def hooks(self) -> list[RemovableHandle]:
        """What holds this memory to its policy."""
        return self._hooks

    def give(self, memory: Readout | None, visible: Tensor | None = None) -> None:
        """Let the policy's next calls see `memory`; None for nothing. visible: `(B, N)` bool, tokens that count."""
        self._tokens = self._hidden = None
        if memory is None:
            return
        tokens = memory.tokens
        if visible is not None:
            tokens = tokens.where(visible[..., None], 0.0)
            self._hidden = functional.pad(~visible, (0, 1))[:, None, None]
        self._tokens = self.norm(self.adapter(tokens, memory.vector, memory.address))

    def addition(self, index: int, layer: nn.MultiheadAttention, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """What attention `index` puts out in addition `(L, B, E)`, for its inputs `(L, B, E)` and `(S, B, E)`."""
        assert self._tokens is not None
        tokens = self._tokens.transpose(0, 1)
        heads = _Heads(layer)
        q = heads.split(query, 0)
        here = heads.attend(q, heads.split(key, 1), heads.split(value, 2))
        kept = heads.attend(q, heads.split(tokens + self.place[:, None], 1), heads.split(tokens, 2), self._hidden)
        share = torch.sigmoid(kept[1] - here[1])
        moved = self.gate[index][:, None, None] * share * (kept[0] - here[0])
        return functional.linear(moved.permute(2, 0, 1, 3).flatten(2), layer.out_proj.weight)

    @property
    def given(self) -> bool:
        """Whether the policy sees a memory now."""
        return self._tokens is not None


class _Append:
    """Forward hook of one attention; a plain object, so that the policy does not own the memory's parameters."""

    def __init__(self, memory: ActMemory, index: int) -> None:
        self.memory = memory
        self.index = index

    def __call__(
        self, layer: nn.MultiheadAttention, args: tuple[Tensor, ...], kwargs: dict[str, Any], output: tuple[Any, Any]
    ) -> tuple[Any, Any] | None:
        if not self.memory.given:
            return None
        inputs = dict(zip(("query", "key", "value"), args, strict=False)) | kwargs
        added = self.memory.addition(self.index, layer, *(inputs[name] for name in ("query", "key", "value")))
        return output[0] + added, output[1]


class _Heads:
    """The projections of one `nn.MultiheadAttention`, head by head."""

    def __init__(self, layer: nn.MultiheadAttention) -> None:
        self.heads = layer.num_heads
        self.weights = layer.in_proj_weight.chunk(3)
        self.biases = layer.in_proj_bias.chunk(3)

    def split(self, x: Tensor, which: int) -> Tensor:
        """`(L, B, E)` to queries (0), keys (1) or values (2) `(B, heads, L, E / heads)`."""
        projected = functional.linear(x, self.weights[which], self.biases[which])
        return projected.unflatten(-1, (self.heads, -1)).permute(1, 2, 0, 3)

    @staticmethod
    def attend(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Output `(B, heads, L, d)` and logarithm of the sum of the exponentiated scores `(B, heads, L, 1)`.

        hidden: `(B, 1, 1, S)` bool, keys that have no part in it.
        """
        scores = query @ key.transpose(-2, -1) * query.shape[-1] ** -0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, -torch.inf)
        return scores.softmax(-1) @ value, scores.logsumexp(-1, keepdim=True)


def _attentions(base: Any) -> Iterator[nn.MultiheadAttention]:
    for layer in base.model.encoder.layers:
        yield layer.self_attn
    for layer in base.model.decoder.layers:
        yield layer.multihead_attn
