"""The write gate before any mechanism: its promises, its gradient, its name in the registry."""

from __future__ import annotations

import pytest
import torch
import yaml

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.memory.gate import GatedConfig, GatedMemory
from trace_memory_ros.memory.write_gate import Decision, RunningScale, gated, ramp, rate_penalty, straight_through
from trace_memory_ros.testing.inputs import DIMS, Inputs
from trace_memory_ros.testing.test_gate_contract import undecided

EVERYWHERE = torch.ones(3, 9, dtype=torch.bool)


def build(name: str = "trace+gate", **options: object) -> GatedMemory:
    torch.manual_seed(0)
    memory = registry.build(name, DIMS, options)
    assert isinstance(memory, GatedMemory)
    return memory.eval()


def test_surprise_is_the_change_of_what_is_read(inputs: Inputs) -> None:
    memory = build()
    memory.surprise.mean.fill_(0.1)
    memory.surprise.variance.fill_(0.04)
    x, state = inputs(4, 1).at(0), (torch.randn(4, 3, 6),)
    _, record = memory.write(x, state)
    new, _ = memory.inner.write(x, state)
    before, after = memory.inner.read(x, state), memory.inner.read(x, new)
    moved = torch.cat(((after.tokens - before.tokens).flatten(1), after.vector - before.vector), dim=1)
    torch.testing.assert_close(record.surprise, ((moved.square().mean(dim=1) - 0.1) / 0.2).clamp(-10, 10))


def test_a_write_that_changes_nothing_does_not_surprise(inputs: Inputs) -> None:
    memory = build("deltanet+gate")
    x, state = inputs(2, 1).at(0), memory.initial_state(2)
    change = memory._compare(x, state, state)[1]
    assert torch.equal(change, torch.zeros(2))


def test_the_gradient_reaches_the_gate_through_the_hard_choice(inputs: Inputs) -> None:
    xs = inputs(8, 1)
    memory = undecided(build(), xs)
    x, old, target = xs.at(0), (torch.randn(8, 3, 6),), torch.randn(8, 3, 6)
    (new,), record = memory.write(x, old)
    (new * target).sum().backward()
    (proposed,), _ = memory.inner.write(x, old)
    p = record.gate
    expected = (((proposed - old[0]) * target).sum(dim=(1, 2)) * p * (1 - p)).sum().detach()
    torch.testing.assert_close(memory.gate.logit.bias.grad, expected[None], atol=1e-4, rtol=1e-4)
    assert 0 < record.wrote.sum() < 8


def test_the_rate_penalty_joins_the_inner_losses(inputs: Inputs) -> None:
    xs, memory = inputs(3, 9), build(gate_bias=60.0, write_weight=3.0, rho=0.15)
    states, _, records = memory.scan(xs, memory.initial_state(3), EVERYWHERE)
    losses = {}
    for progress in (0.6, 0.7, 1.0):
        memory.anneal(progress)
        losses[progress] = memory.auxiliary(xs, states, records, EVERYWHERE)
    full = 3.0 * 0.85**2 / 0.15
    assert [float(v["write_rate"].detach()) for v in losses.values()] == pytest.approx([0.0, full / 2, full], rel=1e-5)
    inner = memory.inner.auxiliary(xs, states, records, EVERYWHERE)
    assert losses[1.0].keys() == inner.keys() | {"write_rate"}
    shut = records._replace(wrote=torch.zeros_like(EVERYWHERE), gate=torch.zeros(3, 9))
    assert all(float(v.detach()) == 0 for v in memory.auxiliary(xs, states, shut, EVERYWHERE).values())


def test_surprise_is_normalised_by_training_alone(inputs: Inputs) -> None:
    xs, memory = inputs(3, 9), build()
    memory.scan(xs, memory.initial_state(3), EVERYWHERE)
    assert memory.surprise.passes == 0
    memory.train()
    memory.scan(xs, memory.initial_state(3), EVERYWHERE)
    assert memory.surprise.passes == 1
    assert memory.surprise.mean > 0


