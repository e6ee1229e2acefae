"""SmolVLA, pi0 and pi0.5 with memory tokens in their prefix: exact at the beginning, seen once trained."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from policies.lerobot_examples import ACTIONS, SHAPE, readout, remembering, tick
from policies.tiny_vla import CHUNK, FAMILIES, PIXELS, built_small, vla, words
from torch import Tensor

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.base import ConditionMismatch
from trace_memory_ros.policies.lerobot.compatible import differences
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint, load, save
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.policy import TOKEN_MASK, MemoryPolicy, memory_batch
from trace_memory_ros.policies.lerobot.prefix import EXPERTS
from trace_memory_ros.policies.lerobot.runner import LerobotRunner


@pytest.fixture(params=FAMILIES, scope="module")
def plain(request: pytest.FixtureRequest) -> Any:
    return vla(request.param)


def seen(size: int) -> dict[str, Tensor]:
    return tick(size, 3) | words(size)


def trained_on(size: int) -> dict[str, Tensor]:
    noise = torch.Generator().manual_seed(5)
    return seen(size) | {"action": torch.randn(size, CHUNK, ACTIONS, generator=noise)}


def chunk(model: Any, memory: dict[str, Tensor] | None = None) -> Tensor:
    torch.manual_seed(7)
    model.reset()
    return model.predict_action_chunk(seen(2) | (memory or {}))


def loss_of(model: Any, batch: dict[str, Tensor]) -> Tensor:
    torch.manual_seed(11)
    return model(dict(batch))[0]


def test_with_a_fresh_adapter_chunks_and_losses_are_the_plain_policys(plain: Any) -> None:
    ours = remembering(plain)
    want, target = chunk(plain), trained_on(2)
    for seed in range(3):
        memory = memory_batch(readout(2, seed))
        torch.testing.assert_close(chunk(ours, memory), want, rtol=0, atol=1e-5)
        torch.testing.assert_close(loss_of(ours, target | memory), loss_of(plain, target), rtol=0, atol=1e-5)
    assert want.shape == (2, CHUNK, ACTIONS) and want.std() > 0.1


def test_another_memory_gives_another_chunk_and_the_base_stays_plain(plain: Any) -> None:
    ours = remembering(plain, gate=1.0)
    first, second = (chunk(ours, memory_batch(readout(2, seed))) for seed in (0, 1))
    assert (first - second).abs().max() > 1e-4
    assert torch.equal(chunk(ours.base), chunk(plain))
    assert torch.equal(chunk(ours.release()), chunk(plain))


def test_gradients_reach_the_memory_through_the_prefix(plain: Any) -> None:
    for gate, least in ((1.0, 1e-6), (0.0, 0.0)):
        ours, memory = remembering(plain, gate=gate), readout(2)
        loss_of(ours, trained_on(2) | memory_batch(memory)).backward()
        for field in (memory.tokens, memory.vector, memory.address):
            assert field.grad is not None and field.grad.norm() > least
        assert ours.adapter.gate.grad is not None and ours.adapter.gate.grad.abs().max() > 1e-6
        assert all(parameter.grad is None for parameter in ours.base.parameters())


def test_hidden_memory_tokens_change_nothing(plain: Any) -> None:
    ours, memory = remembering(plain, gate=1.0), readout(2)
    visible = torch.tensor([[True, False, True], [True, True, False]])
    other = memory.tokens.detach().where(visible[..., None], torch.nan)
    shown = chunk(ours, memory_batch(memory, visible))
    assert torch.equal(shown, chunk(ours, memory_batch(memory._replace(tokens=other), visible)))
    assert not torch.allclose(shown, chunk(ours, memory_batch(memory)), atol=1e-5)
    with pytest.raises(ConditionMismatch, match=r"token_mask is \(2, 2\) torch\.bool: give truth values \(B, 3\)"):
        chunk(ours, memory_batch(memory) | {TOKEN_MASK: visible[:, :2]})


def test_a_hidden_token_is_as_good_as_none(plain: Any) -> None:
    """The other way to hide a token: a closed gate. Both leave the same softmax over what is left."""
    ours, memory = remembering(plain, gate=1.0), readout(2)
    shown = chunk(ours, memory_batch(memory, torch.tensor([[True, False, True]] * 2)))
    with torch.no_grad():
        ours.adapter.gate[1] = 0.0
    torch.testing.assert_close(chunk(ours, memory_batch(memory)), shown, rtol=0, atol=1e-5)


def test_sampling_sees_what_training_saw(plain: Any) -> None:
    """With the prefix cached, one step of the flow is what training computes in one pass at the same time and noise."""
    ours, memory, batch = remembering(plain, gate=1.0), readout(2), trained_on(2)
    model, noise = ours.base.model, torch.randn(2, CHUNK, ACTIONS, generator=torch.Generator().manual_seed(2))
    state = (batch["observation.state"],) if ours.base.name != "pi05" else ()
    images = [batch[f"observation.images.{name}"][..., :PIXELS, :PIXELS] for name in ("left", "right")]
    given = (images, [torch.ones(2, dtype=torch.bool)] * 2, *words(2).values(), *state)
    name = "num_steps" if ours.base.name == "smolvla" else "num_inference_steps"
    setattr(ours.config, name, 1)
    with ours._given(memory_batch(memory)), torch.no_grad():
        sampled = model.sample_actions(*given, noise=noise)
        target = torch.zeros_like(noise)
        squared = model.forward(*given, target, noise=noise, time=torch.ones(2))
    setattr(ours.config, name, 3)
    velocity = noise - sampled  # one step of length 1 from noise
    torch.testing.assert_close((noise - target - velocity) ** 2, squared, rtol=1e-4, atol=1e-5)


def test_the_prefix_itself_does_not_look_at_the_memory(plain: Any) -> None:
    ours = remembering(plain, gate=1.0)
    valid = torch.tensor([[True, True, False], [True, True, True]])
    ours.adapter.give(readout(2))
    ours.adapter._prefix = valid
    square = ours.adapter._opened(torch.zeros(2, 9, 9, dtype=torch.bool))
    assert not square[:, :3].any()
    assert square[:, 3:, 3:7].all()
    own = torch.tensor([[True] * 4 + [False] * 2] * 2)
    assert torch.equal(square[:, 3], torch.cat([valid, own], 1))
    assert ours.adapter._opened(torch.zeros(2, 2, 9, dtype=torch.bool))[..., 3:7].all()


def test_a_cue_that_only_the_memory_has_is_learned(plain: Any) -> None:
    """Two episodes look alike and want opposite chunks: from noise alone, only the readout tells them apart."""
    ours = remembering(plain, gate=1.0, frozen=False)
    ours.base.model.sample_time = lambda size, device: torch.ones(size)
    ours.base.model.sample_noise = lambda shape, device: torch.randn(shape[1:]).expand(shape)
    alike = {key: value[:1].expand(2, *value.shape[1:]) for key, value in seen(2).items()}
    sides = torch.tensor([1.0, -1.0])[:, None, None].expand(2, CHUNK, ACTIONS)
    memory = Readout(*(field.detach() for field in readout(2)))
    target = alike | {"action": sides}
    losses = fitted(ours, target | memory_batch(memory), 40)
    assert losses[-1] < 0.7 * losses[0]
    exchanged = memory_batch(Readout(*(field.flip(0) for field in memory)))
    ours.eval()
    with torch.no_grad():
        assert loss_of(ours, target | exchanged) > 1.5 * loss_of(ours, target | memory_batch(memory))


def test_a_frozen_base_stays_as_it_is_while_its_adapter_learns(plain: Any) -> None:
    ours = remembering(plain, gate=1.0)
    losses = fitted(ours, trained_on(2) | memory_batch(Readout(*(f.detach() for f in readout(2)))), 15)
    assert losses[-1] < losses[0]
    before = plain.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in ours.base.state_dict().items())


def fitted(ours: MemoryPolicy, batch: dict[str, Tensor], steps: int) -> list[float]:
    optimiser = torch.optim.AdamW(ours.get_optim_params(), lr=3e-3)
    ours.train()
    losses = []
    for _ in range(steps):
        loss = loss_of(ours, batch)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def test_what_lerobot_saves_does_not_know_of_the_memory(plain: Any) -> None:
    ours = remembering(plain)
    assert set(ours.base.state_dict()) == set(plain.state_dict())
    assert isinstance(ours, MemoryPolicy) and ours.adapter.shape == SHAPE


def test_a_saved_policy_is_loaded_and_runs_with_its_task(plain: Any, tmp_path: Path) -> None:
    processors = lerobot("lerobot.processor")
    ours = remembering(plain, gate=1.0)
    names = ("policy_preprocessor", "policy_postprocessor")
    pre, post = (processors.PolicyProcessorPipeline(steps=[processors.RenameObservationsProcessorStep()], name=name)
                 for name in names)  # fmt: skip
    kept = LerobotCheckpoint(ours.eval(), pre, post, ("a", "b", "c"), "f" * 64, "put the part back")
    save(tmp_path / "p", kept)
    with built_small(plain.name):
        again = load(tmp_path / "p")
    assert again.task == "put the part back"
    memory = memory_batch(readout(2))
    assert torch.equal(chunk(again.policy, memory), chunk(ours, memory))
    assert LerobotRunner(again).checkpoint.task
    with pytest.raises(ValueError, match="is told what to do, and its checkpoint has no task"):
        LerobotRunner(replace(again, task=""))


def test_gradient_checkpoints_see_the_same_memory() -> None:
    base = vla("pi0")
    gradients = []
    for checkpoints in (False, True):
        ours, memory = remembering(base, gate=1.0, frozen=False), readout(2)
        if checkpoints:
            ours.base.model.gradient_checkpointing_enable()
        ours.train()
        loss_of(ours, trained_on(2) | memory_batch(memory)).backward()
        gradients.append(copy.deepcopy(memory.tokens.grad))
    torch.testing.assert_close(gradients[0], gradients[1])


@pytest.mark.parametrize("family", FAMILIES)
def test_a_compiled_policy_is_refused(family: str) -> None:
    base = vla(family)
    base.config.compile_model = True
    with pytest.raises(ValueError, match="Load it with compile_model = false"):
        remembering(base)


def test_smolvla_with_a_padded_prefix_and_self_attention() -> None:
    base = vla("smolvla", prefix_length=40, attention_mode="self_attn", add_image_special_tokens=True)
    ours = remembering(base)
    torch.testing.assert_close(chunk(ours, memory_batch(readout(2))), chunk(base), rtol=0, atol=1e-5)


def test_what_a_prefix_is_made_with_is_checked(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert differences(plain) == []

    def embed_prefix(self: Any, observation: Any) -> None: ...

    monkeypatch.setattr(type(plain.model), "embed_prefix", embed_prefix)
    monkeypatch.delattr(
        type(getattr(plain.model, EXPERTS[plain.name])) if plain.name == "smolvla" else type(plain.model),
        "eager_attention_forward" if plain.name == "smolvla" else "_prepare_attention_masks_4d",
    )
    missing = "eager_attention_forward" if plain.name == "smolvla" else "_prepare_attention_masks_4d"
    first, second = differences(plain)
    assert first.startswith("model.embed_prefix takes (observation), expected (images, img_masks)")
    assert f"({missing} is missing)" in second
