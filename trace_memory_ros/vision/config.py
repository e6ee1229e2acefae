"""Which backbone looks at the pictures, said once and kept in the checkpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from trace_memory_ros.files.strict import ConfigError, check_keys, require_text

SMALL, CELLS, THINGS = "small", "cells", "things"
FROM_NOTHING = (SMALL, CELLS, THINGS)
"""Backbones without pretrained weights."""
WEIGHTLESS = (CELLS, THINGS)
"""Those without any: a few numbers of each place, as they are in the picture."""
POLICY = "policy"
"""In a training: the memory sees with the backbone that its policy has, whichever that is."""
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class BackboneConfig:
    """A backbone by its name in `registry`, and what it is asked for.

    frozen: its weights are never trained, and lie in a file of their own beside the checkpoint. weights_sha256: of the
    safetensors file that they come from; None for weights that begin at random. options: the backbone's own. Raises
    ConfigError.
    """

    name: str = SMALL
    frozen: bool = False
    weights_sha256: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self.name, "backbone.name")
        if not isinstance(self.frozen, bool):
            raise ConfigError(f"backbone.frozen = {self.frozen!r}: must be true or false")
        if self.weights_sha256 is not None and not SHA256.fullmatch(str(self.weights_sha256)):
            raise ConfigError(f"backbone.weights_sha256 = {self.weights_sha256!r}: must be 64 hexadecimal digits")
        if not isinstance(self.options, Mapping):
            raise ConfigError(f"backbone.options = {self.options!r}: must be a mapping")
        object.__setattr__(self, "options", dict(self.options))
        if self.frozen and self.from_nothing:
            raise ConfigError(
                f"backbone {self.name} is frozen: it has no pretrained weights to keep; train it, or choose another"
            )

    def __str__(self) -> str:
        said = [f"{key} {value}" for key, value in self.options.items()]
        return ", ".join([self.name, *(["frozen"] if self.frozen else []), *said])

    @property
    def is_small(self) -> bool:
        """Whether it is the convolutions that this package trains from nothing."""
        return self.name == SMALL

    @property
    def from_nothing(self) -> bool:
        """Whether there are no pretrained weights for it."""
        return self.name in FROM_NOTHING

    @property
    def fixed(self) -> bool:
        """Whether training leaves what it sees in a picture as it is."""
        return self.frozen or self.name in WEIGHTLESS

    @property
    def kept(self) -> bool:
        """Whether what it sees in a picture is kept for training: as no weights change it, and no turn of colours."""
        return self.frozen or self.name == THINGS

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for a checkpoint; `from_dict` inverts it.

        Weights that were trained lie in the checkpoint itself: where they began is left out.
        """
        found = {"weights_sha256": self.weights_sha256} if self.frozen else {}
        return {"name": self.name, "frozen": self.frozen, **found, "options": dict(self.options)}

    @classmethod
    def from_dict(cls, data: object, where: str = "backbone") -> BackboneConfig:
        """Read a mapping strictly; a name alone is that backbone, trained from nothing. Raises ConfigError."""
        if isinstance(data, BackboneConfig):
            return data
        if isinstance(data, str):
            return cls(data)
        return cls(**check_keys(data, [f.name for f in fields(cls)], ("name",), where))
