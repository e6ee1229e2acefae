"""The signature of a path's newest part: equal to the definition on just that part, for ever."""

import numpy as np
import pytest

from trace_memory_ros.signature import naive
from trace_memory_ros.signature.windowed import WindowedSignature


def walk(window: WindowedSignature, path: np.ndarray, closes: np.ndarray) -> list[np.ndarray]:
    """The window's value at every tick of `path` `(T, d)`; a stretch ends at each tick where `closes` `(T,)` holds."""
    values = []
    for state, close in zip(path, closes, strict=True):
        window.update(state)
        if close:
            window.close_stretch()
        values.append(window.value())
    return values


@pytest.mark.parametrize(("dim", "depth", "stretches"), [(1, 1, 1), (2, 4, 3), (5, 2, 4), (17, 3, 2)])
def test_equals_the_definition_on_the_window(dim: int, depth: int, stretches: int) -> None:
    rng = np.random.default_rng(dim)
    path, closes = rng.normal(size=(40, dim)), rng.random(40) < 0.3
    values = walk(WindowedSignature(dim, depth, stretches), path, closes)
    for t, value in enumerate(values):
        ends = np.flatnonzero(closes[: t + 1])
        begin = ends[-stretches - 1] if len(ends) > stretches else 0
        np.testing.assert_allclose(value, naive.signature(path[begin : t + 1], depth), rtol=1e-11, atol=1e-11)


def test_an_endless_circle_stays_the_size_of_its_window() -> None:
    angle = np.linspace(0, 200 * 2 * np.pi, 20_000)
    path = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    window = WindowedSignature(2, 3, 4)
    values = np.abs(walk(window, path, np.arange(len(path)) % 25 == 24))
    assert np.max(values[-1000:]) <= np.max(values[:1000]) * (1 + 1e-9)
    # One and a quarter turns of area pi each, of which the whole path has 200.
    assert np.abs(naive.signature(path[::10], 2)).max() > 100 * np.max(values[-1000:, :6])


def test_a_restored_window_goes_on_bit_for_bit() -> None:
    rng = np.random.default_rng(0)
    path, closes = rng.normal(size=(60, 3)), rng.random(60) < 0.2
    for at in (0, 1, 7, 30):
        window, other = WindowedSignature(3, 2, 3), WindowedSignature(3, 2, 3)
        walk(window, path[:at], closes[:at])
        walk(other, path[::-1], closes)
        other.restore(window.snapshot())
        for ours, theirs in zip(walk(window, path[at:], closes[at:]), walk(other, path[at:], closes[at:]), strict=True):
            assert ours.tobytes() == theirs.tobytes()


def test_reset_and_an_early_close_leave_nothing() -> None:
    window = WindowedSignature(2, 2, 2)
    window.close_stretch()
    assert not window.started
    walk(window, np.eye(2), np.array([True, True]))
    assert window.value().any()
    window.reset()
    assert not window.started
    assert not window.value().any()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="0 stretches"):
        WindowedSignature(2, 2, 0)
    snapshot = WindowedSignature(2, 2, 2).snapshot()
    with pytest.raises(ValueError, match=r"'closed' has shape \(2, 6\)"):
        WindowedSignature(2, 2, 3).restore(snapshot)
    with pytest.raises(ValueError, match="closed_count"):
        WindowedSignature(2, 2, 2).restore({k: v for k, v in snapshot.items() if k != "closed_count"})
    with pytest.raises(ValueError, match="non-finite"):
        WindowedSignature(2, 2, 2).restore({**snapshot, "closed": np.full((2, 6), np.nan)})
