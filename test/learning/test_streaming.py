"""Episodes that stay in files give the batches that episodes in memory give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.synthetic import design, pair

from trace_memory_ros.files.stored import StoredArray
from trace_memory_ros.learning import build
from trace_memory_ros.learning.data import dataset
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.path_signatures import PathSignatures, signatures
from trace_memory_ros.learning.engine.optimise import Sampling
from trace_memory_ros.learning.recipe import ReadShares, Recipe
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.runtime.clock import PathLength, UpdateClock, ticks_apart
from trace_memory_ros.runtime.window import PathWindow


def stored(demo: Demonstration, folder: Path) -> Demonstration:
    """The demonstration with its images in files."""
    images = {}
    for name, frames in demo.images.items():
        path = folder / f"{demo.name} {name}.npy".replace(" ", "_")
        np.save(path, frames[:])
        images[name] = Frames(StoredArray(path), np.arange(len(frames)))
    return replace(demo, images=images)


def test_batches_of_files_are_batches_of_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(design("trace"), clock=PathLength(0.5, 0.1))
    pairs = [pair(i) for i in range(3)]
    filed = [(stored(one, tmp_path), stored(other, tmp_path)) for one, other in pairs]
    in_memory = build.prepare(plan, pairs, [pair(100)]).training
    for most, kind in ((0, StoredArray), (2**31, np.ndarray)):
        monkeypatch.setattr(dataset, "HELD_BYTES", most)
        streamed = build.prepare(plan, filed, [pair(100)]).training
        episode = streamed.data.episodes[0]
        assert all(isinstance(frames.pixels, kind) for frames in episode.thumbnails.values())
        assert isinstance(episode.xi, np.ndarray if most else PathSignatures)
        assert np.array_equal(streamed.statistics.xi.std, in_memory.statistics.xi.std)
        same(in_memory, streamed)
    small = sorted(path.name for path in tmp_path.glob("*8px.npy"))
    assert len(small) == 3 * 2 * 2


def same(one: BatchBuilder, other: BatchBuilder) -> None:
    """Whether both builders give the same augmented batch."""
    found: list[list[torch.Tensor]] = []
    for builder in (one, other):
        sampling = Sampling(builder, Recipe(), 1.5, 2, 4, ReadShares(0.5))
        batch = sampling.augmented(sampling.build(sampling.draw(np.random.default_rng(3))), torch.device("cpu"))
        found.append([])
        batch.each(lambda part: found[-1].append(part) or part)
    assert all(map(torch.equal, *found)) and len(found[0]) == 16


def test_small_images_are_made_once(tmp_path: Path) -> None:
    frames = stored(pair(0)[0], tmp_path).images["overhead"]
    first = frames.shrunk(8)
    made = first.pixels.path.stat().st_mtime_ns
    assert np.array_equal(first[:], Frames(frames[:], frames.index).shrunk(8)[:])
    assert frames.shrunk(8).pixels.path.stat().st_mtime_ns == made
    assert frames.shrunk(16) is frames


@pytest.mark.parametrize("window", [None, PathWindow(0.5, 3, 0.1)])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_signatures_at_chosen_ticks_are_those_of_all(depth: int, window: PathWindow | None) -> None:
    path = np.random.default_rng(0).normal(0, 0.2, (40, 3)).cumsum(axis=0).astype(np.float32)
    whole, some = signatures(path, depth, window), PathSignatures(path, depth, window)
    assert some.shape == whole.shape
    for ticks in (np.array([3]), np.array([30, 2, 2, 39]), slice(5, 12), np.array([[1, 4], [4, 0]])):
        assert np.array_equal(some[ticks], whole[ticks])
    assert np.array_equal(np.asarray(some), whole)


def test_a_path_that_is_not_finite_is_named() -> None:
    path = np.zeros((5, 2), np.float32)
    path[3] = np.nan
    with pytest.raises(ValueError, match=r"non-finite values, first at tick \[3\]"):
        PathSignatures(path, 2)[np.array([4])]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 60),
    st.sampled_from([0.0, 0.05, 0.3, 1.0]),
    st.floats(1e-3, 20.0),
    st.booleans(),
)
def test_ticks_from_the_counted_path_are_those_of_the_clock(
    seed: int, ticks: int, deadband: float, threshold: float, coarse: bool
) -> None:
    steps = np.random.default_rng(seed).normal(0, 0.3, (ticks, 3))
    # Steps of a quarter add up without rounding, so that thresholds are met exactly.
    path = (np.round(steps * 4) / 4 if coarse else steps).cumsum(axis=0).astype(np.float32)
    threshold = round(threshold * 4) / 4 or 0.25 if coarse else threshold
    clock = UpdateClock(PathLength(threshold, deadband))
    found = ticks_apart(clock.travelled(path), threshold)
    assert found.tolist() == np.flatnonzero(clock.write_mask(path)).tolist()
