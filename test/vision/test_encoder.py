"""Content features: what they depend on, and what they refuse."""

from __future__ import annotations

import pytest
import torch

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig, FeatureNorm, Pool

CONFIG = EncoderConfig(cameras=3, visual_width=10, state_width=6, channels=4)


def make_inputs(*lead: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(*lead, 3, 3, 16, 16, generator=generator), torch.randn(*lead, 17, generator=generator)


@pytest.mark.parametrize("lead", [(), (2,), (2, 5)])
def test_leading_dimensions_are_free(lead: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    encoder = ContentEncoder(CONFIG)
    images, state = make_inputs(*lead)
    content = encoder(images, state)
    assert content.shape == (*lead, CONFIG.content_dim)
    if len(lead) == 2:
        torch.testing.assert_close(content[1, 3], encoder(images[1, 3], state[1, 3]))


def test_visual_part_is_the_mean_over_cameras_that_it_tells_apart() -> None:
    torch.manual_seed(0)
    encoder = ContentEncoder(CONFIG)
    images, state = make_inputs(1)
    content = encoder(images, state)
    each = [encoder.rho(encoder.vision(images[0, c][None]).pooled + encoder.camera[c]) for c in range(3)]
    torch.testing.assert_close(content[:, :10], torch.stack(each).mean(dim=0))
    swapped = encoder(images[:, [0, 2, 1]], state)
    assert (swapped - content)[:, :10].abs().max() > 1e-4
    torch.testing.assert_close(encoder(1 - images, state)[:, 10:], content[:, 10:])


def test_gradients_reach_every_parameter() -> None:
    encoder = ContentEncoder(CONFIG)
    encoder(*make_inputs(2, 4)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())


def test_other_shapes_are_named() -> None:
    encoder = ContentEncoder(CONFIG)
    images, state = make_inputs(2)
    with pytest.raises(ValueError, match=r"images \(2, 2, 3, 16, 16\).*configured for \(2, 3, 3, 16, 16\)"):
        encoder(images[:, :2], state)
    with pytest.raises(ValueError, match=r"state \(2, 16\)"):
        encoder(images, state[:, 1:])


def test_config_survives_and_refuses() -> None:
    assert EncoderConfig.from_dict(CONFIG.to_dict()) == CONFIG
    with pytest.raises(ConfigError, match="'camera'; did you mean 'cameras'"):
        EncoderConfig.from_dict({"camera": 3})
    with pytest.raises(ConfigError, match=r"thumbnail_px = 0"):
        EncoderConfig(cameras=3, thumbnail_px=0)


def test_a_thing_that_was_seen_once_is_not_standardised_to_nothing() -> None:
    tokens = torch.zeros(4, 6, 10)
    tokens[2, 3] = torch.rand(10) + 0.5
    norm = FeatureNorm(10)
    norm.calibrate(tokens)
    assert torch.isfinite(norm(tokens)).all()


def test_pooling_standardises_by_the_pictures_it_was_calibrated_with() -> None:
    torch.manual_seed(0)
    pool = Pool("attention", cameras=1, places=9, width=5, out=8)
    scale, centre = torch.tensor([1.0, 100.0, 1e-2, 1.0, 0.0]), torch.tensor([0.0, 50.0, 3.0, -1.0, 2.0])
    raw = torch.randn(64, 9, 5)
    tokens = raw * scale + centre
    pool.calibrate(Features(tokens, tokens.mean(dim=1)))
    standard = Pool("attention", cameras=1, places=9, width=5, out=8)
    standard.load_state_dict(pool.state_dict() | {"norm.centre": torch.zeros(5), "norm.spread": torch.ones(5)})
    normal = (raw - raw.mean(dim=(0, 1))) / raw.std(dim=(0, 1))
    normal[..., 4] = 0.0
    expected = standard(Features(normal, normal.mean(dim=1)))
    assert torch.allclose(pool(Features(tokens, tokens.mean(dim=1))), expected, atol=1e-4)
