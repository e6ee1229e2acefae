"""From demonstrations to an untrained agent, and from a trained agent to a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.data.batches import NO_PICTURES, BatchBuilder, Data, Wanted
from trace_memory_ros.learning.data.dataset import (
    EpisodeSet,
    StatePath,
    Statistics,
    TrainingSet,
    UnpairedSet,
    action_spread,
    answers_diverge,
    fit_state,
    fit_statistics,
    held_in_memory,
    state_mask,
)
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.spread import ACTION_SHARE, least_spread
from trace_memory_ros.learning.data.unexplained import Shows
from trace_memory_ros.learning.decisions.branch_accuracy import fit_references
from trace_memory_ros.learning.features.cache import FeatureCache
from trace_memory_ros.learning.recipe import Augmentation
from trace_memory_ros.measure.accuracy import ANNOTATED
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryDims
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.policies import families
from trace_memory_ros.policies.images import ImageTokens, ImageVectors
from trace_memory_ros.policies.module import ChunkModule
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.checkpoint import Checkpoint, CheckpointConfig, MemoryConfig, PolicyConfig, save
from trace_memory_ros.runtime.clock import ClockRule, UpdateClock
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.signature.layout import signature_size
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision import registry as backbones
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import POLICY, SMALL, BackboneConfig
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig, Pool

Pairs = Sequence[tuple[Demonstration, ...]]


@dataclass(frozen=True)
class Design:
    """What is built and trained: mechanism, sizes, update clock, policy family and what it is asked beyond these.

    actions: None for one trajectory of joints. spread: least spread by unit, over what is usual. backbone: of the
    memory, named `policy` for that of the policy. pooling: how its features become one vector.
    """

    memory: str
    options: dict[str, Any]
    observation: ObservationConfig
    action_names: tuple[str, ...]
    clock: ClockRule
    depth: int = 3
    window: PathWindow | None = None
    slots: int = 4
    width: int = 64
    chunk: int = 20
    policy: str = "act"
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    actions: ActionConfig | None = None
    spread: Mapping[str, float] = field(default_factory=dict)
    backbone: BackboneConfig = field(default_factory=BackboneConfig)
    pooling: str = "mean"

    @property
    def policy_px(self) -> int:
        """Side of the images that the policy sees: what it is asked for, or that of the smallest camera's."""
        sides = {name: self.observation.px_of(name) for name in self.observation.camera_names}
        px = int(self.policy_options.get("image_px", min(sides.values())))
        small = [f"{name} of {side}" for name, side in sides.items() if side < px]
        if small:
            raise ConfigError(
                f"policy.options.image_px = {px} is more than is kept of camera {', '.join(small)}: raise image_px of "
                "the observation or the camera, or lower the policy's"
            )
        return px

    @property
    def seen_by(self) -> BackboneConfig:
        """The backbone that the memory's pictures go through."""
        if self.backbone.name != POLICY:
            return self.backbone
        return BackboneConfig.from_dict(self.policy_options.get("backbone", SMALL))

    @property
    def signature_numbers(self) -> int:
        """S: numbers of a signature; 0 without one."""
        return signature_size(self.observation.path_dim, self.depth) if self.depth else 0

    @property
    def whole_depth(self) -> int:
        """Depth of addresses that are signatures of the whole path; 0 where they are none."""
        return self.depth if self.window is None else 0

    @property
    def least_state(self) -> NDArray[np.float64]:
        """What state channels `(d_s,)` are divided by at least."""
        return least_spread(self.observation.state_units, self.spread)

    @property
    def least_action(self) -> NDArray[np.float64]:
        """What actions `(A,)` are divided by at least; without a description they are angles."""
        units = ("rad",) * len(self.action_names) if self.actions is None else self.actions.units
        return ACTION_SHARE * least_spread(units, self.spread)


def prepare(design: Design, training: Pairs, validation: Pairs = (), held_out: Pairs = ()) -> Data:
    """Batch builders over the splits, all with the train split's statistics; none over an empty one."""
    state = fit_state((demo for pair in training for demo in pair), state_mask(design.observation), design.least_state)
    px, seen = design.observation.thumbnail_px, design.observation
    kept = held_in_memory((demo for pair in training for demo in pair), design.signature_numbers)
    path = StatePath(state, design.depth, design.window, seen.tick_period_ms, seen.path_rows, kept)
    builder = _builder(design, TrainingSet.build(training, path, px), state)
    others = (
        replace(builder, data=TrainingSet.build(pairs, path, px)) if pairs else None for pairs in (validation, held_out)
    )
    return Data(builder, *others)


