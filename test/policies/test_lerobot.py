"""LeRobot's ACT and Diffusion with a memory: exact at the beginning, then reached by gradients."""

import copy
from typing import Any

import pytest
import torch
from policies.lerobot_examples import (
    ACTIONS,
    CAMERAS,
    FAMILIES,
    SHAPE,
    SMALL,
    policy,
    readout,
    remembering,
    tick,
    training_batch,
)
from torch import Tensor

from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.policies.lerobot.policy import MEMORY_KEYS, MemoryOptions, MemoryPolicy, memory_batch


def actions_of(model: Any, ticks: int, **memory: Tensor) -> Tensor:
    """What a policy does in `ticks` ticks of two episodes, from the same noise; `(ticks, 2, A)`."""
    torch.manual_seed(7)
    model.reset()
    return torch.stack([model.select_action(tick(2, t) | memory) for t in range(ticks)])


def step(model: MemoryPolicy, batch: dict[str, Tensor], rate: float = 1e-2) -> None:
    torch.manual_seed(3)
    optimiser = torch.optim.AdamW(model.get_optim_params(), lr=rate)
    model.train()
    loss, _ = model(batch)
    loss.backward()
    optimiser.step()
    optimiser.zero_grad()
    model.eval()


@pytest.mark.parametrize("family", FAMILIES)
def test_with_a_fresh_adapter_a_policy_is_lerobots_own_bit_for_bit(family: str) -> None:
    plain = policy(family)
    ours = remembering(plain)
    for seed in range(3):
        memory = memory_batch(readout(2, seed))
        assert torch.equal(actions_of(plain, 9), actions_of(ours, 9, **memory))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("frozen", [True, False])
def test_a_fresh_adapter_leaves_lerobots_loss_as_it_is(family: str, frozen: bool) -> None:
    plain = policy(family, **({"use_vae": False} if family == "act" and frozen else {}))
    ours = remembering(plain, frozen=frozen)
    batch = training_batch(family, 2, readout(2))
    losses = []
    for model in (plain, ours):
        model.train(not frozen)
        torch.manual_seed(11)
        losses.append(model(dict(batch))[0])
    if frozen:
        torch.testing.assert_close(*losses)  # torch has other kernels for weights without gradients
    else:
        assert torch.equal(*losses)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_reach_memory_from_the_second_step(family: str) -> None:
    ours, memory = remembering(policy(family)), readout(2)
    batch = training_batch(family, 2, memory)
    step(ours, batch)
    assert all(field.grad is None or not field.grad.any() for field in memory)
    torch.manual_seed(3)
    ours(batch)[0].backward()
    fields = memory if family == "diffusion" else (memory.tokens, memory.vector, memory.address)
    assert all(field.grad is not None and bool(field.grad.any()) for field in fields)


def test_tokens_that_are_appended_from_the_start_learn_from_the_first_step() -> None:
    ours, memory = remembering(policy("act"), gate=1.0), readout(2)
    ours(training_batch("act", 2, memory))[0].backward()
    assert memory.tokens.grad is not None and bool(memory.tokens.grad.any())


@pytest.mark.parametrize("family", FAMILIES)
def test_actions_depend_on_memory_once_trained(family: str) -> None:
    ours = remembering(policy(family))
    step(ours, training_batch(family, 2, readout(2)))
    first, second = (actions_of(ours, 3, **memory_batch(readout(2, seed))) for seed in (0, 1))
    assert not torch.equal(first, second)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_leaves_a_frozen_base_as_it_is(family: str) -> None:
    options = {"use_group_norm": False} if family == "diffusion" else {}
    ours = remembering(policy(family, **options))
    before = copy.deepcopy(ours.base.state_dict())
    adapter = copy.deepcopy(ours.adapter.state_dict())
    step(ours, training_batch(family, 2, readout(2)))
    assert all(torch.equal(value, before[name]) for name, value in ours.base.state_dict().items())
    assert all(parameter.grad is None and parameter.requires_grad for parameter in ours.base.parameters())
    assert any(not torch.equal(value, adapter[name]) for name, value in ours.adapter.state_dict().items())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_step_changes_a_base_that_is_trained(family: str) -> None:
    ours = remembering(policy(family), frozen=False)
    before = copy.deepcopy(ours.base.state_dict())
    step(ours, training_batch(family, 2, readout(2)))
    assert any(not torch.equal(value, before[name]) for name, value in ours.base.state_dict().items())


def queue_of(model: Any) -> Any:
    return model._action_queue if model.name == "act" else model._queues["action"]


