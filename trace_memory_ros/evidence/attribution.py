"""Which moment a decision came from: leave it out, remember on, and see what changes.

A memory that follows signatures keeps the past in two places: in what was written, and in the path's signature, which
is in the address of every read. So a moment can be left out of either. Without a write, the memory lacks what that
write put into it and nothing else: addresses and increments stay as they were. Without a stretch of path, the arm
stands still over it and goes on from there, displaced: later addresses lack the motion of that stretch, and the writes
still fall due where they did. What a cue leaves behind, several neighbouring writes may hold; hence windows of them.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.evidence.history_pass import Heard, HistoryListener
from trace_memory_ros.evidence.history_transforms import States, identity
from trace_memory_ros.memory.base import Memory, Readout

AT_ONCE = 32
Addresses = tuple[Tensor, Tensor]
"""xi and delta `(B, D + 1, S)`: at the D due ticks and at the last tick."""


def windows(heard: Heard, window: int) -> NDArray[np.int64]:
    """`(W, 2)`: for every write the first and the last index into `heard.due` of the window centred on it.

    Raises ValueError for an even or non-positive window, which has no centre.
    """
    if window < 1 or window % 2 == 0:
        raise ValueError(f"window = {window}: leave out an odd number of writes, 1 or more")
    wrote = np.flatnonzero(heard.record.wrote[0].numpy())
    places = np.arange(len(wrote))
    first = np.maximum(places - window // 2, 0)
    last = np.minimum(places + window // 2, len(wrote) - 1)
    return np.stack([wrote[first], wrote[last]], axis=1).astype(np.int64)


def kept_outside(bounds: NDArray[np.int64], due: int) -> NDArray[np.bool_]:
    """`(W, due)`: row w keeps every due tick but those from the first to the last of `bounds` `(W, 2)`."""
    places = np.arange(due)
    return (places < bounds[:, :1]) | (places > bounds[:, 1:])


def standing(states: States, begin: int, end: int) -> States:
    """States `(T, d_s)` of an arm that stands still from tick `begin` to `end` and then moves on as it did."""
    out = states.copy()
    out[begin : end + 1] = states[begin]
    out[end + 1 :] -= states[end] - states[begin]
    return out


def without_stretches(listener: HistoryListener, states: States, heard: Heard, bounds: NDArray[np.int64]) -> Addresses:
    """Addresses after the stretches of path that led to the writes in each window: from the due tick before it on."""
    found = []
    for first, last in bounds:
        begin = heard.due[first - 1] if first else 0
        path = identity(standing(states, int(begin), int(heard.due[last])))
        found.append(listener.addresses(path, heard.due))
    xi, delta = (torch.stack(parts) for parts in zip(*found, strict=True))
    return xi, delta


@torch.inference_mode()
def recall_without(
    memory: Memory, heard: Heard, kept: NDArray[np.bool_], addresses: Addresses | None = None
) -> Readout:
    """What is recalled at the history's last tick with the writes `kept` `(B, D)` alone; fields `(B, ...)`.

    addresses: to write and read with, instead of those that were heard.
    """
    parts = []
    for start in range(0, len(kept), AT_ONCE):
        mask = torch.from_numpy(kept[start : start + AT_ONCE])
        rows = mask.shape[0]
        evidence = heard.evidence._replace(**_expanded(heard.evidence._asdict(), rows))
        now = heard.now._replace(**_expanded(heard.now._asdict(), rows))
        if addresses is not None:
            xi, delta = (part[start : start + AT_ONCE] for part in addresses)
            evidence = memory.embed(evidence._replace(xi=xi[:, :-1], delta=delta[:, :-1], embedded=None))
            now = memory.embed(now._replace(xi=xi[:, -1], delta=delta[:, -1], embedded=None))
        _, state, _ = memory.scan(evidence, memory.initial_state(rows), mask)
        parts.append(memory.read(now, state))
    return Readout(*(torch.cat(fields) for fields in zip(*parts, strict=True)))


def _expanded(fields: dict[str, Tensor | None], rows: int) -> dict[str, Tensor]:
    return {name: field.expand(rows, *field.shape[1:]) for name, field in fields.items() if field is not None}


def relative_change(vectors: NDArray[np.float32], whole: NDArray[np.float32]) -> NDArray[np.float64]:
    """L2 change `(B,)` of read vectors `(B, d)` against `whole` `(d,)`, relative to its size; 0 where that is 0."""
    size = float(np.linalg.norm(whole))
    change = np.linalg.norm(vectors.astype(np.float64) - whole, axis=1)
    return change / size if size else np.zeros_like(change)
