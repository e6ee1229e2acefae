"""Policy families by name: those of this package, and those that other packages bring by entry point."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from typing import Any

from torch import Tensor

from trace_memory_ros.files import entry_points
from trace_memory_ros.files.entry_points import EntryPointError, LoadedEntryPoint
from trace_memory_ros.files.strict import ConfigError, check_keys
from trace_memory_ros.policies.base import Policy
from trace_memory_ros.policies.module import ChunkConfig, ChunkModule

GROUP = "trace_memory_ros.policies"
"""Entry point group: name of the family -> a `PolicyFamily`, or a function `(options, tensors) -> Policy`."""

Load = Callable[[Mapping[str, Any], Mapping[str, Tensor]], Policy]

# Imported when asked for: diffusers alone takes over a second.
BUILT_IN = {
    "act": "trace_memory_ros.policies.act.family:ACT",
    "diffusion": "trace_memory_ros.policies.diffusion.family:DIFFUSION",
    "lerobot": "trace_memory_ros.policies.lerobot.family:LEROBOT",
}


class UnknownFamily(ValueError):
    """No family of that name is there, or it cannot be loaded; the message names what is there and the remedy."""


@dataclass(frozen=True)
class PolicyFamily:
    """A family that can be run, and trained where it has a module.

    load: options and tensors of a checkpoint's policy to a policy that acts. config: options to the module's config;
    module: config to an untrained module. Both None: this package cannot train the family. at_period: tick period in
    ms to those options that are counted in ticks, so that they take as long at any rate; None where there are none.
    looks_at: which part of a frozen backbone's features its module uses, `tokens` or `pooled`, so that kept ones can
    stand for images in training; None where it has to be given images.
    """

    name: str
    load: Load
    config: Callable[..., ChunkConfig] | None = None
    module: Callable[[Any], ChunkModule] | None = None
    at_period: Callable[[int], Mapping[str, Any]] | None = None
    looks_at: str | None = None

    def build(self, options: Mapping[str, Any]) -> ChunkModule:
        """An untrained module. Raises UnknownFamily where there is none to build, ConfigError for wrong options."""
        if self.config is None or self.module is None:
            raise self._only_run()
        self.check_options(options)
        try:
            config = self.config(**options)
        except TypeError as error:
            raise ConfigError(f"policy.options of family {self.name!r}: {error}: correct {dict(options)}") from error
        return self.module(config)

    def check_trained(self) -> None:
        """Raise UnknownFamily where this package cannot train the family."""
        if self.config is None or self.module is None:
            raise self._only_run()

    def _only_run(self) -> UnknownFamily:
        return UnknownFamily(
            f"policy family {self.name!r} can be run here but not trained: its entry point gives no config and "
            "module. Train it where it comes from, or let its entry point be a PolicyFamily with both"
        )

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ConfigError naming an option that the family does not have, and the nearest, where its config tells."""
        if isinstance(self.config, type) and is_dataclass(self.config):
            known = [field.name for field in fields(self.config)]
            check_keys(options, known, (), f"policy.options of family {self.name!r}")


def names() -> tuple[str, ...]:
    """Families that can be asked for, sorted."""
    return tuple(sorted(BUILT_IN.keys() | entry_points.names(GROUP)))


def family(name: str) -> PolicyFamily:
    """The family of that name. Raises UnknownFamily naming those that are there, or why it cannot be loaded."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, PolicyFamily)
        return found
    try:
        loaded = entry_points.load(GROUP, name, "policy family")
    except EntryPointError as error:
        raise UnknownFamily(str(error)) from error
    if loaded is None:
        raise UnknownFamily(
            f"policy family {name!r} is unknown here: there are {', '.join(names())}. Install the package that brings "
            f"it by an entry point of the group {GROUP}, or choose one of these"
        )
    return _from_package(name, loaded)


def _from_package(name: str, loaded: LoadedEntryPoint) -> PolicyFamily:
    found = loaded.value
    if isinstance(found, PolicyFamily):
        return found
    if callable(found):
        return PolicyFamily(name, found)
    raise UnknownFamily(
        f"policy family {name!r} of {loaded.package}: {loaded.origin} is a {type(found).__name__}, but must be a "
        "PolicyFamily or a function of options and tensors; mend that package"
    )
