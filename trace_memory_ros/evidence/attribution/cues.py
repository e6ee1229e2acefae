"""Cue attribution of one decision: every write, every moment, and all that came earlier, left out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.evidence.attribution import leave_out
from trace_memory_ros.evidence.branch_moment import BranchMoment, BranchOutcome
from trace_memory_ros.evidence.history.transforms import identity
from trace_memory_ros.evidence.results import AttributionEvidence, EarlierLeftOut, WriteAttribution
from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.references import chunk_distance

NO_WRITE = "no write fell before the branch"
NO_PAST = "no tick lies more than {:g} s before the branch; a smaller --present-seconds leaves more"
NO_SIGNATURE = "the memory takes no signature, so the path is not in it"


class Change(NamedTuple):
    """Against the recorded outcome: of the readout, relative; of the chunk; of the decision; and the new decision."""

    readout: float
    chunk: float | None
    flipped: bool | None
    label: str | None


def attribution_evidence(
    moment: BranchMoment, recorded: BranchOutcome, window: int, present_s: float
) -> AttributionEvidence:
    """What each write, each moment of `window` writes, and all that came more than `present_s` before contributed."""
    scanned, scanner = recorded.scanned, moment.scanner
    single, around = (leave_out.windows(scanned, size) for size in (1, window))
    alone, moments = (
        _without(moment, recorded, leave_out.kept_outside(bounds, len(scanned.due))) for bounds in (single, around)
    )
    paths: list[Change] | list[None] = [None] * len(around)
    if scanner.model.uses_signature and len(around):
        addresses = leave_out.without_stretches(scanner, moment.history.states, scanned, around)
        everything = np.ones((len(around), len(scanned.due)), dtype=np.bool_)
        paths = _without(moment, recorded, everything, addresses)
    strengths = scanned.strengths.max(axis=1, initial=0.0)
    rows = zip(scanned.writes, strengths, alone, moments, paths, strict=True)
    return AttributionEvidence(
        branch_tick=moment.tick,
        branch_stamp_ns=int(moment.stamps_ns[-1]),
        label=moment.label,
        decision=recorded.label,
        window=window,
        writes=tuple(_write(moment, *row) for row in rows),
        reasons=_reasons(moment, recorded, present_s),
        earlier=_earlier(moment, recorded, present_s),
    )


def _write(
    moment: BranchMoment, tick: int, strength: float, alone: Change, around: Change, path: Change | None
) -> WriteAttribution:
    return WriteAttribution(
        tick=int(moment.ticks[tick]),
        stamp_ns=int(moment.stamps_ns[tick]),
        strength=float(strength),
        delta_readout=alone.readout,
        delta_action=alone.chunk,
        flipped=alone.flipped,
        window_delta_readout=around.readout,
        window_delta_action=around.chunk,
        window_flipped=around.flipped,
        path_delta_action=None if path is None else path.chunk,
        path_flipped=None if path is None else path.flipped,
    )


def _reasons(moment: BranchMoment, recorded: BranchOutcome, present_s: float) -> dict[str, str]:
    reasons = {}
    if not _past(moment, present_s).any():
        reasons["earlier"] = NO_PAST.format(present_s)
    if moment.undecided:
        reasons["flipped"] = moment.undecided
    if recorded.chunk is None:
        reasons["delta_action"] = moment.undecided
    if not moment.scanner.model.uses_signature:
        reasons["path_delta_action"] = NO_SIGNATURE
    if not len(recorded.scanned.writes):
        reasons["writes"] = NO_WRITE
    return reasons


def _past(moment: BranchMoment, present_s: float) -> NDArray[np.bool_]:
    """Which of the moment's ticks `(U,)` lie more than `present_s` before the branch."""
    return np.asarray(moment.stamps_ns < moment.stamps_ns[-1] - round(present_s * 1e9))


def _earlier(moment: BranchMoment, recorded: BranchOutcome, present_s: float) -> EarlierLeftOut | None:
    """The outcome of a memory that begins `present_s` before the branch, and of one that lost half of that.

    None where nothing lies so early: a decision that loses nothing would speak against the use of earlier evidence.
    """
    scanned, history, memory = recorded.scanned, moment.history, moment.scanner.model.memory
    past = _past(moment, present_s)
    if not past.any():
        return None
    start = int(past.sum())
    late = moment.scanner.scan(history.contents[start:], identity(history.states[start:]))
    both = _changes(moment, recorded, late.readout)[0]
    writes = _without(moment, recorded, ~past[scanned.due][None])[0]
    path = None
    if moment.scanner.model.uses_signature:
        everything = np.ones((1, len(scanned.due)), dtype=np.bool_)
        shorter = scanned._replace(now=late.now._replace(anchor=scanned.now.anchor))
        path = _changes(moment, recorded, leave_out.recall_without(memory, shorter, everything))[0]
    return EarlierLeftOut(
        present_s=present_s,
        writes=int((past[scanned.writes]).sum()),
        delta_readout=both.readout,
        delta_action=both.chunk,
        decision=both.label,
        flipped=both.flipped,
        delta_action_without_writes=writes.chunk,
        flipped_without_writes=writes.flipped,
        delta_action_without_path=None if path is None else path.chunk,
        flipped_without_path=None if path is None else path.flipped,
    )


def _without(
    moment: BranchMoment,
    recorded: BranchOutcome,
    kept: NDArray[np.bool_],
    addresses: leave_out.Addresses | None = None,
) -> list[Change]:
    """What changes where only the writes of each row of `kept` `(B, D)` are made, along other addresses if given."""
    if not len(kept):
        return []
    memory = moment.scanner.model.memory
    return _changes(moment, recorded, leave_out.recall_without(memory, recorded.scanned, kept, addresses))


@torch.inference_mode()
def _changes(moment: BranchMoment, recorded: BranchOutcome, readout: Readout) -> list[Change]:
    """What each row of a readout changes."""
    vectors, whole = readout.vector.numpy(), recorded.scanned.readout.vector[0].numpy()
    changes = leave_out.relative_change(vectors, whole).tolist()
    chunks = moment.chunks(readout)
    if chunks is None or recorded.chunk is None:
        return [Change(change, None, None, None) for change in changes]
    found = []
    for change, chunk in zip(changes, chunks, strict=True):
        decided = moment.decide(chunk)
        label = None if decided is None else decided.label
        flipped = None if label is None else label != recorded.label
        found.append(Change(change, chunk_distance(chunk, recorded.chunk), flipped, label))
    return found
