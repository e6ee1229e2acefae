"""Weights of backbones: found or converted once, kept by their hash, and never unpickled as code."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as pack_tensors
from torch import Tensor

from trace_memory_ros.files import atomic
from trace_memory_ros.files.bounded import read_file
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.vision.base import VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig

RANDOM = "random"
"""Asked for in place of a file: weights that begin at random."""
NAME = "backbone-{}.safetensors"
CACHE = "TRACE_MEMORY_CACHE"
"""Environment variable: where converted weights are kept, instead of the user's cache folder."""
MOST_BYTES = 16 * 2**30
"""Of one network's weights, packed and unpacked."""


class WeightsError(ValueError):
    """A backbone's weights are missing, damaged or another network's; the message names file and remedy."""


def cache_folder() -> Path:
    """Where this user's converted weights lie."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get(CACHE) or Path(base) / "trace_memory_ros") / "backbones"


def file_name(sha256: str) -> str:
    """What the file of that hash is called, in the cache and beside a checkpoint."""
    return NAME.format(sha256[:12])


_KNOWN: list[Path] = []


def also_in(folder: Path) -> None:
    """Look for weights in a checkpoint's folder too, from now on; which file is meant is always said by its hash."""
    if folder not in _KNOWN:
        _KNOWN.append(folder)


def find(sha256: str, name: str, folders: Sequence[Path] = ()) -> Path:
    """The file of that hash: in `folders`, checkpoints that were opened, the user's cache. Raises WeightsError."""
    places = [*folders, *_KNOWN, cache_folder()]
    for place in places:
        path = Path(place) / file_name(sha256)
        if path.is_file():
            return path
    raise WeightsError(
        f"weights of backbone {name} are missing: {file_name(sha256)} is in none of {', '.join(map(str, places))}; "
        "copy it from where the checkpoint was written, it belongs to its folder"
    )


def read(path: Path, sha256: str) -> dict[str, Tensor]:
    """The tensors of a converted file. Raises WeightsError where it is not of that hash."""
    try:
        content = read_file(path, MOST_BYTES)
    except ConfigError as error:
        raise WeightsError(
            f"{error}: it holds no backbone; copy it again from where the checkpoint was written"
        ) from error
    except OSError as error:
        raise WeightsError(f"{path} cannot be read ({error.strerror}): copy it again") from error
    found = hashlib.sha256(content).hexdigest()
    if found != sha256:
        raise WeightsError(
            f"{path} ({len(content)} bytes) has sha256 {found}, the backbone needs {sha256}: it is damaged, truncated "
            "or another network's; copy it again from where the checkpoint was written"
        )
    return load_tensors(content)


def load_into(backbone: VisualBackbone, path: Path) -> None:
    """Give a backbone the weights that its config names, from their file. Raises WeightsError where they don't fit."""
    sha256 = backbone.config.weights_sha256
    assert sha256 is not None
    fit(backbone, read(path, sha256), str(path))


def fit(backbone: VisualBackbone, tensors: Mapping[str, Tensor], where: str) -> None:
    """Give a backbone weights by name. Raises WeightsError naming what is missing, superfluous or of another shape."""
    problems = misfits(tensors, backbone.state_dict(), "the network")
    if problems:
        some = "; ".join(problems[:4]) + (f"; and {len(problems) - 4} more" if len(problems) > 4 else "")
        raise WeightsError(f"{where} does not fit backbone {backbone.config.name}: {some}")
    backbone.load_state_dict(dict(tensors))


def misfits(given: Mapping[str, Tensor], wanted: Mapping[str, Tensor], owner: str, prefix: str = "") -> list[str]:
    """What is missing, superfluous or of another shape than its owner has, a sentence each; prefix: of names."""
    problems = [f"{prefix}{name} is missing" for name in wanted if name not in given]
    problems += [f"{prefix}{name} is not one of {owner}'s" for name in given if name not in wanted]
    problems += [
        f"{prefix}{name} has shape {tuple(given[name].shape)}, {owner} has {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if name in given and given[name].shape != tensor.shape
    ]
    return problems


