"""Memory mechanisms by name, as a configuration or checkpoint calls them: this package's, and other packages' by entry
point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

from trace_memory_ros.files import entry_points
from trace_memory_ros.files.plain import check_types
from trace_memory_ros.files.strict import check_keys, nearest
from trace_memory_ros.memory.aura.config import LEGACY_TOKENS, AuraConfig
from trace_memory_ros.memory.aura.memory import AuraMemory
from trace_memory_ros.memory.base import Memory, MemoryDims
from trace_memory_ros.memory.cache.config import CachedConfig
from trace_memory_ros.memory.cache.memory import CachedMemory
from trace_memory_ros.memory.deltanet import DeltaNetConfig, DeltaNetMemory
from trace_memory_ros.memory.elmur.config import ElmurConfig
from trace_memory_ros.memory.elmur.memory import ElmurMemory
from trace_memory_ros.memory.first_frame import FirstFrameConfig, FirstFrameMemory
from trace_memory_ros.memory.gate import GatedConfig, GatedMemory
from trace_memory_ros.memory.gru import GruConfig, GruMemory
from trace_memory_ros.memory.last_k import LastKConfig, LastKMemory
from trace_memory_ros.memory.linear_attention import LinearAttentionConfig, LinearAttentionMemory
from trace_memory_ros.memory.lru import LruConfig, LruMemory
from trace_memory_ros.memory.none import NoneConfig, NoneMemory
from trace_memory_ros.memory.prism.memory import PrismConfig, PrismMemory
from trace_memory_ros.memory.retrieval import RetrievalConfig, RetrievalMemory
from trace_memory_ros.memory.trace.config import TraceConfig
from trace_memory_ros.memory.trace.memory import TraceMemory
from trace_memory_ros.memory.transformer import TransformerConfig, TransformerMemory
from trace_memory_ros.memory.vla.memory import VlaConfig, VlaMemory

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


GROUP = "trace_memory_ros.memories"
"""Entry point group: name of the mechanism -> a `Mechanism`."""
GATED = "+gate"
"""Behind a mechanism's name: that mechanism with a write gate before it, its own options under `inner`."""
CACHED = "+cache"
"""Likewise, with an attention cache behind it; `NAME+cache+gate` gates both."""


@dataclass(frozen=True)
class Mechanism:
    """A mechanism that can be built by name: `config` a dataclass of its options, `make` (dims, config) -> memory.

    legacy_options: of options that are younger than checkpoints, what a checkpoint without them was trained with.
    """

    config: type[DataclassInstance]
    make: Callable[[MemoryDims, Any], Memory]
    legacy_options: Mapping[str, Any] = field(default_factory=dict)


_MECHANISMS: dict[str, Mechanism] = {}


def register(
    name: str,
    config: type[DataclassInstance],
    make: Callable[[MemoryDims, Any], Memory],
    legacy_options: Mapping[str, Any] | None = None,
) -> None:
    """Offer a mechanism in this process; the arguments are `Mechanism`'s.

    Raises ValueError if the name is taken.
    """
    if name in _MECHANISMS:
        raise ValueError(f"memory mechanism {name!r} is registered already: choose another name")
    _MECHANISMS[name] = Mechanism(config, make, legacy_options or {})


def names() -> tuple[str, ...]:
    """Known mechanisms, sorted, those of other installed packages among them."""
    return tuple(sorted(_MECHANISMS.keys() | entry_points.names(GROUP)))


def build(name: str, dims: MemoryDims, options: Mapping[str, Any] | None = None) -> Memory:
    """A fresh mechanism, with an attention cache and a write gate where `name` ends in `+cache`, `+gate`.

    Raises ValueError naming the known ones for an unknown name or option, an option of the wrong type, and the package
    that brings a broken one.
    """
    given = dict(options or {})
    mechanism = _mechanism(name)
    inner = inner_name(name)
    if inner is not None and name.endswith(GATED):
        _check_options(name, GatedConfig, given)
        return GatedMemory(build(inner, dims, _inner_options(name, given)), GatedConfig(**given))
    if inner is not None:
        _check_options(name, CachedConfig, given)
        return CachedMemory(build(inner, dims, _inner_options(name, given)), CachedConfig(**given))
    _check_options(name, mechanism.config, given)
    memory = mechanism.make(dims, mechanism.config(**given))
    if memory.name != name:
        raise ValueError(
            f"memory mechanism {name!r} calls itself {memory.name!r}, so a checkpoint of it could not be read: let "
            f"{type(memory).__name__}.name be {name!r}"
        )
    return memory


