"""Ways to break a checkpoint: in its bytes, and in its configuration's values, with hashes that are right again."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from studies.fuzz_bags.mutations import BYTES, EXTREMES
from studies.soak.robot import Row, write_checkpoint
from trace_memory_ros.runtime.checkpoint import CONFIG, HASH_KEY, WEIGHTS
from trace_memory_ros.runtime.checkpoint_sizes import plain_values

Rng = np.random.Generator
Files = dict[str, bytes]

DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
MEMORIES = ("trace", "gru", "transformer", "retrieval+gate")
STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    *EXTREMES,
    10**30,
    -(2**63),
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x" * 300,
    "../../etc/passwd",
    [],
    {},
    [[]],
    {"name": "gru"},
)
BOMB = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n"
    for before, name in zip("abcdefghi", "bcdefghij", strict=True)
)


def sound() -> list[Files]:
    """Checkpoints to begin from: a small one of each of `MEMORIES`."""
    found = []
    for name in MEMORIES:
        with TemporaryDirectory() as folder:
            path = write_checkpoint(Path(folder) / "sound", Row(name), 0)
            found.append({file.name: file.read_bytes() for file in path.iterdir()})
    return found


def raw_weights(files: Files, rng: Rng) -> None:
    """Bytes of the weights; nobody tells the configuration."""
    files[WEIGHTS] = _broken(files[WEIGHTS], rng)


def hashed_weights(files: Files, rng: Rng) -> None:
    """Bytes of the weights, and the configuration knows their hash."""
    files[WEIGHTS] = _broken(files[WEIGHTS], rng)
    _hash_again(files)


def header(files: Files, rng: Rng) -> None:
    """A type, a shape or an offset of a tensor, or the header's length, with the right hash."""
    content = files[WEIGHTS]
    size = struct.unpack("<Q", content[:8])[0]
    described = json.loads(content[8 : 8 + size])
    entry = described[str(rng.choice([name for name in described if name != "__metadata__"]))]
    key = str(rng.choice(["dtype", "shape", "data_offsets"]))
    if key == "dtype":
        entry[key] = str(rng.choice(["F64", "I64", "BOOL", "F8_E4M3", "", "X"]))
    else:
        values = [*entry[key], 1]
        values[rng.integers(len(values))] = int(EXTREMES[rng.integers(len(EXTREMES))])
        entry[key] = values[: len(entry[key]) + int(rng.integers(2))]
    packed = json.dumps(described).encode()
    length = len(packed) if rng.random() < 0.8 else int(EXTREMES[rng.integers(len(EXTREMES))])
    files[WEIGHTS] = struct.pack("<Q", length) + packed + content[8 + size :]
    _hash_again(files)


def config_bytes(files: Files, rng: Rng) -> None:
    """Bytes of the configuration."""
    files[CONFIG] = _broken(files[CONFIG], rng)


def config_value(files: Files, rng: Rng) -> None:
    """One to three values of the configuration become strange ones, or go."""
    values = plain_values(files[CONFIG])
    for _ in range(int(rng.integers(1, 4))):
        _change(values, rng)
    files[CONFIG] = _dumped(values)


def config_bomb(files: Files, rng: Rng) -> None:
    """Values that refer to others eight at a time, or lie thousands deep, or hold themselves."""
    kind = int(rng.integers(3))
    if kind == 0:
        files[CONFIG] = BOMB.encode() + files[CONFIG]
    elif kind == 1:
        deep = int(rng.integers(20, 200_000))
        files[CONFIG] += b"deep: " + b"[" * deep + b"]" * deep + b"\n"
    else:
        files[CONFIG] += b"extra: &extra\n  more: *extra\n"


KINDS: dict[str, Callable[[Files, Rng], None]] = {
    "weights": raw_weights,
    "weights, hashed": hashed_weights,
    "header, hashed": header,
    "configuration's bytes": config_bytes,
    "configuration's values": config_value,
    "configuration's size": config_bomb,
}
SHARES = (0.1, 0.15, 0.2, 0.2, 0.33, 0.02)


def mutated(found: list[Files], rng: Rng) -> tuple[str, Files]:
    """A checkpoint broken in one random way: the way, and its files."""
    files = dict(found[rng.integers(len(found))])
    name = str(rng.choice(list(KINDS), p=SHARES))
    KINDS[name](files, rng)
    return name, files


def _broken(content: bytes, rng: Rng) -> bytes:
    return BYTES[str(rng.choice(list(BYTES)))](content, rng)


def _hash_again(files: Files) -> None:
    values = plain_values(files[CONFIG])
    values[HASH_KEY] = hashlib.sha256(files[WEIGHTS]).hexdigest()
    files[CONFIG] = _dumped(values)


def _dumped(values: Any) -> bytes:
    text: str = yaml.dump(values, Dumper=DUMPER, sort_keys=False)
    return text.encode()


def _change(values: Any, rng: Rng) -> None:
    """Walk down to a random value and change it."""
    while True:
        keys = list(values) if isinstance(values, dict) else list(range(len(values)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        below = values[key]
        if not isinstance(below, (dict, list)) or not below or rng.random() < 0.05:
            break
        values = below
    if rng.random() < 0.1:
        del values[key]
    else:
        values[key] = STRANGE[rng.integers(len(STRANGE))]