def prepare_unpaired(
    design: Design,
    state: Standardiser,
    training: Sequence[Demonstration],
    validation: Sequence[Demonstration] = (),
    held_out: Sequence[Demonstration] = (),
    labels: str = ANNOTATED,
    shows: Shows | None = None,
) -> Data:
    """Batch builders over the splits, all with the train split's statistics and branch references.

    None over an empty split. labels: where the answers come from. shows: what coarse clocks must not pass over.
    """
    spread, px = action_spread(training, design.least_action), design.observation.thumbnail_px
    period_ms = design.observation.tick_period_ms
    kept = held_in_memory(training, design.signature_numbers)
    path = StatePath(state, design.depth, design.window, period_ms, design.observation.path_rows, kept)
    apart = answers_diverge(training, spread, period_ms)

    def batches_of(demos: Sequence[Demonstration]) -> UnpairedSet:
        return UnpairedSet.build(demos, path, px, spread, apart)

    builder = _builder(design, batches_of(training), state)
    builder = replace(builder, references=fit_references(builder, labels), shows=shows)
    others = (replace(builder, data=batches_of(demos)) if demos else None for demos in (validation, held_out))
    return Data(builder, *others)


def _builder(design: Design, training: EpisodeSet, state: Standardiser) -> BatchBuilder:
    """Over the train split, with its statistics."""
    clock = UpdateClock(design.clock)
    return BatchBuilder(
        training,
        fit_statistics(training, state, clock, design.depth, design.least_action),
        clock,
        design.chunk,
        image_px=design.policy_px,
        whole_depth=design.whole_depth,
        moved=tuple(action_channels(design)),
    )


def with_features(data: Data, design: Design, strength: Augmentation, folder: Path) -> Data:
    """Batches of features that are kept in `folder`, in place of images, where the memory's backbone is frozen,
    or gives what is kept as it is and a turn of colours changes afterwards.

    Those of a backbone that is the policy's too serve both, where both look at the same part of them. Otherwise, and
    where it is trained, `data` as it is.
    """
    tokens, backbone = design.pooling != "mean", design.seen_by
    shared = design.backbone.name == POLICY
    unlike = shared and families.family(design.policy).looks_at != ("tokens" if tokens else "pooled")
    if unlike or not backbone.kept:
        return data
    built = backbones.build(backbone, design.observation.thumbnail_px)
    cache = FeatureCache(folder, built, tokens, strength)
    held = (None if builder is None else replace(builder, features=cache) for builder in data[1:])
    return Data(replace(data.training, features=cache), *held)


def action_channels(design: Design) -> list[int]:
    """State channel that each action moves, found by name; -1 for none, and for what is relative to it already."""
    channels = [design.observation.channel_moved_by(name) for name in design.action_names]
    if design.actions is not None:
        rows = design.actions.relative_rows(design.observation)
        channels = [channel if row < 0 else None for channel, row in zip(channels, rows, strict=True)]
    return [-1 if channel is None else channel for channel in channels]


def build_agent(design: Design, builder: BatchBuilder) -> Agent:
    """An agent with fresh weights, its normalisers set and its routing calibrated on the train split."""
    seen = design.observation
    eyes = EncoderConfig(len(seen.cameras), seen.thumbnail_px, seen.state_dim, pooling=design.pooling)
    shared = design.backbone.name == POLICY
    encoder = None if shared else ContentEncoder(replace(eyes, backbone=design.backbone))
    dims = MemoryDims(
        eyes.content_dim,
        design.signature_numbers,
        design.width,
        design.slots,
    )
    memory = registry.build(design.memory, dims, design.options)
    sizes = dict(
        cameras=seen.camera_names,
        action_names=design.action_names,
        state=seen.state_dim,
        image_px=design.policy_px,
        chunk=design.chunk,
        memory_tokens=memory.slot_count,
        memory_width=design.width,
        memory_address=memory.address_width,
    )
    _check_sizes(design.policy_options, sizes)
    policy = families.family(design.policy).build({**sizes, **design.policy_options})
    _set_normalisers(policy, builder.statistics)
    if encoder is None:
        encoder = ContentEncoder(replace(eyes, backbone=policy.backbone.config, shared=True), policy.backbone)
    agent = Agent(encoder, memory, policy)
    _calibrate(agent, builder)
    return agent


