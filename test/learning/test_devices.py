"""Nothing that trains takes the CPU for granted: every memory and family on a device of another name, or a real one."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from operator import itemgetter

import numpy as np
import pytest
import torch
from learning.elsewhere import DEVICE, Apart, Elsewhere, ThereGenerator, moved
from learning.synthetic import design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.data.augment import augment
from trace_memory_ros.learning.data.batches import BatchBuilder, EpisodeBatch
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.engine.optimise import Sampling
from trace_memory_ros.learning.recipe import ReadShares, Recipe
from trace_memory_ros.learning.report.readings import readings
from trace_memory_ros.memory import registry

DIFFUSION = {
    "policy": "diffusion",
    "policy_options": {"model": 16, "width": 16, "channels": (8, 16), "time_width": 8, "execute": 2, "draws": 2},
}
FAMILIES = {"act": {}, "act with a latent": {"policy_options": {"latent": 4}}, "diffusion": DIFFUSION}
MEMORIES = [*registry.names(), "gru+cache", "gru+gate", "trace+gate"]
RECIPE = Recipe(reads=3, batch_pairs=2)


def agent_of(memory: str, **changes: object) -> tuple[Agent, BatchBuilder]:
    plan = replace(design(memory, depth=2 if memory.startswith("trace") else 0, **changes), options={})
    training = build.prepare(plan, [pair(i) for i in range(3)], [pair(100)]).training
    torch.manual_seed(0)
    return build.build_agent(plan, training), training


def batch_of(training: BatchBuilder) -> EpisodeBatch:
    sampling = Sampling(training, RECIPE, 3.0, 1, 2, ReadShares(0.5))
    return sampling.augmented(sampling.build(sampling.draw(np.random.default_rng(0))), torch.device("cpu"))


def stepped(agent: Agent, batch: EpisodeBatch) -> tuple[dict[str, float], dict[str, torch.Tensor]]:
    """The joint phase's losses, and the gradients of their sum."""
    torch.manual_seed(1)
    losses = agent.losses(batch)
    torch.stack(list(losses.values())).sum().backward()
    found = {name: p.grad for name, p in agent.named_parameters() if p.grad is not None}
    return {name: float(value.detach()) for name, value in losses.items()}, found


def elsewhere(agent: Agent) -> Agent:
    """A copy of the agent on `DEVICE`."""
    away = moved(deepcopy(agent))
    away.hardware = replace(CPU, device=DEVICE)
    return away


def test_the_device_that_is_not_the_cpu_notices_strays() -> None:
    with Apart():
        there = torch.ones(3, device=DEVICE)
        assert isinstance(there, Elsewhere) and isinstance(there + 1, Elsewhere) and float(there.sum()) == 3.0
        with pytest.raises(RuntimeError, match="of the CPU meets"):
            there + torch.ones(3)
        with pytest.raises((TypeError, RuntimeError)):
            there.numpy()
        assert type(there.to("cpu")) is torch.Tensor


@pytest.mark.parametrize("memory", MEMORIES)
def test_every_memory_trains_on_another_device(memory: str) -> None:
    agent, training = agent_of(memory)
    batch = batch_of(training)
    away = elsewhere(agent)
    with Apart():
        losses, gradients = stepped(away, batch)
        assert readings(away.eval(), batch).keys() == readings(agent.eval(), batch).keys()
    assert all(isinstance(gradient, Elsewhere) for gradient in gradients.values())
    here, own = stepped(agent.train(), batch)
    # AURA's compiled scan is the CPU's alone; sums in another order differ in the last bits.
    assert losses == pytest.approx(here, rel=1e-4, abs=1e-6)
    assert gradients.keys() == own.keys()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_trains_and_decides_on_another_device(family: str) -> None:
    agent, training = agent_of("gru", **FAMILIES[family])
    away = elsewhere(agent)
    with Apart():
        losses, _ = stepped(away, batch_of(training))
        assert AuxiliaryHead(away).losses(batch_of(training))["chunk_l1"].device == DEVICE
        assert type(away(batch_of(training))) is torch.Tensor
        assert branch_accuracy(away.eval(), training) is not None
        away.policy.adapter.without_memory()
    assert losses == pytest.approx(stepped(agent, batch_of(training))[0], rel=1e-4)


