"""Memory mechanisms by name: what a configuration or checkpoint calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from trace_memory_ros.files.strict import check_keys, nearest
from trace_memory_ros.memory.aura.config import AuraConfig
from trace_memory_ros.memory.aura.memory import AuraMemory
from trace_memory_ros.memory.base import Memory, MemoryDims
from trace_memory_ros.memory.deltanet import DeltaNetConfig, DeltaNetMemory
from trace_memory_ros.memory.elmur.config import ElmurConfig
from trace_memory_ros.memory.elmur.memory import ElmurMemory
from trace_memory_ros.memory.gate import GatedConfig, GatedMemory
from trace_memory_ros.memory.gru import GruConfig, GruMemory
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


@dataclass(frozen=True)
class _Entry:
    config: type[DataclassInstance]
    make: Callable[[MemoryDims, Any], Memory]


_ENTRIES: dict[str, _Entry] = {}
GATED = "+gate"
"""Behind a mechanism's name: that mechanism with a write gate before it, its own options under `inner`."""


def register(name: str, config: type[DataclassInstance], make: Callable[[MemoryDims, Any], Memory]) -> None:
    """Offer a mechanism: `config` is a dataclass of its options, `make(dims, config)` builds it.

    Raises ValueError if the name is taken.
    """
    if name in _ENTRIES:
        raise ValueError(f"memory mechanism {name!r} is registered already: choose another name")
    _ENTRIES[name] = _Entry(config, make)


def names() -> tuple[str, ...]:
    """Known mechanisms, sorted."""
    return tuple(sorted(_ENTRIES))


def build(name: str, dims: MemoryDims, options: Mapping[str, Any] | None = None) -> Memory:
    """A fresh mechanism, with a write gate where `name` ends in `+gate`.

    Raises ValueError naming the known ones for an unknown name or option.
    """
    given = dict(options or {})
    base = name.removesuffix(GATED)
    if base not in _ENTRIES:
        raise ValueError(
            f"memory mechanism {name!r} is unknown: {nearest(name, [known + name[len(base) :] for known in names()])}"
        )
    if base != name:
        _check_options(name, GatedConfig, given)
        return GatedMemory(build(base, dims, given.get("inner")), GatedConfig(**given))
    entry = _ENTRIES[name]
    _check_options(name, entry.config, given)
    return entry.make(dims, entry.config(**given))


def config_of(memory: Memory) -> dict[str, Any]:
    """What a checkpoint stores: `name`, `dims` and `options`, plain values that `from_config` takes back."""
    return {"name": memory.name, "dims": asdict(memory.dims), "options": asdict(memory.config)}


def from_config(config: Mapping[str, Any]) -> Memory:
    """The mechanism that `config_of` described, with fresh weights.

    Raises ValueError naming a key that is missing or sizes that do not fit.
    """
    missing = [key for key in ("name", "dims", "options") if key not in config]
    if missing:
        raise ValueError(f"memory configuration lacks {', '.join(missing)}: it needs name, dims and options")
    expected = {field.name for field in fields(MemoryDims)}
    if set(config["dims"]) != expected:
        raise ValueError(f"memory dims are {sorted(config['dims'])}: they must be {sorted(expected)}")
    return build(config["name"], MemoryDims(**config["dims"]), config["options"])


def _check_options(name: str, config: type[DataclassInstance], options: Mapping[str, Any]) -> None:
    check_keys(options, [field.name for field in fields(config)], (), f"options of memory mechanism {name!r}")


register("trace", TraceConfig, TraceMemory)
register("gru", GruConfig, GruMemory)
register("none", NoneConfig, NoneMemory)
register("prism", PrismConfig, PrismMemory)
register("linear_attention", LinearAttentionConfig, LinearAttentionMemory)
register("deltanet", DeltaNetConfig, DeltaNetMemory)
register("vla", VlaConfig, VlaMemory)
register("aura", AuraConfig, AuraMemory)
register("transformer", TransformerConfig, TransformerMemory)
register("elmur", ElmurConfig, ElmurMemory)
register("lru", LruConfig, LruMemory)
register("retrieval", RetrievalConfig, RetrievalMemory)
