"""Answers that are named by pointing at places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from learning.synthetic import design, pair
from torch import nn

from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead, answer_loss
from trace_memory_ros.learning.auxiliary.pointing import NOWHERE, Pointing
from trace_memory_ros.learning.build import prepare
from trace_memory_ros.learning.data.batches import Wanted
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.policies.places import HEADS, Places, in_waves
from trace_memory_ros.vision.encoder import FeatureNorm

LOOKS, THINGS, ANSWERS = 13, 9, 10


def pointing(asked: int, known: int, coming: int = 1, cameras: int = 1) -> Pointing:
    torch.manual_seed(0)
    places = Places(FeatureNorm(LOOKS + 2), asked, cameras, (THINGS + 3, 1), placed=True)
    return Pointing(places, asked, known, ANSWERS, coming)


def scenes(rng: torch.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures `(N, 1, 12, 15)` of nine things of looks never seen before, in any order on an arc, and which lies at
    which of its places `(N, 9)`.
    """
    angles = torch.linspace(-0.9, 0.9, THINGS)
    arc = 0.9 * torch.stack([angles.cos(), angles.sin()], dim=-1)
    at = torch.stack([torch.randperm(THINGS, generator=rng) for _ in range(count)])
    tokens = torch.zeros(count, 1, THINGS + 3, LOOKS + 2)
    tokens[:, 0, :THINGS, :LOOKS] = torch.randn(count, THINGS, LOOKS, generator=rng)
    tokens[:, 0, :THINGS, LOOKS:] = arc[at] + 0.02 * torch.randn(count, THINGS, 2, generator=rng)
    return tokens, at


def test_a_probability_is_that_of_all_heads_and_things_one_by_one() -> None:
    told, rng = pointing(5, 4, coming=2, cameras=2), torch.Generator().manual_seed(1)
    places = told._places[0]
    tokens = torch.cat([scenes(rng, 3)[0], scenes(rng, 3)[0]], dim=1)
    asked, known = torch.randn(3, 5, generator=rng), torch.randn(3, 4, generator=rng)
    with torch.no_grad():
        found = told(asked, known, tokens).exp()
        right = torch.zeros(3, 2, ANSWERS)
        for n in range(3):
            for step, (query, heads) in enumerate(
                [(places.query, told.follow(known[n]).softmax(-1)), (told.later[0], torch.full((HEADS,), 1 / HEADS))]
            ):
                for camera in range(2):
                    queries = places.queries(asked[n : n + 1], query)[0, camera]
                    keys = places.keys(tokens[n, camera, :THINGS])
                    for head in range(HEADS):
                        beside = nn.functional.normalize(told.nowhere[head], dim=0)
                        alike = torch.cat([keys[:, head], beside[None]]) @ queries[head]
                        attention = (alike * places.sharpness[head, 0].exp()).softmax(-1)
                        spots = [*tokens[n, camera, :THINGS, LOOKS:], torch.full((2,), NOWHERE)]
                        for weight, spot in zip(attention, spots, strict=True):
                            lies = told.where(torch.cat([in_waves(spot), torch.eye(2)[camera]])).softmax(-1)
                            right[n, step] += heads[head] * weight * lies / 2
    torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 2))


def test_it_is_learned_what_is_asked_for_of_things_never_seen_before_and_when_nothing_is() -> None:
    told, rng = pointing(LOOKS + 1, 1), torch.Generator().manual_seed(2)
    parameters = [*told.parameters(), *told._places[0].parameters()]
    optimiser = torch.optim.Adam(parameters, lr=3e-3)

    def drawn(count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        tokens, at = scenes(rng, count)
        thing = torch.randint(THINGS, (count,), generator=rng)
        done = torch.rand(count, generator=rng) < 0.2
        row = torch.arange(count)
        asked = torch.cat([tokens[row, 0, thing, :LOOKS] * ~done[:, None], done[:, None].float()], dim=1)
        return asked, tokens, torch.where(done, ANSWERS - 1, at[row, thing])

    for _ in range(300):
        asked, tokens, answers = drawn(32)
        optimiser.zero_grad()
        answer_loss(told(asked, torch.ones(32, 1), tokens), answers[:, None]).backward()
        optimiser.step()
    asked, tokens, answers = drawn(500)
    with torch.no_grad():
        named = told(asked, torch.ones(500, 1), tokens)[:, 0].argmax(-1)
    assert (named == answers)[answers < THINGS].float().mean() > 0.9
    assert (named == answers)[answers == ANSWERS - 1].float().mean() > 0.9


def test_what_comes_after_the_last_decision_adds_nothing() -> None:
    told, rng = pointing(3, 2, coming=2), torch.Generator().manual_seed(3)
    rest = (torch.randn(4, 3, generator=rng), torch.randn(4, 2, generator=rng), scenes(rng, 4)[0])
    answers = torch.tensor([[0, 2], [-1, -1], [3, -1], [9, -1]])
    each = told(*rest)
    right = each[0, 0, 0] + each[0, 1, 2] + each[2, 0, 3] + each[3, 0, 9]
    torch.testing.assert_close(answer_loss(each, answers), -right / 4)


def test_coming_answers_are_those_of_the_decisions_from_there_on() -> None:
    builder = prepare(design("gru"), [pair(0), pair(1)]).training
    episode = builder.data.episodes[0]
    demo = replace(episode.demo, decision_ticks=(4, 9, 15), answers=(2, 0, 1))
    several = replace(builder, data=type(builder.data)([replace(episode, demo=demo)] * 4))
    reads = [np.array([3, 4, 5, 6, 9, 15])]
    batch = several.build([0], [1.0], reads, Wanted(pictures=False, reach=2, coming=2))
    assert batch.answers is not None
    assert batch.answers[0].tolist() == [[-1, -1], [2, 0], [2, 0], [-1, -1], [0, 1], [1, -1]]


def test_pointing_asks_for_eyes_that_look_at_places_and_for_a_weight() -> None:
    data = prepare(design("gru"), [pair(i) for i in range(2)])
    head = AuxiliaryHead(new_agent(design("gru"), data, 0))
    with pytest.raises(ValueError, match=r"recipe\.pointed_answers = 3 asks for eyes that attend to places"):
        head.name_answers(data.training, pointed=3)
    with pytest.raises(ValueError, match=r"pointed_answers = 1: must not be negative, and asks for an answer_weight"):
        Recipe(pointed_answers=1)
