"""The AURA recall benches run end to end at toy size, and their figures mean what they say."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from studies.engine import show
from studies.grid import HERE
from studies.recall.learning.model import SymbolModel
from studies.recall.learning.trainer import RecallRecipe
from studies.recall.streams.noisy_long_recall import NoisyLongRecall
from studies.recall.streams.sparse_recall import SparseRecall
from studies.recall.tasks import aura_variants, noisy_long_recall, sparse_recall
from studies.recall.tasks.aura_variants import DENSE, GATED, VARIANTS, Trial
from studies.recall.tasks.endless import walk
from trace_memory_ros.measure.summary import write_summary
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims

TOY = NoisyLongRecall(keys=4, values=3, bindings=3, queries=2, steps=20)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = RecallRecipe(steps=4, batch=4)
    monkeypatch.setattr(aura_variants, "cores", lambda: HERE)
    for bench in (noisy_long_recall, sparse_recall):
        monkeypatch.setattr(bench, "RECIPE", recipe)
        monkeypatch.setattr(bench, "STREAMS", 8)
    monkeypatch.setattr(noisy_long_recall, "CONFIGURATIONS", {"hard": TOY, "main": TOY})
    monkeypatch.setattr(sparse_recall, "TASK", SparseRecall(steps=12))
    monkeypatch.setattr(sparse_recall, "ENDLESS_STEPS", 60)
    monkeypatch.setattr(sparse_recall, "RHOS", (0.05, 0.5))


def test_noisy_long_recall_compares_all_eight(tmp_path: Path) -> None:
    figures = noisy_long_recall.run(tmp_path, quick=False, seeds=2)
    hard = figures["hard"]["variants"]
    assert tuple(hard) == tuple(VARIANTS)
    assert len(VARIANTS) == 8
    assert hard[DENSE]["write_rate"]["mean"] == hard["full_recurrence"]["write_rate"]["mean"] == 1.0
    assert hard["no_memory"]["write_rate"]["mean"] == hard["no_memory"]["state_bytes"] == 0
    assert hard["no_memory"]["fewer_writes"] is None
    assert hard["periodic_write"]["write_rate"]["mean"] == pytest.approx(aura_variants.CONTROL_RATE, abs=1 / TOY.steps)
    assert hard[GATED]["state_bytes"] == 4224
    assert all(readout["bound"]["trivial"] == pytest.approx(10) for readout in figures["hard"]["ais"])
    write_summary(tmp_path, "toy", figures)
    show(noisy_long_recall.tables(figures))


def test_capacity_is_matched() -> None:
    counts = {}
    for name in (GATED, "fixed_size_state", "full_recurrence", DENSE):
        job = noisy_long_recall.job_of(name, VARIANTS[name], TOY)
        counts[name] = aura_variants.train_one(job)["parameters"]
    assert counts[GATED] - counts[DENSE] == 6337
    for name in ("fixed_size_state", "full_recurrence"):
        assert counts[name] == pytest.approx(counts[GATED], rel=0.05)


def test_sparse_recall_sweeps_and_walks(tmp_path: Path) -> None:
    figures = sparse_recall.run(tmp_path, quick=False, seeds=2)
    assert tuple(figures["sweep"]) == ("0.05", "0.5")
    walked = figures["endless"]
    assert all(row["read_first"] for row in (*figures["variants"].values(), *figures["sweep"].values()))
    assert walked["steps"] == 60
    assert walked["state_bytes"] == [4224]
    assert walked["cache_bytes"] == 60 * 256
    assert walked["cache_ratio"] == pytest.approx(60 * 256 / 4224)
    write_summary(tmp_path, "toy", figures)
    show(sparse_recall.tables(figures))


@torch.no_grad()
def test_a_walk_reads_in_the_order_of_the_model() -> None:
    torch.manual_seed(0)
    task, seen = SparseRecall(steps=40), []
    memory = registry.build("aura", MemoryDims(64, 0, 64, 1), {"gate": "always"})
    stream = task.sample(np.random.default_rng([3, 2]), 1)
    for read_first in (False, True):
        model = SymbolModel(task.fields, task.classes, memory, read_first).eval()
        answered: list[torch.Tensor] = []
        model.head.register_forward_hook(lambda _, given, out, kept=answered: kept.append(given[0]))
        walk(model, task, 1, seed=3)
        live = torch.cat(answered)
        seen.append(model(torch.from_numpy(stream.symbols), torch.from_numpy(stream.asked)).vectors)
        torch.testing.assert_close(live, seen[-1])
    assert not torch.allclose(*seen, atol=1e-3)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sparse_recall.run(tmp_path, quick=False, seeds=2)
    monkeypatch.setattr(aura_variants, "train_one", lambda _: pytest.fail("trained again"))
    assert sparse_recall.run(tmp_path, quick=False, seeds=2) == first
    shutil.rmtree(next((tmp_path / "cells").iterdir()))
    with pytest.raises(pytest.fail.Exception, match="trained again"):
        sparse_recall.run(tmp_path, quick=False, seeds=2)


def trial(success: float, write_rate: float) -> Trial:
    return Trial(success, write_rate, {}, {}, 1, 1, [], 0.0, {})


@pytest.mark.parametrize(
    ("gated", "met"),
    [([(0.99, 0.18), (1.0, 0.19), (0.98, 0.18)], True), ([(0.99, 0.3)] * 3, False), ([(0.5, 0.1), (0.51, 0.1)], False)],
)
def test_parity_needs_an_interval_around_zero_and_five_times_fewer_writes(
    gated: list[tuple[float, float]], met: bool
) -> None:
    dense = [trial(0.99, 1.0)] * len(gated)
    assert noisy_long_recall.parity([trial(*pair) for pair in gated], dense)["met"] is met
