"""What one recorded episode shows of a checkpoint's memory: replay, transforms, longer histories, attribution."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import trace_memory_ros
from trace_memory_ros.bags.branches import Branch
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.evidence import diagnostics
from trace_memory_ros.evidence.attribution.cues import attribution_evidence
from trace_memory_ros.evidence.branch_moment import BranchMoment, BranchOutcome
from trace_memory_ros.evidence.decision import ChunkHead, recorded_chunk
from trace_memory_ros.evidence.episode_replay import Replayed, replay
from trace_memory_ros.evidence.history.comparison import (
    NO_WRITE,
    ONE_SLOT,
    branch_evidence,
    recorded_stability,
    route_by_chance,
    stability_evidence,
    transform_evidence,
)
from trace_memory_ros.evidence.history.longer import History, extensions
from trace_memory_ros.evidence.history.scan import HistoryScanner
from trace_memory_ros.evidence.history.transforms import TransformStrength, transforms
from trace_memory_ros.evidence.results import (
    EpisodeEvidence,
    ModelFacts,
    StabilityEvidence,
    TransformEvidence,
)
from trace_memory_ros.files.strict import ConfigError, require_int, require_positive
from trace_memory_ros.memory.base import Memory
from trace_memory_ros.observation.frames import at
from trace_memory_ros.policies.references import BranchActions, BranchReferences
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.vision.base import VisualBackbone

NO_BRANCH = "the recording has no branch annotation"
NO_IMAGES = np.zeros((0, 0, 0, 3), dtype=np.uint8)
"""What no policy is given."""


@dataclass(frozen=True)
class EvidenceSettings:
    """What is asked of every episode.

    seed: of everything that is drawn. window: writes in a moment, an odd number, which has a middle. present_s: what
    came longer before a decision is earlier evidence. strength: of the transforms. Raises ConfigError.
    """

    seed: int = 0
    window: int = 3
    present_s: float = 2.0
    strength: TransformStrength = field(default_factory=TransformStrength)

    def __post_init__(self) -> None:
        require_int(self.seed, "seed", 0)
        require_int(self.window, "window", 1)
        if self.window % 2 == 0:
            raise ConfigError(f"window = {self.window}: must be odd, such as {self.window + 1}")
        require_positive(self.present_s, "present seconds", zero=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping."""
        return asdict(self)


