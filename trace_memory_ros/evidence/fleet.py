"""Many bags under one checkpoint: decoded once, evaluated bag by bag wherever an executor does it, results cached."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import trace_memory_ros
from trace_memory_ros.bags.cache import cache_key, load_episodes
from trace_memory_ros.bags.episode import BagEpisode, unique_names
from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.evidence.evaluator import EpisodeEvaluator, EvidenceSettings, donors, first_label, told_of
from trace_memory_ros.evidence.figures import figures_of
from trace_memory_ros.evidence.results import SCHEMA, EpisodeEvidence, Evaluation, FailedBag
from trace_memory_ros.files.source import brought_digest, digest_of
from trace_memory_ros.measure.fleet import Executor, ResultCache, Step, executor, key_of, run_cached
from trace_memory_ros.measure.workers import DIED, reason_of
from trace_memory_ros.observation.frames import Cameras
from trace_memory_ros.policies.references import BranchActions, BranchReferences

ALONE = "evaluate it alone; a process that dies without a reason mostly wanted more memory than there is"

REPORT = "evaluate it alone to see the whole error, and report that with the bag: the other bags do not depend on it"

MOST_LOST = 3
"""Of what is wrong with a bag that is evaluated all the same, so much is said while it is."""

SOURCE_ROOMS = (
    *("files", "signature", "memory", "policies", "observation", "runtime", "bags", "measure", "evidence"),
    *("vision", "streams"),
)
"""Whose code figures come from."""


class FleetProgress(Protocol):
    """Is called with how far a run is."""

    def begin(self, phase: str, total: int) -> None:
        """`total` bags are to be `decoded` or `evaluated`."""

    def step(self, step: Step[Path]) -> None:
        """A bag came to its end in this phase."""


class NoProgress:
    """A `FleetProgress` that shows nothing."""

    def begin(self, phase: str, total: int) -> None: ...

    def step(self, step: Step[Path]) -> None: ...


@dataclass(frozen=True)
class FleetPlan:
    """What is asked of every bag. cache: folder of decoded bags and of cached results.

    Workers on other machines need checkpoint, cache and bags under the same paths.
    """

    checkpoint: Path
    recording: RecordingConfig
    cache: Path
    settings: EvidenceSettings = field(default_factory=EvidenceSettings)

    def __post_init__(self) -> None:
        object.__setattr__(self, "checkpoint", Path(self.checkpoint).resolve())
        object.__setattr__(self, "cache", Path(self.cache).resolve())

    def episodes(self, bag: Path) -> tuple[list[BagEpisode], tuple[FailedBag, ...]]:
        """A bag's episodes, or what is wrong with it."""
        results = load_episodes([bag], self.recording, self.cache)
        faults = [fault for result in results if isinstance(result, BagVerdict) for fault in result.faults]
        failed = tuple(FailedBag(**fault.to_dict()) for fault in faults)
        return [result for result in results if isinstance(result, BagEpisode)], failed


class Sketch(NamedTuple):
    """What other episodes need of one: the label of its first branch, and what was done at its branches."""

    name: str
    label: str | None
    actions: tuple[BranchActions, ...]


class Surveyed(NamedTuple):
    """A decoded bag. content: names its content under the recording's configuration. lost: by one that is evaluated."""

    bag: Path
    content: str
    episodes: tuple[Sketch, ...]
    failed: tuple[FailedBag, ...]
    lost: tuple[str, ...] = ()


class Lender(NamedTuple):
    """Where an episode's donor lies: a bag, and which of its episodes."""

    bag: Path
    episode: int


class BagJob(NamedTuple):
    """A bag to evaluate: its episodes' names, unique in the evaluation, and whose history continues each."""

    bag: Path
    names: tuple[str, ...]
    donors: tuple[Lender | None, ...]


