"""Training: the memory is learned where there is one, a resumed run is the run, foreign saves are refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learning.synthetic import design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.engine import optimise
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import Progress
from trace_memory_ros.learning.trainer import Trainer
from trace_memory_ros.policies.adapters import BEGINNING
from trace_memory_ros.runtime.checkpoint import load

CALM = Augmentation(shift_px=0, state_noise=0.0, signature_noise=0.0, clock_jitter=0.0)
SHORT = Recipe(
    memory_first=MemoryFirst(
        clock_factors=(4.0, 1.0), stage_steps=600, check_pairs=4, reads=6, batch_pairs=4, settle_steps=25
    ),
    steps=6,
    reads=3,
    batch_pairs=2,
    augmentation=CALM,
)


DIFFUSION = {
    "policy": "diffusion",
    "policy_options": {"model": 16, "width": 16, "channels": (8, 16), "time_width": 8, "execute": 2, "draws": 2},
}


ONE_CHECK = replace(SHORT.memory_first, delay_factors=(), stage_steps=4, check_steps=4, attempts=3)


def _start(memory: str, recipe: Recipe = SHORT, pairs: int = 3, **changes: Any) -> tuple[Agent, Trainer]:
    plan = design(memory, **changes)
    training, validation, _ = build.prepare(plan, [pair(i) for i in range(pairs)], [pair(100 + i) for i in range(4)])
    torch.manual_seed(0)
    agent = build.build_agent(plan, training)
    return agent, Trainer(agent, training, validation, recipe, seed=0)


@pytest.mark.parametrize("memory", ["gru", "trace"])
def test_memory_first_carries_an_unseen_cue_over_the_delay(memory: str) -> None:
    agent, trainer = _start(memory, pairs=12)
    lines: list[Progress] = []
    learn_memory(agent, trainer.training, trainer.validation, SHORT, 0, lines.append)
    assert lines[-1].clock_factor == 1.0
    assert lines[-1].validation_branch_accuracy.value >= 0.9


def test_a_memory_that_decides_too_little_right_starts_anew_and_no_oftener_than_it_may() -> None:
    agent, trainer = _start("gru")
    # No share is above 1, so every attempt falls short.
    first = replace(ONE_CHECK, least=1.1, enough=0.0)
    lines: list[Progress] = []
    held = list(agent.memory.parameters())
    learn_memory(agent, trainer.training, trainer.validation, replace(SHORT, memory_first=first), 0, lines.append)
    assert [line.attempt for line in lines if line.clock_factor == 1.0] == [1, 2, 3]
    errors = [line.losses["chunk_l1"] for line in lines if line.clock_factor == 1.0]
    assert len(set(errors)) == 3
    # The joint phase's optimiser was given these very tensors.
    assert all(one is other for one, other in zip(held, agent.memory.parameters(), strict=True))


@pytest.mark.parametrize(("enough", "stages"), [(1.1, [2, 2, 4]), (0.0, [4, 4, 4])], ids=["nothing", "something"])
def test_an_attempt_that_finds_nothing_in_half_of_its_stages_is_given_up_unless_it_is_the_last(
    enough: float, stages: list[int]
) -> None:
    agent, trainer = _start("gru")
    factors = (4.0, 3.0, 2.0, 1.0)
    first = replace(ONE_CHECK, clock_factors=factors, settle_steps=0, stage_steps=2, check_steps=2, least=1.1)
    lines: list[Progress] = []
    recipe = replace(SHORT, memory_first=replace(first, enough=enough))
    learn_memory(agent, trainer.training, trainer.validation, recipe, 0, lines.append)
    found = [[line.clock_factor for line in lines if line.attempt == attempt] for attempt in (1, 2, 3)]
    assert found == [list(factors[:count]) for count in stages]


def test_a_memory_that_decides_enough_right_is_kept() -> None:
    agent, trainer = _start("gru")
    first = replace(ONE_CHECK, least=0.0)
    lines: list[Progress] = []
    learn_memory(agent, trainer.training, trainer.validation, replace(SHORT, memory_first=first), 0, lines.append)
    assert {line.attempt for line in lines} == {1}


def test_without_memory_the_branch_is_chance() -> None:
    _, trainer = _start("none")
    assert trainer.run(lambda _: None, every=3).validation_branch_accuracy.value == 0.5


@pytest.mark.parametrize("policy", [{}, DIFFUSION])
def test_a_resumed_run_equals_an_uninterrupted_one(tmp_path: Path, policy: dict[str, Any]) -> None:
    agent, trainer = _start("gru", **policy)
    trainer.run(lambda _: None, every=3)
    _, broken_off = _start("gru", **policy)

    class Interrupted(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.step == 3:
            broken_off.save(tmp_path / "training.safetensors")
            raise Interrupted

    with pytest.raises(Interrupted):
        broken_off.run(stop, every=3)
    resumed_agent, resumed = _start("gru", **policy)
    resumed.load(tmp_path / "training.safetensors")
    resumed.run(lambda _: None, every=3)
    for name, value in agent.state_dict().items():
        assert torch.equal(value, resumed_agent.state_dict()[name]), name


def test_a_save_of_another_recipe_is_refused(tmp_path: Path) -> None:
    _, trainer = _start("gru")
    trainer.save(tmp_path / "training.safetensors")
    _, other = _start("gru", replace(SHORT, learning_rate=0.5))
    with pytest.raises(ValueError, match="written by another run"):
        other.load(tmp_path / "training.safetensors")


def test_a_loss_that_is_not_finite_stops_before_the_weights_change() -> None:
    agent, trainer = _start("gru")
    with torch.no_grad():
        agent.policy.head.bias.fill_(float("nan"))
    before = agent.policy.queries.clone()
    with pytest.raises(FloatingPointError, match="loss is nan at step 0"):
        trainer.run(lambda _: None, every=1)
    assert torch.equal(before, agent.policy.queries)


def test_a_step_whose_gradient_is_not_finite_is_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, trainer = _start("gru")
    seen: list[torch.Tensor] = []

    def second_overflows(gradient: torch.Tensor) -> torch.Tensor:
        seen.append(agent.policy.queries.detach().clone())
        return gradient.fill_(float("inf")) if len(seen) == 2 else gradient

    hook = agent.policy.head.bias.register_hook(second_overflows)
    lines: list[Progress] = []
    trainer.run(lines.append, every=1)
    assert not torch.equal(seen[0], seen[1]) and torch.equal(seen[1], seen[2]) and not torch.equal(seen[2], seen[3])
    assert all(torch.isfinite(weight).all() for weight in agent.parameters())
    assert lines[-1].figures["overflows"] == 1
    hook.remove()
    monkeypatch.setattr(optimise, "MOST_OVERFLOWS", 3)
    agent, trainer = _start("gru")
    agent.policy.head.bias.register_hook(lambda gradient: gradient.fill_(float("inf")))
    with pytest.raises(FloatingPointError, match="not finite in 3 steps on end, the last of them step 2"):
        trainer.run(lambda _: None, every=1)


def test_a_policy_is_adopted_but_for_its_adapter(tmp_path: Path) -> None:
    plan = design("none")
    agent, trainer = _start("none")
    build.save_checkpoint(agent, plan, trainer.training, "synthetic", {}, tmp_path)
    other, _ = _start("gru")
    with torch.no_grad():
        other.policy.queries.zero_()
    adapter, used_to = other.policy.adapter.slot_map.weight.clone(), _token_of(agent)
    build.adopt_policy(other, load(tmp_path))
    torch.testing.assert_close(other.policy.queries, agent.policy.queries, rtol=1e-3, atol=1e-3)  # float16 storage
    begun = other.policy.adapter
    torch.testing.assert_close(begun.slot_map.weight, BEGINNING * adapter)
    for layer in (begun.slot_map, begun.summary[-1]):
        torch.testing.assert_close(layer.bias, used_to, rtol=1e-2, atol=1e-3)


def test_a_diffusion_policy_that_is_given_a_memory_starts_as_what_it_was_without(tmp_path: Path) -> None:
    plan = design("none", **DIFFUSION)
    agent, trainer = _start("none", **DIFFUSION)
    trainer.run(lambda _: None, every=6)
    build.save_checkpoint(agent, plan, trainer.training, "synthetic", {}, tmp_path)
    saved = load(tmp_path)
    saved.load_into(agent.policy, "policy.")  # float16 storage
    remembering, _ = _start("trace", **DIFFUSION)
    fresh, _ = _start("trace", **DIFFUSION)
    build.adopt_policy(remembering, saved)
    begun, used_to = remembering.policy.adapter, agent.policy.adapter.without_memory()
    assert not begun.last.weight.any()
    assert torch.equal(begun.last.bias, used_to)
    readout = [torch.randn(4, *shape) for shape in ((2, begun.shape.width), (2,), (begun.shape.width,))]
    assert torch.equal(begun(*readout, torch.randn(4, begun.shape.address)), used_to.expand(4, -1))
    batch = trainer.validation.build([0, 1], [1.0, 1.0], [np.arange(8), np.arange(8)])
    of_trace = build.prepare(design("trace", **DIFFUSION), [pair(i) for i in range(3)], [pair(100), pair(101)])[1]
    with_memory = of_trace.build([0, 1], [1.0, 1.0], [np.arange(8), np.arange(8)])
    assert torch.equal(batch.images, with_memory.images)
    # One row or sixteen: products of other shapes are summed in another order, and denoising passes that on.
    torch.testing.assert_close(remembering(with_memory), agent(batch), rtol=0, atol=1e-4)
    assert (fresh(with_memory) - agent(batch)).abs().max() > 1e-2


def test_a_policy_of_another_family_is_not_adopted(tmp_path: Path) -> None:
    agent, trainer = _start("none")
    build.save_checkpoint(agent, design("none"), trainer.training, "synthetic", {}, tmp_path)
    other, _ = _start("none", **DIFFUSION)
    with pytest.raises(ValueError, match=r"of family 'act', this run's of 'diffusion'.*--policy"):
        build.adopt_policy(other, load(tmp_path))


def _token_of(memoryless: Agent) -> torch.Tensor:
    """What a memoryless agent's adapter says."""
    with torch.no_grad():
        return memoryless.policy.adapter(torch.zeros(1, 0, 16), torch.zeros(1, 16), torch.zeros(1, 0))[0, 0]


def test_a_policy_of_other_sizes_is_not_adopted(tmp_path: Path) -> None:
    agent, trainer = _start("none")
    build.save_checkpoint(agent, design("none"), trainer.training, "synthetic", {}, tmp_path)
    plan = design("none", chunk=6)
    training = build.prepare(plan, [pair(0)]).training
    with pytest.raises(ValueError, match="not of this run's sizes: queries differ"):
        build.adopt_policy(build.build_agent(plan, training), load(tmp_path))
