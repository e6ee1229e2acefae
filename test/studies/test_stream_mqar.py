"""MQAR sequences: what is asked was shown, once, and the answer is what it was shown with."""

import numpy as np
import pytest

from studies.recall.streams.mqar import KEYS, MOST_PAIRS, SEPARATOR, draw


@pytest.mark.parametrize("pairs", [1, 8, MOST_PAIRS])
def test_answers_are_the_values_shown_with_their_keys(pairs: int) -> None:
    sample = draw(np.random.default_rng(0), 50, pairs)
    assert sample.tokens.shape == (50, 3 * pairs + 1)
    for tokens, answers in zip(sample.tokens, sample.answers, strict=True):
        shown, (separator, *asked) = tokens[: 2 * pairs], tokens[2 * pairs :]
        pairing = dict(zip(shown[::2], shown[1::2], strict=True))
        assert separator == SEPARATOR
        assert len(pairing) == pairs
        assert sorted(asked) == sorted(pairing)
        assert [pairing[key] for key in asked] == list(answers)


def test_keys_and_values_have_their_own_tokens_and_all_of_them() -> None:
    sample = draw(np.random.default_rng(0), 200, 20)
    assert set(np.unique(sample.tokens[:, :40:2])) == set(range(KEYS))
    assert set(np.unique(sample.tokens[:, 1:40:2])) == set(range(KEYS, SEPARATOR))


def test_the_order_of_the_queries_is_free() -> None:
    sample = draw(np.random.default_rng(0), 400, 4)
    first = (sample.tokens[:, :1] == sample.tokens[:, 9:]).mean(axis=0)
    assert np.abs(first - 0.25).max() < 0.08


def test_a_seed_gives_the_same_sequences() -> None:
    first, again = (draw(np.random.default_rng(5), 3, 7) for _ in range(2))
    assert all((a == b).all() for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("pairs", [0, MOST_PAIRS + 1])
def test_impossible_numbers_of_pairs_are_named(pairs: int) -> None:
    with pytest.raises(ValueError, match=f"pairs = {pairs}: must be 1 to {MOST_PAIRS}"):
        draw(np.random.default_rng(0), 2, pairs)
