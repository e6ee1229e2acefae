"""The recall trainer: what it trains on, that it learns, repeats, anneals, and follows with a teacher."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from studies.recall.learning.measure import held_out, measure
from studies.recall.learning.model import SymbolModel
from studies.recall.learning.trainer import Progress, RecallRecipe, follow, train
from studies.recall.streams.sparse_recall import SparseRecall
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, State, WriteRecord
from trace_memory_ros.memory.gru import GruMemory

TASK = SparseRecall(steps=16, event=0.2)
RECIPE = RecallRecipe(steps=20, batch=8)


def model(name: str = "gru", seed: int = 0) -> SymbolModel:
    torch.manual_seed(seed)
    return SymbolModel(TASK.fields, TASK.classes, registry.build(name, MemoryDims(24, 0, 24, 2)))


class Talkative(GruMemory):
    """Writes every step, remembers what it was told of the run, and adds a loss of its own."""

    def __init__(self, dims: MemoryDims) -> None:
        super().__init__(dims)
        self.told: list[float] = []
        self.extra = nn.Parameter(torch.tensor(3.0))

    def anneal(self, progress: float) -> None:
        self.told.append(progress)

    def auxiliary(self, xs: MemoryInput, states: State, records: WriteRecord, mask: Tensor) -> dict[str, Tensor]:
        assert mask.all()
        assert records.wrote.all()
        assert states[0].shape == (*mask.shape, self.dims.width)
        return {"extra": self.extra.square()}


def test_a_memory_learns_and_no_memory_does_not() -> None:
    recipe = RecallRecipe(steps=150, batch=32, learning_rate=1e-2)
    success = {}
    for name in ("gru", "none"):
        built = model(name)
        train(built, TASK, recipe, seed=0)
        success[name] = measure(built, held_out(TASK, 0, 128)).success
    assert success["gru"] > 0.95
    assert success["none"] == pytest.approx(1 / TASK.classes, abs=0.08)


def test_a_run_repeats_with_its_seed_alone() -> None:
    def weights(seed: int) -> list[Tensor]:
        built = model()
        train(built, TASK, RECIPE, seed)
        return list(built.parameters())

    first, again, other = weights(1), weights(1), weights(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def test_the_memory_is_told_of_progress_and_its_losses_count() -> None:
    memory = Talkative(MemoryDims(24, 0, 24, 2))
    built = SymbolModel(TASK.fields, TASK.classes, memory)
    trained = train(built, TASK, RECIPE, 0, report_every=10)
    assert memory.told == pytest.approx([(i + 1) / 20 for i in range(20)])
    assert memory.extra.item() < 3.0
    assert [progress.step for progress in trained.progress] == [10, 20]
    assert set(trained.progress[0].losses) == {"answer", "extra"}
    assert trained.parameters == sum(p.numel() for p in built.parameters())


def test_reports_arrive_while_training() -> None:
    seen: list[Progress] = []
    trained = train(model(), TASK, RECIPE, 0, seen.append, report_every=7)
    assert seen == trained.progress
    assert [progress.step for progress in seen] == [7, 14, 20]


def test_the_loss_looks_at_asked_steps_alone() -> None:
    built, stream = model(), TASK.sample(np.random.default_rng(0), 4)
    symbols, asked = torch.from_numpy(stream.symbols), torch.from_numpy(stream.asked)
    recalled = built(symbols, asked)
    assert recalled.logits.shape == (int(asked.sum()), TASK.classes)
    readout, _, _ = built.memory(built.inputs(symbols), built.memory.initial_state(4), torch.ones_like(asked))
    torch.testing.assert_close(recalled.logits, built.head(readout.vector)[asked])


def test_reading_first_is_blind_to_the_step_itself() -> None:
    built, stream = model("gru"), TASK.sample(np.random.default_rng(0), 4)
    symbols, asked = torch.from_numpy(stream.symbols), torch.from_numpy(stream.asked)
    built.read_first = True
    built.eval()
    rows, steps = torch.nonzero(asked, as_tuple=True)
    state = built.memory.initial_state(4)
    xs, vectors = built.inputs(symbols), []
    for t in range(asked.shape[1]):
        vectors.append(built.memory.read(built.memory.embed(xs.at(t)), state).vector)
        _, state, _ = built.memory.step(xs.at(t), state, torch.ones(4, dtype=torch.bool))
    expected = torch.stack(vectors, dim=1)[rows, steps]
    torch.testing.assert_close(built(symbols, asked).vectors, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["gru", "trace"])
def test_any_memory_reads_and_writes_symbols(name: str) -> None:
    torch.manual_seed(0)
    memory: Memory = registry.build(name, MemoryDims(24, 6, 24, 3))
    built = SymbolModel(TASK.fields, TASK.classes, memory)
    assert len(train(built, TASK, replace(RECIPE, steps=1), 0).progress) == 1


def test_the_teacher_follows_slowly() -> None:
    teacher, pupil = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    with torch.no_grad():
        pupil.weight.fill_(3.0)
        pupil.running_mean.fill_(5.0)
    follow(teacher, pupil, 0.95)
    assert teacher.weight.tolist() == pytest.approx([1.1, 1.1])
    assert teacher.running_mean.tolist() == [5.0, 5.0]


def test_the_teacher_is_left_alone_by_gradients() -> None:
    built = model()
    before = deepcopy(built)
    teacher = train(built, TASK, RECIPE, 0).teacher
    moved, far = zip(
        *(
            ((t - b).norm(), (m - b).norm())
            for t, b, m in zip(teacher.parameters(), before.parameters(), built.parameters(), strict=True)
        ),
        strict=True,
    )
    assert 0 < sum(moved) < sum(far)
    assert not any(parameter.requires_grad for parameter in teacher.parameters())


def test_measuring_leaves_the_mode_and_counts_by_kind() -> None:
    built = model()
    measured = measure(built, held_out(TASK, 0, 10), batch=3)
    assert built.training
    assert measured.write_rate == 1.0
    assert measured.right.size == measured.stream.asked.sum() == len(measured.answers)
    kinds = measured.by_kind(measured.stream.asked, TASK.kinds)
    assert kinds == {"filler": 0.0, "event": 0.0, "query": 1.0}


def test_held_out_streams_are_not_trained_on() -> None:
    trained_on = TASK.sample(np.random.default_rng([5, 0]), 10)
    assert not (held_out(TASK, 5, 10).symbols == trained_on.symbols).all()


def test_the_rate_cools_down_to_a_tenth() -> None:
    recipe = RecallRecipe(steps=100, cool_down=0.5)
    assert recipe.rate_at(0) == recipe.rate_at(50) == 1.0
    assert recipe.rate_at(75) == pytest.approx(0.55)
    assert recipe.rate_at(100) == pytest.approx(0.1)
    assert RecallRecipe(steps=100).rate_at(99) == 1.0


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"batch": 0}, {"cool_down": 1.1}])
def test_impossible_recipes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RecallRecipe(**wrong)
