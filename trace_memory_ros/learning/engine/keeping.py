"""A training's state in one file, from which it goes on as if it had not been interrupted, and asking it to stop."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from trace_memory_ros.files import atomic
from trace_memory_ros.learning.engine.processes import ALONE, Group
from trace_memory_ros.learning.recipe import Recipe

EVERY_S = 60.0
"""Between saves of the memory's phase, which are made where it is looked at anyway."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)
_RNG = "rng."
_ANEW = "resume with the same arguments and recordings, or train anew without --resume"


class Stopped(KeyboardInterrupt):
    """A training that was asked to stop, and did; the message says how to go on."""


@dataclass(frozen=True)
class Kept:
    """What a file holds: the phase, the place in it as plain values, and tensors by name."""

    phase: str
    place: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def into(self, modules: Mapping[str, nn.Module], optimiser: torch.optim.Optimizer) -> None:
        """Put the weights, the optimiser's moments and the random states back."""
        for name, module in modules.items():
            own = {k.removeprefix(f"{name}."): v for k, v in self.tensors.items() if k.startswith(f"{name}.")}
            try:
                module.load_state_dict(own)
            except RuntimeError as error:
                raise ValueError(f"what was kept of {name} has other sizes than what is trained: {_ANEW}") from error
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in self.tensors.items():
            if name.startswith("adam."):
                _, index, key = name.split(".", 2)
                state.setdefault(int(index), {})[key] = value
        optimiser.load_state_dict({**optimiser.state_dict(), "state": state})
        if f"{_RNG}cpu" in self.tensors:
            torch.set_rng_state(self.tensors[f"{_RNG}cpu"])
        gpu = _gpu_of(modules)
        if f"{_RNG}cuda" in self.tensors and gpu is not None:
            torch.cuda.set_rng_state(self.tensors[f"{_RNG}cuda"], gpu)


@dataclass
class Keeper:
    """Keeps the training of a recipe and seed in the file at `path`, if there is one; `asked`: it is to stop.

    about: plain values of what else a training depends on, by name. What is long may be its `digest`.
    """

    seed: int
    recipe: Recipe
    path: Path | None = None
    group: Group = ALONE
    about: Mapping[str, Any] = field(default_factory=dict)
    asked: bool = False
    every_s: float = EVERY_S
    _saved_at: float = field(default_factory=time.monotonic)

    @property
    def due(self) -> bool:
        """Whether the last save was long ago."""
        return time.monotonic() - self._saved_at >= self.every_s

    @property
    def _run(self) -> dict[str, Any]:
        return {"seed": self.seed, "recipe": self.recipe.to_dict(), **self.about}

    def write(
        self,
        phase: str,
        place: Mapping[str, Any],
        modules: Mapping[str, nn.Module],
        optimiser: torch.optim.Optimizer,
    ) -> None:
        """Keep the state, as one safetensors file; only the first of several processes does."""
        self._saved_at = time.monotonic()
        if self.path is None or not self.group.writes:
            return
        tensors = {f"{name}.{k}": v for name, module in modules.items() for k, v in module.state_dict().items()}
        for index, moments in optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{k}": torch.as_tensor(v) for k, v in moments.items()}
        tensors[f"{_RNG}cpu"] = torch.get_rng_state()
        gpu = _gpu_of(modules)
        if gpu is not None:
            tensors[f"{_RNG}cuda"] = torch.cuda.get_rng_state(gpu)
        meta = {"phase": phase, "place": dict(place), **self._run}
        with atomic.replacing(self.path) as partial:
            # Cloned, since a memory may share its policy's backbone.
            whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
            save_file(whole, partial, metadata={"training": json.dumps(meta, sort_keys=True)})

    def read(self) -> Kept | None:
        """What was kept; None where nothing was.

        Raises ValueError when it was of another run, naming what differs; of `about`, what the file tells.
        """
        if self.path is None or not self.path.exists():
            return None
        with safe_open(self.path, framework="pt") as file:
            meta = json.loads((file.metadata() or {}).get("training", "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        here = json.loads(json.dumps(self._run))
        there = {"seed": None, "recipe": None} | {key: meta[key] for key in here if key in meta}
        found = [said for key, value in there.items() for said in _differences(key, value, here[key])]
        if found:
            raise ValueError(f"{self.path} was written by another run ({'; '.join(found)}): {_ANEW}")
        return Kept(meta["phase"], meta["place"], tensors)

    def stop_if_asked(self, device: torch.device, write: Callable[[], None], where: str) -> None:
        """Save by `write` and raise Stopped, if this process or another was asked to."""
        if self.group.any(self.asked, device):
            write()
            kept = (
                "" if self.path is None else f" and kept in {self.path}: the same command with --resume goes on there"
            )
            raise Stopped(f"stopped at {where}{kept}")

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take Ctrl-C and SIGTERM as being asked to stop after the step; a second one ends the process at once."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def asked(number: int, _: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True

        before = {number: signal.signal(number, asked) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _gpu_of(modules: Mapping[str, nn.Module]) -> torch.device | None:
    """Where the modules are, whose random state counts whatever GPU is torch's current one; None without a GPU."""
    found = {parameter.device for module in modules.values() for parameter in module.parameters()}
    return next((device for device in found if device.type == "cuda"), None)


def digest(names: Iterable[str]) -> str:
    """Of names in their order, to tell whether they are the same."""
    found = list(names)
    return f"{len(found)} of SHA-256 {hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]}"


def _differences(name: str, there: Any, here: Any) -> Iterator[str]:
    """What differs, by the innermost name, as it is in the file and in this run."""
    if isinstance(there, dict) and isinstance(here, dict):
        for key in sorted(there.keys() | here.keys()):
            yield from _differences(f"{name}.{key}", there.get(key), here.get(key))
    elif there != here:
        yield f"{name}: {there} in the file, {here} here"