class EpisodeEvaluator:
    """A checkpoint's runtime and policy, ready for recorded episodes. Raises CheckpointError."""

    def __init__(self, checkpoint: str | Path, settings: EvidenceSettings | None = None) -> None:
        self.settings = settings or EvidenceSettings()
        self.checkpoint = load(checkpoint)
        self.runtime = MemoryRuntime(self.checkpoint)
        self.scanner = HistoryScanner(self.checkpoint.config, self.runtime.model)
        self.head = ChunkHead.of(self.checkpoint)
        self._period_ms = self.checkpoint.config.observation.tick_period_ms

    @property
    def facts(self) -> ModelFacts:
        """Which checkpoint this is."""
        config, memory = self.checkpoint.config, self.runtime.model.memory
        window = config.signature_window
        return ModelFacts(
            checkpoint=str(self.checkpoint.folder),
            model_id=self.checkpoint.model_id,
            task=config.task,
            mechanism=config.mechanism,
            uses_signature=memory.uses_signature,
            signature_window=None if window is None else window.to_dict(),
            slots=memory.slot_count,
            slot_kind=memory.slot_kind,
            clock=config.clock.to_dict(),
            has_policy=config.policy is not None,
        )

    @property
    def brought(self) -> set[str]:
        """Packages other than this one whose memory, eyes or policy the checkpoint has."""
        parts = [part for part in self.runtime.model.modules() if isinstance(part, (Memory, VisualBackbone))]
        kinds = [type(part) for part in (*parts, *([] if isinstance(self.head, str) else [self.head.policy]))]
        return {kind.__module__.partition(".")[0] for kind in kinds} - {trace_memory_ros.__name__}

    def branch_actions(self, episode: BagEpisode) -> list[BranchActions]:
        """What was done at the labelled branches of `episode`: the material of `BranchReferences`."""
        if isinstance(self.head, str) or episode.actions is None:
            return []
        found = []
        for place, branch in enumerate(_in_order(episode)):
            chunk = recorded_chunk(episode.actions, branch.tick, self.head, episode.action_names)
            if branch.label and not isinstance(chunk, str):
                found.append(BranchActions(episode.name, branch.label, chunk, place))
        return found

    def evaluate(
        self, episode: BagEpisode, references: BranchReferences, donor: BagEpisode | None = None
    ) -> EpisodeEvidence:
        """Everything about one episode. references: of all episodes. donor: whose history is the shared route."""
        replayed = replay(self.runtime, map(episode.observation, range(episode.ticks)))
        moments, refused = self.moments(episode, replayed.usable, references)
        found = [(moment, moment.recorded()) for moment in moments]
        reasons = dict.fromkeys(("branches", "transforms", "stability", "attributions"), refused) if refused else {}
        stability, lacking = self._stability(episode.name, *found[0], donor) if found else ((), {})
        chance = route_by_chance(*found[0]) if found else None
        if chance is None:
            reasons["route_by_chance"] = refused or (ONE_SLOT if replayed.routes.shape[1] < 2 else NO_WRITE)
        settings, routes = self.settings, replayed.routes
        return EpisodeEvidence(
            name=episode.name,
            bag=str(episode.bag),
            episode=episode.span.index,
            task=self.checkpoint.config.task,
            **_ticks(replayed),
            period_ms=float(self._period_ms),
            writes=len(routes),
            slot_churn=diagnostics.churn(routes),
            write_entropy=diagnostics.write_entropy(routes),
            slot_occupancy=diagnostics.occupancy(routes),
            route_by_chance=chance,
            branches=tuple(branch_evidence(*each) for each in found),
            transforms=self._transforms(episode.name, *found[0]) if found else (),
            stability=stability,
            attributions=tuple(attribution_evidence(*each, settings.window, settings.present_s) for each in found),
            timeline=replayed.timeline,
            latency_ms=replayed.latency_ms,
            streams=episode.counters,
            faults=(*told_of(episode), *replayed.faults),
            reasons=reasons | lacking,
        )

    def moments(
        self, episode: BagEpisode, usable: NDArray[np.bool_], references: BranchReferences
    ) -> tuple[list[BranchMoment], str]:
        """The branches at which the observation can be used, in order, and why others are left out."""
        refused = "" if episode.branches else NO_BRANCH
        last = -1
        for branch in episode.branches:
            if usable[branch.tick]:
                last = max(last, branch.tick)
            else:
                refused = f"the observation at the branch, tick {branch.tick}, cannot be used"
        if last < 0:
            return [], refused
        ticks = np.flatnonzero(usable[: last + 1])
        whole = History(self.scanner.contents(at(episode.images, ticks), episode.state[ticks]), episode.state[ticks])
        moments = []
        for place, branch in enumerate(_in_order(episode)):
            if not usable[branch.tick]:
                continue
            count = int(np.searchsorted(ticks, branch.tick)) + 1
            moments.append(
                BranchMoment(
                    place=place,
                    label=branch.label or None,
                    ticks=ticks[:count],
                    stamps_ns=episode.stamps_ns[ticks[:count]],
                    history=History(whole.contents[:count], whole.states[:count]),
                    images=NO_IMAGES if isinstance(self.head, str) else self.head.seen(episode.images, branch.tick),
                    scanner=self.scanner,
                    head=self.head,
                    references=references.without(episode.name, place),
                )
            )
        return moments, refused

    def _transforms(self, name: str, moment: BranchMoment, recorded: BranchOutcome) -> tuple[TransformEvidence, ...]:
        found = []
        for kind, transform in transforms(self._period_ms, self.settings.strength).items():
            path = transform(moment.history.states, self.scanner.spread, self._chance(name, kind))
            found.append(transform_evidence(moment, recorded, kind, path))
        return tuple(found)

    def _stability(
        self, name: str, moment: BranchMoment, recorded: BranchOutcome, donor: BagEpisode | None
    ) -> tuple[tuple[StabilityEvidence, ...], dict[str, str]]:
        """Rows of table 12, and why some are missing."""
        found, reasons = [recorded_stability(moment, recorded)], {}
        lent = None if donor is None else self._history_of(donor)
        for extension in extensions(self._period_ms, self.settings.strength):
            try:
                chance = self._chance(name, extension.name)
                found.append(stability_evidence(moment, recorded, extension, lent, chance))
            except ValueError as error:
                reasons[f"stability.{extension.name}"] = str(error)
        return tuple(found), reasons

    def _history_of(self, donor: BagEpisode) -> History | None:
        """The history before another episode's first branch, by what its recording says of itself; None for none."""
        before = min((branch.tick + 1 for branch in donor.branches), default=0)
        ticks = np.flatnonzero(donor.usable[:before])
        if not len(ticks):
            return None
        return History(self.scanner.contents(at(donor.images, ticks), donor.state[ticks]), donor.state[ticks])

    def _chance(self, episode: str, what: str) -> np.random.Generator:
        """The same draws for an episode whoever evaluates it, and whatever was evaluated before."""
        return np.random.default_rng([self.settings.seed, zlib.crc32(f"{episode} {what}".encode())])


def donors(labels: Sequence[str | None]) -> list[int | None]:
    """Whose history continues each episode's: the next one with another label, else the next with a branch.

    labels: of every episode's first branch; None for an episode without one, which neither lends nor borrows.
    """
    found: list[int | None] = []
    for i, own in enumerate(labels):
        others = [(i + step) % len(labels) for step in range(1, len(labels))]
        others = [j for j in others if labels[j] is not None] if own is not None else []
        unlike = [j for j in others if labels[j] != own]
        found.append(next(iter(unlike or others), None))
    return found


def first_label(episode: BagEpisode) -> str | None:
    """Label of an episode's first branch, which may be empty; None where it has no branch."""
    return _in_order(episode)[0].label if episode.branches else None


def told_of(episode: BagEpisode) -> list[str]:
    """What an episode's bag lost, as its annotations that cannot be read: without a word they would seem to be none."""
    return [f"{note.where}: {note.what}; {note.remedy}" for note in episode.notes]


def _in_order(episode: BagEpisode) -> list[Branch]:
    """An episode's branches by time. A decision is told by what others did at theirs of the same place among these."""
    return sorted(episode.branches, key=lambda branch: branch.tick)


def _ticks(replayed: Replayed) -> dict[str, int]:
    status = np.array(replayed.timeline.status)
    return {"ticks": len(status), "ticks_stale": int((status == 1).sum()), "ticks_invalid": int((status == 2).sum())}
