"""Perturbed batches: hues are turned alike over an episode, and grey stays grey."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from learning.synthetic import design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.data.augment import augment
from trace_memory_ros.learning.data.batches import Wanted
from trace_memory_ros.learning.features.hue import turns
from trace_memory_ros.learning.features.views import seen
from trace_memory_ros.learning.recipe import Augmentation

NOTHING = Augmentation(*(0.0,) * 3, 0, *(0.0,) * 7)
RED, GREEN = torch.tensor((1.0, 0.0, 0.0)), torch.tensor((0.0, 1.0, 0.0))


def noise(*angles: float) -> torch.Tensor:
    """What turns by these at hue 1."""
    return torch.tensor(angles) * (math.sqrt(3.0) / math.pi)


def test_a_third_of_the_circle_takes_red_to_green_and_grey_nowhere() -> None:
    matrices = turns(noise(2 * math.pi / 3, 0.3), torch.tensor([-1.0, 1.0]), 1.0)
    torch.testing.assert_close(matrices[0] @ RED, GREEN, atol=1e-6, rtol=0)
    torch.testing.assert_close(matrices @ torch.ones(3), torch.ones(2, 3))
    assert torch.det(matrices[0]) > 0 > torch.det(matrices[1]), "the second is mirrored"
    torch.testing.assert_close(matrices @ matrices.mT, torch.eye(3).expand(2, 3, 3), atol=1e-6, rtol=0)


def test_less_than_all_turns_by_less_and_mirrors_nothing() -> None:
    found = turns(noise(math.pi), torch.ones(1), 0.25)
    torch.testing.assert_close(found, turns(noise(math.pi / 4), -torch.ones(1), 1.0))


def test_all_that_is_seen_in_an_episode_is_turned_alike() -> None:
    batch = build.prepare(design("gru"), [pair(0), pair(1)])[0].build([0, 1], [1.0, 1.0], [np.array([5, 6])] * 2)
    batch = batch.to(torch.device("cpu")).floats()
    before = (batch.writes.thumbnails, batch.reads.thumbnails, batch.images)
    changed = augment(batch, torch.Generator().manual_seed(0), replace(NOTHING, hue=1.0))
    after = (changed.writes.thumbnails, changed.reads.thumbnails, changed.images)
    matrices = []
    for episode in range(2):
        middle = before[0][episode].movedim(-3, -1).reshape(-1, 3).mean(dim=0)
        pixels, turned = (
            torch.cat([part[episode].movedim(-3, -1).reshape(-1, 3) for part in parts]) - middle
            for parts in (before, after)
        )
        matrices.append(torch.linalg.lstsq(pixels, turned).solution)
        torch.testing.assert_close(pixels @ matrices[-1], turned, atol=1e-4, rtol=0)
    assert (matrices[0] - matrices[1]).abs().max() > 0.05


def test_what_the_memory_sees_of_an_episode_is_moved_alike() -> None:
    wanted = Wanted(pictures=True, future=True)
    batch = build.prepare(design("gru"), [pair(0), pair(1)])[0].build([0, 1], [1.0] * 2, [np.array([5, 6])] * 2, wanted)
    batch = batch.to(torch.device("cpu")).floats()
    side = batch.writes.thumbnails.shape[-1]
    ramp = (torch.arange(float(side)) / side).expand(side, side)
    batch = batch._replace(
        writes=batch.writes._replace(thumbnails=ramp.expand_as(batch.writes.thumbnails)),
        reads=batch.reads._replace(thumbnails=ramp.mT.expand_as(batch.reads.thumbnails)),
    )
    changed = augment(batch, torch.Generator().manual_seed(1), replace(NOTHING, memory_shift=0.25))
    assert torch.equal(changed.images, batch.images)
    middle = slice(side // 4, side - side // 4)
    right, down = (
        (after.thumbnails - before.thumbnails)[..., middle, middle]
        for before, after in ((batch.writes, changed.writes), (batch.reads, changed.reads))
    )
    ways = [[(episode * side).round().unique().tolist() for episode in moves] for moves in (right, down)]
    assert all(len(way) == 1 and abs(way[0]) <= side / 4 for axis in ways for way in axis), "alike at every tick"
    assert ways[0][0] != ways[0][1] or ways[1][0] != ways[1][1], "and each episode its own way"


def test_what_is_to_be_foreseen_moves_with_what_is_seen() -> None:
    wanted = Wanted(pictures=False, future=True)
    batch = build.prepare(design("gru"), [pair(0), pair(1)])[0].build([0, 1], [1.0] * 2, [np.array([5, 6])] * 2, wanted)
    batch = batch.to(torch.device("cpu")).floats()
    assert batch.future is not None
    small = batch.future.shape[2:]
    seen = batch.reads.thumbnails
    alike = seen.movedim(-3, -1)[:, :, None].expand(-1, -1, small[0], -1, -1, -1, -1)
    batch = batch._replace(future=alike)
    changed = augment(batch, torch.Generator().manual_seed(1), replace(NOTHING, memory_shift=0.25))
    assert not torch.equal(changed.reads.thumbnails, seen) and changed.future is not None
    for later in changed.future.unbind(2):
        assert torch.equal(later.movedim(-1, -3), changed.reads.thumbnails)


def test_a_share_beyond_half_a_side_is_refused() -> None:
    with pytest.raises(ValueError, match="memory_shift = 0.6: must be from 0 to 0.5"):
        Augmentation(memory_shift=0.6)


def test_a_kept_view_is_moved_alike_for_every_camera() -> None:
    images = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3)).astype(np.uint8)
    strength, rows = replace(NOTHING, memory_shift=0.25), np.arange(3)
    one, again = (seen(images, rows, camera, 1, strength) for camera in (0, 1))
    np.testing.assert_array_equal(one, again)
    ways = [(down, right) for down in range(-2, 3) for right in range(-2, 3)]
    inner = slice(2, 6)
    fits = [
        (down, right)
        for down, right in ways
        if np.array_equal(one[:, inner, inner], images[:, 2 + down : 6 + down, 2 + right : 6 + right])
    ]
    assert len(fits) == 1 and fits != [(0, 0)]
    np.testing.assert_array_equal(seen(images, rows, 0, 1, NOTHING), images)


def test_a_kept_view_turns_every_picture_alike_and_none_is_the_plain_one() -> None:
    images = np.random.default_rng(0).integers(100, 156, (3, 4, 4, 3)).astype(np.uint8)
    strength, rows = replace(NOTHING, hue=1.0), np.arange(3)
    assert seen(images, rows, 0, 0, strength) is images
    one, other = (seen(images, rows, camera, 1, strength) for camera in (0, 1))
    np.testing.assert_array_equal(one, other)
    pixels, turned = (part.reshape(-1, 3) / 255.0 - 0.5 for part in (images, one))
    matrix = np.linalg.lstsq(pixels, turned, rcond=None)[0]
    np.testing.assert_allclose(pixels @ matrix, turned, atol=0.01)
    np.testing.assert_allclose(np.ones(3) @ matrix, np.ones(3), atol=0.1)
    assert np.abs(one.astype(int) - seen(images, rows, 0, 2, strength)).max() > 5
