"""How much of the path the address describes: the whole episode, or the newest part of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import check_keys, require_int, require_positive
from trace_memory_ros.runtime.clock import PathLength, UpdateClock
from trace_memory_ros.signature.streaming import StreamingSignature
from trace_memory_ros.signature.windowed import WindowedSignature

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class PathWindow:
    """The newest `stretches` stretches of `length` standardised path each (L2, unitless), and the one being walked.

    deadband: as of the clock rule `PathLength`. Measured in path rather than ticks, a window outlasts any pause.
    """

    length: float = 1.0
    stretches: int = 8
    deadband: float = 1.0

    def __post_init__(self) -> None:
        require_positive(self.length, "signature_window: length")
        require_int(self.stretches, "signature_window: stretches", 1)
        require_positive(self.deadband, "signature_window: deadband", zero=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping; `from_dict` inverts it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object, where: str = "signature_window") -> PathWindow:
        """Read a mapping strictly. Raises ConfigError."""
        names = ("length", "stretches", "deadband")
        values = check_keys(data, names, names, where)
        require_positive(values["length"], f"{where}.length")
        require_positive(values["deadband"], f"{where}.deadband", zero=True)
        return cls(float(values["length"]), values["stretches"], float(values["deadband"]))


class PathSignature(Protocol):
    """Signature `(S,)` of a path that grows by one standardised state `(d_s,)` per tick."""

    size: int

    def reset(self) -> None: ...

    def update(self, state: NDArray[np.float64]) -> None: ...

    def value(self) -> NDArray[np.float64]: ...

    def snapshot(self) -> dict[str, NDArray[Any]]: ...

    def restore(self, snapshot: Arrays, /) -> None: ...


class WindowedPath:
    """A `WindowedSignature` that closes a stretch whenever a `PathWindow`'s length has been walked."""

    def __init__(self, dim: int, depth: int, window: PathWindow) -> None:
        self._signature = WindowedSignature(dim, depth, window.stretches)
        self._clock = UpdateClock(PathLength(window.length, window.deadband))
        self.size = self._signature.size

    def reset(self) -> None:
        """The next state becomes the basepoint."""
        self._signature.reset()
        self._clock.reset()

    def update(self, state: NDArray[np.float64]) -> None:
        """Append a standardised state `(d_s,)`."""
        first = not self._signature.started
        self._signature.update(state)
        if self._clock.due(state) and not first:
            self._signature.close_stretch()

    def value(self) -> NDArray[np.float64]:
        """Signature `(S,)` of the window."""
        return self._signature.value()

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `restore` accepts."""
        clock = {f"window_{name}": array for name, array in self._clock.snapshot().items()}
        return {**self._signature.snapshot(), **clock}

    def restore(self, snapshot: Arrays, /) -> None:
        """Stand where `snapshot` was taken. Raises ValueError for other sizes or damage."""
        self._signature.restore(snapshot)
        self._clock.restore({name: snapshot[f"window_{name}"] for name in self._clock.snapshot()})


def path_signature(dim: int, depth: int, window: PathWindow | None) -> PathSignature:
    """What training, replay and the live node follow a path with: the whole of it, or a window."""
    return StreamingSignature(dim, depth) if window is None else WindowedPath(dim, depth, window)