def keep(tensors: Mapping[str, Tensor], folder: Path | None = None) -> str:
    """Write tensors as float32 into the cache, or a folder, under their hash, and return it."""
    plain = {name: _plain(tensors[name]) for name in sorted(tensors)}
    content = pack_tensors(plain)
    sha256 = hashlib.sha256(content).hexdigest()
    folder = folder or cache_folder()
    path = folder / file_name(sha256)
    if not path.is_file() or path.stat().st_size != len(content):
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write(path, content)
    return sha256


def check(sha256: str, name: str, folder: Path) -> None:
    """Whether a checkpoint's folder, or the user's cache, holds the file of that hash. Raises WeightsError."""
    read(find(sha256, name, [folder]), sha256)


def copy_to(sha256: str, name: str, folder: Path) -> Path:
    """Copy the file of that hash into a checkpoint's folder, so that it holds everything it needs."""
    source, target = find(sha256, name, [folder]), folder / file_name(sha256)
    if source != target:
        content = source.read_bytes()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise WeightsError(f"{source} is damaged: its hash is not that in its name; remove it, and train again")
        atomic.write(target, content)
    return target


def read_source(path: Path, name: str) -> dict[str, Any]:
    """Tensors of a file from elsewhere, safetensors or a state dict of PyTorch's, of which no code is run.

    Raises WeightsError where there is none, it holds something else, or more than `MOST_BYTES`.
    """
    try:
        content = read_file(path, MOST_BYTES)
        if path.suffix == ".safetensors":
            return dict(load_tensors(content))
        _refuse_unpacked(path, content)
        found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except ConfigError as error:
        raise WeightsError(f"weights of backbone {name}: {error}: give one network's weights") from error
    except OSError as error:
        raise WeightsError(
            f"weights of backbone {name}: {path} cannot be read ({error.strerror}): check the path"
        ) from error
    except Exception as error:
        raise WeightsError(
            f"weights of backbone {name}: {path} is no safetensors file and no plain PyTorch state dict: {error}"
        ) from error
    found = found.get("state_dict", found) if isinstance(found, Mapping) else found
    if not isinstance(found, Mapping) or not all(isinstance(part, Tensor) for part in found.values()):
        raise WeightsError(f"weights of backbone {name}: {path} holds no tensors by name: give a state dict")
    return dict(found)


def _refuse_unpacked(path: Path, content: bytes) -> None:
    """Raise ConfigError for an archive that is larger once it is unpacked; PyTorch writes none that is packed."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > MOST_BYTES:
        raise ConfigError(f"{path} has {size} bytes unpacked, more than the {MOST_BYTES} that are read")


def choose(
    name: str, frozen: bool, options: Mapping[str, Any] | None = None, source: str | Path | None = None, px: int = 224
) -> BackboneConfig:
    """A backbone that is asked for, with its weights found, converted and kept in the user's cache.

    source: a file of weights, `random`, or None for where that backbone's weights usually come from. Raises ConfigError
    for an unknown backbone or option, WeightsError where its weights are not to be had.
    """
    from trace_memory_ros.vision import registry

    config = BackboneConfig(name, frozen, None, options or {})
    with torch.random.fork_rng(devices=[]):
        # Frozen random weights are the same ones in every run.
        torch.manual_seed(0)
        backbone = registry.untrained(config, px)
    if source is not None and str(source) == RANDOM:
        if not frozen:
            return config
    elif config.from_nothing:
        if source is not None:
            raise WeightsError(f"weights = {source}: backbone {name} is trained from nothing; leave the weights out")
        return config
    else:
        path = None if source is None else Path(source)
        tensors, where = backbone.pretrained(path)
        fit(backbone, tensors, where)
    return BackboneConfig(name, frozen, keep(backbone.state_dict()), config.options)


def _plain(tensor: Tensor) -> Tensor:
    plain = tensor.detach().cpu()
    return (plain.float() if plain.is_floating_point() else plain).contiguous().clone()
