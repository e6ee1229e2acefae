"""MQAR's models: they are the mechanisms, and the previous token decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from studies.grid import HERE
from studies.recall.tasks import mqar
from studies.recall.tasks import mqar_study as study
from studies.recall.tasks.mqar_models import Backbone, Delta, Linear, Mixer, Softmax, Vla
from studies.recall.tasks.mqar_training import MqarRecipe, accuracy, train
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.memory.fast_weights import elu_feature, unit
from trace_memory_ros.memory.vla.memory import VlaConfig, VlaInput, VlaMemory


@pytest.mark.parametrize("mixer", [Softmax, Linear, Delta, Vla])
@pytest.mark.parametrize("shift", [True, False])
def test_no_mixer_looks_ahead_and_all_look_back(mixer: type[Mixer], shift: bool) -> None:
    torch.manual_seed(0)
    layer = mixer(Backbone(width=8, head_width=6, heads=2, shift=shift))
    x = torch.randn(2, 30, 8)
    changed = x.clone()
    changed[:, 15] += 1
    difference = (layer(changed) - layer(x)).abs().amax(dim=(0, 2))
    assert difference[:15].max() < 1e-6
    assert difference[15:].min() > 1e-6


def test_the_vla_layer_reads_what_the_vla_memory_reads() -> None:
    torch.manual_seed(0)
    layer, memory = Vla(Backbone(head_width=8)), VlaMemory(MemoryDims(1, 0, 4, 1), VlaConfig(key_width=8, rows=8))
    q, k, v = torch.randn(3, 2, 45, 8)
    reads, state = layer.recall(q, k, v, k), memory.initial_state(2)
    for t in range(45):
        u = unit(k[:, t] + 1)
        feature = elu_feature(k[:, t])
        state, _ = memory.store(VlaInput(feature, unit(feature), u, v[:, t]), state)
        query = elu_feature(q[:, t])
        value = (state[0] @ query[..., None])[..., 0] / (state[2] * query).sum(dim=-1, keepdim=True)
        torch.testing.assert_close(reads[:, t], value, atol=1e-4, rtol=1e-3)


def test_softmax_attention_binds_only_with_the_previous_token() -> None:
    recipe = MqarRecipe(pairs=(6,), steps=200, batch=24, learning_rate=3e-3, evaluation_batches=1)
    bound, unbound = (accuracy(train(Softmax, Backbone(shift=shift), recipe, 0), recipe) for shift in (True, False))
    assert bound[6] > 0.9
    assert unbound[6] < 0.4


def test_the_study_measures_what_the_paper_claims() -> None:
    jacobian = study.jacobian_norms(50)
    assert 1.0 < jacobian["u_is_key"]["greatest"] < jacobian["limit"]
    norms = study.state_norms(1)["values_with_mean"]
    assert norms["linear_attention"] > 100 * norms["vla"]
    assert norms["linear_attention_growth_500_to_1000"] == pytest.approx(2, rel=0.05)
    assert norms["vla_growth_500_to_1000"] == pytest.approx(1, rel=0.2)
    errors = study.recovery_errors()
    assert errors["vla"]["24"] > errors["vla_recall_direction"]["24"] > 0


def test_each_mechanism_gets_its_best_rate_and_no_training_is_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqar, "cores", lambda: HERE)
    monkeypatch.setattr(mqar, "MECHANISMS", {"softmax": mqar.Cell(Softmax)})
    monkeypatch.setattr(mqar, "VARIANTS", {"softmax, unbound": mqar.Cell(Softmax, Backbone(shift=False))})
    monkeypatch.setattr(mqar, "UNBOUND", {})
    done = []

    def examine(job: mqar.Training) -> dict[str, Any]:
        done.append((job.cell.backbone.shift, job.recipe.learning_rate, job.seed))
        shares = {str(pairs): job.recipe.learning_rate for pairs in mqar.SIZES}
        return {"accuracy": shares, "validation": -abs(job.recipe.learning_rate - 3e-3), "parameters": 5}

    monkeypatch.setattr(mqar, "examine", examine)
    rates = mqar.best_rates(MqarRecipe(), 42, (1e-3, 3e-3), tmp_path)
    assert rates == {"softmax": 3e-3}
    found = mqar.accuracies(MqarRecipe(), [42, 123], rates, tmp_path)
    assert found["mechanisms"]["softmax"]["8"]["per_seed"] == [3e-3, 3e-3]
    assert found["variants"]["softmax, unbound"]["48"]["per_seed"] == [3e-3]
    assert done == [(True, 1e-3, 42), (True, 3e-3, 42), (True, 3e-3, 123), (False, 3e-3, 42)]
