"""Cells of mean colours, and the attention that begins at what is unusual."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.vision import registry, weights
from trace_memory_ros.vision.base import Features, features_of
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig, Pool
from trace_memory_ros.vision.salience import FULLY, HIDDEN, MOST, Salience, at, partly_hidden
from trace_memory_ros.vision.weights import WeightsError

SIDE, TABLE, CUE = 6, (0.6, 0.4, 0.2), (0.0, 0.0, 1.0)


def test_a_token_is_the_mean_colour_of_its_cell_cut_off_at_the_edge() -> None:
    backbone = registry.untrained(BackboneConfig("cells", options={"cell_px": 4}), 10)
    images = np.random.default_rng(0).integers(0, 256, (2, 10, 10, 3)).astype(np.uint8)
    found = features_of(backbone, images)
    assert backbone.token_grid(10) == (3, 3) and found.tokens.shape == (2, 9, 3)
    cells = [images[:, y : y + 4, x : x + 4].mean(axis=(1, 2)) for y in (0, 4, 8) for x in (0, 4, 8)]
    np.testing.assert_allclose(found.tokens.numpy(), np.stack(cells, axis=1) / 255.0, atol=1e-6)
    np.testing.assert_allclose(found.pooled.numpy(), images.mean(axis=(1, 2)) / 255.0, atol=1e-6)


def test_there_are_no_weights_to_ask_for() -> None:
    assert weights.choose("cells", False, {}, None, 8) == BackboneConfig("cells")
    with pytest.raises(WeightsError, match="cells is trained from nothing"):
        weights.choose("cells", False, {}, "some.safetensors", 8)
    with pytest.raises(ConfigError, match="cells is frozen"):
        BackboneConfig("cells", frozen=True)
    for options, message in (({"cell_px": 0}, "cell_px"), ({"cell": 2}, "cells: options")):
        with pytest.raises(ConfigError, match=message):
            registry.untrained(BackboneConfig("cells", options=options), 8)


def table(cue_at: int | None = None) -> torch.Tensor:
    """Tokens `(K, 3)` of a table, where a cue may lie."""
    tokens = torch.tensor(TABLE).repeat(SIDE * SIDE, 1)
    if cue_at is not None:
        tokens[cue_at] = torch.tensor(CUE)
    return tokens


GRIPPER = torch.tensor((0.0, 1.0, 0.0))


def shown() -> torch.Tensor:
    """Two cameras' tokens `(N, 2, K, 3)`: the cue at each place of both, above a table and above a blue floor.

    A gripper that is always there is as unlike the table as the cue is, and nothing unusual.
    """
    tokens = torch.stack([torch.stack([table(place)] * 2) for place in range(SIDE * SIDE - 1)])
    tokens[:, 1] = 1.0 - tokens[:, 1]
    tokens[:, :, -1] = GRIPPER
    return tokens


def test_salience_looks_at_once_at_what_is_unusual_for_its_place() -> None:
    torch.manual_seed(0)
    pool = Pool("salience", cameras=2, places=SIDE * SIDE, width=3, out=8).eval()
    tokens = shown()
    features = Features(tokens, tokens.mean(dim=-2))
    pool.calibrate(features)
    assert pool.salience is not None
    unusual, places = pool.salience(pool.norm(tokens))
    assert places[..., 0].tolist() == [[place] * 2 for place in range(SIDE * SIDE - 1)]
    assert (unusual[..., 1:] < 0.01 * unusual[..., :1]).all()
    cue, usual = (
        pool.map(pool.norm(torch.stack([colour, 1.0 - colour]))) for colour in map(torch.tensor, (CUE, TABLE))
    )
    assert ((pool(features) - cue).norm(dim=-1) / (usual - cue).norm(dim=-1)).max() < 0.25


def test_of_many_places_only_the_unusual_are_looked_at() -> None:
    torch.manual_seed(0)
    pool = Pool("salience", cameras=1, places=4 * MOST, width=3, out=8).eval()
    tokens = torch.rand(20, 1, 4 * MOST, 3)
    pool.calibrate(Features(tokens, tokens.mean(dim=-2)))
    assert pool.salience is not None
    _, places = pool.salience(pool.norm(tokens))
    assert places.shape == (20, 1, MOST)
    # The others may as well show what is usual there.
    usual = pool.salience.usual[0] * pool.norm.spread + pool.norm.centre
    told = usual.expand_as(tokens).scatter(-2, places[..., None].expand(-1, -1, -1, 3), at(tokens, places))
    mean = tokens.mean(dim=-2)
    torch.testing.assert_close(pool(Features(told, mean)), pool(Features(tokens, mean)))


def test_of_several_things_none_outweighs_the_others_for_its_colour() -> None:
    torch.manual_seed(0)
    salience = Salience(cameras=1, places=SIDE * SIDE, width=3)
    salience.calibrate(table().repeat(20, 1, 1, 1))
    things = table()
    things[[3, 17]] = torch.tensor([[0.0, 4.0, 4.0], [9.0, 0.0, 0.0]])
    less, more = salience.unusual(things[None])[0, [3, 17]].tolist()
    assert FULLY < less < more - 1.0
    unusual, places = salience(things[None])
    assert set(places[0, :2].tolist()) == {3, 17} and unusual[0, :2].tolist() == [FULLY, FULLY]
    assert unusual[0, 2:].max() < 0.01


def test_some_places_are_hidden_in_training_and_all_may_be() -> None:
    torch.manual_seed(0)
    scores = partly_hidden(torch.zeros(400, 3, 2))
    left = scores == 0.0
    assert (left[..., 0] == left[..., 1]).all() and abs(left.float().mean() - (1.0 - HIDDEN)) < 0.05
    everything = ~left[..., 0].any(dim=1)
    assert everything.any() and scores[everything].softmax(dim=1).isfinite().all()
    pool = Pool("salience", cameras=1, places=4, width=3, out=8)
    tokens = torch.rand(1, 1, 4, 3)
    features = Features(tokens, tokens.mean(dim=-2))
    assert not torch.equal(torch.cat([pool(features) for _ in range(8)]), pool(features).expand(8, -1, -1))
    pool.eval()
    assert torch.equal(pool(features), pool(features))


def test_several_sights_of_a_place_are_usual_if_each_is_common() -> None:
    torch.manual_seed(0)
    salience = Salience(cameras=1, places=1, width=3)
    open_, closed, rare = torch.eye(3) * 4.0
    seen = torch.stack([open_] * 60 + [closed] * 36 + [rare] * 4)
    seen = seen + 0.02 * torch.randn_like(seen)
    salience.calibrate(seen[torch.randperm(100), None, None])
    assert salience.unusual(torch.stack([open_, closed])[:, None, None]).max() < 0.02
    assert salience.unusual(rare[None, None]).item() > 2.0


def test_few_numbers_keep_their_size_and_are_read_by_a_perceptron() -> None:
    torch.manual_seed(0)
    pool = Pool("salience", cameras=1, places=4, width=3, out=8)
    bright, dark = torch.tensor((1.0, 0.0, 0.0)), torch.tensor((0.5, 0.0, 0.0))
    assert (pool.norm(bright) - pool.norm(dark)).norm() > 0.1
    between = pool.map((bright + dark) / 2) - (pool.map(bright) + pool.map(dark)) / 2
    assert between.abs().max() > 1e-4, "a linear map would give the mean"


@pytest.mark.parametrize("pooling", ["attention", "salience"])
def test_gradients_reach_what_reads_cells(pooling: str) -> None:
    torch.manual_seed(0)
    config = EncoderConfig(2, 8, 5, backbone=BackboneConfig("cells"), pooling=pooling)
    assert EncoderConfig.from_dict(config.to_dict()) == config
    encoder = ContentEncoder(config)
    encoder(torch.rand(3, 2, 3, 8, 8), torch.randn(3, 5)).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in encoder.parameters())
