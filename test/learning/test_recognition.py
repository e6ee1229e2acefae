"""To know again what was seen: by the definition, of sights before the read alone, and learned in a few steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from learning.synthetic import design, pair
from torch import nn

from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.auxiliary.recognition import recognition_loss
from trace_memory_ros.learning.build import prepare
from trace_memory_ros.learning.data.batches import EpisodeBatch
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.policies.places import Places
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.encoder import FeatureNorm

CAMERAS, THINGS, LOOKS, ASKED = 2, 5, 4, 6


def places() -> Places:
    torch.manual_seed(0)
    return Places(FeatureNorm(LOOKS + 2), ASKED, CAMERAS, (THINGS, 1), placed=True)


def batch_of(last_write: list[list[int]], writes: int, order: list[list[int]] | None = None) -> EpisodeBatch:
    """What the loss asks of a batch, in one of a real builder."""
    plain = prepare(design("gru"), [pair(0)]).training.build([0, 1], [1.0, 1.0], [np.array([5, 6])] * 2)
    steps = None if order is None else torch.tensor(order)
    mask = torch.ones(len(last_write), writes, dtype=torch.bool)
    return plain._replace(last_write=torch.tensor(last_write), mask=mask, early=mask, order=steps)


def written(episodes: int, writes: int, seed: int = 0) -> torch.Tensor:
    """One thing a write and camera `(B, T, C, K, d)`."""
    tokens = torch.zeros(episodes, writes, CAMERAS, THINGS, LOOKS + 2)
    tokens[..., 1, :] = torch.randn(*tokens.shape[:3], LOOKS + 2, generator=torch.Generator().manual_seed(seed))
    return tokens


def loss(told: Places, asked: torch.Tensor, batch: EpisodeBatch, tokens: torch.Tensor) -> torch.Tensor:
    return recognition_loss(told, asked, batch, Features(tokens, tokens.mean(dim=-2)))


def test_it_is_the_cross_entropy_of_ones_own_sight_among_those_of_others() -> None:
    told, tokens, asked = places(), written(3, 1), torch.randn(6, ASKED, generator=torch.Generator().manual_seed(1))
    found = loss(told, asked, batch_of([[0, 0]] * 3, 1), tokens)
    query, key = told.queries(asked).detach(), told.keys(tokens[:, 0, :, 1]).detach()
    each = []
    for read in range(6):
        for camera in range(CAMERAS):
            scores = [
                float(((query[read, camera] * key[other, camera]).sum(-1) * told.sharpness.detach().exp()[:, 0]).mean())
                for other in range(3)
            ]
            each.append(np.log(np.exp(scores).sum()) - scores[read // 2])
    assert found.item() == pytest.approx(float(np.mean(each)), rel=1e-5)


@pytest.mark.parametrize("order", [None, [[0, 1, 0, 2]] * 2])
def test_sights_are_of_writes_before_the_read(order: list[list[int]] | None) -> None:
    told, asked = places(), torch.randn(2, ASKED, generator=torch.Generator().manual_seed(1))
    # Of three writes the third comes at step 2, or at step 3 where the first comes again before it.
    last = 1 if order is None else 2
    batch, tokens = batch_of([[last]] * 2, 3, order), written(2, 3)
    first = tokens[:, :1].expand_as(tokens).clone()
    first[:, 2] = tokens[:, 2]
    expected = loss(told, asked, batch, tokens[:, :1].expand_as(tokens))
    for seed in range(8):
        torch.manual_seed(seed)
        torch.testing.assert_close(loss(told, asked, batch, first), expected)
    never = loss(told, asked, batch_of([[-1]] * 2, 3, order), tokens)
    assert never.item() == 0.0


def test_sights_are_of_writes_before_the_first_decision() -> None:
    told, asked, tokens = places(), torch.randn(2, ASKED, generator=torch.Generator().manual_seed(1)), written(2, 3)
    tokens[:, 1] = tokens[:, 0]
    early = torch.tensor([[True, True, False]] * 2)
    expected = loss(told, asked, batch_of([[0]] * 2, 3), tokens)
    for seed in range(8):
        torch.manual_seed(seed)
        torch.testing.assert_close(loss(told, asked, batch_of([[2]] * 2, 3)._replace(early=early), tokens), expected)


def test_nothing_seen_adds_nothing() -> None:
    told, asked, batch = places(), torch.randn(4, ASKED), batch_of([[0, 0]] * 2, 1)
    assert loss(told, asked, batch, torch.zeros_like(written(2, 1))).item() == 0.0
    one_camera = written(2, 1)
    whole = loss(told, asked, batch, one_camera).item()
    one_camera[:, :, 1] = 0.0
    assert 0.0 < loss(told, asked, batch, one_camera).item() < whole


def test_things_never_seen_in_training_are_found_by_knowing_alone() -> None:
    """Of a readout that holds a thing's looks behind a random map: knowing sights again teaches to find it."""
    told, rng = places(), torch.Generator().manual_seed(1)
    hold = torch.randn(LOOKS, ASKED, generator=rng)
    batch = batch_of([[0]] * 32, 1)
    optimiser = torch.optim.Adam(told.parameters(), lr=3e-3)

    def found() -> float:
        """Share of new scenes of five things in which the first head's place is next to the one that is asked for."""
        looks, where = torch.randn(200, CAMERAS, THINGS, LOOKS, generator=rng), torch.randn(200, CAMERAS, THINGS, 2)
        looks[:, 1] = looks[:, 0]
        where[:, 1] = where[:, 0]
        with torch.no_grad():
            at = told(looks[:, 0, 0] @ hold, torch.cat([looks, where], dim=-1)).unflatten(-1, (CAMERAS, -1, 2))
        away = (at.mean(dim=2)[:, 0, None] - where[:, 0]).norm(dim=-1)
        return float((away.argmin(dim=-1) == 0).float().mean())

    before = found()
    for step in range(200):
        tokens = written(32, 1, seed=step)
        tokens[:, :, 1] = tokens[:, :, 0]
        value = loss(told, tokens[:, 0, 0, 1, :LOOKS] @ hold, batch, tokens)
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
    assert before < 0.5 and found() > 0.85


def test_eyes_that_look_at_no_places_are_refused() -> None:
    head = AuxiliaryHead(new_agent(design("gru"), prepare(design("gru"), [pair(i) for i in range(2)]), 0))
    with pytest.raises(ValueError, match="recognition_weight asks for eyes that attend"):
        head.recognise()
    assert isinstance(head, nn.Module)
