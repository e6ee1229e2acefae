"""Kept features: right, computed once, found again, and begun anew where a file is not theirs."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning.synthetic import OBSERVATION, design, pair
from safetensors.torch import load_file

from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.build import prepare, with_features
from trace_memory_ros.learning.data.augment import augment
from trace_memory_ros.learning.data.batches import NO_PICTURES, BatchBuilder
from trace_memory_ros.learning.features.cache import FeatureCache, draw_views
from trace_memory_ros.learning.features.noise import feature_noise
from trace_memory_ros.learning.features.store import FeatureFile
from trace_memory_ros.learning.features.views import seen
from trace_memory_ros.learning.fit import fit, new_agent
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, Recipe
from trace_memory_ros.observation.frames import Frames, at
from trace_memory_ros.policies.places import Places
from trace_memory_ros.vision import registry, weights
from trace_memory_ros.vision.base import Features, VisualBackbone, features_of
from trace_memory_ros.vision.config import POLICY, BackboneConfig

PX = 16


@pytest.fixture
def backbone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VisualBackbone:
    monkeypatch.setenv(weights.CACHE, str(tmp_path / "weights"))
    return registry.build(weights.choose("efficientnet_lite0", True, {"stride": 8}, weights.RANDOM, PX), PX)


def cameras(seed: int = 0, images: int = 6) -> dict[str, Frames]:
    """Two cameras of twelve ticks, the first of which holds each image twice."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (2, images, PX, PX, 3), dtype=np.uint8)
    return {"slow": Frames(pixels[0], np.arange(2 * images) // 2), "fast": Frames(pixels[1], np.arange(images))}


def test_features_are_the_backbone_s_and_each_image_is_seen_once(backbone: VisualBackbone, tmp_path: Path) -> None:
    seen, ticks = cameras(), np.array([0, 1, 2, 5, 5])
    for tokens in (True, False):
        cache = FeatureCache(tmp_path, backbone, tokens)
        found = cache.features(seen, ticks)
        assert cache.computed == len({0, 1, 2}) + len({0, 1, 2, 5})
        for c, frames in enumerate(seen.values()):
            right = features_of(backbone, frames[ticks])
            assert torch.allclose(found.pooled[:, c], right.pooled, rtol=2e-3, atol=1e-3)
            if tokens:
                assert torch.allclose(found.tokens[:, c], right.tokens, rtol=2e-3, atol=1e-3)
        assert found.tokens.shape[-2] == (4 if tokens else 0)


def test_ticks_in_another_order_are_of_the_same_images(backbone: VisualBackbone, tmp_path: Path) -> None:
    cache, seen = FeatureCache(tmp_path, backbone, True), cameras()
    whole = cache.features(seen, np.arange(6))
    computed = cache.computed
    turned = cache.features(at(seen, np.arange(6)[::-1]), np.arange(6))
    assert torch.equal(turned.tokens, whole.tokens.flip(0)) and cache.computed == computed


def test_a_later_run_computes_only_what_is_missing(backbone: VisualBackbone, tmp_path: Path) -> None:
    first = FeatureCache(tmp_path, backbone, True).features(cameras(), np.arange(4))
    again = FeatureCache(tmp_path, backbone, True)
    # Equal pixels are found again, whatever object holds them.
    assert torch.equal(again.features(cameras(), np.arange(4)).tokens, first.tokens)
    assert again.computed == 0
    again.features(cameras(), np.arange(6))
    assert again.computed == 1 + 2


def test_other_pixels_weights_and_views_are_other_files(backbone: VisualBackbone, tmp_path: Path) -> None:
    strength = Augmentation(views=2)
    fresh = registry.untrained(BackboneConfig("efficientnet_lite0", options={"stride": 8}), PX)
    moved = weights.keep({name: tensor + 0.1 for name, tensor in fresh.state_dict().items()})
    other = registry.build(replace(backbone.config, weights_sha256=moved), PX)
    caches = [
        FeatureCache(tmp_path, backbone, True, strength),
        FeatureCache(tmp_path, other, True, strength),
        FeatureCache(tmp_path, backbone, True, replace(strength, brightness=0.3)),
        FeatureCache(tmp_path, backbone, True, replace(strength, memory_shift=0.1)),
    ]
    asked = ((0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 2), (1, 0, 0), (2, 0, 1), (3, 0, 1))
    for which, scene, view in asked:
        caches[which].features(cameras(scene), np.arange(3), view)
    kept = {file for file in tmp_path.rglob("*.npy") if not file.name.endswith(".crc.npy")}
    assert len(kept) == 2 * len(asked)
    caches[2].features(cameras(), np.arange(3))
    assert caches[2].computed == 2 + 3


def test_what_other_code_made_is_not_used(
    backbone: VisualBackbone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FeatureCache(tmp_path, backbone, True).features(cameras(), np.arange(4))
    monkeypatch.setattr(type(backbone), "revision", 1)
    later = FeatureCache(tmp_path, backbone, True)
    later.features(cameras(), np.arange(4))
    assert later.computed == 2 + 4


def test_a_view_is_the_same_perturbation_every_time() -> None:
    images, rows = np.asarray(cameras()["fast"].pixels), np.arange(6)
    assert seen(images, rows, 0, 0, Augmentation()) is images
    one, again, other = (seen(images, rows, 0, view, Augmentation()) for view in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)
    assert np.array_equal(one[2:3], seen(images[2:3], rows[2:3], 0, 1, Augmentation()))
    assert 0 < np.abs(one.astype(int) - images).mean() < 60


def test_views_are_drawn_only_where_there_are_some() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert draw_views(rng, 0, 3) == [0, 0, 0]
    assert rng.bit_generator.state == before
    assert set(draw_views(rng, 3, 200)) == {1, 2, 3}


def rows_of(rows: np.ndarray) -> np.ndarray:
    return np.stack([np.full(5, row, dtype=np.float32) for row in rows])


def test_damaged_rows_and_foreign_files_are_named_and_computed_again(tmp_path: Path) -> None:
    path, asked = tmp_path / "a.npy", np.array([3, 1, 3])
    FeatureFile(path, (6, 5)).rows(asked, rows_of)
    raw = np.load(path, mmap_mode="r+")
    raw[3, 2] = 7.0
    raw.flush()
    with pytest.warns(UserWarning, match=r"a\.npy: 1 of its rows are damaged"):
        assert FeatureFile(path, (6, 5)).rows(asked, rows_of).tolist() == rows_of(asked).tolist()
    np.save(path, np.zeros((6, 4), dtype=np.float16))
    with pytest.warns(UserWarning, match=r"a\.npy is no file of these features .*float16 of \(6, 4\)"):
        file = FeatureFile(path, (6, 5))
    with pytest.warns(UserWarning, match="2 of its rows are damaged"):
        assert file.rows(asked, rows_of).tolist() == rows_of(asked).tolist()
    path.write_bytes(b"\x93NUMPY cut off")
    with pytest.warns(UserWarning, match="is no file of these features"):
        FeatureFile(path, (6, 5))


def test_a_file_system_without_links_keeps_features_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    kept = FeatureFile(tmp_path / "a.npy", (2, 5)).rows(np.array([1]), lambda rows: np.ones((len(rows), 5), np.float32))
    assert FeatureFile(tmp_path / "a.npy", (2, 5)).present == 1 and (kept == 1.0).all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.crc.npy", "a.npy"]


def test_what_half_precision_cannot_hold_is_refused(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path / "a.npy", (2, 5))
    with pytest.raises(ValueError, match="70000"):
        file.rows(np.array([0]), lambda rows: np.full((len(rows), 5), 7e4, dtype=np.float32))
    assert file.present == 0


def test_a_trained_backbone_has_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="small is trained"):
        FeatureCache(tmp_path, registry.build(BackboneConfig(), PX), True)


@pytest.fixture
def builder(backbone: VisualBackbone, tmp_path: Path) -> BatchBuilder:
    seeing = replace(design("gru"), observation=replace(OBSERVATION, thumbnail_px=PX), pooling="attention")
    data = prepare(seeing, [pair(0), pair(1)], [pair(2)])
    assert with_features(data, seeing, Augmentation(), tmp_path) is data
    frozen = replace(seeing, backbone=backbone.config)
    return with_features(data, frozen, Augmentation(views=1), tmp_path / "features").training


def test_batches_carry_features_of_what_they_would_show(builder: BatchBuilder, backbone: VisualBackbone) -> None:
    asked = [0, 1], [1.0, 1.0], [np.array([3, 9])] * 2
    kept, shown = builder.build(*asked), replace(builder, features=None).build(*asked)
    everywhere = torch.ones(2, 2, dtype=torch.bool)
    for of_features, of_images, real in (
        (kept.writes.thumbnails, shown.writes.thumbnails, shown.mask),
        (kept.reads.thumbnails, shown.reads.thumbnails, everywhere),
    ):
        assert isinstance(of_features, Features)
        assert isinstance(of_images, torch.Tensor)
        right = backbone(of_images[real].flatten(0, 1)).tokens
        assert torch.allclose(of_features.tokens[real].flatten(0, 1), right, rtol=2e-3, atol=1e-3)
    other = builder.build(*asked, views=[1, 1])
    assert isinstance(other.reads.thumbnails, Features)
    assert isinstance(kept.reads.thumbnails, Features)
    assert not torch.equal(other.reads.thumbnails.tokens, kept.reads.thumbnails.tokens)
    assert torch.equal(other.reads.state, kept.reads.state)


@pytest.mark.parametrize(("policy", "pooling"), [("act", "attention"), ("diffusion", "mean")])
def test_features_that_the_policy_shares_stand_for_its_images(
    policy: str, pooling: str, backbone: VisualBackbone, tmp_path: Path
) -> None:
    sharing = replace(
        design("gru", policy=policy, pooling=pooling, backbone=BackboneConfig(POLICY), chunk=16),
        observation=replace(OBSERVATION, thumbnail_px=PX),
        policy_options={"backbone": backbone.config, "image_px": PX},
    )
    data = prepare(sharing, [pair(0), pair(1)])
    kept = with_features(data, sharing, Augmentation(), tmp_path)
    assert kept.training.features is not None
    agent = new_agent(sharing, kept, 0).eval()
    asked = [0, 1], [1.0, 1.0], [np.array([3, 9])] * 2
    found = []
    for batch in (data.training.build(*asked), kept.training.build(*asked, NO_PICTURES)):
        torch.manual_seed(1)
        found.append(torch.stack([*agent.losses(batch).values(), agent(batch).square().mean()]))
    assert torch.allclose(*found, rtol=5e-3)
    other = replace(sharing, pooling={"attention": "mean", "mean": "attention"}[pooling])
    assert with_features(data, other, Augmentation(), tmp_path) is data


def test_a_policy_goes_on_with_the_places_that_its_memory_learned(backbone: VisualBackbone, tmp_path: Path) -> None:
    sharing = replace(
        design("gru", pooling="attention", backbone=BackboneConfig(POLICY)),
        observation=replace(OBSERVATION, thumbnail_px=PX),
        policy_options={"backbone": backbone.config, "image_px": PX, "places": True},
    )
    data = with_features(prepare(sharing, [pair(0), pair(1)]), sharing, Augmentation(), tmp_path)
    first = MemoryFirst(clock_factors=(1.0,), delay_factors=(), stage_steps=3, check_steps=3, attempts=1, batch_pairs=1)
    recipe = Recipe(memory_first=first, steps=1, batch_pairs=1, learning_rate=1e-12, future_weight=1.0)
    file = tmp_path / "memory.safetensors"
    for _ in range(2):
        learned = fit(sharing, data, recipe, 0, memory_file=file).agent.policy.places
        fresh = new_agent(sharing, data, 0)
        assert isinstance(learned, Places) and isinstance(fresh.policy.places, Places)
        assert AuxiliaryHead(fresh).head["places"] is fresh.policy.places
        assert (learned.query.weight - fresh.policy.places.query.weight).abs().max() > 1e-4
        kept = load_file(file)["places.query.weight"]
        assert torch.allclose(kept, learned.query.weight, atol=1e-6)


def test_feature_noise_is_slow_over_an_episode(builder: BatchBuilder) -> None:
    batch = builder.build([0, 1], [1.0, 1.0], [np.array([3, 9])] * 2)
    torch.manual_seed(0)
    scale, draw = torch.tensor([1.0, 10.0, 0.0]), torch.randn
    written, seen = (
        Features(scale * torch.randn(2, ticks, 2, 4, 3), scale * torch.randn(2, ticks, 2, 3))
        for ticks in (batch.mask.shape[1], 2)
    )
    assert feature_noise(written, batch.mask, Augmentation(), draw)(seen) is seen
    slow = feature_noise(written, batch.mask, Augmentation(feature_offset=0.5), draw)(seen)
    moved = slow.tokens - seen.tokens
    assert torch.allclose(moved[:, :1], moved[:, 1:], atol=1e-5)
    assert not torch.allclose(moved[0], moved[1], atol=1e-4)
    batch = batch._replace(
        writes=batch.writes._replace(thumbnails=written), reads=batch.reads._replace(thumbnails=seen)
    )
    noisy = augment(batch, torch.Generator().manual_seed(0), Augmentation(feature_noise=0.5)).reads.thumbnails
    assert isinstance(noisy, Features)
    moved = (noisy.tokens - seen.tokens).flatten(0, -2).std(dim=0)
    assert moved.tolist() == pytest.approx([0.5, 5.0, 0.0], rel=0.35)
