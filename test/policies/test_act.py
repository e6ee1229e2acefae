"""The action-chunking policy: shapes, losses, memory path, CVAE, errors."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from trace_memory_ros.policies.act.policy import ActConfig, ActPolicy, chunk_l1
from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.policies.runner import ActRunner
from trace_memory_ros.vision import weights
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.config import BackboneConfig

CONFIG = ActConfig(
    cameras=("overhead", "wrist"),
    action_names=("a", "b", "c"),
    state=5,
    image_px=16,
    chunk=4,
    model=16,
    heads=2,
    feedforward=16,
    memory_tokens=3,
    memory_width=8,
    memory_address=6,
)


def _inputs(config: ActConfig, batch: int) -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, ...]]:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator)

    px, shape = config.image_px, config.condition
    images = draw(batch, len(config.cameras), 3, px, px)
    memory = (
        draw(batch, shape.tokens, shape.width),
        draw(batch, shape.width),
        draw(batch, shape.address),
    )
    return images, draw(batch, config.state), memory


def _condition(config: ActConfig) -> SimpleNamespace:
    _, _, memory = _inputs(config, 1)
    parts = {k: v[0].numpy() for k, v in zip(("tokens", "vector", "address"), memory, strict=True)}
    return SimpleNamespace(**parts, read_weights=np.full(config.memory_tokens, 0.5, np.float32))


def _observation(config: ActConfig) -> SimpleNamespace:
    images, state, _ = _inputs(config, 1)
    pixels = (images[0] * 255).byte().permute(0, 2, 3, 1).numpy()
    return SimpleNamespace(images=dict(zip(config.cameras, pixels, strict=True)), state=state[0].double().numpy())


@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_chunk_has_one_action_per_tick_whatever_the_slot_count(tokens: int) -> None:
    config = replace(CONFIG, memory_tokens=tokens)
    assert ActPolicy(config)(*_inputs(config, 2)).shape == (2, 4, 3)


def test_every_part_of_the_memory_reaches_the_action() -> None:
    torch.manual_seed(0)
    policy = ActPolicy(CONFIG)
    images, state, memory = _inputs(CONFIG, 2)
    memory = tuple(part.requires_grad_() for part in memory)
    policy(images, state, memory).square().sum().backward()
    assert all(part.grad is not None and part.grad.abs().sum() > 0 for part in memory)


def test_masked_ticks_do_not_count() -> None:
    target = torch.zeros(1, 4, 3)
    predicted = torch.tensor([1.0, 2.0, 50.0, 50.0])[None, :, None].expand(1, 4, 3)
    valid = torch.tensor([[True, True, False, False]])
    assert chunk_l1(predicted, target, valid).item() == pytest.approx(1.5)


def test_kl_is_zero_only_at_the_prior() -> None:
    config = replace(CONFIG, latent=4)
    policy = ActPolicy(config)
    images, state, memory = _inputs(config, 2)
    last = policy.posterior[-1]
    torch.nn.init.zeros_(last.weight)
    torch.nn.init.zeros_(last.bias)
    actions = torch.randn(2, 4, 3)
    assert policy.infer_latent(actions, state)[1].item() == pytest.approx(0.0)
    torch.nn.init.constant_(last.bias, 0.5)
    latent, kl = policy.infer_latent(actions, state)
    # 4 dimensions, mean = log variance = 0.5: KL = 4 * (0.25 + e^0.5 - 1 - 0.5) / 2
    assert kl.item() == pytest.approx(2.0 * (0.25 + np.exp(0.5) - 1.5), rel=1e-5)
    assert not torch.equal(policy(images, state, memory, latent), policy(images, state, memory))


def test_runner_reproduces_the_saved_policy_and_denormalises() -> None:
    torch.manual_seed(1)
    policy = ActPolicy(CONFIG).eval()
    policy.action_mean.fill_(3.0)
    policy.action_std.fill_(2.0)
    tensors = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    runner = ActRunner.from_tensors(CONFIG.to_dict(), tensors)
    observation, condition = _observation(CONFIG), _condition(CONFIG)
    images = torch.from_numpy(np.stack(list(observation.images.values()))).permute(0, 3, 1, 2).float() / 255.0
    memory = tuple(torch.from_numpy(v)[None] for v in (condition.tokens, condition.vector, condition.address))
    with torch.inference_mode():
        expected = policy(images[None], torch.from_numpy(observation.state).float()[None], memory)[0] * 2.0 + 3.0
    np.testing.assert_allclose(runner.chunk(observation, condition), expected.numpy(), rtol=1e-5, atol=1e-6)


def test_a_condition_of_another_shape_is_refused_with_both_shapes() -> None:
    runner = ActRunner(ActPolicy(CONFIG))
    other = _condition(replace(CONFIG, memory_tokens=5))
    with pytest.raises(ConditionMismatch, match=r"40 token numbers.*24 \(3 tokens of 8\)"):
        runner.act(_observation(CONFIG), other)


def test_weights_of_another_size_are_refused() -> None:
    tensors = ActPolicy(CONFIG).state_dict()
    with pytest.raises(ValueError, match=r"(?s)do not fit.*queries"):
        ActRunner.from_tensors(replace(CONFIG, chunk=9).to_dict(), tensors)


def test_places_of_what_is_asked_for_reach_the_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(weights.CACHE, str(tmp_path))
    seen_by = weights.choose("efficientnet_lite0", True, {"stride": 8}, weights.RANDOM, 16)
    config = replace(CONFIG, backbone=seen_by, places=True)
    torch.manual_seed(0)
    policy = ActPolicy(config)
    assert ActConfig(**config.to_dict()) == config
    images, state, memory = _inputs(config, 2)
    features = policy.image_features(images)
    policy.image_tokens.calibrate(features)
    chunk = policy(images, state, memory)
    torch.testing.assert_close(policy(features, state, memory), chunk)
    chunk.sum().backward()
    assert policy.places is not None and policy.places.query.weight.grad.abs().sum() > 0.0
    with torch.no_grad():
        policy.places.query.weight.zero_()
        assert (policy(images, state, memory) - chunk).abs().max() > 1e-6
    before = policy.places.key.weight.clone()
    policy.places.reset()
    assert not torch.equal(policy.places.key.weight, before)


def test_a_grid_too_fine_to_attend_to_is_made_coarser_and_places_are_told_on_it_as_it_is() -> None:
    config = replace(CONFIG, backbone=BackboneConfig("cells", options={"cell_px": 1}), places=True)
    torch.manual_seed(0)
    policy = ActPolicy(config)
    images, state, memory = _inputs(config, 2)
    features = policy.image_features(images)
    policy.image_tokens.calibrate(features)
    assert policy.image_tokens.grid == (16, 16) and policy.image_tokens(images).shape[1] == 8 * 8 * len(config.cameras)
    chunk = policy(images, state, memory)
    torch.testing.assert_close(policy(features, state, memory), chunk)
    chunk.square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in policy.parameters())
    # A head that asks for red tells where the one red pixel is.
    places, dark = policy.places, torch.zeros(1, len(config.cameras), 256, 3)
    noise = 0.2 * torch.rand(8, *dark.shape[1:])
    policy.image_tokens.calibrate(Features(noise, noise.mean(dim=-2)))
    dark[0, :, 37] = torch.tensor((1.0, 0.0, 0.0))
    assert places is not None
    with torch.no_grad():
        key = torch.nn.functional.normalize(places.key(policy.image_tokens.map[0](dark[0, 0, 37])), dim=-1)
        places.query.weight.zero_()
        places.query.bias.copy_(key.repeat(len(config.cameras)))
        places.sharpness.fill_(8.0)
        found = places(torch.zeros(1, places.query.in_features), dark).view(-1, 2)
    torch.testing.assert_close(found, places.grid[37].expand_as(found), atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"heads": 3}, "heads = 3"),
        ({"heads": 0}, "heads = 0: must be at least 1"),
        ({"latent": -1}, "latent = -1"),
        ({"image_px": 0}, "image_px = 0"),
        ({"chunk": 0}, "chunk = 0"),
        ({"places": True}, "places needs features that stay"),
    ],
)
def test_impossible_sizes_are_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **change)
