"""Train-split standardisation: streaming statistics, constant and masked channels, clipping, round trips."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from trace_memory_ros.signature.layout import level_slices
from trace_memory_ros.signature.naive import flatten, signature_levels
from trace_memory_ros.signature.normalise import (
    CLIP,
    LEAST_SHARE,
    STD_FLOOR,
    RunningMoments,
    Standardiser,
    signature_standardiser,
)


def fitted(rows: np.ndarray, **options) -> Standardiser:
    moments = RunningMoments(rows.shape[-1])
    moments.add(rows)
    return moments.standardiser(**options)


def rows(count: int = 200, width: int = 5, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(loc=[1e6, -3, 0, 2, 5][:width], scale=[2, 1e-3, 40, 1, 7][:width], size=(count, width))


@given(st.lists(st.integers(0, 200), max_size=5), st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_pieces_and_merges_give_the_statistics_of_the_whole(cuts: list[int], merged: int) -> None:
    x = rows()
    one, two = RunningMoments(5), RunningMoments(5)
    for index, piece in enumerate(np.split(x, sorted(cuts))):
        (two if index < merged else one).add(piece)
    one.merge(two)
    assert one.count == len(x)
    np.testing.assert_allclose(one.mean, x.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.std(), x.std(axis=0), rtol=1e-8)


def test_standardises_to_zero_mean_and_unit_spread() -> None:
    x = rows()
    z = fitted(x).apply(x)
    assert z.dtype == np.float32
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=1e-5)


def test_channels_that_never_varied_give_zero_whatever_comes() -> None:
    x = rows()
    x[:, 1] = 0.1
    standardiser = fitted(np.concatenate([x[:50], x[50:]]))
    assert standardiser.active.tolist() == [True, False, True, True, True]
    assert standardiser.apply(np.full(5, 1e9))[1] == 0.0


def test_tiny_spreads_are_floored() -> None:
    standardiser = fitted(np.array([[0.0], [1e-9]]))
    assert standardiser.std[0] == STD_FLOOR
    assert abs(standardiser.apply(np.array([1e-9]))[0]) < 1e-2


def test_masked_base_channels_of_a_state_give_zero() -> None:
    mask = np.arange(17) >= 3
    x = np.random.default_rng(1).normal(size=(100, 17))
    z = fitted(x, mask=mask).apply64(x)
    assert z.dtype == np.float64
    assert (z[:, :3] == 0).all()
    assert (z[:, 3:] != 0).all()


def test_clipping_keeps_signs_and_counts_its_share() -> None:
    standardiser = fitted(np.array([[-1.0, -1.0, 3.0], [1.0, 1.0, 3.0]]))
    far = np.array([100.0, -100.0, 100.0])
    assert standardiser.apply(far).tolist() == [CLIP, -CLIP, 0.0]
    assert standardiser.clipped_share(far) == 1.0
    assert standardiser.clipped_share(np.array([100.0, 0.5, 0.0])) == 0.5


def test_nan_is_passed_on_not_hidden() -> None:
    assert np.isnan(fitted(rows()).apply(np.full(5, np.nan))).all()


def test_safetensors_round_trip_is_exact(tmp_path: Path) -> None:
    x = rows()
    standardiser = fitted(x, mask=np.array([1, 1, 0, 1, 1], dtype=bool), clip=5.0)
    file = tmp_path / "model.safetensors"
    save_file({**standardiser.to_tensors("normaliser.xi."), "other": torch.zeros(1)}, str(file))
    loaded = Standardiser.from_tensors(load_file(str(file)), "normaliser.xi.")
    np.testing.assert_array_equal(loaded.apply(x * 9), standardiser.apply(x * 9))
    assert loaded.clip == 5.0


def test_missing_tensors_are_named() -> None:
    tensors = fitted(rows()).to_tensors("normaliser.xi.")
    del tensors["normaliser.xi.std"]
    with pytest.raises(KeyError, match=r"normaliser\.xi\.std"):
        Standardiser.from_tensors(tensors, "normaliser.xi.")


def test_bad_rows_and_statistics_are_refused() -> None:
    moments = RunningMoments(2)
    with pytest.raises(ValueError, match="no rows seen"):
        moments.standardiser()
    with pytest.raises(ValueError, match=r"channels \[1\]"):
        moments.add([[0.0, np.nan]])
    with pytest.raises(ValueError, match="last dimension must be 2"):
        moments.add(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="3 channels into 2"):
        moments.merge(RunningMoments(3))
    moments.add([[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match="mask of shape"):
        moments.standardiser(mask=[True])
    with pytest.raises(ValueError, match="last dimension must be 2"):
        moments.standardiser().apply(np.zeros(3))
    ones, active = np.ones(2), np.ones(2, dtype=bool)
    with pytest.raises(ValueError, match="std goes down to 0"):
        Standardiser(ones, np.zeros(2), active)
    with pytest.raises(ValueError, match="non-finite"):
        Standardiser(np.full(2, np.nan), ones, active)
    with pytest.raises(ValueError, match="same"):
        Standardiser(ones, np.ones(3), active)
    with pytest.raises(ValueError, match="clip"):
        Standardiser(ones, ones, active, clip=0.0)


def still_channel(count: int = 200, seed: int = 3, motion: float = 1e-4) -> np.ndarray:
    """Signatures of depth 2 of random paths of three channels, of which the second hardly moves."""
    rng = np.random.default_rng(seed)
    paths = rng.normal(size=(count, 6, 3)).cumsum(axis=1) * [1.0, motion, 1.0]
    return np.array([flatten(signature_levels(path, 2)) for path in paths])


def moments_of(signatures: np.ndarray) -> RunningMoments:
    moments = RunningMoments(signatures.shape[-1])
    moments.add(signatures)
    return moments


def test_no_number_of_a_signature_is_scaled_up_beyond_its_level() -> None:
    x = still_channel()
    scaled = signature_standardiser(moments_of(x), 3, 2)
    for level in level_slices(3, 2):
        spread = x[:, level].std(axis=0)
        least = LEAST_SHARE * np.sqrt(np.square(spread).mean())
        assert (spread < least).any() and (spread > least).any()
        np.testing.assert_allclose(scaled.std[level], np.maximum(spread, least))


def test_a_motion_that_training_never_showed_stays_near_it() -> None:
    x, moved = still_channel(), still_channel(count=20, seed=4, motion=0.01)
    plain, scaled = moments_of(x).standardiser(), signature_standardiser(moments_of(x), 3, 2)
    assert plain.clipped_share(moved) > 0.2
    assert scaled.clipped_share(moved) == 0.0


@given(st.floats(0.1, 1e3))
@settings(max_examples=20, deadline=None)
def test_a_levels_unit_does_not_matter(unit: float) -> None:
    x = still_channel()
    units = np.repeat([unit, unit**2], [3, 9])
    in_units = signature_standardiser(moments_of(x * units), 3, 2).apply64(x * units)
    np.testing.assert_allclose(in_units, signature_standardiser(moments_of(x), 3, 2).apply64(x), atol=1e-6)


def test_what_never_varied_gives_no_signature_and_no_unit() -> None:
    x = still_channel(motion=0.0)
    scaled = signature_standardiser(moments_of(x), 3, 2)
    still = x.std(axis=0) == 0.0
    assert not scaled.active[still].any() and scaled.active[~still].all()
    np.testing.assert_allclose(scaled.std[~still], x.std(axis=0)[~still])


def test_moments_of_another_signature_are_named() -> None:
    with pytest.raises(ValueError, match=r"moments of 12 numbers: a signature of 3 channels at depth 3 has 39"):
        signature_standardiser(moments_of(still_channel()), 3, 3)
