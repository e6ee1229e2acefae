"""The long-context benchmark compares like with like, and measures what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from studies.grid import HERE
from studies.recall.tasks.long_context import Lesson, QualitySizes, build, quality
from studies.recall.tasks.long_context_cost import (
    CachedStack,
    CostSizes,
    compare,
    peak_bytes,
    resident_growth,
    training_step,
)
from studies.recall.tasks.long_context_models import FullAttention, Hierarchy, parameter_count
from trace_memory_ros.memory.prism.layers import GATES

SMALL = CostSizes(ticks=12, tokens=6, width=16, heads=2, blocks=3, hidden=24)


@pytest.mark.parametrize("sizes", [CostSizes(), CostSizes(blocks=8), SMALL], ids=str)
def test_the_two_models_have_equal_parameters(sizes: CostSizes) -> None:
    count = {name: parameter_count(model) for name, model in sizes.both().items()}
    assert abs(count["hierarchy"] / count["full"] - 1) < 0.01


def test_gates_are_compared_at_equal_parameters() -> None:
    count = [parameter_count(build(gate, QualitySizes())) for gate in GATES]
    assert max(count) / min(count) < 1.01


@pytest.mark.parametrize("name", ["hierarchy", "full"])
def test_streaming_gives_the_whole_pass(name: str) -> None:
    model = SMALL.both()[name]
    assert isinstance(model, Hierarchy | FullAttention)
    local = model.local if isinstance(model, Hierarchy) else None
    stack = CachedStack(model.encoder, SMALL.ticks * (1 if local else SMALL.tokens), full=False)
    ticks = torch.randn(1, SMALL.ticks, SMALL.tokens, SMALL.width)
    with torch.no_grad():
        whole = model(ticks)[0]
        for t, tokens in enumerate(ticks[0]):
            out = tokens + stack.tick(local(tokens)[None]) if local else stack.tick(tokens)
            torch.testing.assert_close(out, whole[t], atol=1e-5, rtol=1e-5)


def test_peak_bytes_counts_what_lives_at_once() -> None:
    def work() -> None:
        first = torch.zeros(1000)
        second = first + 1
        del first
        torch.zeros(500).add_(second[:500])

    assert peak_bytes(work) == pytest.approx(8000, abs=200)


def test_the_peak_grows_with_the_context_and_leaves_nothing_behind() -> None:
    model = SMALL.both()["hierarchy"]
    longer = CostSizes(**{**vars(SMALL), "ticks": 48})
    assert peak_bytes(training_step(model, longer)) > 2 * peak_bytes(training_step(model, SMALL))
    assert all(p.grad is None for p in model.parameters())


def test_a_comparison_names_both_sides() -> None:
    figures = compare("streaming_tick", SMALL, 2)
    assert figures["full_cache_mib"] / figures["hierarchy_cache_mib"] == pytest.approx(SMALL.tokens * 3 / 2)
    assert 0 < figures["memory_ratio"] < 1
    assert figures["time_ratio"] > 0


def test_resident_growth_sees_the_bigger_step() -> None:
    sizes = CostSizes(**{**vars(SMALL), "ticks": 200, "tokens": 32})
    assert resident_growth("training_step", "full", sizes) > peak_bytes(training_step(sizes.both()["full"], sizes)) / 2


def test_quality_reports_every_gate_and_context(tmp_path: Path) -> None:
    sizes = QualitySizes(stages=(Lesson(12, 2, 4),), contexts=(12, 20), tests=4, demonstrations=5, width=16, heads=2)
    figures = quality(sizes, 2, tmp_path, HERE)
    for name in (*GATES, "feature_minus_blind", "feature_minus_none"):
        assert set(figures[name]) == {"context_12", "context_20"}
        assert len(figures[name]["context_20"]["seeds"]) == 2
