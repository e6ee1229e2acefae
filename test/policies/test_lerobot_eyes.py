"""A memory that sees with LeRobot's own backbone: the very features that LeRobot computes, once for both."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learning.elsewhere import DEVICE, Apart, Elsewhere, moved
from policies.lerobot_examples import ACTIONS, CAMERAS, SIDE, STATE, policy, readout, remembering, tick
from torch import nn
from vision.test_eyes import assert_live_is_training, observations, seen_at, trained

from trace_memory_ros.learning.eyes import BackboneSection, EyesSection, with_eyes
from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies import families
from trace_memory_ros.policies.lerobot.eyes import LerobotEyes, NothingToShare
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.policy import memory_batch
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.vision import registry
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.one_look import share

STATISTICS: dict[str, Any] = {
    "observation.images.left": {"mean": np.full((3, 1, 1), 0.4), "std": np.full((3, 1, 1), 0.2)},
    "observation.images.right": {"mean": np.full((3, 1, 1), 0.6), "std": np.full((3, 1, 1), 0.3)},
    "observation.state": {
        part: np.full(STATE, v) for part, v in (("mean", 0.0), ("std", 1.0), ("min", -2), ("max", 2))
    },
    "action": {part: np.full(ACTIONS, v) for part, v in (("mean", 0.0), ("std", 1.0), ("min", -2), ("max", 2))},
}
POLICIES: dict[str, dict[str, Any]] = {
    "act": {},
    "diffusion": {"n_obs_steps": 1, "crop_shape": (40, 40)},
    "diffusion batch": {"n_obs_steps": 1, "crop_shape": None, "use_group_norm": False},
}
SMALL: dict[str, Any] = {
    "act": dict(dim_model=32, n_heads=4, dim_feedforward=32, n_encoder_layers=1, n_action_steps=2, use_vae=False),
    "diffusion": dict(
        down_dims=(16, 32),
        diffusion_step_embed_dim=16,
        num_train_timesteps=10,
        num_inference_steps=2,
        crop_shape=(36, 36),
    ),
}


def passes_of(network: nn.Module) -> list[int]:
    """A list that a pass through a network adds the number of its images to."""
    counted: list[int] = []
    convolution = next(module for module in network.modules() if isinstance(module, nn.Conv2d))
    convolution.register_forward_hook(lambda _, args, __: counted.append(len(args[0])))
    return counted


@pytest.mark.parametrize("name", POLICIES)
def test_lerobot_acts_alike_on_features_that_a_memory_looked_at(name: str) -> None:
    base = policy(name.split()[0], **POLICIES[name])
    for module in base.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
    ours = remembering(base)
    pre, _ = lerobot("lerobot.policies.factory").make_pre_post_processors(base.config, dataset_stats=STATISTICS)
    eyes = LerobotEyes(ours.base, CAMERAS[::-1], STATISTICS)  # a memory may have its cameras in another order
    built = registry.untrained(eyes.backbone.config, SIDE)
    built.load_state_dict(eyes.backbone.state_dict())
    raw, memory = tick(2, 0), memory_batch(readout(2))
    images = torch.stack([raw[f"observation.images.{camera}"] for camera in CAMERAS[::-1]], dim=1)
    counted = passes_of(eyes.network)

    def acted(features: Features | None) -> torch.Tensor:
        torch.manual_seed(3)
        ours.reset()
        with eyes.giving(None if features is None else lambda: features):
            return ours.select_action(pre(raw | memory))

    plain = acted(None)
    own = len(counted)
    assert own == (2 if name == "act" else 1)
    with torch.no_grad():
        looked, again = eyes.backbone.features(images), built.features(images)
    assert torch.equal(looked.tokens, again.tokens), "the network that a memory builds is LeRobot's"
    given = acted(looked)
    assert len(counted) == 2 * own, "one pass by LeRobot alone, one by the memory, none on what it gave"
    torch.testing.assert_close(given, plain, rtol=1e-5, atol=1e-6)
    assert not torch.allclose(acted(Features(looked.tokens.flip(-1), looked.pooled)), plain, atol=1e-4)
    assert "forward" not in vars(eyes.network)


@pytest.mark.parametrize(
    ("family", "options", "words"),
    [
        ("diffusion", {"n_obs_steps": 2}, "looks at 2 ticks at once"),
        ("diffusion", {"n_obs_steps": 1, "use_separate_rgb_encoder_per_camera": True}, "a backbone per camera"),
        ("act", {}, "give both the same cameras"),
    ],
)
def test_what_cannot_be_shared_is_named(family: str, options: dict[str, Any], words: str) -> None:
    cameras = ("left", "wrist") if family == "act" else CAMERAS
    with pytest.raises(NothingToShare, match=words):
        LerobotEyes(policy(family, **options), cameras, STATISTICS)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("family", ["act", "diffusion"])
def test_a_memory_trained_with_lerobots_eyes_is_the_one_that_runs(family: str, frozen: bool, tmp_path: Path) -> None:
    options = {"type": family, "lerobot": SMALL[family], "frozen": frozen}
    plan, demos = seen_at(40, ticks=8, policy="lerobot", policy_options=options)
    asked = with_eyes(plan, EyesSection("policy", pooling="attention"), BackboneSection())
    before = families.family("lerobot").build({**_sizes(asked), **options})
    agent, builder = trained(asked, demos, tmp_path)
    assert agent.encoder.vision is agent.policy.backbone
    counted = passes_of(agent.policy.eyes.network)
    agent.train()
    losses = agent.losses(builder.build([0, 1], [1.0, 1.0], [np.arange(3)] * 2))
    cameras = len(plan.observation.cameras)
    assert len(counted) == (2 * cameras if family == "act" else 2), "one look at the writes, one at the reads of both"
    sum(losses.values()).backward()
    gradients = [p.grad is not None and bool(p.grad.any()) for p in agent.policy.eyes.network.parameters()]
    assert any(gradients) is not frozen
    agent.eval()
    _assert_one_pass(tmp_path, observations(builder), family, cameras)
    if family == "act":
        assert_live_is_training(agent, builder, tmp_path)
    assert load(tmp_path).config.encoder.backbone.options["policy"] == family
    assert type(before) is type(agent.policy)


def _sizes(plan: Any) -> dict[str, Any]:
    return dict(
        cameras=plan.observation.camera_names,
        action_names=plan.action_names,
        state=plan.observation.state_dim,
        image_px=plan.policy_px,
        chunk=plan.chunk,
    )


def _assert_one_pass(folder: Path, seen: list[Any], family: str, cameras: int) -> None:
    """Memory and policy in one process: the actions of two passes, by one."""
    found = []
    for shared in (False, True):
        runtime, checkpoint = MemoryRuntime.from_checkpoint(folder), load(folder)
        runner = families.family("lerobot").load(checkpoint.policy.options, checkpoint.tensors_of("policy."))
        counts = [passes_of(runtime.model.encoder.vision), passes_of(runner._eyes.network)]
        assert not shared or share(runtime.model.encoder.vision, runner.eyes)
        torch.manual_seed(5)
        actions = []
        for observation in seen:
            condition, _ = runtime.tick(observation)
            actions.append(runner.act(observation, condition))
        found.append(np.stack(actions))
        assert len(counts[0]) == len(seen) * (cameras if family == "act" else 1)
        assert (len(counts[1]) == 0) is shared
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


def test_a_policy_of_lerobots_folder_is_begun_from(tmp_path: Path) -> None:
    plan, demos = seen_at(40, ticks=8, policy="lerobot", policy_options={"lerobot": SMALL["act"]})
    first = families.family("lerobot").build({**_sizes(plan), **plan.policy_options})
    first.policy.base.save_pretrained(tmp_path / "base")
    pre, post = first.checkpoint.preprocessor, first.checkpoint.postprocessor
    for part in (pre, post):
        part.save_pretrained(tmp_path / "base")
    begun = replace(plan, policy_options={"base": str(tmp_path / "base"), "frozen": True})
    agent, builder = trained(with_eyes(begun, EyesSection("policy"), BackboneSection()), demos, tmp_path / "trained")
    theirs, ours = first.policy.base.state_dict(), agent.policy.policy.base.state_dict()
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs), "frozen, and kept in float32"
    kept = load(tmp_path / "trained").policy.options
    assert kept["base"] is None and kept["statistics"].keys() >= {"observation.state", "action"}
    assert_live_is_training(agent, builder, tmp_path / "trained")
    with pytest.raises(ValueError, match="ticks of a chunk"):
        families.family("lerobot").build({**_sizes(plan), **begun.policy_options, "chunk": 7})


def test_a_policy_of_wide_pictures_is_begun_from(tmp_path: Path) -> None:
    plan, demos = seen_at(40, ticks=8, policy="lerobot", policy_options={"lerobot": SMALL["act"]})
    first = families.family("lerobot").build({**_sizes(plan), **plan.policy_options})
    for feature in first.policy.base.config.image_features.values():
        feature.shape = (3, 30, 40)
    for part in (first.policy.base, first.checkpoint.preprocessor, first.checkpoint.postprocessor):
        part.save_pretrained(tmp_path / "base")
    begun = replace(plan, policy_options={"base": str(tmp_path / "base")})
    agent, builder = trained(begun, demos, tmp_path / "trained")
    seen: list[torch.Size] = []
    backbone = agent.policy.policy.base.model.backbone
    backbone.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[-2:]))
    assert_live_is_training(agent, builder, tmp_path / "trained")
    assert set(seen) == {(30, 40)}
    with pytest.raises(ValueError, match=r"image_px for \(3, 30, 40\).* \[40\], this training \[48\]"):
        families.family("lerobot").build({**_sizes(plan), **begun.policy_options, "image_px": 48})


def test_a_backbone_per_camera_is_trained_beside_a_memorys_own_eyes(tmp_path: Path) -> None:
    apart = {**SMALL["diffusion"], "use_separate_rgb_encoder_per_camera": True}
    plan, demos = seen_at(40, ticks=8, policy="lerobot", policy_options={"type": "diffusion", "lerobot": apart})
    agent, _ = trained(plan, demos, tmp_path)
    backbones = [encoder.backbone for encoder in agent.policy.policy.base.diffusion.rgb_encoder]
    assert len(backbones) == len(plan.observation.cameras)
    assert list(agent.policy.trunk().parameters()) == [one for part in backbones for one in part.parameters()]


def test_what_is_built_trains_on_another_device_by_the_same_statistics() -> None:
    sizes = dict(cameras=("left",), action_names=("x", "y"), state=3, image_px=SIDE, chunk=4)
    memory = Readout(torch.rand(2, 3, 8), torch.rand(2, 8), torch.rand(2, 3), torch.rand(2, 5))
    given = (torch.rand(2, 1, 3, SIDE, SIDE), torch.rand(2, 3), memory, torch.rand(2, 4, 2))
    shape = dict(memory_tokens=3, memory_width=8, memory_address=5)
    built = families.family("lerobot").build({**sizes, **shape, "lerobot": {**SMALL["act"], "dropout": 0.0}})
    assert built.checkpoint.preprocessor is not None
    with torch.no_grad():
        built.state_mean.fill_(7.0)
    here = built.losses(*given, torch.ones(2, 4, dtype=torch.bool))["lerobot"]
    moved(built)
    with Apart():
        images, state, readout, target = (
            Readout(*(one.to(DEVICE) for one in part)) if isinstance(part, Readout) else part.to(DEVICE)
            for part in given
        )
        loss = built.losses(images, state, readout, target, torch.ones(2, 4, dtype=torch.bool, device=DEVICE))
        assert isinstance(built.eval().predict(images, state, readout), Elsewhere)
    assert float(loss["lerobot"].detach()) == pytest.approx(float(here.detach()), rel=1e-5)
