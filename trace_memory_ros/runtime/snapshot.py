"""Snapshots as flat, named arrays: any tensor file can hold one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

VERSION = 3
VERSION_KEY = "snapshot.version"
MODEL_KEY = "snapshot.model_id"
NOT_A_NUMBER_YET = ("address.last_state",)
"""What is NaN before an episode's first tick; elsewhere one number that is not finite would spoil every later tick."""
FILLED_BY_A_TICK = ("last_state", "written_ns")
"""Of clocks, empty before an episode's first tick; elsewhere an empty array is damage."""


class SnapshotError(ValueError):
    """A snapshot cannot be restored; the message names the array and both sides."""


def pack(model_id: str, parts: Mapping[str, Mapping[str, NDArray[Any]]]) -> Arrays:
    """`{part: {name: array}}` as `part.name` arrays, with version and model_id."""
    out: Arrays = {
        VERSION_KEY: np.array([VERSION], dtype=np.int64),
        MODEL_KEY: np.frombuffer(model_id.encode("ascii"), dtype=np.uint8).copy(),
    }
    for part, arrays in parts.items():
        out |= {f"{part}.{name}": array for name, array in arrays.items()}
    return out


def unpack(arrays: Mapping[str, NDArray[Any]], expected: Arrays) -> dict[str, Arrays]:
    """The parts of a snapshot of finite values that has the version, model, names, types and shapes of `expected`.

    One that fills with the episode's first tick may be empty on either side. Raises SnapshotError.
    """
    _check_origin(arrays, expected)
    missing, extra = sorted(set(expected) - set(arrays)), sorted(set(arrays) - set(expected))
    if missing or extra:
        raise SnapshotError(f"snapshot lacks {missing} and has unknown {extra}: take it again with this version")
    parts: dict[str, Arrays] = {}
    for name, template in expected.items():
        array = np.asarray(arrays[name])
        fills = array.ndim == template.ndim == 1 and name.endswith(FILLED_BY_A_TICK)
        fits = array.shape == template.shape or (fills and 0 in (array.size, template.size))
        if array.dtype != template.dtype or not fits:
            raise SnapshotError(
                f"snapshot: {name} is {array.dtype} {array.shape}, this model has {template.dtype} {template.shape}"
            )
        if array.dtype.kind == "f" and name not in NOT_A_NUMBER_YET and not np.isfinite(array).all():
            raise SnapshotError(f"snapshot: {name} has values that are not finite: take it again, or reset the episode")
        part, key = name.split(".", 1)
        parts.setdefault(part, {})[key] = array
    return parts


def _check_origin(arrays: Mapping[str, NDArray[Any]], expected: Arrays) -> None:
    for key in (VERSION_KEY, MODEL_KEY):
        if key not in arrays:
            raise SnapshotError(f"snapshot has no {key}: it is not a memory snapshot, or damaged; take it again")
    version = np.asarray(arrays[VERSION_KEY]).tolist()
    if version != [VERSION]:
        raise SnapshotError(f"snapshot version is {version}, this package reads [{VERSION}]: take it again")
    found, own = (
        np.asarray(a[MODEL_KEY], dtype=np.uint8).tobytes().decode("ascii", "replace") for a in (arrays, expected)
    )
    if found != own:
        raise SnapshotError(f"snapshot is of model {found}, this is model {own}: load that checkpoint, or reset")
