"""The auxiliary head: where the present holds what is asked for, the pictures to come, and the answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from learning.synthetic import BRANCH_TICK, design, pair
from torch import nn

from trace_memory_ros.learning.auxiliary.future import FuturePictures
from trace_memory_ros.learning.auxiliary.head import answer_loss
from trace_memory_ros.learning.build import prepare
from trace_memory_ros.learning.data.batches import FUTURE_CHUNKS, BatchBuilder, Data, Wanted
from trace_memory_ros.learning.data.dataset import TrainingSet
from trace_memory_ros.learning.features.hue import turned, turns
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import Progress
from trace_memory_ros.policies.places import HEADS, KEY, WAVES, Places, in_waves
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.encoder import FeatureNorm, Pool

ROWS, COLUMNS, COLOURS = 2, 3, 4
RECIPE = Recipe(
    future_weight=1.0,
    memory_first=MemoryFirst(clock_factors=(1.0,), delay_factors=(), stage_steps=60, check_steps=1, attempts=1),
)


@pytest.fixture(scope="module")
def builder() -> BatchBuilder:
    return prepare(design("gru"), [pair(i) for i in range(6)]).training


FLOOR = 10
"""Tokens along each side."""
SPOTS = [1 + 11 * place for place in range(9)]
"""Tokens at which the things lie."""


def places(cameras: int = 1) -> Places:
    torch.manual_seed(0)
    return Places(FeatureNorm(COLOURS), COLOURS, cameras, (ROWS, COLUMNS))


def test_a_place_is_that_of_the_token_which_is_asked_for() -> None:
    told = places(cameras=2)
    told.key = nn.Linear(COLOURS, HEADS * KEY)
    with torch.no_grad():
        for part, colours in ((told.query, 2 * HEADS), (told.key, HEADS)):
            part.bias.zero_()
            part.weight.copy_(100.0 * torch.eye(KEY, COLOURS).repeat(colours, 1))
    tokens = torch.zeros(1, 2, ROWS * COLUMNS, COLOURS)
    tokens[0, 0, 5, 3], tokens[0, 1, 1, 3] = 1.0, 1.0
    found = told(torch.eye(COLOURS)[[3]], tokens).reshape(2, HEADS, 2)
    for camera, token in enumerate((5, 1)):
        torch.testing.assert_close(found[camera], told.grid[token].expand(HEADS, 2))
    assert told.grid[[5, 1]].tolist() == [pytest.approx([3**0.5, 3**0.5]), pytest.approx([-(3**0.5), 0.0])]


def scenes(rng: torch.Generator, held_out: bool, count: int = 64) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A colour that is asked for, tokens that hold all colours, and where it is; some are never trained on there."""
    asked = torch.randint(COLOURS, (count,), generator=rng)
    order = torch.stack([torch.randperm(ROWS * COLUMNS, generator=rng)[:COLOURS] for _ in range(count)])
    at = order[torch.arange(count), asked]
    kept = ((at + asked) % 5 == 0) == held_out
    tokens = torch.zeros(count, ROWS * COLUMNS, COLOURS)
    tokens[torch.arange(count)[:, None], order, torch.arange(COLOURS)] = 1.0
    return torch.eye(COLOURS)[asked][kept], tokens[kept], at[kept]


def right(told: Callable[..., torch.Tensor], rate: float, parameters: list[nn.Parameter], grid: torch.Tensor) -> float:
    """Share of never seen colours and places that are found after 400 steps on the others."""
    rng, optimiser = torch.Generator().manual_seed(1), torch.optim.Adam(parameters, lr=rate)
    for _ in range(400):
        asked, tokens, at = scenes(rng, held_out=False)
        loss = (told(asked, tokens) - grid[at]).abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    asked, tokens, at = scenes(rng, held_out=True, count=800)
    assert len(at) > 100
    with torch.no_grad():
        return float((torch.cdist(told(asked, tokens), grid).argmin(dim=-1) == at).float().mean())


def test_places_carry_over_to_colours_never_trained_on_there() -> None:
    told = places()
    out = nn.Linear(told.width, 2)
    layers = nn.Sequential(nn.Linear(COLOURS * (1 + ROWS * COLUMNS), 128), nn.GELU(), nn.Linear(128, 2))
    theirs = [*told.parameters(), *out.parameters()]
    assert right(lambda asked, tokens: out(told(asked, tokens[:, None])), 5e-2, theirs, told.grid) > 0.95
    # What a perceptron makes of the same is a table of colours by places.
    flat = lambda asked, tokens: layers(torch.cat([asked, tokens.flatten(1)], dim=-1))  # noqa: E731
    assert right(flat, 3e-3, list(layers.parameters()), told.grid) < 0.3