def test_names_and_options() -> None:
    memory = build("trace+gate", inner={"hidden": 9}, rho=0.3)
    described = yaml.safe_load(yaml.safe_dump(registry.config_of(memory)))
    assert described["name"] == "trace+gate"
    assert described["options"]["inner"]["hidden"] == 9
    assert "temperature" in described["options"]["inner"]
    rebuilt = registry.from_config(described)
    assert rebuilt.config == memory.config
    rebuilt.load_state_dict(memory.state_dict())
    for name, options, message in [
        ("trcae+gate", {}, r"'trcae\+gate' is unknown: did you mean 'trace\+gate'\?"),
        ("trace+gate", {"roh": 0.1}, r"mechanism 'trace\+gate': unknown key 'roh'; did you mean 'rho'\?"),
        ("trace+gate", {"inner": {"hiden": 1}}, r"mechanism 'trace': unknown key 'hiden'; did you mean 'hidden'\?"),
        ("trace+gate+gate", {}, r"'trace\+gate\+gate' is unknown"),
        ("trace+gate", {"rho": 0.0}, "GatedConfig.rho = 0.0"),
        ("trace+gate", {"gate": "always"}, "GatedConfig.gate = 'always'"),
        ("trace+gate", {"ramp": 0.5}, "ramp_from = 0.6 and ramp = 0.5"),
    ]:
        with pytest.raises(ValueError, match=message):
            registry.build(name, DIMS, options)


def test_a_gate_learns_to_write_the_cue_alone() -> None:
    """A sign shown once among noise decides the answer at the end; the gate must come to write little else."""
    torch.manual_seed(0)
    dims = MemoryDims(content=4, signature=0, width=8, slots=1)
    memory = registry.build("gru+gate", dims, {"hidden": 8, "rho": 0.15, "ramp_from": 0.2, "ramp": 0.5})
    head = torch.nn.Linear(8, 1)
    optimiser = torch.optim.Adam([*memory.parameters(), *head.parameters()], lr=1e-2)
    steps, generator = 150, torch.Generator().manual_seed(1)
    rows, mask = torch.arange(64), torch.ones(64, 12, dtype=torch.bool)
    for step in range(steps + 1):
        memory.train(step < steps)
        memory.anneal(step / steps)
        sign = torch.randint(0, 2, (64,), generator=generator).float()
        place = torch.randint(0, 10, (64,), generator=generator)
        content = 0.3 * torch.randn(64, 12, 4, generator=generator)
        content[rows, place, 0] = 1.0
        content[rows, place, 1] = 2 * sign - 1
        xs = MemoryInput(content, content[..., :0], content[..., :0], content)
        readout, _, records = memory(xs, memory.initial_state(64), mask)
        answer = head(readout.vector[:, -1])[:, 0]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(answer, sign)
        total = loss + sum(memory.auxiliary(xs, (readout.vector,), records, mask).values())
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
    assert ((answer > 0) == (sign > 0.5)).float().mean() > 0.95
    assert records.wrote[rows, place].float().mean() > 0.95
    assert records.wrote.float().mean() < 0.3


@pytest.mark.parametrize(("rate_of", "writes_left"), [("probability", 0), ("writes", 15)])
def test_a_penalty_on_writes_leaves_those_that_matter_most(rate_of: str, writes_left: int) -> None:
    """A gate that opens everywhere, a little surer at some steps, under nothing but the penalty."""
    logit = torch.linspace(0.5, 0.6, 100).requires_grad_()
    optimiser, mask = torch.optim.SGD([logit], lr=5.0), torch.ones(100, dtype=torch.bool)
    for _ in range(1000):
        optimiser.zero_grad()
        rate_penalty(torch.sigmoid(logit), mask, 0.155, rate_of=rate_of).backward()
        optimiser.step()
    assert int((logit > 0).sum()) == writes_left
    assert bool((logit[100 - writes_left :] > 0).all())


