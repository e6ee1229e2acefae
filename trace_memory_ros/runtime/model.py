"""What a checkpoint's memory side is made of: content encoder, memory and the normalisers of their inputs."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory
from trace_memory_ros.runtime.checkpoint import COPY_AGAIN, WEIGHTS, Checkpoint, CheckpointConfig, CheckpointError
from trace_memory_ros.runtime.checkpoint_sizes import check_sizes
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.bounded import outline
from trace_memory_ros.vision.encoder import ContentEncoder


class MemoryModel(nn.Module):
    """Encoder, memory and normalisers.

    state, xi, delta: standardisers of the masked state `(d_s,)`, the signature and its increment `(S,)`; the last two
    are None where the mechanism takes no signature.
    """

    def __init__(
        self,
        encoder: ContentEncoder,
        memory: Memory,
        state: Standardiser,
        xi: Standardiser | None = None,
        delta: Standardiser | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.memory = memory
        self.state = state
        self.xi = xi
        self.delta = delta

    @property
    def uses_signature(self) -> bool:
        """Whether ticks need the path's signature."""
        return self.memory.uses_signature

    def tensors(self) -> dict[str, Tensor]:
        """What `checkpoint.save` takes: `encoder.`, `memory.` and `normaliser.` tensors."""
        named = dict(self.state_dict())
        for name, standardiser in (("state", self.state), ("xi", self.xi), ("delta", self.delta)):
            if standardiser is not None:
                named |= standardiser.to_tensors(f"normaliser.{name}.")
        return named

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> MemoryModel:
        """The trained model, in evaluation mode. Raises CheckpointError naming what doesn't fit."""
        path = checkpoint.folder / WEIGHTS
        try:
            check_sizes(checkpoint.config, checkpoint.tensors)
            other = not checkpoint.config.encoder.backbone.is_small
            eyes = {name: tensor for name, tensor in checkpoint.tensors.items() if name.startswith("encoder.")}
            outline(lambda: ContentEncoder(checkpoint.config.encoder), eyes.values(), "the memory's encoder", other)
            model = build_model(checkpoint.config, checkpoint.tensors)
        except Exception as error:  # a mechanism may stumble over options that nobody wrote in any way
            why = error.args[0] if isinstance(error, KeyError) and error.args else error
            raise CheckpointError(f"{path}: {why}; {COPY_AGAIN}") from error
        checkpoint.load_into(model.encoder, "encoder.")
        checkpoint.load_into(model.memory, "memory.")
        return model.eval()


def build_model(config: CheckpointConfig, tensors: Mapping[str, Tensor]) -> MemoryModel:
    """Fresh encoder and memory of the configured sizes, with the normalisers found in `tensors`.

    Raises ValueError or KeyError naming an unknown mechanism, a missing normaliser or one of another width.
    """
    memory = registry.from_config(config.memory.to_dict())
    widths = {"state": config.observation.state_dim}
    if memory.uses_signature:
        widths |= {"xi": config.signature_dim, "delta": config.signature_dim}
    normalisers = {name: _normaliser(tensors, name, width) for name, width in widths.items()}
    return MemoryModel(ContentEncoder(config.encoder), memory, **normalisers)


def state_normaliser(checkpoint: Checkpoint) -> Standardiser:
    """What training showed of the state, without the rest of the model. Raises CheckpointError where it is not."""
    try:
        return _normaliser(checkpoint.tensors, "state", checkpoint.config.observation.state_dim)
    except (KeyError, ValueError) as error:
        raise CheckpointError(f"{checkpoint.folder / WEIGHTS}: {error.args[0]}; {COPY_AGAIN}") from error


def _normaliser(tensors: Mapping[str, Tensor], name: str, width: int) -> Standardiser:
    found = Standardiser.from_tensors(tensors, f"normaliser.{name}.")
    if found.width != width:
        raise ValueError(f"normaliser.{name} has {found.width} channels, the config needs {width}")
    return found


def one_thread() -> None:
    """Let torch use one thread in this process: at batch 1 more are slower, and sums then depend on their number."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