def test_augmentation_runs_where_the_batch_is() -> None:
    _, training = agent_of("gru")
    sampling = Sampling(training, RECIPE, 1.0, 2, 3, ReadShares(0.5))
    built = sampling.build(sampling.draw(np.random.default_rng(0)))
    here = sampling.augmented(built, torch.device("cpu"))
    with Apart():
        there = augment(built.batch.to(DEVICE).floats(), ThereGenerator().manual_seed(built.noise), RECIPE.augmentation)
    assert isinstance(there.images, Elsewhere) and isinstance(there.writes.xi, Elsewhere)
    assert torch.equal(there.images.here, here.images) and torch.equal(there.reads.state.here, here.reads.state)


def test_a_part_of_a_batch_is_perturbed_as_it_is_in_the_whole() -> None:
    _, training = agent_of("gru")
    sampling = Sampling(training, RECIPE, 1.0, 2, 3, ReadShares(0.5))
    built = sampling.build(sampling.draw(np.random.default_rng(0)))
    whole = sampling.augmented(built, torch.device("cpu"))
    for rows in (slice(0, 1), slice(1, 4)):
        part = built._replace(batch=built.batch.each(itemgetter(rows)), rows=rows)
        compared: list[torch.Tensor] = []
        sampling.augmented(part, torch.device("cpu")).each(lambda tensor, seen=compared: seen.append(tensor) or tensor)
        whole.each(itemgetter(rows)).each(lambda tensor, seen=compared: seen.append(tensor) or tensor)
        half = len(compared) // 2
        assert all(map(torch.equal, compared[:half], compared[half:]))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_a_gpu_gives_the_losses_of_the_cpu(memory: str, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The same draws on either: of a seed, a GPU makes other numbers than a CPU.
    monkeypatch.setattr(torch, "randn_like", lambda tensor: torch.randn(tensor.shape).to(tensor))
    agent, training = agent_of(memory)
    batch = batch_of(training)
    here, _ = stepped(deepcopy(agent), batch)
    there, _ = stepped(agent.place(Hardware.chosen("cuda", precision)), batch)
    assert there == pytest.approx(here, rel=1e-3 if precision == "float32" else 0.1, abs=1e-3)


def test_bf16_is_for_encoder_and_policy_and_not_for_the_memory() -> None:
    agent, training = agent_of("trace")
    batch = batch_of(training)
    exact, _ = stepped(deepcopy(agent), batch)
    seen: dict[str, set[torch.dtype]] = {}
    for name, part in (
        ("memory", agent.memory.phi_w),
        ("encoder", agent.encoder.proprioception),
        ("policy", agent.policy.encoder),
    ):
        part.register_forward_hook(lambda _, __, out, name=name: seen.setdefault(name, set()).add(out.dtype))
    agent.place(replace(CPU, bf16=True))
    losses, gradients = stepped(agent, batch)
    assert seen["memory"] == {torch.float32}
    assert torch.bfloat16 in seen["encoder"]
    assert all(gradient.dtype == torch.float32 for gradient in gradients.values())
    assert losses == pytest.approx(exact, rel=0.05, abs=0.01)


def test_compiled_networks_give_the_same_losses() -> None:
    agent, training = agent_of("gru")
    batch = batch_of(training)
    plain, _ = stepped(deepcopy(agent), batch)
    hardware = replace(CPU, compiled=True)
    graphs: list[int] = []

    def counted(graph: torch.fx.GraphModule, _: list[torch.Tensor]) -> object:
        graphs.append(len(graph.graph.nodes))
        return graph.forward

    hardware.compile([agent.encoder], counted)
    assert stepped(agent, batch)[0] == pytest.approx(plain, rel=1e-5)
    assert graphs


@pytest.mark.parametrize(
    ("device", "said"), [("cuda", "cuda was asked for, but"), ("mps", "no Mac"), ("gpu", "choose from auto")]
)
def test_a_device_that_is_not_there_is_named_with_the_remedy(device: str, said: str) -> None:
    if (device == "cuda" and torch.cuda.is_available()) or (device == "mps" and torch.backends.mps.is_available()):
        pytest.skip("it is there")
    with pytest.raises(ValueError, match=said):
        Hardware.chosen(device)


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("cuda:1", "device cuda:1 was asked for, but torch finds 1 GPUs"),
        ("cuda:first", "'cuda:first'"),
        ("cuda:", "'cuda:'"),
        ("auto:0", "'auto:0'"),
    ],
)
def test_a_gpu_of_a_number_that_is_not_there_is_refused(
    device: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert Hardware.chosen("cuda:0", "float32").device == torch.device("cuda:0")
    with pytest.raises(ValueError, match=said):
        Hardware.chosen(device, "float32")


def test_auto_is_the_cpu_in_float32_where_there_is_nothing_else() -> None:
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        pytest.skip("there is")
    assert Hardware.chosen() == Hardware(torch.device("cpu"), bf16=False, loaders=2)