def evaluate_bags(
    bags: Sequence[Path],
    plan: FleetPlan,
    execute: Executor | None = None,
    progress: FleetProgress | None = None,
) -> Evaluation:
    """Evaluate every episode of `bags` against the references of all; the same figures whatever executes it.

    A bag that cannot be decoded or evaluated is in `failed`, and the rest is finished. Results are cached by the bags'
    content, the configuration, the model and this package's source, so that an interrupted run goes on.
    Raises CheckpointError, and what a broken executor raises.
    """
    execute, progress = execute or executor(), progress or NoProgress()
    given = {Path(bag).resolve(): str(bag) for bag in bags}
    evaluator = evaluator_of(plan)
    facts = evaluator.facts
    surveyed, failed = _survey_all(list(given), plan, execute, progress)
    jobs, references = plan_jobs(surveyed)
    cache = ResultCache(plan.cache / "evaluations")
    keys = _keys(jobs, references, surveyed, plan, evaluator)
    progress.begin("evaluated", len(jobs))

    def report(step: Step[BagJob]) -> None:
        progress.step(Step(step.job.bag, step.how, step.reason))

    lost = run_cached(
        partial(evaluate_bag, plan, references), dict(zip(keys, jobs, strict=True)), cache, execute, report
    )
    episodes: list[EpisodeEvidence] = []
    for key, job in zip(keys, jobs, strict=True):
        result = cache.read(key)
        if result is None:
            reason = lost.get(key, f"its result vanished from {cache.folder}")
            failed.append(FailedBag(str(job.bag), reason, "evaluation", remedy_for(reason)))
            continue
        found = json.loads(result)
        episodes += (replace(EpisodeEvidence.from_dict(e), bag=given[job.bag]) for e in found["episodes"])
        failed += (FailedBag(**entry) for entry in found["failed"])
    failed = [replace(entry, bag=given.get(Path(entry.bag), entry.bag)) for entry in failed]
    settings = {**plan.settings.to_dict(), "bags": len(given)}
    if plan.recording.received:
        settings["stamped_when_received"] = ", ".join(plan.recording.received)
    return Evaluation(facts, settings, tuple(episodes), tuple(failed), figures_of(episodes))


def frames_of(plan: FleetPlan, episode: EpisodeEvidence) -> Cameras | None:
    """What an evaluated episode's cameras showed, from the cache of decoded bags."""
    found, _ = plan.episodes(Path(episode.bag).resolve())
    return next((e.images for e in found if e.span.index == episode.episode), None)


def evaluator_of(plan: FleetPlan) -> EpisodeEvaluator:
    """The plan's evaluator, loaded once in a process."""
    return _loaded(plan.checkpoint, plan.settings)


@lru_cache(maxsize=1)
def _loaded(checkpoint: Path, settings: EvidenceSettings) -> EpisodeEvaluator:
    return EpisodeEvaluator(checkpoint, settings)


def _survey_all(
    bags: list[Path], plan: FleetPlan, execute: Executor, progress: FleetProgress
) -> tuple[list[Surveyed], list[FailedBag]]:
    """What every bag holds, in order, and what is wrong with those that hold nothing."""
    found: dict[Path, Surveyed] = {}
    progress.begin("decoded", len(bags))

    def keep(surveyed: Surveyed) -> None:
        found[surveyed.bag] = surveyed
        lost, more = surveyed.lost[:MOST_LOST], len(surveyed.lost) - MOST_LOST
        told = [*(f"{fault.where}: {fault.what}" for fault in surveyed.failed), *lost]
        reason = "; ".join([*told, f"and {more} more, as `trace-memory bags check` lists them"] if more > 0 else told)
        progress.step(Step(surveyed.bag, "failed" if surveyed.failed else "done", reason))

    lost = execute(partial(survey, plan), bags, keep)
    failed = [FailedBag(str(bag), reason, "decoder", remedy_for(reason)) for bag, reason in lost]
    for bag, reason in lost:
        progress.step(Step(bag, "failed", reason))
    in_order = [found[bag] for bag in bags if bag in found]
    return in_order, [fault for surveyed in in_order for fault in surveyed.failed] + failed