@pytest.mark.parametrize("family", FAMILIES)
def test_queues_are_lerobots_and_a_memory_goes_into_the_next_chunk(family: str) -> None:
    plain = policy(family)
    ours = remembering(plain)
    step(ours, training_batch(family, 2, readout(2)))
    ours.reset()
    plain.reset()
    torch.manual_seed(7)
    taken, lengths = [], []
    for t in range(SMALL[family]["n_action_steps"] + 1):
        memory = memory_batch(readout(2, seed=0 if t == 0 else 1))
        taken.append(ours.select_action(tick(2, t) | memory))
        lengths.append(len(queue_of(ours.base)))
        plain.select_action(tick(2, t))
        assert len(queue_of(plain)) == lengths[-1]
    assert lengths == [3, 2, 1, 0, 3]
    kept = actions_of(ours, len(taken), **memory_batch(readout(2, seed=0)))
    assert all(torch.equal(one, other) for one, other in zip(taken[:4], kept, strict=False))
    assert not torch.equal(taken[4], kept[4])


def test_temporal_ensembling_is_lerobots() -> None:
    plain = policy("act", temporal_ensemble_coeff=0.01, n_action_steps=1)
    ours = remembering(plain)
    assert torch.equal(actions_of(plain, 5), actions_of(ours, 5, **memory_batch(readout(2))))


def joint_softmax(ours: MemoryPolicy, batch: dict[str, Tensor], memory: dict[str, Tensor]) -> Tensor:
    """The chunk with tokens appended to the inputs of every attention, by hooks that are written the plain way."""
    base, adapter = ours.base, ours.adapter
    tokens = adapter.norm(adapter.adapter(*(memory[MEMORY_KEYS[f]] for f in ("tokens", "vector", "address"))))
    tokens = tokens.transpose(0, 1)

    def append(_: Any, args: tuple[Tensor, ...], kwargs: dict[str, Any]) -> tuple[tuple[()], dict[str, Any]]:
        inputs = dict(zip(("query", "key", "value"), args, strict=False)) | kwargs
        inputs["key"] = torch.cat([inputs["key"], tokens + adapter.place[:, None]])
        inputs["value"] = torch.cat([inputs["value"], tokens])
        return (), inputs

    layers = [layer.self_attn for layer in base.model.encoder.layers]
    layers += [layer.multihead_attn for layer in base.model.decoder.layers]
    hooks = [layer.register_forward_pre_hook(append, with_kwargs=True) for layer in layers]
    chunk = base.predict_action_chunk(batch)
    for hook in hooks:
        hook.remove()
    return chunk


def test_at_gate_one_tokens_are_plainly_appended() -> None:
    ours = remembering(policy("act"), gate=1.0)
    memory, batch = memory_batch(readout(2)), tick(2, 0)
    appended = joint_softmax(ours, batch, memory)
    torch.testing.assert_close(ours.predict_action_chunk(batch | memory), appended, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(ours.base.predict_action_chunk(batch), appended, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_base_alone_and_a_released_base_are_plain(family: str) -> None:
    plain = policy(family)
    ours = remembering(plain)
    step(ours, training_batch(family, 2, readout(2)))
    before = actions_of(plain, 5)
    assert torch.equal(actions_of(ours.base, 5), before)
    assert torch.equal(actions_of(ours.release(), 5), before)
    assert ours.adapter.hooks


def test_a_frozen_act_is_trained_at_the_latent_it_acts_with() -> None:
    ours = remembering(policy("act", use_vae=True))
    batch = training_batch("act", 2, readout(2))
    ours.train()
    loss, report = ours(batch)
    chunk = ours.predict_action_chunk(batch)
    assert set(report or {}) == {"l1_loss"} and ours.config.use_vae
    assert torch.allclose(loss, (chunk - batch["action"]).abs().mean())
    assert chunk.shape == (2, SMALL["act"]["chunk_size"], ACTIONS)


@pytest.mark.parametrize("key", MEMORY_KEYS.values())
def test_a_batch_without_memory_or_of_another_shape_is_refused(key: str) -> None:
    ours = remembering(policy("act"))
    memory = memory_batch(readout(2))
    with pytest.raises(ConditionMismatch, match=f"no {key}: add"):
        ours.select_action(tick(2, 0) | {k: v for k, v in memory.items() if k != key})
    with pytest.raises(ConditionMismatch, match="this policy was given a memory of"):
        ours.select_action(tick(2, 0) | memory | {key: memory[key][..., 1:]})
    assert len(CAMERAS) == 2 and SHAPE.tokens == 3


def test_a_policy_of_another_family_is_refused() -> None:
    with pytest.raises(ValueError, match="'Linear' cannot be given a memory: choose from act, diffusion, smolvla"):
        MemoryPolicy(torch.nn.Linear(1, 1), MemoryOptions(SHAPE))


def test_a_compiled_diffusion_policy_is_refused() -> None:
    base = policy("diffusion")
    base.config.compile_model = True
    with pytest.raises(ValueError, match="Load it with compile_model = false"):
        remembering(base)
