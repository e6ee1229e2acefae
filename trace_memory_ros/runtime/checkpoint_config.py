"""What a checkpoint says about itself, beside its weights: everything that training, replay and live must share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from trace_memory_ros import __version__
from trace_memory_ros.files.strict import ConfigError, check_keys, require_int, require_text
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.clock import ClockRule, rule_from_dict
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.encoder import EncoderConfig

SCHEMA = 2
READABLE = (1, SCHEMA)
OPTIONAL = ("signature_window", "policy", "training", "actions")
MAX_DEPTH = 4
LEROBOT = "lerobot"
"""The policy family, and the visual backbone, of LeRobot's policies."""


@dataclass(frozen=True)
class MemoryConfig:
    """A mechanism as `memory.registry.config_of` describes it: registry name, sizes, options."""

    name: str
    dims: MemoryDims
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self.name, "memory.name")

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping; `memory.registry.from_config` and `from_dict` take it."""
        return {"name": self.name, "dims": asdict(self.dims), "options": plain(self.options)}

    @classmethod
    def from_dict(cls, data: object, where: str = "memory") -> MemoryConfig:
        """Read a mapping strictly. Raises ConfigError."""
        values = check_keys(data, ("name", "dims", "options"), ("name", "dims"), where)
        sizes = tuple(f.name for f in fields(MemoryDims))
        dims = check_keys(values["dims"], sizes, sizes, f"{where}.dims")
        for name, size in dims.items():
            require_int(size, f"{where}.dims.{name}", 0)
        return cls(values["name"], MemoryDims(**dims), dict(values.get("options") or {}))


@dataclass(frozen=True)
class PolicyConfig:
    """The policy whose weights lie under `policy.`: family, e.g. `act`, and that family's options."""

    family: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self.family, "policy.family")


@dataclass(frozen=True)
class CheckpointConfig:
    """Content of `config.yaml`.

    signature_depth: 0 where the mechanism takes no signature. signature_window: None for the whole episode. policy:
    None in a memory-only checkpoint. training: plain values that tell where the weights come from (`command`, `seed`,
    `metrics`, ...). actions: what the policy's outputs are; None for one JointTrajectory of its action names on
    `command`. Raises ConfigError when two parts don't fit each other, naming both.
    """

    memory: MemoryConfig
    encoder: EncoderConfig
    observation: ObservationConfig
    clock: ClockRule
    signature_depth: int
    task: str
    policy: PolicyConfig | None = None
    training: Mapping[str, Any] = field(default_factory=dict)
    signature_window: PathWindow | None = None
    package_version: str = __version__
    schema: int = SCHEMA
    actions: ActionConfig | None = None

    def __post_init__(self) -> None:
        _check_schema(self.schema, self.package_version, "checkpoint")
        require_int(self.signature_depth, "signature_depth", 0, MAX_DEPTH)
        require_text(self.task, "task")
        seen, encoder, dims = self.observation, self.encoder, self.memory.dims
        _agree("encoder.cameras", encoder.cameras, "cameras of the observation", len(seen.cameras))
        _agree("encoder.state_dim", encoder.state_dim, "state channels of the observation", seen.state_dim)
        _agree("encoder.thumbnail_px", encoder.thumbnail_px, "observation.thumbnail_px", seen.thumbnail_px)
        _agree("memory.dims.content", dims.content, "visual_width + state_width of the encoder", encoder.content_dim)
        words = f"signature size at depth {self.signature_depth} of {seen.path_dim} path channels"
        _agree("memory.dims.signature", dims.signature, words, self.signature_dim)
        if self.actions is not None:
            self.actions.relative_rows(self.observation)

    @property
    def mechanism(self) -> str:
        """Registry name of the memory."""
        return self.memory.name

    @property
    def frozen_backbones(self) -> tuple[BackboneConfig, ...]:
        """Backbones of memory and policy whose weights lie in files of their own, each once."""
        found = [self.encoder.backbone]
        if self.policy is not None and "backbone" in self.policy.options:
            found.append(BackboneConfig.from_dict(self.policy.options["backbone"], "policy.options.backbone"))
        return tuple({one.weights_sha256: one for one in found if one.frozen}.values())

    @property
    def kept_whole(self) -> tuple[str, ...]:
        """What tensors begin with whose float32 is never rounded: another library's policy acts as it did there."""
        policy = () if self.policy is None or self.policy.family != LEROBOT else ("policy.",)
        return (*policy, "encoder.vision.") if self.encoder.backbone.name == LEROBOT else policy

    @property
    def signature_dim(self) -> int:
        """S: numbers in a signature without its scalar term."""
        return int(sum(self.observation.path_dim**level for level in range(1, self.signature_depth + 1)))

    def to_dict(self) -> dict[str, Any]:
        """Plain YAML-ready mapping; `from_dict` inverts it."""
        policy = self.policy
        actions = {} if self.actions is None else {"actions": self.actions.to_dict()}
        return {
            "schema": self.schema,
            "package_version": self.package_version,
            "task": self.task,
            "memory": self.memory.to_dict(),
            "encoder": self.encoder.to_dict(),
            "observation": self.observation.to_dict(),
            "clock": self.clock.to_dict(),
            "signature_depth": self.signature_depth,
            "signature_window": None if self.signature_window is None else self.signature_window.to_dict(),
            "policy": None if policy is None else {"family": policy.family, "options": plain(policy.options)},
            **actions,
            "training": plain(self.training),
        }

    @classmethod
    def from_dict(cls, data: object, where: str = "checkpoint") -> CheckpointConfig:
        """Read a mapping strictly. Raises ConfigError naming unknown, missing or invalid keys."""
        names = tuple(f.name for f in fields(cls))
        if isinstance(data, Mapping):
            # Another schema may have other keys; that it is another is the news.
            _check_schema(data.get("schema"), data.get("package_version"), where)
        values = check_keys(data, names, [n for n in names if n not in OPTIONAL], where)
        window = values.get("signature_window")
        policy, actions = values.get("policy"), values.get("actions")
        if policy is not None:
            policy = check_keys(policy, ("family", "options"), ("family",), f"{where}.policy")
            policy = PolicyConfig(policy["family"], dict(policy.get("options") or {}))
        return cls(
            memory=MemoryConfig.from_dict(values["memory"], f"{where}.memory"),
            encoder=EncoderConfig.from_dict(values["encoder"], f"{where}.encoder"),
            observation=ObservationConfig.from_dict(values["observation"], f"{where}.observation"),
            clock=rule_from_dict(values["clock"], f"{where}.clock"),
            signature_depth=values["signature_depth"],
            task=values["task"],
            signature_window=None if window is None else PathWindow.from_dict(window, f"{where}.signature_window"),
            policy=policy,
            actions=None if actions is None else ActionConfig.from_dict(actions, f"{where}.actions"),
            training=dict(values.get("training") or {}),
            package_version=values["package_version"],
        )


def plain(value: Any) -> Any:
    """Mappings, sequences, numbers and text as YAML's own types. Raises ConfigError for anything else."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise ConfigError(f"{value!r} of type {type(value).__name__} cannot be written to config.yaml: use plain values")


def _check_schema(schema: object, version: object, where: str) -> None:
    if schema not in READABLE:
        raise ConfigError(
            f"{where}: schema is {schema!r}, this package (version {__version__}) reads "
            f"{' and '.join(map(str, READABLE))}: "
            f"install the version that wrote it ({version}), or train again"
        )


def _agree(name: str, value: int, other: str, expected: int) -> None:
    if value != expected:
        raise ConfigError(f"{name} = {value}, but {other}: {expected}; the two must be equal")
