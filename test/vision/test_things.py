"""Things in a picture, by the definition, and what attention makes of tokens that say where they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning.features.hue import turned, turned_features, turns
from trace_memory_ros.learning.features.noise import feature_noise
from trace_memory_ros.learning.recipe import Augmentation
from trace_memory_ros.policies.places import HEADS, Places
from trace_memory_ros.vision import registry
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.encoder import FeatureNorm, Pool
from trace_memory_ros.vision.placed import EDGE
from trace_memory_ros.vision.regions import COLOURS, WIDTH, belong, labels, things
from trace_memory_ros.vision.things import ThingsBackbone

PX = 24
TABLE, WOOD = (0.5, 0.45, 0.4), (0.75, 0.45, 0.28)
RED, DARK_RED, GREEN, GREY, WHITE = (
    (0.9, 0.1, 0.1),
    (0.5, 0.06, 0.06),
    (0.1, 0.8, 0.2),
    (0.2, 0.2, 0.2),
    (0.9, 0.9, 0.9),
)
SQUARE = np.ones((4, 4), dtype=bool)
CORNER = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=bool)
Colour = tuple[float, float, float]


def backbone(**options: float) -> ThingsBackbone:
    built = registry.untrained(BackboneConfig("things", options=options), PX)
    assert isinstance(built, ThingsBackbone)
    return built


def picture(*drawn: tuple[NDArray[np.bool_], int, int, Colour]) -> NDArray[np.float32]:
    """A table on which shapes lie, each with its top left corner at a row and a column."""
    image = np.full((PX, PX, 3), TABLE, dtype=np.float32)
    for shape, top, left, colour in drawn:
        image[top : top + shape.shape[0], left : left + shape.shape[1]][shape] = colour
    return image


def seen(*images: NDArray[np.float32], **options: float) -> torch.Tensor:
    """The tokens of pictures `(N, K, d)`."""
    return backbone(**options)(torch.from_numpy(np.stack(images)).movedim(-1, 1)).tokens


def flooded(image: NDArray[np.float32]) -> list[list[tuple[int, int]]]:
    """All regions, from each pixel to its neighbours and on to theirs."""
    left, found = {(y, x) for y in range(len(image)) for x in range(image.shape[1])}, []
    while left:
        region, edge = [], [left.pop()]
        while edge:
            y, x = edge.pop()
            region.append((y, x))
            for near in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if near in left and belong.py_func(image[y, x], image[near]):
                    left.remove(near)
                    edge.append(near)
        found.append(region)
    return found


def told(image: NDArray[np.float32], region: list[tuple[int, int]], most: int) -> list[float]:
    """What a region looks like and where its middle is, pixel by pixel."""
    ys, xs = np.array(region, dtype=float).T
    size, box = len(region), (np.ptp(ys) + 1) * (np.ptp(xs) + 1)
    y, x = ys - ys.mean(), xs - xs.mean()
    second = [math.sqrt((y * y).sum() / size**2), math.sqrt((x * x).sum() / size**2), (x * y).sum() / size**2]
    third = [(p * q * r).sum() / size**2.5 for p, q, r in ((y, y, y), (y, y, x), (y, x, x), (x, x, x))]
    fourth = ((y * y + x * x) ** 2).sum() / size**3
    colour = np.mean([image[pixel] for pixel in region], axis=0)
    return [*colour, math.sqrt(size) / most, size / box, *second, *third, fourth, ys.mean(), xs.mean()]


def not_of_the_ground(
    image: NDArray[np.float32], regions: list[list[tuple[int, int]]], kept: list[list[float]], most: int
) -> list[list[float]]:
    """Those of another hue than the largest region, if that is too large for a thing."""
    largest = max(regions, key=len)
    if max(np.ptp(np.array(largest), axis=0) + 1) <= most:
        return kept
    ground = np.mean([image[pixel] for pixel in largest], axis=0)
    return [one for one in kept if not belong.py_func(np.array(one[:3]), ground)]


@pytest.mark.parametrize("ground", [None, GREY, WOOD])
@pytest.mark.parametrize("seed", range(3))
def test_things_are_regions_by_the_definition(seed: int, ground: Colour | None) -> None:
    rng = np.random.default_rng(seed)
    shades = np.array([TABLE, RED, DARK_RED, GREEN, GREY, WOOD], dtype=np.float32)
    # Blocks, so that there are regions of more than a pixel or two.
    image = shades[rng.integers(0, 6, (9, 11))].repeat(2, axis=0).repeat(3, axis=1)
    if ground is not None:
        image[:, :3] = ground
    regions = flooded(image)
    found = labels(image).reshape(image.shape[:2])
    for region in regions:
        first = min(y * image.shape[1] + x for y, x in region)
        assert {found[pixel] for pixel in region} == {first}
    least, most, colourful = 7, 9, 0.3
    kept = [
        told(image, region, most)
        for region in regions
        if len(region) >= least and max(np.ptp(np.array(region), axis=0) + 1) <= most
    ]
    kept = [one for one in kept if max(one[:3]) - min(one[:3]) >= colourful]
    kept = not_of_the_ground(image, regions, kept, most)
    middles, tokens, of = things(image, least, most, colourful)
    assert np.bincount(of[of >= 0]).tolist() == (tokens[:, COLOURS] ** 2 * most**2).round().astype(int).tolist()
    for number, (down, right) in enumerate(middles):
        np.testing.assert_allclose(np.argwhere(of == number).mean(axis=0), (down, right))
    assert len(kept) > 2 and tokens.shape == (len(kept), WIDTH)
    assert (np.diff(tokens[:, COLOURS]) <= 0).all(), "the largest first"
    both = np.concatenate([tokens, middles], axis=1)
    order = [np.lexsort(np.array(rows).round(4).T) for rows in (kept, both)]
    np.testing.assert_allclose(np.array(kept)[order[0]], both[order[1]], atol=1e-5)


def test_the_ground_seen_through_a_ring_is_no_thing() -> None:
    ring = np.ones((7, 7), dtype=bool)
    ring[2:5, 2:5] = False
    wooden = picture((ring, 4, 4, RED))
    wooden[(wooden == np.float32(TABLE)).all(axis=-1)] = WOOD
    assert int(seen(wooden, most_px=PX - 1)[0].any(dim=-1).sum()) == 1
    assert int(seen(wooden, most_px=PX)[0].any(dim=-1).sum()) == 3, "the ground too, if it may be so large"


def test_a_thing_is_the_same_wherever_it_lies_and_a_turn_swaps_its_sides() -> None:
    one, other, turned_round = (
        seen(picture((shape, top, left, RED)))[0, 0]
        for shape, top, left in ((CORNER, 3, 4), (CORNER, 14, 15), (CORNER.T, 3, 4))
    )
    torch.testing.assert_close(one[:WIDTH], other[:WIDTH])
    swapped = [0, 1, 2, 3, 4, 6, 5, 7, 11, 10, 9, 8, 12]
    torch.testing.assert_close(turned_round[:WIDTH], one[:WIDTH][swapped])
    assert (one[WIDTH:] < other[WIDTH:]).all() and other[WIDTH:].abs().max() < EDGE
    larger = seen(picture((CORNER.repeat(2, 0).repeat(2, 1), 3, 4, RED)))[0, 0]
    assert larger[COLOURS] == pytest.approx(2 * float(one[COLOURS]))
    assert float(larger[COLOURS + 1]) == pytest.approx(float(one[COLOURS + 1]))


def test_faces_of_one_hue_are_one_thing_and_touching_things_of_two_are_two() -> None:
    shaded = seen(picture((SQUARE, 4, 4, RED), (SQUARE, 8, 4, DARK_RED)))[0]
    assert int(shaded.any(dim=-1).sum()) == 1
    torch.testing.assert_close(shaded[0, :3], torch.tensor([(a + b) / 2 for a, b in zip(RED, DARK_RED, strict=True)]))
    assert int(seen(picture((SQUARE, 4, 4, RED), (SQUARE, 8, 4, GREEN)))[0].any(dim=-1).sum()) == 2


@pytest.mark.parametrize("colour", [RED, DARK_RED, GREEN])
@pytest.mark.parametrize("ground", [TABLE, GREY, WHITE])
def test_blurred_edges_join_a_thing_to_nothing(ground: Colour, colour: Colour) -> None:
    large = np.full((10 * PX, 10 * PX, 3), ground, dtype=np.float32)
    for top in range(60, 70):
        large[top : top + 57, top : top + 63] = colour
        small = large.reshape(PX, 10, PX, 10, 3).mean(axis=(1, 3))
        (found,) = (one for one in seen(small, most_px=20)[0] if one.any())
        # Pixels that are more of the ground than of the thing may count to either.
        assert float(found[COLOURS]) * 20 == pytest.approx(math.sqrt(57 * 63) / 10, rel=0.2)
        large[:] = np.array(ground)


def test_greys_and_what_is_too_small_or_too_large_are_left_out() -> None:
    robot = (SQUARE, 2, 2, GREY), (SQUARE, 2, 12, WHITE)
    assert not seen(picture(*robot)).any()
    assert int(seen(picture(*robot), colourful=0.0, most_px=20)[0].any(dim=-1).sum()) == 2, "the table is too large"
    large = picture((np.ones((11, 3), dtype=bool), 5, 5, RED))
    assert seen(large, most_px=11).any() and not seen(large, most_px=10).any()
    small = picture((SQUARE, 5, 5, RED))
    assert seen(small, least_px=16).any() and not seen(small, least_px=17).any()
    assert int(seen(picture((SQUARE, 5, 5, RED), (SQUARE, 15, 5, GREEN)), most_things=1)[0].any(dim=-1).sum()) == 1


def test_its_options_and_its_lack_of_weights() -> None:
    config = BackboneConfig("things")
    assert config.fixed and config.kept and not BackboneConfig("cells").kept
    with pytest.raises(ConfigError, match="things is frozen"):
        BackboneConfig("things", frozen=True)
    for options, message in (
        ({"least_px": 0}, "least_px"),
        ({"colourful": 1.0}, "colourful"),
        ({"cell": 1}, "options"),
    ):
        with pytest.raises(ConfigError, match=message):
            backbone(**options)
    for pooling in ("mean", "salience"):
        with pytest.raises(ConfigError, match=f"{pooling}: things are told apart by eyes.pooling = attention"):
            Pool(pooling, cameras=1, places=3, width=WIDTH + 2, out=8, placed=True)


def test_nothing_is_compiled_at_the_first_picture() -> None:
    eyes = backbone()
    known = list(labels.signatures)
    for images in (torch.zeros(2, 3, PX, PX), torch.zeros(1, 3, PX, PX, dtype=torch.uint8)):
        eyes(images.contiguous(memory_format=torch.channels_last))
    assert known and labels.signatures == known


def tokens_of(count: int, seed: int = 0) -> torch.Tensor:
    """Random things of two cameras `(2, 2, 6, d)`, of which so many are there."""
    tokens = torch.randn(2, 2, 6, WIDTH + 2, generator=torch.Generator().manual_seed(seed))
    tokens[..., count:, :] = 0.0
    return tokens


def test_attention_goes_to_things_in_whatever_order_and_nothing_is_nowhere() -> None:
    torch.manual_seed(0)
    pool = Pool("attention", cameras=2, places=6, width=WIDTH + 2, out=8, placed=True)
    told = Places(pool.norm, 5, 2, (6, 1), placed=True)
    asked = torch.randn(2, 5)

    def both(tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return pool(Features(tokens, tokens.mean(dim=-2))), told(asked, tokens)

    tokens = tokens_of(4)
    for one, other in zip(both(tokens), both(tokens[:, :, [3, 5, 0, 2, 4, 1]]), strict=True):
        torch.testing.assert_close(one, other)
    alone = tokens_of(1)
    torch.testing.assert_close(both(alone)[1].unflatten(-1, (2, HEADS, 2))[:, :, 3], alone[:, :, 0, WIDTH:])
    for part in both(tokens_of(0)):
        assert torch.isfinite(part).all()


def test_a_norm_goes_by_things_alone() -> None:
    norm, tokens = FeatureNorm(WIDTH + 2), tokens_of(4)
    norm.calibrate(tokens)
    known = tokens[:, :, :4].flatten(0, -2)
    torch.testing.assert_close(norm.centre, known.mean(dim=0))
    torch.testing.assert_close(norm.spread, known.std(dim=0))


def test_colours_of_things_are_turned_as_those_of_their_picture_are() -> None:
    images = torch.from_numpy(np.stack([picture((SQUARE, 3, 4, RED)), picture((CORNER, 12, 9, GREEN))])).movedim(-1, 1)
    eyes, mask = backbone(most_px=20), torch.ones(1, 2, dtype=torch.bool)
    features = Features(*(part.unflatten(0, (1, 2, 1)) for part in eyes(images)))
    matrix = turns(torch.tensor([0.4]), torch.tensor([1.0]), 1.0)
    # About the mean of both things.
    middle = torch.tensor([RED, GREEN]).mean(dim=0)[None]
    expected = eyes(turned(images.unflatten(0, (1, 2, 1)), matrix, middle).flatten(0, 2)).tokens
    found = turned_features(features, matrix, mask, COLOURS)(features)
    torch.testing.assert_close(found.tokens.flatten(0, 2), expected)
    torch.testing.assert_close(found.pooled, found.tokens.mean(dim=-2))


def test_noise_is_over_what_things_look_like_not_over_where_they_are_nor_over_nothing() -> None:
    tokens, mask = tokens_of(4), torch.ones(2, 2, dtype=torch.bool)
    features = Features(tokens[:, :, None], tokens[:, :, None].mean(dim=-2))
    noisy = feature_noise(features, mask, Augmentation(feature_noise=0.5), torch.ones, placed=True)(features).tokens
    moved = (noisy - features.tokens)[:, :, 0]
    spread = tokens[:, :, :4].flatten(0, -2).std(dim=0)
    torch.testing.assert_close(moved[:, :, :4, :WIDTH], (0.5 * spread[:WIDTH]).expand(2, 2, 4, WIDTH))
    assert not moved[..., WIDTH:].any() and not moved[:, :, 4:].any()
