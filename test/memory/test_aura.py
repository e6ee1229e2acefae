"""AURA-Mem against its equations, its gate's promises and its state's size."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.aura.config import AuraConfig
from trace_memory_ros.memory.aura.memory import AuraMemory
from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.memory.write_gate import LEARNED
from trace_memory_ros.testing.inputs import Inputs

DIMS = MemoryDims(content=5, signature=0, width=6, slots=3)
MASK = torch.tensor([[1] * 9, [1, 1, 0, 1, 0, 1, 1, 0, 0], [0] * 9], dtype=torch.bool)


def build(**options: object) -> AuraMemory:
    torch.manual_seed(3)
    memory = AuraMemory(DIMS, AuraConfig(**{"key_width": 4, "value_width": 3, **options}))  # type: ignore[arg-type]
    memory.surprise.mean.fill_(0.3)
    memory.surprise.variance.fill_(0.2)
    return memory.eval()


@torch.no_grad()
def undecided(memory: AuraMemory) -> AuraMemory:
    """Make the gate open at about every other input."""
    assert memory.gate is not None
    memory.gate.logit.weight.mul_(30)
    contents = torch.randn(200, 5, generator=torch.Generator().manual_seed(5))
    x = MemoryInput(contents, *[torch.zeros(200, 0)] * 2, contents)
    _, record = memory.write(x, memory.initial_state(200))
    memory.gate.logit.bias -= torch.logit(record.gate.median(), eps=1e-6) * memory.settings.temperature
    return memory


def algorithm_1(memory: AuraMemory, contents: Tensor, allowed: list[bool]) -> list[tuple[Tensor, Tensor, float, bool]]:
    """W, o, p and g after every tick of one episode, number by number as the paper has it."""
    config, gate = memory.settings, memory.gate
    assert gate is not None
    W, o = torch.zeros(config.key_width, config.value_width), torch.zeros(config.value_width)
    alpha = 1 / (1 + math.exp(-memory.alpha_raw))
    eta = min(1 - alpha / 2, math.exp(memory.eta_raw)) if config.unit_keys else math.exp(memory.eta_raw)
    steps = []
    for x, due in zip(contents, allowed, strict=True):
        z = memory.summarise(x)
        q, k, v = memory.theta_q(z), memory.theta_k(z), memory.theta_v(z)
        if config.unit_keys:
            q, k = q / q.norm(), k / k.norm()
        error = k @ W - v
        s = (error.square().sum() - memory.surprise.mean) / memory.surprise.variance.sqrt()
        features = gate.seen(z) + gate.recalled(torch.cat((o, s.clamp(-10, 10)[None])))
        p = torch.sigmoid(gate.logit(features * torch.sigmoid(features))[0] / config.temperature)
        read = q @ W
        if due and p > 0.5:
            W, o = (1 - alpha) * W - eta * 2 * torch.outer(k, error), read
        steps.append((W, o, float(p), bool(p > 0.5)))
    return steps


@pytest.mark.parametrize("options", [{}, {"unit_keys": False, "step_size": 0.07}, {"temperature": 0.4, "decay": 0.2}])
@torch.no_grad()
def test_steps_follow_algorithm_1(inputs: Inputs, options: dict[str, object]) -> None:
    memory = undecided(build(**options))
    xs = inputs(*MASK.shape)
    (fast, previous), final, records = memory.scan(xs, memory.initial_state(3), MASK)
    opened = []
    for b in range(3):
        for t, (W, o, p, g) in enumerate(algorithm_1(memory, xs.content[b], MASK[b].tolist())):
            torch.testing.assert_close(fast[b, t], W, atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(previous[b, t], o, atol=1e-6, rtol=1e-5)
            assert records.gate[b, t] == pytest.approx(p, abs=1e-5)
            assert bool(records.wrote[b, t]) == (g and bool(MASK[b, t]))
            opened.append(g)
        torch.testing.assert_close(final[0][b], W, atol=1e-6, rtol=1e-5)
    assert 5 < sum(opened) < 22


@torch.no_grad()
def test_the_read_uses_the_weights_after_the_write(inputs: Inputs) -> None:
    memory = build(action_ib=False, tokens="rows")
    x = inputs(2, 1).at(0)
    readout, (fast, _), _ = memory.step(x, memory.initial_state(2), torch.tensor([True, True]))
    z = memory.summarise(x.content)
    q = torch.nn.functional.normalize(memory.theta_q(z), dim=1)
    o = torch.einsum("bk,bkv->bv", q, fast)
    torch.testing.assert_close(readout.vector, memory.to_mean(memory.norm(o)))
    torch.testing.assert_close(readout.read_weights, q.abs() / q.abs().sum(dim=1, keepdim=True))
    torch.testing.assert_close(readout.tokens, memory.to_token(fast) + memory.row_identity)


@pytest.mark.parametrize("training", [False, True])
@torch.no_grad()
def test_what_is_offered_passes_the_bottleneck(inputs: Inputs, training: bool) -> None:
    memory = build().train(training)
    x, fast = inputs(2, 1).at(0), torch.randn(2, 4, 3)
    readout = memory.read(x, (fast, torch.zeros(2, 3)))
    assert torch.equal(readout.tokens[:, 0], readout.vector)
    assert readout.read_weights.tolist() == [[1.0], [1.0]]
    memory.to_mean.weight.zero_()
    memory.to_log_variance.weight.zero_()  # type: ignore[union-attr]
    torch.manual_seed(0)
    readout = memory.read(x, (fast, torch.zeros(2, 3)))
    torch.manual_seed(0)
    for closed, other in zip(readout, memory.read(x, (fast + 1, torch.zeros(2, 3))), strict=True):
        assert torch.equal(closed, other)


@pytest.mark.parametrize("name", ["aura", "aura+gate"])
def test_a_checkpoint_without_a_choice_of_tokens_offers_rows(name: str) -> None:
    """As every checkpoint did before there was one."""
    described = registry.config_of(registry.build(name, DIMS))
    options = described["options"].get("inner") or described["options"]
    assert options.pop("tokens") == "code"
    loaded = registry.from_config(described)
    aura = getattr(loaded, "inner", loaded)
    assert (aura.settings.tokens, loaded.slot_count, loaded.slot_kind) == ("rows", 32, "fast-weight row")
    assert {"to_token.weight", "row_identity"} <= set(aura.state_dict())
    assert registry.from_config(registry.config_of(loaded)).config == loaded.config


@torch.no_grad()
def test_a_written_value_is_read_back_in_one_step() -> None:
    """With unit keys and 2 eta = 1 the delta rule replaces what the key held, whatever that was."""
    memory = build(step_size=0.5, decay=1e-9)
    plan = memory._plan(MemoryInput(torch.randn(2, 5), *[torch.zeros(2, 0)] * 2, torch.zeros(2, 5)))
    state = (torch.randn(2, 4, 3), torch.zeros(2, 3))
    (fast, _), _, _ = memory._advance(plan, state, memory._rates())
    torch.testing.assert_close(torch.einsum("bk,bkv->bv", plan.key, fast), plan.value)


def test_state_bytes() -> None:
    memory = AuraMemory(MemoryDims(content=96, signature=0, width=64, slots=4))
    assert memory.state_bytes == 4224
    assert memory.slot_count == 1
    assert AuraMemory(DIMS, AuraConfig(tokens="rows")).slot_count == 32
    for gate in ("random", "periodic"):
        assert AuraMemory(DIMS, AuraConfig(gate=gate)).state_bytes == 4228


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("gate", [*LEARNED, "never"])
def test_a_shut_gate_leaves_every_bit(inputs: Inputs, gate: str, training: bool) -> None:
    memory = build(gate=gate, gate_bias=-60.0).train(training)
    # Negative zeros and subnormal numbers survive a selection, not a sum.
    state = (torch.full((2, 4, 3), -0.0), torch.full((2, 3), 1e-42))
    _, final, records = memory.scan(inputs(2, 4), state, torch.ones(2, 4, dtype=torch.bool))
    for new, old in zip(final, state, strict=True):
        assert new.detach().numpy().tobytes() == old.numpy().tobytes()
    assert not records.wrote.any()
    assert not records.write_strength.any()


def test_the_gradient_reaches_the_gate_through_the_hard_choice() -> None:
    memory = undecided(build())
    torch.manual_seed(1)
    x = MemoryInput(torch.randn(8, 5), *[torch.zeros(8, 0)] * 2, torch.zeros(8, 5))
    old = (torch.randn(8, 4, 3), torch.randn(8, 3))
    target = torch.randn(8, 4, 3)
    (fast, _), record = memory.write(x, old)
    (fast * target).sum().backward()
    assert memory.gate is not None
    found = memory.gate.logit.bias.grad
    with torch.no_grad():
        memory.gate.logit.bias.fill_(1e3)
        (written, _), _ = memory.write(x, old)
    # d/dbias of sum_b g_b (new_b - old_b) . target_b with dg/dl = p (1 - p).
    p = record.gate.detach()
    expected = (((written - old[0]) * target).sum(dim=(1, 2)) * p * (1 - p)).sum()
    torch.testing.assert_close(found, expected.reshape(1), atol=1e-4, rtol=1e-4)
    assert 0 < record.wrote.sum() < 8


@torch.no_grad()
def test_a_gumbel_gate_opens_with_its_probability_in_training_and_above_one_half_in_evaluation(inputs: Inputs) -> None:
    memory = build(gate="gumbel", gate_bias=1.0)
    many = 4000
    xs = inputs(1, 2).map(lambda field: field.expand(many, -1, -1))
    mask = torch.ones(many, 2, dtype=torch.bool)
    mask[::2, 1] = False
    _, _, decided = memory.scan(xs, memory.initial_state(many), mask)
    assert torch.equal(decided.wrote, (decided.gate > 0.5) & mask)
    _, _, drawn = memory.train().scan(xs, memory.initial_state(many), mask)
    assert not drawn.wrote[~mask].any()
    # At the first step every stream has the same input and an empty memory.
    p = float(decided.gate[0, 0])
    assert torch.allclose(drawn.gate[:, 0], decided.gate[:, 0])
    assert 0.6 < p < 0.85
    assert float(drawn.wrote[:, 0].float().mean()) == pytest.approx(p, abs=0.03)


@torch.no_grad()
def test_schedules_write_their_share_of_the_chances(inputs: Inputs) -> None:
    mask = torch.rand(2, 4000, generator=torch.Generator().manual_seed(0)) < 0.7
    chances = mask.sum(dim=1)
    xs = inputs(2, 4000)
    for gate, tolerance in (("periodic", 1e-3), ("random", 0.02)):
        memory = build(gate=gate, rho=0.15)
        _, (_, _, count), records = memory.scan(xs, memory.initial_state(2), mask)
        assert torch.equal(count[:, 0].long(), chances)
        share = records.wrote.sum(dim=1) / chances
        assert ((share - 0.15).abs() < tolerance).all()
        assert not records.wrote[~mask].any()
    other = build(gate="random", rho=0.15, schedule_seed=1)
    assert not torch.equal(other.scan(xs, other.initial_state(2), mask)[2].wrote, records.wrote)


@torch.no_grad()
def test_periods_are_even(inputs: Inputs) -> None:
    memory = build(gate="periodic", rho=0.25)
    _, _, records = memory.scan(inputs(1, 40), memory.initial_state(1), torch.ones(1, 40, dtype=torch.bool))
    assert torch.nonzero(records.wrote[0])[:, 0].tolist() == list(range(3, 40, 4))


def test_surprise_is_normalised_by_training_alone(inputs: Inputs) -> None:
    memory = build()
    xs, mask = inputs(4, 9), torch.ones(4, 9, dtype=torch.bool)
    spoiled = xs._replace(content=torch.where(torch.arange(9)[:, None] < 6, xs.content, 1e3))
    mask[:, 6:] = False
    before = memory.surprise.mean.clone()
    memory.scan(xs, memory.initial_state(4), mask)
    assert torch.equal(memory.surprise.mean, before)
    fresh = AuraMemory(DIMS, AuraConfig(key_width=4, value_width=3))
    _, _, raw = fresh.scan(xs, fresh.initial_state(4), mask)
    errors = raw.surprise[:, :6]
    torch.testing.assert_close(fresh.surprise.mean, errors.mean())
    torch.testing.assert_close(fresh.surprise.variance, errors.var())
    other = AuraMemory(DIMS, AuraConfig(key_width=4, value_width=3))
    other.load_state_dict({**fresh.state_dict(), "surprise.passes": torch.zeros(())})
    other.surprise.mean.zero_()
    other.surprise.variance.fill_(1)
    other.scan(spoiled, other.initial_state(4), mask)
    torch.testing.assert_close(other.surprise.mean, fresh.surprise.mean)
    _, _, after = fresh.eval().scan(xs, fresh.initial_state(4), mask)
    torch.testing.assert_close(after.surprise[:, :6].mean(), torch.zeros(()), atol=1e-4, rtol=0)
    assert not after.surprise.requires_grad


def test_the_rate_penalty_is_one_sided_and_ramps(inputs: Inputs) -> None:
    xs, mask = inputs(3, 9), MASK
    losses = {}
    for bias in (-60.0, 60.0):
        memory = build(gate_bias=bias, write_weight=2.0, rho=0.15)
        states, _, records = memory.scan(xs, memory.initial_state(3), mask)
        for progress in (0.0, 0.3, 0.6, 1.0):
            memory.anneal(progress)
            losses[bias, progress] = float(memory.auxiliary(xs, states, records, mask)["write_rate"].detach())
    full = 2.0 * (1 - 0.15) ** 2
    assert [losses[-60.0, p] for p in (0.0, 1.0)] == [0.0, 0.0]
    assert [losses[60.0, p] for p in (0.0, 0.3, 0.6, 1.0)] == pytest.approx([0.0, full / 2, full, full], rel=1e-5)


def test_a_ramp_may_begin_late() -> None:
    memory = build(ramp_from=0.6, ramp=0.8)
    pressures = []
    for progress in (0.5, 0.7, 0.9):
        memory.anneal(progress)
        pressures.append(memory.pressure)
    assert pressures == pytest.approx([0.0, 0.5, 1.0])


def test_the_bottleneck_is_noisy_in_training_alone_and_its_kl_is_the_closed_form(inputs: Inputs) -> None:
    memory = build(ib_weight=1.0)
    xs = inputs(3, 9)
    states, _, records = memory.scan(xs, memory.initial_state(3), MASK)
    flat = xs.map(lambda f: f.flatten(0, 1))
    state = tuple(s.flatten(0, 1) for s in states)
    assert torch.equal(memory.read(flat, state).vector, memory.read(flat, state).vector)
    mean, log_variance = memory._code(
        torch.einsum(
            "nk,nkv->nv",
            torch.nn.functional.normalize(memory.theta_q(memory.summarise(flat.content)), dim=1),
            state[0],
        )
    )
    assert log_variance is not None
    normal = torch.distributions.Normal
    kl = torch.distributions.kl_divergence(
        normal(mean, (0.5 * log_variance).exp()), normal(torch.zeros_like(mean), torch.ones_like(mean))
    ).sum(dim=1)[MASK.flatten()]
    torch.testing.assert_close(memory.auxiliary(xs, states, records, MASK)["action_ib"], kl.mean())
    memory.train()
    drawn = torch.stack([memory.read(flat, state).vector for _ in range(400)])
    torch.testing.assert_close(drawn.mean(dim=0), mean, atol=0.05, rtol=0)
    torch.testing.assert_close(drawn.std(dim=0), (0.5 * log_variance).exp(), rtol=0.3, atol=0)


@torch.no_grad()
def test_weights_stay_bounded_under_unit_keys() -> None:
    """The largest step that is allowed, 10,000 times: W never exceeds what sum of values could be held."""
    memory = build(step_size=1.0, gate="always")
    memory.eta_raw.fill_(2.0)
    generator = torch.Generator().manual_seed(0)
    xs = MemoryInput(
        torch.randn(1, 10_000, 5, generator=generator), *[torch.zeros(1, 10_000, 0)] * 2, torch.zeros(1, 10_000, 5)
    )
    (fast, _), _, _ = memory.scan(xs, memory.initial_state(1), torch.ones(1, 10_000, dtype=torch.bool))
    norms = fast[0].norm(dim=(1, 2))
    assert norms.isfinite().all() and norms[5000:].max() < 2 * norms[:5000].max()


@torch.no_grad()
@pytest.mark.parametrize(("step_size", "decay"), [(1.0, 0.001), (0.96, 0.1), (1.0, 0.1), (0.9, 0.5)])
def test_one_key_over_and_over_is_bounded(step_size: float, decay: float) -> None:
    """Beyond 1 - alpha / 2 each write would multiply what the key holds by less than -1."""
    memory, steps = build(step_size=step_size, decay=decay, gate="always"), 10_000
    same = torch.randn(1, 1, 5, generator=torch.Generator().manual_seed(0)).expand(1, steps, 5)
    xs = MemoryInput(same, *[torch.zeros(1, steps, 0)] * 2, torch.zeros(1, steps, 5))
    (fast, _), _, _ = memory.scan(xs, memory.initial_state(1), torch.ones(1, steps, dtype=torch.bool))
    assert fast[0, -1].norm() < 10 * fast[0, 0].norm()


@pytest.mark.parametrize(
    "options", [{}, {"gate": "gumbel"}, {"gate": "always"}, {"gate_signal": "token"}, {"action_ib": False}]
)
def test_every_parameter_is_used(inputs: Inputs, options: dict[str, object]) -> None:
    """The paper counts a predictor that nothing calls; here a parameter that no loss reaches is a bug."""
    memory = build(rho=0.01, **options).train()
    mask = torch.ones(3, 9, dtype=torch.bool)
    xs = inputs(3, 9)
    readout, _, records = memory(xs, memory.initial_state(3), mask)
    states, _, _ = memory.scan(xs, memory.initial_state(3), mask)
    loss = readout.vector.square().sum() + readout.tokens.square().sum()
    (loss + sum(memory.auxiliary(xs, states, records, mask).values())).backward()
    idle = [name for name, p in memory.named_parameters() if p.grad is None or not p.grad.any()]
    assert not idle


def test_schedules_have_no_gate_to_train() -> None:
    def count(gate: str) -> int:
        return sum(p.numel() for p in AuraMemory(MemoryDims(64, 0, 64, 4), AuraConfig(gate=gate)).parameters())

    assert count("always") == count("random") == count("periodic") == count("never")
    assert count("straight_through") - count("always") == 64 * (64 + 32 + 1 + 1) + 64 + 1


def test_a_token_gate_learns_from_reconstruction_and_from_nothing_else(inputs: Inputs) -> None:
    memory = undecided(build(gate_signal="token")).train()
    assert memory.gate is not None
    xs, mask = inputs(3, 9), torch.ones(3, 9, dtype=torch.bool)
    readout, _, _ = memory(xs, memory.initial_state(3), mask)
    (readout.vector.square().sum() + readout.tokens.square().sum()).backward()
    assert memory.gate.logit.weight.grad is None or not memory.gate.logit.weight.grad.any()
    memory.zero_grad()
    states, _, records = memory.scan(xs, memory.initial_state(3), mask)
    memory.auxiliary(xs, states, records, mask)["token"].backward()
    assert memory.gate.logit.weight.grad is not None
    assert memory.gate.logit.weight.grad.any()
    assert memory.theta_v.weight.grad is None


@pytest.mark.parametrize("updates", [0, 1, 2, 3])
def test_a_token_gate_has_a_finite_loss_however_few_updates_there_are(inputs: Inputs, updates: int) -> None:
    memory, xs, mask = undecided(build(gate_signal="token")).train(), inputs(1, 9), torch.arange(9)[None] < updates
    states, _, records = memory.scan(xs, memory.initial_state(1), mask)
    losses = memory.auxiliary(xs, states, records, mask)
    assert torch.stack(list(losses.values())).isfinite().all() and ("token" in losses) == (updates > 2)


def test_a_token_gate_trains_instead_of_collapsing() -> None:
    """Its write rate is held at the target, by decisions that depend on the input"""
    torch.manual_seed(0)
    options = AuraConfig(key_width=8, value_width=8, gate_hidden=16, gate_signal="token", rho=0.2, ramp=0.4)
    memory = AuraMemory(MemoryDims(content=4, signature=0, width=16, slots=1), options)
    optimiser = torch.optim.Adam(memory.parameters(), lr=1e-2)
    generator, mask = torch.Generator().manual_seed(1), torch.ones(32, 16, dtype=torch.bool)
    for step in range(90):
        memory.anneal(step / 90)
        returns = torch.rand(32, 16, 1, generator=generator) < 0.4
        pattern, noise = (torch.randn(32, n, 3, generator=generator) for n in (1, 16))
        content = torch.cat((torch.where(returns, pattern, noise), returns.float()), dim=-1)
        xs = MemoryInput(content, content[..., :0], content[..., :0], content)
        states, _, records = memory.scan(xs, memory.initial_state(32), mask)
        loss = torch.stack(list(memory.auxiliary(xs, states, records, mask).values())).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert 0.1 < records.wrote.float().mean() < 0.3
    assert 0.0 < records.wrote.float().mean(dim=1).std()
    assert records.gate.std() > 0.01


def test_settings_are_checked() -> None:
    for options, message in [
        ({"gate": "open"}, "AuraConfig.gate = 'open': must be one of straight_through"),
        ({"rho": 1.0}, "AuraConfig.rho = 1.0: must be above 0 and below 1"),
        ({"step_size": 1.5}, "diverges with unit keys"),
        ({"gate": "always", "gate_signal": "token"}, "needs a learned gate"),
        ({"ramp_from": 0.7}, "ramp_from = 0.7 and ramp = 0.6"),
        ({"write_weight": -1.0}, "AuraConfig.write_weight = -1.0"),
        ({"key_width": 0}, "AuraConfig.key_width = 0"),
        ({"tokens": "slots"}, "AuraConfig.tokens = 'slots': must be one of code, rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            AuraConfig(**options)  # type: ignore[arg-type]
