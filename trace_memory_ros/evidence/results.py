"""What an evaluation of recorded episodes found, as plain data that JSON holds: written once, read by every report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from trace_memory_ros.files.plain import PlainDataError, read

SCHEMA = 1
Reasons = Mapping[str, str]
"""Field name -> why it is None."""


@dataclass(frozen=True)
class TransformEvidence:
    """One history transform of one episode against the identity pass (TRACE eq. 14-20).

    route_similarity: 0..100, over all ticks before the branch, each with its newest write's route; _at_writes: over the
    identity's write ticks alone. readout_cosine: -1..1 at the branch. action_agreement: same branch decided.
    branch_consistency: 0..100. decision: the branch decided. chunk_distance: mean absolute difference of the chunks, in
    action standard deviations. writes: before the branch. writes_moved: share of the identity's writes that are at
    another tick, 0..1. path_points: how many the signature and the clock were given. readout: read vector `(d,)` at the
    branch.
    """

    name: str
    route_similarity: float | None
    route_similarity_at_writes: float | None
    readout_cosine: float | None
    action_agreement: bool | None
    branch_consistency: float | None
    decision: str | None
    chunk_distance: float | None
    writes: int
    writes_moved: float
    path_points: int
    readout: tuple[float, ...] = ()
    reasons: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class StabilityEvidence:
    """One extension of one episode's history (TRACE A.7, eq. 21-23, table 12).

    extension: length against the recorded history. ticks, writes: of the extended history before the branch.
    slot_churn: per write; _per_tick: per control tick, as where every tick writes. write_entropy, slot_occupancy: 0..1.
    readout_cosine, decision_agreement: against the recorded history. source: which segments were added.
    """

    name: str
    extension: float
    source: str
    ticks: int
    writes: int
    slot_churn: float | None
    slot_churn_per_tick: float | None
    write_entropy: float | None
    slot_occupancy: float | None
    readout_cosine: float | None
    decision_agreement: bool | None
    decision: str | None
    reasons: Reasons = field(default_factory=dict)


@dataclass(frozen=True)
class WriteAttribution:
    """What one write, and the moment around it, contributed to a decision, by leaving it out.

    delta_readout: relative change of the read vector (L2). delta_action: mean absolute change of the chunk, in action
    standard deviations. flipped: the decision became another branch. All three for this write alone; window_*: for the
    window of writes centred on this one; path_*: for the stretches of path that led to these, all writes made; None
    where the memory takes no signature. strength: the write's largest strength over slots, as it was made.
    """

    tick: int
    stamp_ns: int
    strength: float
    delta_readout: float
    delta_action: float | None
    flipped: bool | None
    window_delta_readout: float
    window_delta_action: float | None
    window_flipped: bool | None
    path_delta_action: float | None = None
    path_flipped: bool | None = None


@dataclass(frozen=True)
class EarlierLeftOut:
    """A decision by a memory that begins `present_s` before it: nothing earlier was written, no earlier path walked.

    Leaving out single moments shows which of them matters, but a cue that many hold survives each of them; this
    separates earlier evidence from the current view. writes: how many were left out. delta_readout, delta_action,
    flipped: as of one write. decision: the branch that is taken then. *_without_writes: the earlier writes alone left
    out, the address at the decision still that of the whole path. *_without_path: all writes made, the address at the
    decision that of the path since then; None where the memory takes no signature.
    """

    present_s: float
    writes: int
    delta_readout: float
    delta_action: float | None
    decision: str | None
    flipped: bool | None
    delta_action_without_writes: float | None = None
    flipped_without_writes: bool | None = None
    delta_action_without_path: float | None = None
    flipped_without_path: bool | None = None


@dataclass(frozen=True)
class AttributionEvidence:
    """Cue attribution of one decision. window: writes in a moment, an odd number. writes: in time order."""

    branch_tick: int
    branch_stamp_ns: int
    label: str | None
    decision: str | None
    window: int
    writes: tuple[WriteAttribution, ...]
    reasons: Reasons = field(default_factory=dict)
    earlier: EarlierLeftOut | None = None

    @property
    def strongest(self) -> WriteAttribution | None:
        """The centre of the moment that matters most.

        Of those that change the decision, by what was written or by the path, the one that changes the chunk most;
        where none does, the one whose writes change the chunk most, or the readout where there is no policy.
        """
        if self.through_path:
            return max(self.writes, key=_by_path)
        by_action = any(w.window_delta_action is not None for w in self.writes)
        return max(self.writes, key=_by_writes if by_action else lambda w: w.window_delta_readout, default=None)

    @property
    def through_path(self) -> bool:
        """Whether the strongest moment counts by the path that led there rather than by what was written."""
        path = max((_by_path(w) for w in self.writes if w.path_flipped), default=0.0)
        return path > max((_by_writes(w) for w in self.writes if w.window_flipped), default=0.0)


def _by_writes(write: WriteAttribution) -> float:
    return write.window_delta_action or 0.0


def _by_path(write: WriteAttribution) -> float:
    return (write.path_delta_action or 0.0) if write.path_flipped else -1.0


@dataclass(frozen=True)
class Timeline:
    """What the memory did over the episode, T ticks, W writes, N slots.

    time_s `(T,)` since the first tick; status `(T,)`: 0 ok, 1 stale, 2 invalid; read_weights `(T, N)`; write_ticks
    `(W,)`; route, write_strength `(W, N)`; gate, surprise `(W,)`.
    """

    time_s: tuple[float, ...]
    status: tuple[int, ...]
    read_weights: tuple[tuple[float, ...], ...]
    write_ticks: tuple[int, ...]
    route: tuple[tuple[float, ...], ...]
    write_strength: tuple[tuple[float, ...], ...]
    gate: tuple[float, ...]
    surprise: tuple[float, ...]


@dataclass(frozen=True)
class BranchEvidence:
    """A branch of an episode. decision: the label whose reference the policy's chunk is nearest to.

    margin: how much nearer than to the next, in action standard deviations. correct: decision == label. read_weights
    `(N,)` and readout, the read vector `(d,)`: there. place: which of the episode's annotated branches, from 0; None in
    evaluations that did not say.
    """

    tick: int
    stamp_ns: int
    label: str | None
    decision: str | None
    correct: bool | None
    margin: float | None
    read_weights: tuple[float, ...]
    readout: tuple[float, ...] = ()
    reasons: Reasons = field(default_factory=dict)
    place: int | None = None


@dataclass(frozen=True)
class EpisodeEvidence:
    """One recorded episode under one checkpoint.

    name: unique in an evaluation; bag: path as given; episode: index in the bag. slot_churn, write_entropy,
    slot_occupancy: of all writes (eq. 21-23). latency_ms: stage -> {p50, p99, max} per tick.
    route_by_chance: what `TransformEvidence.route_similarity` is between unrelated ticks of this history, 0..100.
    streams: per stream its counters. branches in time order; transforms and stability are about the first.
    """

    name: str
    bag: str
    episode: int
    task: str
    ticks: int
    ticks_stale: int
    ticks_invalid: int
    period_ms: float
    writes: int
    slot_churn: float | None
    write_entropy: float | None
    slot_occupancy: float | None
    route_by_chance: float | None
    branches: tuple[BranchEvidence, ...]
    transforms: tuple[TransformEvidence, ...]
    stability: tuple[StabilityEvidence, ...]
    attributions: tuple[AttributionEvidence, ...]
    timeline: Timeline
    latency_ms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    streams: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    faults: tuple[str, ...] = ()
    reasons: Reasons = field(default_factory=dict)

    def transform(self, name: str) -> TransformEvidence | None:
        """The transform called `name`, or None."""
        return next((t for t in self.transforms if t.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready mapping; `from_dict` inverts it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> EpisodeEvidence:
        """Read what `to_dict` wrote. Raises PlainDataError."""
        return read(cls, data, "episode")


@dataclass(frozen=True)
class FailedBag:
    """A bag or episode that could not be evaluated; fields as of a bag's fault."""

    bag: str
    what: str
    where: str
    remedy: str