def survey(plan: FleetPlan, bag: Path) -> Surveyed:
    """Decode a bag into the cache; returns what the other bags' episodes need of it."""
    episodes, failed = plan.episodes(bag)
    if not episodes:
        return Surveyed(bag, "", (), failed)
    evaluator = evaluator_of(plan)
    sketches = (Sketch(e.name, first_label(e), tuple(evaluator.branch_actions(e))) for e in episodes)
    lost = tuple(dict.fromkeys(told for episode in episodes for told in told_of(episode)))
    return Surveyed(bag, cache_key(bag, plan.recording, plan.cache), tuple(sketches), failed, lost)


def plan_jobs(surveyed: Sequence[Surveyed]) -> tuple[list[BagJob], tuple[BranchActions, ...]]:
    """A job a bag that has episodes, and the reference actions of all of them."""
    places = [(s.bag, i) for s in surveyed for i in range(len(s.episodes))]
    names = unique_names([(s.bag, sketch.name) for s in surveyed for sketch in s.episodes])
    lent = donors([sketch.label for s in surveyed for sketch in s.episodes])
    lenders = [None if donor is None else Lender(*places[donor]) for donor in lent]
    references = tuple(
        replace(actions, episode=name)
        for name, sketch in zip(names, (sketch for s in surveyed for sketch in s.episodes), strict=True)
        for actions in sketch.actions
    )
    jobs, at = [], 0
    for one in surveyed:
        count = len(one.episodes)
        if count:
            jobs.append(BagJob(one.bag, tuple(names[at : at + count]), tuple(lenders[at : at + count])))
        at += count
    return jobs, references


def evaluate_bag(plan: FleetPlan, references: tuple[BranchActions, ...], job: BagJob) -> bytes:
    """Evidence of a bag's episodes as JSON; an episode that cannot be evaluated is listed, the others are evaluated."""
    evaluator, known = evaluator_of(plan), BranchReferences(references)
    episodes, _ = plan.episodes(job.bag)
    found: list[Mapping[str, Any]] = []
    failed: list[Mapping[str, str]] = []
    for episode, name, lender in zip(episodes, job.names, job.donors, strict=True):
        try:
            donor = None if lender is None else plan.episodes(lender.bag)[0][lender.episode]
            found.append(evaluator.evaluate(replace(episode, name=name), known, donor).to_dict())
        except Exception as error:  # one strange episode must not take the others of its bag along
            failed.append({"bag": str(job.bag), "what": reason_of(error), "where": f"episode {name}", "remedy": REPORT})
    return json.dumps({"episodes": found, "failed": failed}, allow_nan=False).encode()


def remedy_for(reason: str) -> str:
    """What to do about a bag that was given up: a process that died is another matter than an error."""
    return ALONE if reason.startswith(DIED) else REPORT


def _keys(
    jobs: Sequence[BagJob],
    references: tuple[BranchActions, ...],
    surveyed: Sequence[Surveyed],
    plan: FleetPlan,
    evaluator: EpisodeEvaluator,
) -> list[str]:
    """The name of each job's result: everything that it depends on."""
    contents = {one.bag: one.content for one in surveyed}
    digest = hashlib.sha256()
    for actions in references:
        digest.update(f"{actions.episode}\0{actions.place}\0{actions.label}\0".encode() + actions.chunk.tobytes())
    common = {
        "schema": SCHEMA,
        "source": source_digest(),
        "brought": brought_digest(evaluator.brought),
        "model_id": evaluator.facts.model_id,
        "settings": plan.settings.to_dict(),
        "references": digest.hexdigest(),
    }
    return [
        key_of(
            bag=contents[job.bag],
            names=job.names,
            donors=[lender and [contents[lender.bag], lender.episode] for lender in job.donors],
            **common,
        )
        for job in jobs
    ]


@lru_cache(maxsize=1)
def source_digest() -> str:
    """Hash of the source that results depend on: cached ones are of the very code that would make them again."""
    root = Path(trace_memory_ros.__file__).parent
    return digest_of((room, root / room) for room in SOURCE_ROOMS)
