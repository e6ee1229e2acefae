"""A branch of a recorded episode: the history before it, and what the policy does there given a memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.evidence.decision import ChunkHead
from trace_memory_ros.evidence.history.longer import History
from trace_memory_ros.evidence.history.scan import HistoryScanner, ScannedHistory
from trace_memory_ros.evidence.history.transforms import identity
from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.references import BranchDecision, Chunk, decide

NO_READOUT = "the memory's read vector is zero, which has no direction"


@dataclass(frozen=True)
class BranchOutcome:
    """What came of a history at its branch. chunk: normalised `(H, A)`. None where there is no policy, or no label."""

    scanned: ScannedHistory
    chunk: Chunk | None
    decision: BranchDecision | None

    @property
    def vector(self) -> NDArray[np.float64]:
        """Read vector `(d,)`."""
        return self.scanned.readout.vector[0].numpy().astype(np.float64)

    @property
    def label(self) -> str | None:
        """The branch decided."""
        return None if self.decision is None else self.decision.label


@dataclass(frozen=True)
class BranchMoment:
    """Everything of a branch that is the same whichever history was scanned.

    place: which of its episode's branches, from 0. ticks, stamps_ns: `(U,)` the episode's usable ticks up to the
    branch, which is the last; history: what they held; images: the policy's, `(C, P, P, 3)` uint8, at the branch. head,
    references: the policy and the labels' actions at that place, or why there are none.
    """

    place: int
    label: str | None
    ticks: NDArray[np.int64]
    stamps_ns: NDArray[np.int64]
    history: History
    images: NDArray[np.uint8]
    scanner: HistoryScanner
    head: ChunkHead | str
    references: Mapping[str, Chunk] | str

    @property
    def tick(self) -> int:
        """The branch's tick in the episode."""
        return int(self.ticks[-1])

    @property
    def before(self) -> int:
        """How many usable ticks lie before the branch."""
        return len(self.ticks) - 1

    @property
    def undecided(self) -> str:
        """Why no branch can be decided; empty where it can."""
        for given in (self.head, self.references):
            if isinstance(given, str):
                return given
        return ""

    def recorded(self) -> BranchOutcome:
        """What comes of the history as it was recorded."""
        return self.outcome(self.scanner.scan(self.history.contents, identity(self.history.states)))

    def outcome(self, scanned: ScannedHistory) -> BranchOutcome:
        """What comes of another history."""
        chunks = self.chunks(scanned.readout)
        return (
            BranchOutcome(scanned, None, None)
            if chunks is None
            else BranchOutcome(scanned, chunks[0], self.decide(chunks[0]))
        )

    def chunks(self, readout: Readout) -> Chunk | None:
        """Chunks `(B, H, A)` for B readouts; None where there is no policy."""
        if isinstance(self.head, str):
            return None
        return self.head.chunks(self.images, self.history.states[-1], readout)

    def facts(self) -> dict[str, Any]:
        """Which branch this is: tick, stamp and label."""
        return {"tick": self.tick, "stamp_ns": int(self.stamps_ns[-1]), "label": self.label}

    def decide(self, chunk: Chunk) -> BranchDecision | None:
        """The branch that a chunk takes; None where there are no references."""
        return None if isinstance(self.references, str) else decide(chunk, self.references)