@dataclass(frozen=True)
class ModelFacts:
    """Which checkpoint was evaluated. signature_window: None for the whole episode. slots: N."""

    checkpoint: str
    model_id: str
    task: str
    mechanism: str
    uses_signature: bool
    signature_window: Mapping[str, float] | None
    slots: int
    slot_kind: str
    clock: Mapping[str, Any]
    has_policy: bool

    @property
    def path_feeds(self) -> str:
        """What a transform of the state path can reach."""
        clock = self.clock.get("kind") == "path_length"
        if self.uses_signature:
            return "signatures and the update clock" if clock else "signatures"
        return "the update clock" if clock else "nothing"


@dataclass(frozen=True)
class Evaluation:
    """Everything one evaluation found. settings: what it was asked for. figures: `bag_evaluation.figures_of` of it."""

    model: ModelFacts
    settings: Mapping[str, Any]
    episodes: tuple[EpisodeEvidence, ...]
    failed: tuple[FailedBag, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def bags_that_failed(self) -> int:
        """How many bags `failed` is about: one may have several faults."""
        return len({fault.bag for fault in self.failed})

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready mapping; `from_dict` inverts it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> Evaluation:
        """Read what `to_dict` wrote. Raises PlainDataError naming the field, and for another schema."""
        if isinstance(data, Mapping) and data.get("schema") != SCHEMA:
            raise PlainDataError(
                f"evaluation has schema {data.get('schema')!r}, this version reads {SCHEMA}: evaluate again"
            )
        return read(cls, data, "evaluation")