def which(told: Callable[[torch.Tensor], torch.Tensor], width: int) -> float:
    """Share of nine neighbours on an arc that are told apart, after 100 steps, by where they are to half a spacing."""
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    angles = torch.linspace(-0.9, 0.9, 9)
    arc = 0.9 * torch.stack([angles.cos(), angles.sin()], dim=-1)
    layers = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, len(arc)))
    optimiser = torch.optim.Adam(layers.parameters(), lr=1e-3)

    def drawn(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        at = torch.randint(len(arc), (count,), generator=rng)
        return told(arc[at] + 0.03 * torch.randn(count, 2, generator=rng)), at

    for _ in range(100):
        where, at = drawn(64)
        optimiser.zero_grad()
        nn.functional.cross_entropy(layers(where), at).backward()
        optimiser.step()
    where, at = drawn(1000)
    return float((layers(where).argmax(dim=-1) == at).float().mean())


def test_neighbours_are_told_apart_by_waves_of_their_places() -> None:
    assert in_waves(torch.zeros(3, 2)).shape == (3, 2 * (1 + 2 * WAVES))
    assert which(in_waves, 2 * (1 + 2 * WAVES)) > 0.9
    assert which(lambda places: places, 2) < 0.6


def few_scenes(
    rng: torch.Generator, looks: torch.Tensor, count: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What is asked for among nine things at changing places of a larger floor, the tokens, and which place it has."""
    things, width = looks.shape
    floor = torch.randn(4, width, generator=rng)
    tokens = floor[torch.randint(4, (count, FLOOR * FLOOR), generator=rng)]
    order = torch.stack([torch.randperm(things, generator=rng) for _ in range(count)])
    tokens[:, SPOTS] = looks[order]
    asked = torch.randint(things, (count,), generator=rng)
    return looks[asked].tanh(), tokens, (order == asked[:, None]).int().argmax(dim=1)


def test_places_are_learned_from_few_scenes_rather_than_scenes_by_heart() -> None:
    rng = torch.Generator().manual_seed(3)
    torch.manual_seed(3)
    looks = torch.randn(len(SPOTS), 32, generator=rng)
    (asked, tokens, at), others = few_scenes(rng, looks, 160), few_scenes(rng, looks, 400)
    norm = FeatureNorm(32)
    norm.calibrate(tokens)
    told = Places(norm, 32, 1, (FLOOR, FLOOR))
    out = nn.Sequential(nn.Linear(told.width + 32, 64), nn.GELU(), nn.Linear(64, 2))
    optimiser = torch.optim.Adam([*told.parameters(), *out.parameters()], lr=2e-3)

    def found(asked: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        return torch.cat([told(asked, tokens[:, None]), asked], dim=-1)

    for _ in range(200):
        drawn = torch.randint(160, (32,), generator=rng)
        noisy = tokens[drawn] + torch.randn(32, FLOOR * FLOOR, 32, generator=rng)
        loss = (out(found(asked[drawn], noisy)) - told.grid[SPOTS][at[drawn]]).abs().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        nearest = torch.cdist(out(found(*others[:2])), told.grid[SPOTS]).argmin(dim=-1)
    assert (nearest == others[2]).float().mean() > 0.4


def laid(things: torch.Tensor, rng: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures `(N, 1, K, 3)` of a table on which things `(N, n, 3)` lie at some of its spots, and at which."""
    tokens = torch.tensor((0.6, 0.4, 0.2)) + 0.03 * torch.randn(len(things), FLOOR * FLOOR, 3, generator=rng)
    order = torch.stack([torch.randperm(len(SPOTS), generator=rng)[: things.shape[1]] for _ in things])
    tokens.scatter_(1, torch.tensor(SPOTS)[order][..., None].expand(*order.shape, 3), things)
    return tokens[:, None], order


def imposters(rng: torch.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures of four of five colours, turned, and of all five; at which spot the one not shown before is."""
    colours = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]])
    turn = turns(*(2 * torch.rand(2, count, generator=rng) - 1), 1.0)
    pixels = colours[None, :, None, :, None, None].expand(count, -1, -1, -1, -1, -1)
    things = turned(pixels, turn, colours.mean(dim=0).expand(count, -1)).flatten(2)
    new = torch.randint(5, (count,), generator=rng)
    others = torch.stack([torch.arange(5)[torch.arange(5) != one] for one in new])
    shown, _ = laid(things.gather(1, others[..., None].expand(-1, -1, 3)), rng)
    present, order = laid(things, rng)
    return shown, present, order.gather(1, new[:, None])[:, 0]


def test_what_is_unlike_all_that_was_remembered_is_found() -> None:
    rng = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    pool = Pool("salience", 1, FLOOR * FLOOR, 3, 32)
    tokens, _ = laid(torch.rand(100, 4, 3, generator=rng), rng)
    pool.calibrate(Features(tokens, tokens.mean(dim=-2)))
    told = Places(pool.norm, 32, 1, (FLOOR, FLOOR), pool.salience)
    out = nn.Sequential(nn.Linear(told.width + 32, 64), nn.GELU(), nn.Linear(64, len(SPOTS)))
    parts = nn.ModuleList([pool, told, out])
    optimiser = torch.optim.Adam(parts.parameters(), lr=2e-3)

    def answer(shown: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        remembered = pool(Features(shown, shown.mean(dim=-2)))[:, 0].tanh()
        return out(torch.cat([told(remembered, present), remembered], dim=-1))

    for _ in range(300):
        shown, present, at = imposters(rng, 48)
        optimiser.zero_grad()
        nn.functional.cross_entropy(answer(shown, present), at).backward()
        optimiser.step()
    shown, present, at = imposters(rng, 400)
    parts.eval()
    # By chance one in five.
    with torch.no_grad():
        assert (answer(shown, present).argmax(dim=1) == at).float().mean() > 0.4


def test_pictures_to_come_are_those_after_the_chunks_and_the_last_for_later(builder: BatchBuilder) -> None:
    reads = [np.array([0, 5, BRANCH_TICK])] * 2
    batch = builder.build([0, 3], [1.0, 1.0], reads, Wanted(pictures=False, future=True))
    for row, index in enumerate((0, 3)):
        episode = builder.data.episodes[index]
        later = np.minimum(reads[row][:, None] + 4 * np.array(FUTURE_CHUNKS), episode.demo.ticks - 1)
        assert later.max() == episode.demo.ticks - 1
        for camera, frames in enumerate(episode.thumbnails.values()):
            right = torch.from_numpy(frames[later.ravel()]).float().div(255.0).reshape(3, 3, *frames[0].shape)
            torch.testing.assert_close(batch.future[row, :, :, camera], right)
    assert builder.build([0], [1.0], reads[:1]).future is None


def test_pictures_to_come_are_learned_with_the_memory(builder: BatchBuilder) -> None:
    said: list[Progress] = []
    learn_memory(new_agent(design("gru"), Data(builder, None, None), 0), builder, None, RECIPE, 0, said.append)
    first, last = (np.mean([one.losses["future"] for one in part]) for part in (said[:5], said[-5:]))
    assert last < 0.8 * first
    assert RECIPE.weight_of("future") == 1.0 and Recipe().weight_of("future") == 0.0


def test_answers_are_of_the_decision_that_a_read_comes_shortly_after(builder: BatchBuilder) -> None:
    reads = [np.array([0, BRANCH_TICK - 1, BRANCH_TICK, BRANCH_TICK + 2, BRANCH_TICK + 3])] * 3
    batch = builder.build([0, 1, 4], [1.0] * 3, reads, Wanted(pictures=False, reach=3))
    right = [builder.data.episodes[index].demo.answers[0] for index in (0, 1, 4)]
    assert len(set(right)) > 1 and batch.answers.tolist() == [
        [[-1], [-1], [answer], [answer], [-1]] for answer in right
    ]
    assert batch.to(torch.device("cpu")).answers.tolist() == batch.answers.tolist()
    assert builder.build([0], [1.0], reads[:1]).answers is None


def test_reads_near_no_decision_add_nothing_to_naming_answers() -> None:
    logits, answers = torch.randn(5, 3), torch.tensor([-1, 2, -1, 0, 1])
    near = answers >= 0
    each = nn.functional.cross_entropy(logits[near], answers[near], reduction="none")
    torch.testing.assert_close(answer_loss(logits[:, None], answers[:, None]), each.sum() / 5)
    assert answer_loss(logits[:, None], torch.full((5, 1), -1)) == 0.0


def test_answers_are_learned_with_the_memory(builder: BatchBuilder) -> None:
    said: list[Progress] = []
    first = replace(RECIPE.memory_first, stage_steps=120, check_steps=20, enough=1.01)
    recipe = replace(RECIPE, future_weight=0.0, answer_weight=1.0, memory_first=first)
    agent = new_agent(design("gru"), Data(builder, None, None), 0)
    learn_memory(agent, builder, None, recipe, 0, said.append)
    assert said[-1].losses["answer"] < 0.1 * said[0].losses["answer"]
    assert "future" not in said[0].losses and Recipe().weight_of("answer") == 0.0


def test_a_robot_without_cameras_cannot_be_asked_for_pictures(builder: BatchBuilder) -> None:
    blind = [replace(episode, thumbnails={}) for episode in builder.data.episodes]
    with pytest.raises(ValueError, match="future_weight = 1.0 asks for pictures, and there is no camera: set it to 0"):
        FuturePictures.fit(replace(builder, data=TrainingSet(blind)), 4, 1.0)
