"""All prefixes in torch: equal to the streaming tick, with gradients, under ragged padding."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_memory_ros.signature import naive
from trace_memory_ros.signature.batch import batch_signature
from trace_memory_ros.signature.streaming import StreamingSignature

LENGTHS = [7, 1, 4, 2]


def padded(dim: int, fill: float, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    paths = torch.from_numpy(np.random.default_rng(seed).normal(size=(len(LENGTHS), max(LENGTHS), dim)))
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    return torch.where(mask[..., None], paths, fill), mask


@pytest.mark.parametrize(("dim", "depth"), [(1, 4), (2, 4), (3, 3), (5, 1), (17, 3)])
@pytest.mark.parametrize("fill", [0.0, 1e6, float("nan")])
def test_equals_streaming_and_definition_under_ragged_padding(dim: int, depth: int, fill: float) -> None:
    paths, mask = padded(dim, fill)
    result = batch_signature(paths, depth, mask).numpy()
    for row, length in enumerate(LENGTHS):
        stream = StreamingSignature(dim, depth)
        for t in range(max(LENGTHS)):
            if t < length:
                stream.update(paths[row, t].numpy())
            np.testing.assert_allclose(result[row, t], stream.value(), rtol=1e-10, atol=1e-12)
        expected = naive.signature(paths[row, :length].numpy(), depth)
        np.testing.assert_allclose(result[row, -1], expected, rtol=1e-10, atol=1e-12)


@given(st.integers(1, 9), st.integers(1, 3), st.integers(1, 4), st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_equals_the_definition_at_any_length(steps: int, dim: int, depth: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(2, steps, dim))
    result = batch_signature(torch.from_numpy(x), depth).numpy()
    for row in range(2):
        np.testing.assert_allclose(result[row, -1], naive.signature(x[row], depth), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_gradients(depth: int) -> None:
    paths, mask = padded(2, 0.5)
    paths.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: batch_signature(x, depth, mask), (paths,))


def test_padding_gets_no_gradient_even_when_it_holds_nan() -> None:
    paths, mask = padded(3, float("nan"))
    paths.requires_grad_()
    batch_signature(paths, 3, mask).square().sum().backward()
    assert paths.grad is not None
    assert bool((paths.grad[~mask] == 0).all())
    assert bool(paths.grad[mask].isfinite().all())
    assert bool((paths.grad[0] != 0).all())


def test_float32_stays_float32_and_close() -> None:
    paths, mask = padded(17, 0.0)
    single = batch_signature(paths.float(), 3, mask)
    assert single.dtype == torch.float32
    exact = batch_signature(paths, 3, mask)
    assert float((single - exact).abs().max() / exact.abs().max()) < 1e-6


@pytest.mark.parametrize(
    ("paths", "mask", "named"),
    [
        (torch.zeros(2, 3), None, "expected"),
        (torch.zeros(2, 0, 3), None, "T >= 1"),
        (torch.zeros(2, 3, 3, dtype=torch.int64), None, "float32 or float64"),
        (torch.zeros(1, 3, 2), torch.ones(1, 2, dtype=torch.bool), "mask"),
        (torch.zeros(1, 3, 2), torch.ones(1, 3), "mask"),
        (torch.zeros(1, 3, 2), torch.tensor([[True, False, True]]), "at its end only"),
        (torch.zeros(1, 3, 2), torch.tensor([[False, False, False]]), "at least one valid step"),
    ],
)
def test_bad_input_is_named(paths: torch.Tensor, mask: torch.Tensor | None, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        batch_signature(paths, 2, mask)
