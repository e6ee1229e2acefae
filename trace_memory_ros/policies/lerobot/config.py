"""A LeRobot policy as a family that is trained here: from LeRobot's own folder, or from nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from trace_memory_ros.policies.lerobot import processors
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.pictures import side_for
from trace_memory_ros.policies.module import ChunkConfig
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.pretrained import IMAGENET

TYPES = ("act", "diffusion")
CONFIG = "config.json"
EXECUTE = 8
"""Ticks of a chunk that a new policy executes before it computes the next, where the chunk is not shorter."""
SIZES: dict[str, dict[str, Any]] = {
    "act": {},
    "diffusion": {"down_dims": (64, 128), "crop_shape": None},
}
"""What a new policy is built with where LeRobot's own default is for images of 96 pixels, or for a GPU."""
Statistics = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class LerobotConfig(ChunkConfig):
    """base: LeRobot's `pretrained_model` folder to begin from; None for a new policy of `type`.

    lerobot: LeRobot's own options of a new policy, or, in a checkpoint, its whole configuration. statistics: of
    LeRobot's normaliser by feature, as lists; None for this training's. frozen: LeRobot's weights stay as they are.
    gate, hidden: of the memory's adapter; gate None for 0 where a policy is begun from, else 1.
    Raises ValueError.
    """

    type: str = "act"
    base: str | None = None
    lerobot: Mapping[str, Any] = field(default_factory=dict)
    statistics: Statistics | None = None
    frozen: bool = False
    gate: float | None = None
    hidden: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.type not in TYPES:
            raise ValueError(f"policy.options.type = {self.type!r}: choose from {', '.join(TYPES)}")
        if self.backbone != BackboneConfig():
            raise ValueError("policy.backbone does not apply: a LeRobot policy brings its own (policy.options.lerobot)")
        if self.base is not None and self.lerobot:
            raise ValueError(f"policy.options: base = {self.base!r} has its options already: leave `lerobot` out")
        object.__setattr__(self, "lerobot", dict(self.lerobot))

    @property
    def first_gate(self) -> float:
        """Where the gates of memory tokens begin."""
        return self.gate if self.gate is not None else (0.0 if self.base else 1.0)


@dataclass(frozen=True)
class Begun:
    """LeRobot's policy, its configuration as plain data, and its normaliser's statistics; None for this training's."""

    base: Any
    plain: dict[str, Any]
    statistics: Statistics | None


def begin(config: LerobotConfig) -> Begun:
    """LeRobot's policy with random weights, or those of `config.base`.

    Raises ValueError naming what of it does not fit the training, LerobotMissing without LeRobot.
    """
    if config.base is not None:
        return _from_folder(config, Path(config.base))
    whole = "input_features" in config.lerobot
    made = _from_plain(config.lerobot) if whole else _new(config)
    base = _class_of(made)(made)
    check(config, base.config)
    return Begun(base, plain_of(made), config.statistics)


def plain_of(made: Any) -> dict[str, Any]:
    """LeRobot's configuration as plain data; pretrained weights are left out, since a checkpoint brings its own."""
    with TemporaryDirectory() as folder:
        made._save_pretrained(Path(folder))
        plain: dict[str, Any] = json.loads((Path(folder) / CONFIG).read_text(encoding="utf-8"))
    return {**plain, "pretrained_backbone_weights": None, "device": "cpu"}


def check(config: LerobotConfig, made: Any) -> None:
    """Raise ValueError naming what of LeRobot's configuration does not fit the training."""
    shapes = {key: tuple(one.shape) for key, one in sorted(made.image_features.items())}
    cameras = sorted(f"observation.images.{name}" for name in config.cameras)
    wanted = {
        "type": (made.type, config.type),
        "images": (list(shapes), cameras),
        f"image_px for {', '.join(map(str, shapes.values()))}": (
            sorted({side_for(shape) for shape in shapes.values()} or {config.image_px}),
            [config.image_px],
        ),
        "numbers of the state": (made.robot_state_feature and made.robot_state_feature.shape[0], config.state),
        "numbers of an action": (made.action_feature and made.action_feature.shape[0], len(config.action_names)),
        "ticks of a chunk": (chunk_of(made), config.chunk),
        "ticks of an observation": (made.n_obs_steps, 1),
    }
    unlike = [f"{what} {found}, this training {want}" for what, (found, want) in wanted.items() if found != want]
    if unlike:
        raise ValueError(
            f"LeRobot's {made.type} policy {config.base or ''} does not fit: {'; '.join(unlike)}. Train it on what "
            "`trace-memory bags to-lerobot` writes with this configuration, or change image_px, chunk or type here"
        )


