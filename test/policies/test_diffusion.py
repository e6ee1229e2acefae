"""The diffusion policy: the adapter's start, the objective, sampling, the runner, errors."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import ConditionShape, DiffusionAdapter
from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.policies.diffusion.family import DiffusionRunner
from trace_memory_ros.policies.diffusion.policy import DiffusionConfig, DiffusionPolicy
from trace_memory_ros.vision.config import BackboneConfig

CONFIG = DiffusionConfig(
    cameras=("overhead", "wrist"),
    action_names=("a", "b", "c"),
    state=5,
    image_px=16,
    chunk=8,
    model=16,
    width=16,
    token_channels=4,
    channels=(8, 16),
    kernel=3,
    time_width=8,
    noise_steps=20,
    inference_steps=3,
    draws=2,
    execute=4,
    memory_tokens=3,
    memory_width=8,
    memory_address=6,
)


def _inputs(batch: int, config: DiffusionConfig = CONFIG) -> tuple[torch.Tensor, torch.Tensor, Readout]:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator)

    px, shape = config.image_px, config.condition
    weights = draw(batch, shape.tokens).softmax(-1)
    readout = Readout(draw(batch, shape.tokens, shape.width), draw(batch, shape.width), weights, draw(batch, 6))
    return draw(batch, len(config.cameras), 3, px, px), draw(batch, config.state), readout


def _live(seed: int = 0) -> tuple[SimpleNamespace, SimpleNamespace]:
    images, state, readout = _inputs(1)
    pixels = (images[0] * 255).byte().permute(0, 2, 3, 1).numpy()
    observation = SimpleNamespace(
        images=dict(zip(CONFIG.cameras, pixels, strict=True)), state=state[0].double().numpy() + seed
    )
    return observation, SimpleNamespace(**{name: part[0].numpy() for name, part in readout._asdict().items()})


@pytest.fixture
def policy() -> DiffusionPolicy:
    torch.manual_seed(0)
    return DiffusionPolicy(CONFIG).eval()


def test_a_fresh_adapter_changes_no_bit(policy: DiffusionPolicy) -> None:
    images, state, readout = _inputs(2)
    plain = policy.global_condition(images, state, None)
    torch.testing.assert_close(policy.global_condition(images, state, readout), plain, rtol=0, atol=0)
    noise = policy.draw_noise(1).expand(2, -1, -1)
    with torch.no_grad():
        expected = policy.denoise(plain, noise)
        conditioned = policy.denoise(policy.global_condition(images, state, readout), noise)
    torch.testing.assert_close(conditioned, expected, rtol=0, atol=0)


def test_the_objective_is_the_same_with_a_fresh_adapter(policy: DiffusionPolicy) -> None:
    images, state, readout = _inputs(2)
    target, valid = torch.randn(2, 8, 3), torch.ones(2, 8, dtype=torch.bool)
    other = Readout(*(part + 1.0 for part in readout))
    losses = []
    for given in (readout, other):
        torch.manual_seed(3)
        losses.append(policy.losses(images, state, given, target, valid)["denoising"].item())
    assert losses[0] == losses[1]


def test_the_adapter_pools_slots_by_their_read_weights() -> None:
    torch.manual_seed(0)
    adapter = DiffusionAdapter(ConditionShape(2, 4, 3), condition=5, hidden=16)
    torch.nn.init.normal_(adapter.last.weight)
    slots, vector, address = torch.randn(1, 2, 4), torch.randn(1, 4), torch.randn(1, 3)
    weights = torch.tensor([[0.25, 0.75]])
    pooled = (0.25 * slots[:, 0] + 0.75 * slots[:, 1])[:, None].expand(1, 2, 4)
    torch.testing.assert_close(
        adapter(slots, weights, vector, address), adapter(pooled, torch.tensor([[1.0, 0.0]]), vector, address)
    )
    assert not torch.allclose(
        adapter(slots, weights, vector, address), adapter(slots, weights.flip(1), vector, address)
    )


def test_gradients_reach_every_part_of_the_memory_once_the_adapter_has_learned(policy: DiffusionPolicy) -> None:
    torch.nn.init.normal_(policy.adapter.last.weight)
    images, state, readout = _inputs(2)
    readout = Readout(*(part.requires_grad_() for part in readout))
    policy.losses(images, state, readout, torch.randn(2, 8, 3), torch.ones(2, 8, dtype=torch.bool))[
        "denoising"
    ].backward()
    assert all(part.grad is not None and part.grad.abs().sum() > 0 for part in readout)


def test_a_fresh_adapter_is_trained(policy: DiffusionPolicy) -> None:
    images, state, readout = _inputs(2)
    policy.losses(images, state, readout, torch.randn(2, 8, 3), torch.ones(2, 8, dtype=torch.bool))[
        "denoising"
    ].backward()
    assert policy.adapter.last.weight.grad.abs().sum() > 0


def test_ticks_that_do_not_exist_do_not_count(policy: DiffusionPolicy) -> None:
    images, state, readout = _inputs(2)
    valid = torch.ones(2, 8, dtype=torch.bool)
    valid[:, 5:] = False
    target = torch.randn(2, 8, 3)
    wild = target.clone()
    wild[:, 5:] = 1e3
    losses = []
    for actions in (target, wild):
        torch.manual_seed(3)
        losses.append(policy.losses(images, state, readout, actions, valid)["denoising"].item())
    assert losses[0] == losses[1]


@pytest.mark.parametrize("prediction", ["sample", "epsilon", "v_prediction"])
def test_a_perfect_denoiser_has_no_loss_and_samples_the_target(prediction: str) -> None:
    policy = DiffusionPolicy(replace(CONFIG, prediction=prediction, draws=1, noise_steps=50, inference_steps=50))
    target = torch.linspace(-1.0, 1.0, 24).reshape(1, 8, 3)
    alphas = policy.training_schedule.alphas_cumprod

    def denoiser(noisy: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        a = alphas[step.long()][:, None, None]
        noise = (noisy - a.sqrt() * target) / (1 - a).sqrt()
        velocity = a.sqrt() * noise - (1 - a).sqrt() * target
        return {"sample": target.expand_as(noisy), "epsilon": noise, "v_prediction": velocity}[prediction]

    policy.unet.forward = denoiser
    images, state, readout = _inputs(1)
    loss = policy.losses(images, state, readout, target, torch.ones(1, 8, dtype=torch.bool))["denoising"]
    assert loss.item() < 1e-6
    torch.testing.assert_close(policy.predict(images, state, readout), target, rtol=0, atol=1e-3)


def test_foretold_noise_that_is_a_little_wrong_gives_no_wild_chunk() -> None:
    policy = DiffusionPolicy(replace(CONFIG, prediction="epsilon", draws=1, noise_steps=100, inference_steps=5))
    target = torch.linspace(-1.0, 1.0, 24).reshape(1, 8, 3)
    alphas = policy.training_schedule.alphas_cumprod

    def denoiser(noisy: torch.Tensor, step: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
        a = alphas[step.long()][:, None, None]
        # As a network does, it has seen no noise beyond this.
        return ((noisy - a.sqrt() * target) / (1 - a).sqrt()).clamp(-6.0, 6.0) + 0.05 * (step[:, None, None] == 99)

    policy.unet.forward = denoiser
    assert (policy.predict(*_inputs(1)) - target).abs().max() < 0.5


def test_it_learns_what_only_its_memory_tells() -> None:
    torch.manual_seed(0)
    policy = DiffusionPolicy(replace(CONFIG, draws=8))
    images, state, readout = _inputs(2)
    images, state = images[:1].expand(2, -1, -1, -1, -1), state[:1].expand(2, -1)
    target = torch.stack([torch.full((8, 3), -1.0), torch.full((8, 3), 1.0)])
    optimiser = torch.optim.Adam(policy.parameters(), 3e-3)
    for _ in range(250):
        optimiser.zero_grad()
        policy.losses(images, state, readout, target, torch.ones(2, 8, dtype=torch.bool))["denoising"].backward()
        optimiser.step()
    assert (policy.predict(images, state, readout) - target).abs().max() < 0.3


def test_the_runner_executes_chunks_of_the_saved_policy(policy: DiffusionPolicy) -> None:
    policy.action_mean.fill_(3.0)
    runner = DiffusionRunner.from_tensors(CONFIG.to_dict(), {k: v.clone() for k, v in policy.state_dict().items()})
    chunks = {tick: runner.chunk(*_live(tick)) for tick in range(9)}
    actions = [runner.act(*_live(tick)) for tick in range(9)]
    # The first chunk's ticks 0 to 3; the next, begun at 3, takes over at 4; the one begun at 7 at 8.
    wanted = [chunks[0][t] for t in range(4)] + [chunks[3][t] for t in range(1, 5)] + [chunks[7][1]]
    np.testing.assert_array_equal(np.stack(actions), np.stack(wanted))
    assert abs(np.stack(actions).mean() - 3.0) < 1.5


def test_a_reset_runner_repeats_itself(policy: DiffusionPolicy) -> None:
    runner = DiffusionRunner(policy)
    first = [runner.act(*_live(tick)) for tick in range(6)]
    runner.reset()
    np.testing.assert_array_equal(np.stack(first), np.stack([runner.act(*_live(tick)) for tick in range(6)]))


def test_a_condition_of_another_shape_is_refused_with_both_shapes(policy: DiffusionPolicy) -> None:
    observation, condition = _live()
    condition.read_weights = np.ones(2, np.float32)
    with pytest.raises(ConditionMismatch, match=r"2 read weights; this policy was trained with 24 \(3 tokens of 8\)"):
        DiffusionRunner(policy).chunk(observation, condition)


def test_options_of_another_version_are_refused(policy: DiffusionPolicy) -> None:
    with pytest.raises(ValueError, match=r"(?s)not DiffusionRunner's.*sharpness"):
        DiffusionRunner.from_tensors({**CONFIG.to_dict(), "sharpness": 2}, policy.state_dict())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"chunk": 7, "execute": 2}, "chunk = 7 cannot be halved"),
        ({"channels": (8, 12)}, r"channels = \(8, 12\)"),
        ({"inference_steps": 21}, "inference_steps = 21"),
        ({"prediction": "noise"}, "prediction = 'noise'"),
        ({"execute": 8}, "execute = 8"),
        ({"lead": 4}, "lead = 4"),
        ({"draws": 0}, "draws = 0"),
        ({"kernel": 4}, "kernel = 4: must be odd"),
        ({"time_width": 2}, "time_width = 2: must be even"),
        ({"time_width": 9}, "time_width = 9: must be even"),
        ({"backbone": BackboneConfig("cells")}, "mean of a picture alone.*policy act"),
    ],
)
def test_impossible_settings_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(CONFIG, **change)
