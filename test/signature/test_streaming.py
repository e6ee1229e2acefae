"""One tick at a time: equal to the definition, exact over long runs, safe against bad input."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trace_memory_ros.signature import naive
from trace_memory_ros.signature.layout import level_slices
from trace_memory_ros.signature.streaming import StreamingSignature, warm_up

LAYOUTS = [(1, 1), (1, 4), (2, 4), (3, 3), (5, 2), (17, 3)]
states = arrays(float, st.tuples(st.integers(1, 8), st.just(3)), elements=st.floats(-2, 2))


def path(dim: int, steps: int = 9, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(steps, dim))


def streamed(x: np.ndarray, depth: int) -> np.ndarray:
    stream = StreamingSignature(x.shape[1], depth)
    for state in x:
        stream.update(state)
    return stream.value()


@pytest.mark.parametrize(("dim", "depth"), LAYOUTS)
def test_equals_the_definition_at_every_prefix(dim: int, depth: int) -> None:
    x = path(dim, steps=7)
    stream = StreamingSignature(dim, depth)
    for t, state in enumerate(x, start=1):
        stream.update(state)
        np.testing.assert_allclose(stream.value(), naive.signature(x[:t], depth), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("dim", "depth"), LAYOUTS)
def test_agrees_with_iisignature(dim: int, depth: int) -> None:
    iisignature = pytest.importorskip("iisignature", reason="pip install --no-build-isolation iisignature")
    x = path(dim, steps=31)
    scale = np.abs(iisignature.sig(x, depth)).max()
    np.testing.assert_allclose(streamed(x, depth), iisignature.sig(x, depth), rtol=0, atol=1e-13 * scale)


@given(states, arrays(float, 3, elements=st.floats(-5, 5)))
@settings(max_examples=40, deadline=None)
def test_a_constant_offset_changes_nothing(x: np.ndarray, offset: np.ndarray) -> None:
    np.testing.assert_allclose(streamed(x + offset, 3), streamed(x, 3), rtol=1e-9, atol=1e-9)


@given(states, st.lists(st.integers(1, 4), min_size=8, max_size=8))
@settings(max_examples=40, deadline=None)
def test_walking_the_same_path_slower_changes_nothing(x: np.ndarray, pieces: list[int]) -> None:
    slow = [x[0]]
    for start, end, count in zip(x[:-1], x[1:], pieces, strict=False):
        slow += [start + (end - start) * i / count for i in range(1, count + 1)]
    np.testing.assert_allclose(streamed(np.array(slow), 3), streamed(x, 3), rtol=1e-9, atol=1e-9)


def test_standing_still_changes_no_bit() -> None:
    stream = StreamingSignature(4, 3)
    for state in (x := path(4)):
        stream.update(state)
    before = stream.value()
    for _ in range(100):
        stream.update(x[-1])
    np.testing.assert_array_equal(stream.value(), before)


def test_order_of_motion_matters_and_backwards_undoes_it() -> None:
    x = path(3)
    forward, backward = streamed(x, 3), streamed(x[::-1], 3)
    np.testing.assert_allclose(forward[:3], -backward[:3], atol=1e-12)
    assert np.abs(forward + backward)[3:].max() > 0.1
    np.testing.assert_allclose(streamed(np.concatenate([x, x[-2::-1]]), 3), 0.0, atol=1e-11)


def test_first_state_is_the_basepoint_and_reset_forgets_it() -> None:
    stream = StreamingSignature(2, 2)
    assert not stream.started
    stream.update([5.0, 7.0])
    assert stream.started
    np.testing.assert_array_equal(stream.value(), np.zeros(6))
    stream.update([6.0, 9.0])
    np.testing.assert_array_equal(stream.value(), [1, 2, 0.5, 1, 1, 2])
    stream.reset()
    assert not stream.started
    stream.update([0.0, 0.0])
    np.testing.assert_array_equal(stream.value(), np.zeros(6))


def test_value_is_a_copy() -> None:
    stream = StreamingSignature(2, 2)
    for state in path(2):
        stream.update(state)
    first = stream.value()
    kept = first.copy()
    first[:] = 99.0
    np.testing.assert_array_equal(stream.value(), kept)


@pytest.mark.parametrize(
    "convert",
    [
        lambda s: s.astype(np.float32).astype(np.float64)[::1],
        lambda s: s.astype(np.float32),
        lambda s: s.astype(np.float32).astype(np.float64).tolist(),
        lambda s: np.repeat(s.astype(np.float32).astype(np.float64), 2)[::2],
        lambda s: np.frombuffer(s.astype(np.float32).astype(np.float64).tobytes()),
    ],
    ids=["float64", "float32", "list", "strided", "read-only"],
)
def test_takes_any_array_like(convert) -> None:
    x = path(3)
    expected = streamed(x.astype(np.float32).astype(np.float64), 3)
    stream = StreamingSignature(3, 3)
    for state in x:
        stream.update(convert(state))
    np.testing.assert_array_equal(stream.value(), expected)


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ([0.0, np.nan, 0.0], r"non-finite values in channels \[1\]"),
        ([np.inf, 0.0, -np.inf], r"non-finite values in channels \[0, 2\]"),
        ([0.0, 0.0], r"shape \(2,\)"),
        (np.zeros(4), r"shape \(4,\)"),
        (np.zeros((1, 3)), r"shape \(1, 3\)"),
        (1.0, r"shape \(\)"),
    ],
)
@pytest.mark.parametrize("started", [False, True])
def test_bad_states_are_named_and_leave_no_trace(bad, named: str, started: bool) -> None:
    x = path(3)
    stream = StreamingSignature(3, 3)
    if started:
        stream.update(x[0])
    with pytest.raises(ValueError, match=named):
        stream.update(bad)
    assert stream.started == started
    for state in x[1:] if started else x:
        stream.update(state)
    np.testing.assert_array_equal(stream.value(), streamed(x, 3))


@pytest.mark.parametrize("taken_after", [0, 1, 5])
def test_restore_continues_bit_for_bit(taken_after: int) -> None:
    x = path(3)
    stream, other = StreamingSignature(3, 4), StreamingSignature(3, 4)
    for state in path(3, seed=1):
        other.update(state)
    for state in x[:taken_after]:
        stream.update(state)
    other.restore(stream.snapshot())
    for state in x[taken_after:]:
        stream.update(state)
        other.update(state)
    np.testing.assert_array_equal(other.value(), stream.value())


def test_foreign_or_damaged_snapshots_are_refused() -> None:
    stream = StreamingSignature(3, 2)
    stream.update(np.zeros(3))
    good = stream.snapshot()
    with pytest.raises(ValueError, match="'signature' has shape"):
        StreamingSignature(3, 3).restore(good)
    with pytest.raises(ValueError, match="no 'last_state'"):
        stream.restore({"signature": good["signature"]})
    for name in good:
        damaged = {key: array.copy() for key, array in good.items()}
        damaged[name][0] = np.nan
        with pytest.raises(ValueError, match="non-finite"):
            stream.restore(damaged)


def long_double_signature(x: np.ndarray, chunk: int = 50_000) -> list[np.ndarray]:
    """Levels 1 to 3 of the whole path by cumulative sums in extended precision, written apart from the product code."""
    steps = np.diff(x.astype(np.longdouble), axis=0)
    dim = x.shape[1]
    one, two, three = (np.zeros((dim,) * n, np.longdouble) for n in (1, 2, 3))
    for start in range(0, len(steps), chunk):
        z = steps[start : start + chunk]
        ones = one + np.cumsum(z, axis=0) - z
        grown2 = (ones + z / 2)[:, :, None] * z[:, None, :]
        twos = two + np.cumsum(grown2, axis=0) - grown2
        grown3 = (twos + (ones / 2 + z / 6)[:, :, None] * z[:, None, :])[..., None] * z[:, None, None, :]
        one, two, three = one + z.sum(axis=0), two + grown2.sum(axis=0), three + grown3.sum(axis=0)
    return [one.reshape(-1), two.reshape(-1), three.reshape(-1)]


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps >= np.finfo(float).eps, reason="long double is no wider than double here"
)
@pytest.mark.parametrize(("noise", "moved"), [(0.01, (0.02, 0.03)), (0.1, (1.9, 2.5))])
def test_noise_of_a_standing_arm_gathers_areas(noise: float, moved: tuple[float, float]) -> None:
    """What docs/explanation/signatures.md says of 100,000 ticks at rest, behind 200 between random poses."""
    dim, depth, ticks = 7, 3, 100_000
    changes = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        poses, share = rng.normal(size=(6, dim)), np.linspace(0.0, 1.0, 40)[:, None]
        walked = np.concatenate([(1 - share) * one + share * other for one, other in pairwise(poses)])
        stream = StreamingSignature(dim, depth)
        for state in walked:
            stream.update(state)
        before = stream.value()
        for state in walked[-1] + noise * rng.normal(size=(ticks, dim)):
            stream.update(state)
        changes.append(stream.value() - before)
    rms = [np.sqrt(np.mean(np.square(changes)[:, level])) for level in level_slices(dim, depth)[1:]]
    np.testing.assert_allclose(rms, moved, rtol=0.35)


def test_a_million_steps_do_not_drift() -> None:
    steps, dim = 1_000_000, 3
    t = np.arange(steps) * 0.01
    noise = np.random.default_rng(3).normal(scale=0.02, size=(steps, dim))
    x = np.sin(np.outer(t, [1.0, 1.7, 0.45])) + noise
    value = streamed(x, 3)
    for part, exact in zip(level_slices(dim, 3), long_double_signature(x), strict=True):
        error = np.abs(value[part] - exact).max() / np.abs(exact).max()
        assert error <= 1e-10


def test_works_where_nothing_can_be_cached(tmp_path: Path) -> None:
    package = Path(__file__).parents[2]
    code = (
        "import numba.core.caching as c; c.CacheImpl._locator_classes = []\n"
        "from trace_memory_ros.signature.streaming import StreamingSignature\n"
        "s = StreamingSignature(2, 2); s.update([0, 0]); s.update([1, 2]); print(s.value().tolist())"
    )
    env = {**os.environ, "PYTHONPATH": str(package), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[1.0, 2.0, 0.5, 1.0, 1.0, 2.0]"


def test_warm_up_leaves_nothing_to_compile() -> None:
    from trace_memory_ros.signature.kernel import update_kernel

    warm_up(2, 2)
    kernel = update_kernel(2, 2)
    StreamingSignature(2, 2).update([0.0, 1.0])
    assert update_kernel(2, 2) is kernel
    assert len(kernel.signatures) == 1  # type: ignore[attr-defined]