def chunk_of(made: Any) -> int:
    """Ticks in a chunk of LeRobot's configuration."""
    return int(made.chunk_size if made.type == "act" else made.horizon)


def new_statistics(module: Any, cameras: tuple[str, ...]) -> dict[str, dict[str, Tensor]]:
    """Statistics for LeRobot's processors of a policy without its own: ImageNet's for images, the training's else."""
    mean, std = (torch.tensor(part).reshape(3, 1, 1) for part in IMAGENET)
    found = {f"observation.images.{name}": {"mean": mean, "std": std} for name in cameras}
    for key, name in (("observation.state", "state"), ("action", "action")):
        moments = {part: getattr(module, f"{name}_{part}").cpu() for part in ("mean", "std")}
        # LeRobot's diffusion scales by the ends: four deviations to either side.
        ends = {"min": moments["mean"] - 4 * moments["std"], "max": moments["mean"] + 4 * moments["std"]}
        found[key] = moments | ends
    return found


def tensors_of(statistics: Statistics) -> dict[str, dict[str, Tensor]]:
    """Plain lists as LeRobot's processors take them."""
    return {
        key: {name: torch.tensor(value, dtype=torch.float32) for name, value in one.items()}
        for key, one in statistics.items()
    }


def _new(config: LerobotConfig) -> Any:
    types, factory = lerobot("lerobot.configs.types"), lerobot("lerobot.policies.factory")
    kinds, feature, side = types.FeatureType, types.PolicyFeature, config.image_px
    inputs = {f"observation.images.{name}": feature(kinds.VISUAL, (3, side, side)) for name in config.cameras}
    inputs["observation.state"] = feature(kinds.STATE, (config.state,))
    outputs = {"action": feature(kinds.ACTION, (len(config.action_names),))}
    execute = min(EXECUTE, config.chunk)
    sizes = {"chunk_size": config.chunk} if config.type == "act" else {"horizon": config.chunk, "n_obs_steps": 1}
    given = {"n_action_steps": execute, "pretrained_backbone_weights": None, **sizes, **SIZES[config.type]}
    options = {**given, **config.lerobot}
    return factory.make_policy_config(
        config.type, device="cpu", input_features=inputs, output_features=outputs, **options
    )


def _from_plain(plain: Mapping[str, Any]) -> Any:
    # LeRobot knows a policy's configuration once its policies are imported, and reads one from a folder alone.
    lerobot("lerobot.policies.factory")
    with TemporaryDirectory() as folder:
        (Path(folder) / CONFIG).write_text(json.dumps(plain), encoding="utf-8")
        try:
            return lerobot("lerobot.configs.policies").PreTrainedConfig.from_pretrained(folder)
        except Exception as error:  # whatever draccus makes of options that LeRobot does not have
            raise ValueError(f"LeRobot cannot read the configuration {dict(plain)}: {error}") from error


def _class_of(made: Any) -> Any:
    return lerobot("lerobot.policies.factory").get_policy_class(made.type)


def _from_folder(config: LerobotConfig, folder: Path) -> Begun:
    if not (folder / CONFIG).is_file():
        raise ValueError(f"policy.options.base = {str(folder)!r} holds no {CONFIG}: name LeRobot's pretrained_model")
    made = _from_plain(
        {
            **json.loads((folder / CONFIG).read_text(encoding="utf-8")),
            "pretrained_backbone_weights": None,
            "device": "cpu",
        }
    )
    check(config, made)
    base = _class_of(made).from_pretrained(folder, config=made, strict=True)
    pre, _ = processors.read(made, folder)
    return Begun(base, plain_of(made), _statistics_of(pre, folder))


def _statistics_of(preprocessor: Any, folder: Path) -> Statistics:
    """Of LeRobot's normaliser, as lists. Raises ValueError for processors that do more than LeRobot's usual ones."""
    found: dict[str, dict[str, Any]] = {}
    for step in preprocessor.steps:
        if getattr(step, "rename_map", None):
            raise ValueError(f"{folder}: its processors rename {step.rename_map}: save the policy without that")
        for name, value in (step.state_dict() if hasattr(step, "norm_map") else {}).items():
            key, statistic = name.rsplit(".", 1)
            found.setdefault(key, {})[statistic] = value.tolist()
    return found


def resolved(config: LerobotConfig, begun: Begun) -> dict[str, Any]:
    """What a checkpoint must say so that the policy can be built again, without the folder that it began from."""
    plain = {name: value for name, value in asdict(config).items() if name != "backbone"}
    return {
        **plain,
        "base": None,
        "lerobot": begun.plain,
        "statistics": begun.statistics,
        "gate": config.first_gate,
    }
