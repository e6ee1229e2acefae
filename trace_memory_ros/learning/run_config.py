"""The configuration file of a training: what is built, and how it is trained.

Values come in layers, each over those before: the source's defaults, the file, flags, single assignments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.files import atomic, plain
from trace_memory_ros.files.strict import ConfigError, require_int, require_text
from trace_memory_ros.learning.data.spread import check_spread
from trace_memory_ros.learning.eyes import BackboneSection, EyesSection
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.sizes import AUTO, LADDER, SLOTS, WIDTH
from trace_memory_ros.measure.accuracy import ANNOTATED, FOUND
from trace_memory_ros.runtime.checkpoint_config import MAX_DEPTH
from trace_memory_ros.runtime.checkpoint_config import plain as plain_values
from trace_memory_ros.runtime.clock import ClockRule, rule_from_dict
from trace_memory_ros.runtime.window import PathWindow

Values = dict[str, Any]
FILE = "run.yaml"
"""Name of the file beside a checkpoint."""
SCIENTIFIC = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")
NONE = "none"
DECISIONS = (AUTO, ANNOTATED, FOUND, NONE)
CHOICES = {"memory": "name", "policy": "family", "eyes": "name"}
"""Sections whose options belong to what this key chooses."""


@dataclass(frozen=True)
class MemorySection:
    """A mechanism by its registry name, its own options, and the sizes that all have.

    among: what `auto` in place of a name chooses among, the simplest first, each with its usual options.
    """

    name: str = AUTO
    options: Mapping[str, Any] = field(default_factory=dict)
    width: int = WIDTH
    slots: int = SLOTS
    among: tuple[str, ...] = LADDER

    def __post_init__(self) -> None:
        require_text(self.name, "memory.name")
        if self.name == AUTO and self.options:
            raise ConfigError(f"memory.options = {dict(self.options)} belong to a memory: name it instead of {AUTO}")
        if not self.among or AUTO in self.among:
            raise ConfigError(f"memory.among = {list(self.among)}: give the names of at least one memory")
        require_int(self.width, "memory.width", 1)
        require_int(self.slots, "memory.slots", 1)

    @property
    def chosen(self) -> bool:
        """Whether training chooses the memory."""
        return self.name == AUTO

    @property
    def candidates(self) -> tuple[str, ...]:
        """Names of what may be trained: its own, or what `auto` chooses among."""
        return self.among if self.chosen else (self.name,)


@dataclass(frozen=True)
class AddressSection:
    """Signature depth, and the window it is taken over; None for the whole episode."""

    depth: int = 2
    window: PathWindow | None = None

    def __post_init__(self) -> None:
        require_int(self.depth, "address.depth", 1, MAX_DEPTH)


@dataclass(frozen=True)
class PolicySection:
    """A family by name, its own options, and the checkpoint that its weights start from.

    chunk: actions per prediction, in ticks; None for two seconds of them. backbone: what the policy sees with.
    """

    family: str = "act"
    options: Mapping[str, Any] = field(default_factory=dict)
    chunk: int | None = None
    start: str | None = None
    backbone: BackboneSection = field(default_factory=BackboneSection)

    def __post_init__(self) -> None:
        require_text(self.family, "policy.family")
        if self.chunk is not None:
            require_int(self.chunk, "policy.chunk", 1)


@dataclass(frozen=True)
class BagsSection:
    """How bags are used. held_out, validation: shares. episodes: train on so many at most. least_spread: by unit.

    cross_validation: whether to, where fewer than 20 decisions would be held out. noise: strengths of the noise over
    signatures that it chooses of, in multiples of the recipe's; the first is used without. decisions: which are learned
    from, `annotated`, `found` or `none`, or `auto`: annotated where there are any, else found.
    """

    held_out: float = 1 / 6
    validation: float = 1 / 10
    cross_validation: bool = True
    noise: tuple[float, ...] = (1.0, 10.0, 30.0)
    split_seed: int = 0
    episodes: int | None = None
    least_spread: Mapping[str, float] = field(default_factory=dict)
    decisions: str = AUTO

    def __post_init__(self) -> None:
        require_int(self.split_seed, "bags.split_seed", 0)
        check_spread(self.least_spread, "bags.least_spread")
        if self.decisions not in DECISIONS:
            raise ConfigError(f"bags.decisions is {self.decisions!r}: use {', '.join(DECISIONS)}")
        if not self.noise or min(self.noise) < 0.0:
            raise ConfigError(f"bags.noise = {self.noise}: give at least one strength, none negative, e.g. [1.0]")


@dataclass(frozen=True)
class RunConfig:
    """Everything that a training is decided by, apart from what it learns from.

    clock: mapping of an update clock's rule; None to choose one from the data. bags: None for a simulated task.
    """

    task: str | None = None
    seed: int = 0
    memory: MemorySection = field(default_factory=MemorySection)
    address: AddressSection = field(default_factory=AddressSection)
    clock: Mapping[str, Any] | None = None
    policy: PolicySection = field(default_factory=PolicySection)
    eyes: EyesSection = field(default_factory=EyesSection)
    bags: BagsSection | None = None
    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        require_int(self.seed, "seed", 0)
        if self.clock is not None:
            rule_from_dict(self.clock)

    @property
    def rule(self) -> ClockRule | None:
        """The update clock's rule."""
        return None if self.clock is None else rule_from_dict(self.clock)

    def with_memory(self, name: str, options: Mapping[str, Any]) -> RunConfig:
        """The same of another memory, as wide and with as many slots."""
        return replace(self, memory=replace(self.memory, name=name, options=options))

    def to_dict(self) -> Values:
        """Plain mapping; `resolve` takes it back."""
        values: Values = plain_values(asdict(self))
        return values

    def write(self, folder: Path) -> Path:
        """Write `FILE` into `folder`."""
        path = folder / FILE
        atomic.write(path, yaml.safe_dump(self.to_dict(), sort_keys=False, allow_unicode=True))
        return path


