"""Memory for LeRobot's Diffusion Policy: a vector added to the U-Net's global condition."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import ConditionShape, DiffusionAdapter

CONDITION = "global_cond"


class DiffusionMemory(nn.Module):
    """Adds what the diffusion adapter makes of a readout to the global condition, in training and at every denoising
    step.

    The adapter's last layer begins at zero, so a wrapped policy begins as exactly the plain one, and the gradient
    reaches the memory with the second step. A forward pre-hook on the U-Net adds the vector; LeRobot's code runs as it
    is. While nothing is given, it adds nothing. Raises ValueError for a policy whose U-Net is compiled.
    """

    def __init__(self, base: Any, shape: ConditionShape, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        config = base.config
        if config.compile_model:
            raise ValueError(
                "this Diffusion policy has compile_model = true: its compiled U-Net would not see what a memory adds. "
                "Load it with compile_model = false."
            )
        self.adapter = DiffusionAdapter(shape, condition_width(base), hidden)
        self._added: Tensor | None = None
        self._hooks = [base.diffusion.unet.register_forward_pre_hook(_Add(self), with_kwargs=True)]

    @property
    def hooks(self) -> list[RemovableHandle]:
        """What holds this memory to its policy."""
        return self._hooks

    def give(self, memory: Readout | None, visible: Tensor | None = None) -> None:
        """Let the policy's next calls see `memory`; None for nothing. visible: `(B, N)` bool, tokens that count."""
        self._added = None
        if memory is None:
            return
        tokens, weights = memory.tokens, memory.read_weights
        if visible is not None:
            tokens, weights = tokens.where(visible[..., None], 0.0), weights.where(visible, 0.0)
        self._added = self.adapter(tokens, weights, memory.vector, memory.address)

    @property
    def added(self) -> Tensor | None:
        """The vector `(B, c)` that is added now."""
        return self._added


class _Add:
    """Forward pre-hook of the U-Net; a plain object, so that the policy does not own the memory's parameters."""

    def __init__(self, memory: DiffusionMemory) -> None:
        self.memory = memory

    def __call__(
        self, unet: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        added = self.memory.added
        return None if added is None else (args, {**kwargs, CONDITION: kwargs[CONDITION] + added})


def condition_width(base: Any) -> int:
    """c: state, image features and environment state of every observation step, side by side."""
    config = base.config
    width = config.robot_state_feature.shape[0]
    if config.image_features:
        encoder = base.diffusion.rgb_encoder
        one = encoder[0] if config.use_separate_rgb_encoder_per_camera else encoder
        width += one.feature_dim * len(config.image_features)
    if config.env_state_feature:
        width += config.env_state_feature.shape[0]
    return int(width * config.n_obs_steps)