def config_of(memory: Memory) -> dict[str, Any]:
    """What a checkpoint stores: `name`, `dims` and `options`, plain values that `from_config` takes back."""
    return {"name": memory.name, "dims": asdict(memory.dims), "options": asdict(memory.config)}


def from_config(config: Mapping[str, Any]) -> Memory:
    """The mechanism that `config_of` described, in this version or an earlier one, with fresh weights.

    Raises ValueError naming a key that is missing or sizes that do not fit.
    """
    missing = [key for key in ("name", "dims", "options") if key not in config]
    if missing:
        raise ValueError(f"memory configuration lacks {', '.join(missing)}: it needs name, dims and options")
    expected = {field.name for field in fields(MemoryDims)}
    if set(config["dims"]) != expected:
        raise ValueError(f"memory dims are {sorted(config['dims'])}: they must be {sorted(expected)}")
    options = _with_legacy_options(config["name"], config["options"])
    return build(config["name"], MemoryDims(**config["dims"]), options)


def inner_name(name: str) -> str | None:
    """The name of what stands inside a gate or cache; None for a bare mechanism."""
    inner = name.removesuffix(GATED) if name.endswith(GATED) else name.removesuffix(CACHED)
    return inner if inner != name else None


def bare_name(name: str) -> str:
    """The name without gate and cache."""
    return name.removesuffix(GATED).removesuffix(CACHED)


def _mechanism(name: str) -> Mechanism:
    """The mechanism of that name, whatever stands around it."""
    base = bare_name(name)
    if base in _MECHANISMS:
        return _MECHANISMS[base]
    loaded = entry_points.load(GROUP, base, "memory mechanism")
    if loaded is None:
        raise ValueError(
            f"memory mechanism {name!r} is unknown: {nearest(name, [known + name[len(base) :] for known in names()])}; "
            f"another package brings one by an entry point of the group {GROUP}"
        )
    found = loaded.value
    if not isinstance(found, Mechanism) or not is_dataclass(found.config):
        raise ValueError(
            f"memory mechanism {base!r} of {loaded.package}: {loaded.origin} is a {type(found).__name__}, but must "
            "be a trace_memory_ros.memory.registry.Mechanism whose config is a dataclass; mend that package"
        )
    return found


def _with_legacy_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Stored options, with those that were not there yet when they were stored."""
    inner = inner_name(name)
    if inner is not None:
        return {**options, "inner": _with_legacy_options(inner, options.get("inner") or {})}
    return {**_mechanism(name).legacy_options, **options}


def _inner_options(name: str, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The options of what stands inside a gate or cache; None for its defaults."""
    options = given.get("inner")
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(
            f"options of memory mechanism {name!r}: inner = {options!r}: must be a mapping of the options of "
            f"{inner_name(name)}; leave it out for its defaults"
        )
    return options


def _check_options(name: str, config: type[DataclassInstance], options: Mapping[str, Any]) -> None:
    where = f"options of memory mechanism {name!r}"
    known = fields(config)
    needed = [one.name for one in known if one.default is MISSING and one.default_factory is MISSING]
    check_types(config, check_keys(options, [one.name for one in known], needed, where), where)


register("trace", TraceConfig, TraceMemory)
register("first_frame", FirstFrameConfig, FirstFrameMemory)
register("last_k", LastKConfig, LastKMemory)
register("gru", GruConfig, GruMemory)
register("none", NoneConfig, NoneMemory)
register("prism", PrismConfig, PrismMemory)
register("linear_attention", LinearAttentionConfig, LinearAttentionMemory)
register("deltanet", DeltaNetConfig, DeltaNetMemory)
register("vla", VlaConfig, VlaMemory)
register("aura", AuraConfig, AuraMemory, legacy_options={"tokens": LEGACY_TOKENS})
register("transformer", TransformerConfig, TransformerMemory)
register("elmur", ElmurConfig, ElmurMemory)
register("lru", LruConfig, LruMemory)
register("retrieval", RetrievalConfig, RetrievalMemory)