@pytest.mark.parametrize(
    ("told", "writes_per_s", "excess"),
    [
        (True, 0.5, (3.0 - 2 / 9, 2 / 9)),
        (True, 8.0, (0.0, 32 / 9)),
        (True, None, (0.85, 0.15)),
        (False, 0.5, (0.85, 0.15)),
    ],
)
def test_writes_are_so_many_a_second_of_what_was_demonstrated(
    inputs: Inputs, told: bool, writes_per_s: float | None, excess: tuple[float, float]
) -> None:
    """27 updates, all written, of what was demonstrated with 9 in 4 s."""
    xs, memory = inputs(3, 9), build(gate_bias=60.0, rho=0.15, writes_per_s=writes_per_s)
    states, _, records = memory.scan(xs, memory.initial_state(3), EVERYWHERE)
    memory.anneal(1.0)
    if told:
        memory.demonstrated(torch.tensor(9), torch.tensor(4.0))
    found = memory.auxiliary(xs, states, records, EVERYWHERE)["write_rate"]
    beyond, target = excess
    assert float(found.detach()) == pytest.approx(beyond**2 / target)


@pytest.mark.parametrize("rho", [0.05, 0.5])
def test_what_writes_are_worth_to_the_task_moves_their_rate_by_a_small_share(inputs: Inputs, rho: float) -> None:
    """A gate that opens everywhere, where every write is worth something: small targets are held as well as large."""
    xs, memory = inputs(1, 400), build(rho=rho)
    mask = torch.ones(1, 400, dtype=torch.bool)
    states, _, records = memory.scan(xs, memory.initial_state(1), mask)
    memory.anneal(1.0)
    logit = torch.linspace(0.5, 0.6, 400)[None].requires_grad_()
    optimiser = torch.optim.SGD([logit], lr=6.0)
    for _ in range(1000):
        optimiser.zero_grad()
        told = records._replace(gate=torch.sigmoid(logit))
        found = memory.auxiliary(xs, states, told, mask)["write_rate"] - 0.1 * straight_through(told.gate).mean()
        found.backward()
        optimiser.step()
    assert float((logit > 0).float().mean()) == pytest.approx(rho, rel=0.1)


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"GatedConfig.writes_per_s = 0: must be positive, or null for a share rho"):
        GatedConfig(writes_per_s=0)
    with pytest.raises(ValueError, match="GatedConfig.rate_of = 'surprise': must be one of probability, writes"):
        GatedConfig(rate_of="surprise")


def test_helpers() -> None:
    decision = Decision(*torch.tensor([[0.9, 0.2], [0.9, 0.2]]), torch.tensor([True, False]))
    new, old = (torch.tensor([[1, 2], [3, 4]]),), (torch.zeros(2, 2, dtype=torch.int64),)
    assert gated(decision, new, old)[0].tolist() == [[1, 2], [0, 0]]
    probability, mask = torch.tensor([[0.2, 0.4, 0.9]]), torch.tensor([[True, True, False]])
    assert float(rate_penalty(probability, mask, 0.1)) == pytest.approx(0.04)
    assert float(rate_penalty(probability, mask, 0.5)) == 0.0
    assert float(rate_penalty(probability, mask, 0.5, times=torch.tensor(3.0))) == pytest.approx(0.16)
    assert float(rate_penalty(probability, mask, 0.5, two_sided=True)) == pytest.approx(0.04)
    assert float(rate_penalty(probability, ~mask & mask, 0.1)) == 0.0
    assert [ramp(p, 0.0, 0.0) for p in (0.0, 1.0)] == [1.0, 1.0]
    scale = RunningScale()
    generator = torch.Generator().manual_seed(0)
    for _ in range(300):
        scale.update(3 + 2 * torch.randn(100, generator=generator))
    assert float(scale(torch.tensor(7.0))) == pytest.approx(2.0, abs=0.1)
    scale.update(torch.ones(1))
    assert GatedConfig() == GatedConfig(inner={})