def _check_sizes(options: Mapping[str, Any], sizes: Mapping[str, Any]) -> None:
    """Refuse options of a policy that what it is trained on decides: it would be another's, or fit nothing."""
    for name in (name for name in sizes if name in options and name != "image_px"):
        given, needed = (list(one) if isinstance(one, tuple) else one for one in (options[name], sizes[name]))
        if given != needed:
            where = "policy.chunk" if name == "chunk" else "the recording's configuration or the memory's sizes"
            raise ConfigError(f"policy.options.{name} = {given}, this training has {needed}: change {where} instead")


def check_family(checkpoint: Checkpoint, family: str) -> None:
    """Raise ValueError where a policy of `family` cannot start from the checkpoint's."""
    if checkpoint.policy.family != family:
        raise ValueError(
            f"the policy in {checkpoint.folder} is of family {checkpoint.policy.family!r}, this run's of {family!r}: "
            "start from a checkpoint of the same family, or train that family (--policy)"
        )


def adopt_policy(agent: Agent, checkpoint: Checkpoint) -> None:
    """Start the policy from another checkpoint's, all but the adapter, which fits that checkpoint's memory alone.

    Where that one had no memory, the adapter begins close to what its policy is used to. Raises ValueError when the two
    policies differ in anything else, naming it.
    """
    check_family(checkpoint, agent.policy.family)
    seen_by = BackboneConfig.from_dict(checkpoint.policy.options.get("backbone", SMALL))
    ours_by = getattr(agent.policy.config, "backbone", seen_by)
    if (seen_by.frozen or ours_by.frozen) and seen_by != ours_by:
        raise ValueError(
            f"the policy in {checkpoint.folder} sees through {seen_by} ({seen_by.weights_sha256}), this run's through "
            f"{ours_by} ({ours_by.weights_sha256}): give policy.backbone as it was trained"
        )
    theirs = {k: v for k, v in checkpoint.tensors_of("policy.").items() if not k.startswith("adapter.")}
    ours = {k: v for k, v in agent.policy.state_dict().items() if not k.startswith("adapter.")}
    unlike = sorted(k for k in theirs.keys() | ours.keys() if k not in theirs or k not in ours)
    unlike += [k for k in ours if k in theirs and ours[k].shape != theirs[k].shape]
    if unlike:
        raise ValueError(
            f"the policy in {checkpoint.folder} is not of this run's sizes: {', '.join(unlike)} differ. "
            "Start from a checkpoint of the same task and policy options."
        )
    agent.policy.load_state_dict({k: v for k, v in theirs.items() if not k.endswith(("_mean", "_std"))}, strict=False)
    used_to = _said_without_memory(checkpoint)
    if used_to is not None:
        agent.policy.adapter.begin_near(used_to)


@torch.no_grad()
def _said_without_memory(checkpoint: Checkpoint) -> torch.Tensor | None:
    """What the adapter of a memoryless checkpoint always says; None where there was a memory."""
    adapter = families.family(checkpoint.policy.family).build(checkpoint.policy.options).adapter
    if adapter.shape.tokens or adapter.shape.address:
        return None
    checkpoint.load_into(adapter, "policy.adapter.")
    return adapter.without_memory()


def _set_normalisers(policy: ChunkModule, statistics: Statistics) -> None:
    state = statistics.state
    policy.state_mean.copy_(torch.from_numpy(np.where(state.active, state.mean, 0.0)))
    policy.state_std.copy_(torch.from_numpy(np.where(state.active, state.std, 1.0)))
    policy.action_mean.copy_(torch.from_numpy(statistics.action_mean))
    policy.action_std.copy_(torch.from_numpy(statistics.action_std))