def resolve(defaults: Mapping[str, Any], given: Mapping[str, Any], where: str = "configuration") -> RunConfig:
    """The configuration that `given` values make of a source's defaults.

    Raises ConfigError naming unknown keys and wrong values.
    """
    # What a recipe leaves open of its parts is the recipe's own, not the part's.
    return plain.read(RunConfig, merged([{"recipe": asdict(Recipe())}, defaults, given]), where)


def with_values(recipe: Recipe, given: Mapping[str, Any]) -> Recipe:
    """A recipe with the values under `recipe` of what was given. Raises ConfigError."""
    return plain.read(Recipe, _over(asdict(recipe), given.get("recipe", {})), "configuration.recipe")


def merged(layers: Sequence[Mapping[str, Any]]) -> Values:
    """Nested mappings, each over those before.

    Where a layer chooses another memory, policy family or kind of clock, the options of the one before are dropped.
    """
    out: Values = {}
    for layer in layers:
        for section, key in CHOICES.items():
            before, now = _part(out, section).get(key), _part(layer, section).get(key)
            if before is not None and now is not None and now != before:
                out[section].pop("options", None)
        if "kind" in _part(layer, "clock"):
            out.pop("clock", None)
        out = _over(out, layer)
    return out


def _part(values: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    part = values.get(section)
    return part if isinstance(part, Mapping) else {}


def _over(low: Mapping[str, Any], high: Mapping[str, Any]) -> Values:
    out = dict(low)
    for key, value in high.items():
        out[key] = _over(_part(low, key), value) if isinstance(value, Mapping) else value
    return out


def chosen(given: Mapping[str, Any], section: str, default: str) -> str:
    """The memory, policy family or eyes that are asked for."""
    return str(_part(given, section).get(CHOICES[section], default))


def read_file(path: Path) -> Values:
    """The values of a configuration file. Raises ConfigError where it is no YAML mapping."""
    try:
        data = _with_numbers(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path} cannot be read as a run's configuration: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds {type(data).__name__}: give a mapping, as {FILE} beside a checkpoint is one")
    return data


def assignment(text: str) -> Values:
    """`a.b=value`, the value as YAML, as a nested mapping. Raises ConfigError naming the text."""
    name, equals, value = text.partition("=")
    if not equals or not all(name.strip().split(".")):
        raise ConfigError(f"--set {text!r}: write KEY=VALUE, for example memory.slots=8")
    try:
        out: Any = _with_numbers(yaml.safe_load(value))
    except yaml.YAMLError as error:
        raise ConfigError(f"--set {text!r}: {value!r} is no YAML: {error}") from error
    return nested(name.strip(), out)


def nested(name: str, value: Any) -> Values:
    """`a.b` and a value as `{a: {b: value}}`."""
    first, _, rest = name.partition(".")
    return {first: nested(rest, value) if rest else value}


def _with_numbers(value: Any) -> Any:
    """What YAML 1.1 reads as text and everybody writes as a number: 1e-3."""
    if isinstance(value, dict):
        return {key: _with_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_numbers(item) for item in value]
    return float(value) if isinstance(value, str) and SCIENTIFIC.fullmatch(value) else value
