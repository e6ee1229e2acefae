"""Small LeRobot policies, batches and readouts; importing this skips where LeRobot is not installed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.lerobot.install import LerobotMissing, lerobot
from trace_memory_ros.policies.lerobot.policy import MemoryOptions, MemoryPolicy, memory_batch

try:
    lerobot("lerobot.policies.factory")
except LerobotMissing as missing:
    pytest.skip(str(missing), allow_module_level=True)

SHAPE = ConditionShape(tokens=3, width=8, address=5)
CAMERAS = ("left", "right")
STATE, ACTIONS, SIDE = 5, 3, 48
FAMILIES = ("act", "diffusion")
SMALL: dict[str, dict[str, Any]] = {
    "act": dict(
        chunk_size=6,
        n_action_steps=4,
        dim_model=32,
        n_heads=4,
        dim_feedforward=32,
        n_encoder_layers=2,
        n_vae_encoder_layers=1,
        latent_dim=4,
        pretrained_backbone_weights=None,
    ),
    "diffusion": dict(
        n_obs_steps=2,
        horizon=8,
        n_action_steps=4,
        down_dims=(16, 32),
        diffusion_step_embed_dim=16,
        spatial_softmax_num_keypoints=8,
        num_train_timesteps=10,
        num_inference_steps=3,
    ),
}


def features() -> dict[str, dict[str, Any]]:
    """Input and output features of the example robot, as LeRobot's configurations take them."""
    types = lerobot("lerobot.configs.types")
    kinds, feature = types.FeatureType, types.PolicyFeature
    inputs = {f"observation.images.{name}": feature(kinds.VISUAL, (3, SIDE, SIDE)) for name in CAMERAS}
    inputs["observation.state"] = feature(kinds.STATE, (STATE,))
    return {"input_features": inputs, "output_features": {"action": feature(kinds.ACTION, (ACTIONS,))}}


def policy(family: str, **options: Any) -> Any:
    """A LeRobot policy of the family with weights that depend on nothing but the seed, in evaluation mode."""
    torch.manual_seed(0)
    factory = lerobot("lerobot.policies.factory")
    config = factory.make_policy_config(family, device="cpu", **features(), **{**SMALL[family], **options})
    return factory.get_policy_class(family)(config).eval()


def remembering(base: Any, **options: Any) -> MemoryPolicy:
    """`base`, copied, with a memory."""
    torch.manual_seed(1)
    return MemoryPolicy(copy.deepcopy(base), MemoryOptions(SHAPE, hidden=16, **options))


def readout(size: int, seed: int = 0) -> Readout:
    """A random readout of `size` episodes that records gradients."""
    noise = torch.Generator().manual_seed(seed)
    sizes = ((SHAPE.tokens, SHAPE.width), (SHAPE.width,), (SHAPE.tokens,), (SHAPE.address,))
    fields = [torch.randn(size, *shape, generator=noise) for shape in sizes]
    fields[2] = fields[2].softmax(-1)
    return Readout(*(field.requires_grad_() for field in fields))


def tick(size: int, seed: int) -> dict[str, Tensor]:
    """What is seen at one tick of `size` episodes."""
    noise = torch.Generator().manual_seed(seed)
    batch = {f"observation.images.{name}": torch.rand(size, 3, SIDE, SIDE, generator=noise) for name in CAMERAS}
    return batch | {"observation.state": torch.randn(size, STATE, generator=noise)}


def training_batch(family: str, size: int, memory: Readout) -> dict[str, Tensor]:
    """Observations, actions and memory, as the family is trained with."""
    noise = torch.Generator().manual_seed(5)
    steps = SMALL[family].get("n_obs_steps")
    seen = tick(size, 3)
    if steps:
        seen = {key: value[:, None].expand(-1, steps, *value.shape[1:]) for key, value in seen.items()}
    horizon = SMALL[family].get("horizon") or SMALL[family]["chunk_size"]
    target = {
        "action": torch.randn(size, horizon, ACTIONS, generator=noise),
        "action_is_pad": torch.zeros(size, horizon, dtype=torch.bool),
    }
    return seen | target | memory_batch(memory)