def reinitialise(agent: Agent, builder: BatchBuilder) -> None:
    """Fresh weights for what the first phase trains, in place, drawn and calibrated as `build_agent` does."""
    config = registry.config_of(agent.memory)
    memory = registry.build(config["name"], agent.memory.dims, config["options"])
    eyes = agent.encoder.config
    kept = agent.encoder.vision if eyes.shared or eyes.backbone.frozen else None
    fresh = Agent(ContentEncoder(eyes, kept), memory, agent.policy)
    _calibrate(fresh, builder)
    agent.encoder.load_state_dict(fresh.encoder.state_dict())
    agent.memory.load_state_dict(fresh.memory.state_dict())
    if eyes.shared and agent.policy.places is not None:
        agent.policy.places.reset()


@torch.no_grad()
def _calibrate_eyes(agent: Agent, builder: BatchBuilder, ticks: int = 6) -> None:
    """Standardise what fixed eyes give by pictures of the training split; those of trained ones will change."""
    config, pool, trunk = agent.encoder.config, agent.encoder.pool, agent.policy.trunk()
    looks = isinstance(pool, Pool) and config.backbone.fixed
    own = not config.shared and isinstance(trunk, ImageTokens) and (trunk.stages.placed or trunk.salience is not None)
    if not (looks or own):
        return
    # What is usual takes more of them than what is standard, and so does what is shown briefly and is all there is.
    placed = agent.encoder.vision.placed
    chosen = builder.data.episodes[: 32 if config.pooling == "salience" or own or placed else 8]
    ticks = 4 * ticks if placed else ticks
    reads = [np.linspace(0, episode.demo.ticks - 1, ticks).astype(np.int64) for episode in chosen]
    batch = builder.build(list(range(len(chosen))), [1.0] * len(chosen), reads, Wanted(pictures=own))
    if isinstance(pool, Pool) and looks:
        seen = batch.reads.thumbnails
        features = seen if isinstance(seen, Features) else agent.encoder.features(seen)
        _check_seen(features, agent.encoder.vision)
        pool.calibrate(features)
        if config.shared and isinstance(trunk, ImageTokens | ImageVectors):
            trunk.calibrate(features)
    if isinstance(trunk, ImageTokens) and own:
        features = trunk.stages.features(batch.images)
        _check_seen(features, trunk.stages)
        trunk.calibrate(features)


def _check_seen(features: Features, eyes: VisualBackbone) -> None:
    """Raise ConfigError where eyes for things find none in pictures of the training split."""
    if eyes.placed and not features.tokens.any():
        pictures = features.tokens[..., 0, 0].numel()
        raise ConfigError(
            f"backbone {eyes.config}: nothing in {pictures} pictures of {eyes.px} px of the training episodes; what is "
            "to be seen may be larger or smaller than the options most_px and least_px allow, or greyer than colourful"
        )


@torch.no_grad()
def _calibrate(agent: Agent, builder: BatchBuilder, episodes: int = 32) -> None:
    _calibrate_eyes(agent, builder)
    if type(agent.memory).calibrate is Memory.calibrate:
        return
    indices = list(range(min(episodes, len(builder.data.episodes))))
    reads = [np.zeros(1, dtype=np.int64)] * len(indices)
    batch = builder.build(indices, [1.0] * len(indices), reads, NO_PICTURES)
    agent.memory.calibrate(agent.memory_inputs(batch), batch.mask)


def save_checkpoint(
    agent: Agent, design: Design, builder: BatchBuilder, task: str, training: dict[str, Any], folder: Path
) -> str:
    """Write encoder, memory, policy and normalisers with everything the runtime needs; returns the model_id."""
    memory = registry.config_of(agent.memory)
    config = CheckpointConfig(
        memory=MemoryConfig(memory["name"], agent.memory.dims, memory["options"]),
        encoder=agent.encoder.config,
        observation=design.observation,
        clock=design.clock,
        signature_depth=design.depth,
        signature_window=design.window,
        task=task,
        policy=PolicyConfig(design.policy, agent.policy.config.to_dict()),
        actions=design.actions,
        training=training,
    )
    statistics = builder.statistics
    model = MemoryModel(agent.encoder, agent.memory, statistics.state, statistics.xi, statistics.delta)
    policy = {f"policy.{name}": tensor for name, tensor in agent.policy.state_dict().items()}
    return save(folder, config, model.tensors() | policy)
