"""Every backbone keeps the contract."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.vision import registry, weights
from trace_memory_ros.vision.base import VisualBackbone, features_of
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.weights import WeightsError

PX = 33
CASES = {
    "small grid": BackboneConfig("small"),
    "small vector": BackboneConfig("small", options={"layout": "vector", "width": 12}),
    "resnet18": BackboneConfig("resnet18", options={"stride": 8}),
    "resnet18 whole": BackboneConfig("resnet18"),
    "efficientnet_lite0": BackboneConfig("efficientnet_lite0", options={"stride": 16}),
    "efficientnet_lite0 whole": BackboneConfig("efficientnet_lite0"),
    "timm convolutions": BackboneConfig("timm:test_resnet"),
    "timm transformer": BackboneConfig("timm:test_vit"),
    "timm windows": BackboneConfig("timm:swin_tiny_patch4_window7_224"),
    "timm convolutions first": BackboneConfig("timm:vit_tiny_r_s16_p8_224"),
    "timm without prefix": BackboneConfig("timm:mixer_s16_224"),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def backbone(request: pytest.FixtureRequest) -> VisualBackbone:
    """An untrained one."""
    if request.param.name.startswith("timm"):
        pytest.importorskip("timm", reason='needs the extra: pip install "trace_memory_ros[timm]"')
    if request.param.name == "resnet18":
        pytest.importorskip("PIL")
    torch.manual_seed(0)
    return registry.untrained(request.param, PX)


def pictures(count: int, px: int = PX) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (count, px, px, 3)).astype(np.uint8)


def pixels(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).movedim(-1, -3)


def test_shapes_at_odd_sizes(backbone: VisualBackbone) -> None:
    for px in (PX, 40) if backbone.config.options.get("layout") != "vector" else (PX,):
        found = backbone(pixels(pictures(3, px)))
        rows, columns = backbone.token_grid(px)
        assert found.tokens.shape == (3, rows * columns, backbone.width)
        assert found.pooled.shape == (3, backbone.width)
        assert torch.isfinite(found.tokens).all() and found.tokens.dtype == torch.float32


def test_bytes_and_numbers_are_the_same_picture(backbone: VisualBackbone) -> None:
    images = pixels(pictures(2))
    one, other = backbone(images), backbone(images.float() / 255.0)
    assert torch.equal(one.tokens, other.tokens) and torch.equal(one.pooled, other.pooled)
    with pytest.raises(ValueError, match=r"uint8 or float in 0\.\.1"):
        backbone(images.int())


def test_features_are_of_their_picture_alone(backbone: VisualBackbone) -> None:
    backbone.train()
    images = pictures(5)
    together = features_of(backbone, images, batch=5)
    apart = features_of(backbone, images, batch=1)
    for whole, single in zip(together, apart, strict=True):
        scale = float(whole.abs().max())
        torch.testing.assert_close(whole, single, atol=1e-5 * scale, rtol=1e-5)
    assert features_of(backbone, images[:0]).pooled.shape == (0, backbone.width)


def test_trained_weights_get_gradients_and_frozen_ones_are_constants(backbone: VisualBackbone) -> None:
    images = pixels(pictures(2))
    found = backbone(images)
    (found.pooled.sum() + found.tokens.square().sum()).backward()
    assert all(p.grad is not None for p in backbone.parameters())
    before = found.tokens.detach()
    frozen = registry.untrained(backbone.config, PX)
    frozen.load_state_dict(backbone.state_dict())
    frozen.freeze()
    assert not list(frozen.parameters()) and not frozen.state_dict()
    after = frozen(images)
    assert torch.equal(after.tokens, before) and not after.tokens.requires_grad
    assert frozen.to(torch.device("cpu")).train().training is False


def test_weights_are_kept_by_hash_and_refused_when_missing_or_damaged(cache: Path) -> None:
    chosen = weights.choose("efficientnet_lite0", True, {"stride": 8}, weights.RANDOM, PX)
    assert chosen.weights_sha256 and BackboneConfig.from_dict(chosen.to_dict()) == chosen
    built = registry.build(chosen, PX)
    assert not list(built.parameters())
    file = cache / weights.file_name(chosen.weights_sha256)
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"\0")
    with pytest.raises(WeightsError, match="damaged"):
        registry.build(chosen, PX)
    file.unlink()
    with pytest.raises(WeightsError, match=r"are missing.*copy it from where the checkpoint was written"):
        registry.build(chosen, PX)
    with pytest.raises(WeightsError, match=r"conv1.weight is not one of the network's"):
        weights.fit(built, {"conv1.weight": torch.zeros(1)}, "somewhere")


def test_a_file_of_other_things_is_refused_and_no_code_of_it_run(tmp_path: Path) -> None:
    made = tmp_path / "made"
    harmful = tmp_path / "weights.pth"
    harmful.write_bytes(b"cos\nmkdir\n(V" + str(made).encode() + b"\ntR.")
    for path in (harmful, tmp_path / "absent.pth"):
        with pytest.raises(WeightsError, match=str(path)):
            weights.choose("efficientnet_lite0", True, {}, path, PX)
    assert not made.exists()


def test_weights_of_a_larger_efficientnet_are_refused(tmp_path: Path) -> None:
    tensors = {"_conv_stem.weight": torch.zeros(32, 3, 3, 3), "_blocks.0._se_reduce.weight": torch.zeros(8, 32, 1, 1)}
    save_file(tensors, tmp_path / "b0.safetensors")
    with pytest.raises(WeightsError, match=r"b0\.safetensors holds _blocks\.0\._se_reduce\.weight"):
        weights.choose("efficientnet_lite0", True, {}, tmp_path / "b0.safetensors", PX)


@pytest.mark.parametrize(
    ("config", "px", "message"),
    [
        (BackboneConfig("resnet"), 96, "did you mean 'resnet18'"),
        (BackboneConfig("efficientnet_lite0"), 16, r"cannot see images of 16.*eyes.px"),
        (BackboneConfig("efficientnet_lite0", options={"stride": 4}), 96, "must be one of 8, 16, 32"),
        (BackboneConfig("efficientnet_lite0", options={"strid": 8}), 96, "did you mean 'stride'"),
        (BackboneConfig("small", options={"depth": 3}), 96, "depth"),
    ],
)
def test_what_cannot_be_built_is_named(config: BackboneConfig, px: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        registry.untrained(config, px)


def test_a_network_of_timm_that_is_for_another_size_is_named() -> None:
    pytest.importorskip("timm", reason='needs the extra: pip install "trace_memory_ros[timm]"')
    with pytest.raises(ConfigError, match="cannot look at pictures of 96 pixels.*set option px"):
        registry.untrained(BackboneConfig("timm:efficientformer_l1"), 96)


def test_wrong_configs_are_named() -> None:
    with pytest.raises(ConfigError, match="no pretrained weights to keep"):
        BackboneConfig("small", frozen=True)
    with pytest.raises(ConfigError, match="64 hexadecimal"):
        BackboneConfig("resnet18", weights_sha256="abc")
    with pytest.raises(WeightsError, match="trained from nothing"):
        weights.choose("small", False, {}, "file.pth")
