"""The passive T-maze, and the walk that takes a memory down it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from studies.recall.learning import tmaze as walking
from studies.recall.learning.tmaze import MazeModel, MazePath, path_size, walk
from studies.recall.learning.trainer import RecallRecipe, train
from studies.recall.streams.tmaze import CORRIDOR, GOAL_A, GOAL_B, JUNCTION, OBSERVATIONS, TMaze
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.signature.batch import batch_signature

TASK = TMaze(longest=12)
CASES = {
    "elmur": ("elmur", {"segment": 4}, "observation"),
    "gru": ("gru", {}, "observation"),
    "trace by sight": ("trace", {}, "observation"),
    "trace by progress": ("trace", {}, "progress"),
}


def build(name: str, options: dict[str, object], path: str = "observation", seed: int = 0) -> MazeModel:
    torch.manual_seed(seed)
    signature = path_size(path) if registry.build(name, MemoryDims(2, 1, 2, 1)).uses_signature else 0
    return MazeModel(registry.build(name, MemoryDims(8, signature, 8, 2), options), TASK, path).eval()


def test_a_corridor_shows_the_goal_once_and_asks_once() -> None:
    stream = TMaze(longest=9, shortest=4).sample(np.random.default_rng(0), 200)
    kind = stream.symbols[..., 0]
    assert set(kind[:, 0]) == {GOAL_A, GOAL_B}
    assert not np.isin(kind[:, 1:], (GOAL_A, GOAL_B)).any()
    assert (stream.asked.sum(axis=1) == 1).all()
    assert ((kind == JUNCTION) == stream.asked).all()
    assert set(stream.asked.argmax(axis=1)) == {3, 4, 5, 6, 7, 8}
    answer = stream.answers[stream.asked]
    assert (answer == (kind[:, 0] == GOAL_B)).all()
    assert 0.4 < answer.mean() < 0.6


def test_nothing_is_seen_in_the_corridor() -> None:
    assert not OBSERVATIONS[CORRIDOR].any()
    assert (OBSERVATIONS[GOAL_A] == -OBSERVATIONS[GOAL_B]).all()
    assert OBSERVATIONS[JUNCTION].any()


@pytest.mark.parametrize(("shortest", "longest"), [(1, 5), (6, 5)])
def test_impossible_corridors_are_named(shortest: int, longest: int) -> None:
    with pytest.raises(ValueError, match="2 <= shortest <= longest"):
        TMaze(longest=longest, shortest=shortest)


@pytest.mark.parametrize("kind", ["observation", "progress"])
def test_paths_have_the_signature_of_their_points(kind: str) -> None:
    symbols = TASK.sample(np.random.default_rng(1), 3).symbols[..., 0]
    path = MazePath(kind, 12, 3)
    pieces = [path.advance(symbols[:, start:stop]) for start, stop in ((0, 1), (1, 6), (6, 12))]
    if kind == "observation":
        points = torch.from_numpy(OBSERVATIONS[symbols]).double()
    else:
        points = (torch.arange(12.0, dtype=torch.float64) / 12)[None, :, None].expand(3, -1, -1)
    wanted = batch_signature(points, 2).numpy()
    np.testing.assert_allclose(np.concatenate([xi for xi, _ in pieces], axis=1), wanted, atol=1e-12)
    steps = np.diff(wanted, axis=1, prepend=0)
    np.testing.assert_allclose(np.concatenate([delta for _, delta in pieces], axis=1), steps, atol=1e-12)


def test_only_the_path_of_what_is_seen_stands_still_and_parts_the_goals() -> None:
    symbols = np.full((2, 30), CORRIDOR)
    symbols[:, 0] = GOAL_A, GOAL_B
    seen, _ = MazePath("observation", 12, 2).advance(symbols)
    walked, _ = MazePath("progress", 12, 2).advance(symbols)
    assert (seen[:, 1:] == seen[:, 1:2]).all()
    assert (seen[0, 1] != seen[1, 1]).any()
    assert (walked[0] == walked[1]).all()
    assert (np.diff(walked[0, :, 0]) > 0).all()


@pytest.mark.parametrize("case", list(CASES))
def test_a_walk_is_repeated_steps(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks, forks at every length, and the streamed path change nothing."""
    monkeypatch.setattr(walking, "CHUNK", 7)
    model = build(*CASES[case])
    lengths = (2, 3, 9, 10, 11, 40)
    found = {choice.steps: choice for choice in walk(model, lengths)}
    for length in lengths:
        symbols = torch.full((2, length, 1), CORRIDOR)
        symbols[:, 0, 0] = torch.tensor([GOAL_A, GOAL_B])
        symbols[:, -1] = JUNCTION
        with torch.no_grad():
            xs, state = model.inputs(symbols), model.memory.initial_state(2)
            for t in range(length):
                readout, state, _ = model.memory.step(xs.at(t), state, torch.ones(2, dtype=torch.bool))
            logits = model.head(readout.vector)
        margin = (logits[0, 0] - logits[0, 1], logits[1, 1] - logits[1, 0])
        torch.testing.assert_close(torch.tensor(found[length].margin), torch.stack(margin), atol=1e-5, rtol=0)
        assert found[length].right == tuple(bool(m > 0) for m in margin)


@pytest.mark.parametrize("name", ["prism", "transformer"])
def test_beyond_its_reach_a_window_cannot_tell_the_goals_apart(name: str) -> None:
    model = build(name, {"window": 5, "layers": 2})
    near, far = walk(model, (5, 40))
    assert near.margin[0] != -near.margin[1]
    assert far.margin[0] == pytest.approx(-far.margin[1], abs=1e-6)
    assert sum(far.right) <= 1


def test_elmur_learns_short_corridors() -> None:
    model = build("elmur", {"segment": 4}, seed=1)
    train(model, TASK, RecallRecipe(steps=120, batch=32, learning_rate=3e-3), 0)
    assert all(all(choice.right) for choice in walk(model.eval(), (3, 6, 9, 12)))
