"""The first losses of a training from twins and of one from bags are those that the shipped recipes were found with.

first_losses.json: the loss of each of the first twenty steps, ten of either phase. That of twins was recorded by these
functions before there was one way to fit, at commit 199cca5, that of bags when coarse stages began to write what
cameras show. `PYTHONPATH=test:. python test/learning/test_first_losses.py` prints it anew.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from learning.synthetic import design, pair
from learning.tiny_bags import recording, write_bags

from trace_memory_ros.learning import build
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.training import prepare, read_bags
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.batches import Data
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.runtime.clock import EveryTicks

RECIPE = Recipe(
    memory_first=MemoryFirst((4.0, 2.0), (), stage_steps=5, check_steps=5, settle_steps=0, attempts=1),
    steps=10,
    reads=3,
    batch_pairs=2,
)
OPTIONS = {"address_width": 8, "hidden": 16, "routing_width": 8}
RECORDED = Path(__file__).with_name("first_losses.json")


def losses(plan: Design, data: Data, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What every optimiser step of a training with seed 0 went down."""
    found: list[float] = []
    backward = torch.Tensor.backward

    def noted(loss: torch.Tensor) -> None:
        found.append(float(loss.detach()))
        backward(loss)

    monkeypatch.setattr(torch.Tensor, "backward", noted)
    fit(plan, data, recipe, 0)
    return found


def of_twins(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """TRACE from five pairs."""
    plan = design("trace")
    data = build.prepare(plan, [pair(i) for i in range(5)], [pair(100)])
    return losses(plan, data, RECIPE, monkeypatch)


def of_bags(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """TRACE from ten bags."""
    config = recording(cameras=2)
    write_bags(folder, 5, config)
    data, _ = read_bags(sorted(folder.iterdir()), config, folder / "cache")
    options = BagOptions("trace", 2, clock=EveryTicks(2), chunk=4, memory_options=OPTIONS, slots=4)
    plan = prepare(data, config, options, RECIPE, 0.34)
    return losses(plan.design, plan.data, plan.recipe, monkeypatch)


# Processors and versions of torch differ in the last bits of a sum, and twenty steps build on one another.
def test_twins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_twins(monkeypatch) == pytest.approx(json.loads(RECORDED.read_text())["twins"], rel=1e-5)


def test_bags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert of_bags(tmp_path, monkeypatch) == pytest.approx(json.loads(RECORDED.read_text())["bags"], rel=1e-5)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        bags = of_bags(Path(folder), patch)
        patch.undo()
        json.dump({"twins": of_twins(patch), "bags": bags}, sys.stdout, indent=1)
