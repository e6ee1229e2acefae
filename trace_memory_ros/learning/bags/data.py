"""Episodes of bags as something to learn from, and their split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from trace_memory_ros.bags.judge import label_faults
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.cross_validation import deal
from trace_memory_ros.measure.accuracy import ANNOTATED
from trace_memory_ros.observation.frames import at
from trace_memory_ros.observation.periods import ticks_in

if TYPE_CHECKING:
    from trace_memory_ros.bags.episode import BagEpisode

LEAST_MS = 1_000
"""Fewer usable ticks with an action than make up this time are no demonstration."""
FEW = 3
"""Episodes of an answer with fewer of which hardly anything is learned."""
NEXT_MS = 500
"""A branch at an unusable tick is taken at the next usable one, if that comes as soon as this."""


@dataclass(frozen=True)
class BagData:
    """What a folder of bags gave. labels: sorted; answers index them. left_out: name and reason, also of parts.

    source: where the labels come from, of `measure.accuracy.SOURCES`.
    """

    episodes: tuple[Demonstration, ...]
    labels: tuple[str, ...]
    action_names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    source: str = ANNOTATED


def from_episodes(episodes: Sequence[BagEpisode], period_ms: int) -> BagData:
    """The episodes, of ticks `period_ms` apart, that can be learned from.

    Raises ValueError where none can, or their actions differ in name.
    """
    labels = tuple(sorted({str(branch.label) for episode in episodes for branch in episode.branches}))
    kept: list[Demonstration] = []
    left_out: list[tuple[str, str]] = []
    names: tuple[str, ...] = ()
    known: dict[str, Demonstration] = {}
    for episode in episodes:
        reason = _unfit(episode, ticks_in(LEAST_MS, period_ms))
        if reason:
            left_out.append((episode.name, reason))
            continue
        if names and episode.action_names != names:
            raise ValueError(
                f"{episode.name} has the actions {', '.join(episode.action_names)}, the bags before it "
                f"{', '.join(names)}: train on bags of one kind of command"
            )
        names = episode.action_names
        demo, lost = _trimmed(episode, labels, ticks_in(NEXT_MS, period_ms))
        first = known.setdefault(demo.digest, demo)
        if first is not demo and _show_the_same(first, demo):
            left_out.append((episode.name, f"is a copy of {first.name}, which could be held out while it is learned"))
            continue
        kept.append(demo)
        left_out += [(episode.name, lost)] if lost else []
    if len({demo.scene for demo in kept}) == 1:
        # A recorder that counts no scenes gives all episodes the same.
        kept = [replace(demo, scene=demo.name) for demo in kept]
    if not kept:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out) or "there is no episode"
        raise ValueError(f"nothing to learn from: {reasons}")
    _check_actions(kept)
    return BagData(tuple(kept), labels, names, tuple(left_out))


def _show_the_same(one: Demonstration, other: Demonstration) -> bool:
    """Whether the pictures of two demonstrations of the same numbers are the same, too."""
    return all(
        np.array_equal(mine.index, theirs.index) and np.array_equal(mine.pixels[:], theirs.pixels[:])
        for mine, theirs in zip(one.images.values(), other.images.values(), strict=True)
    )


def _check_actions(episodes: Sequence[Demonstration]) -> None:
    """Raises ValueError where no action ever changes."""
    if not any(np.nanmax(np.ptp(demo.actions[np.isfinite(demo.actions).all(axis=1)], axis=0)) for demo in episodes):
        raise ValueError(
            f"the actions never change in any of {len(episodes)} episodes, so there is nothing to learn: name the "
            "topic of the commands that move the robot under `actions` in the config"
        )


def variation_notes(data: BagData) -> list[str]:
    """What episodes lack for a memory to be learned and judged, and the remedy."""
    found: Counter[str] = Counter()
    for demo in data.episodes:
        found.update({data.labels[answer] for answer in demo.answers})
    notes = []
    if len(found) == 1:
        (label,) = found
        notes.append(
            f"every branch has the answer {label!r}: there is nothing to tell apart, and no accuracy is measured; "
            "record episodes with another answer"
        )
    elif rare := sorted(label for label, count in found.items() if count < FEW):
        notes.append(
            f"fewer than {FEW} episodes have the answer {', '.join(rare)}: what is learned of it may be one episode by "
            f"heart; record at least {FEW}, better 20"
        )
    return notes


class Split(NamedTuple):
    """Indices of episodes, no scene on two sides."""

    training: list[int]
    validation: list[int]
    held_out: list[int]


def split(episodes: Sequence[Demonstration], held_out: float, validation: float, seed: int) -> Split:
    """Whole scenes: of each set of answers the shares asked for, of rare sets together; held out at least one.

    Validation leaves at least one scene of each answer to train on. Which scenes are held out does not depend on it.
    Raises ValueError for shares that are none, and where too few scenes are there.
    """
    _check_shares(held_out, validation)
    scenes = _by_scene(episodes)
    if len(scenes) < 2:
        raise ValueError(
            f"{len(episodes)} episode{'s' * (len(episodes) > 1)} of {len(scenes)} scene: a held-out split needs at "
            "least two scenes, and a memory some twenty of each answer; record more, or cut the bags into episodes "
            "(`episodes` in the config)"
        )
    sides = _sides(episodes, scenes, held_out, validation, np.random.default_rng([seed, len(scenes)]))
    found = Split([], [], [])
    for scene, members in scenes.items():
        found[sides.get(scene, 0)].extend(members)
    if not found.training:
        raise ValueError(
            f"held-out share {held_out} and validation share {validation} of {len(scenes)} scenes leave none to train "
            "on: choose smaller shares or record more"
        )
    return Split(*map(sorted, found))


def deal_scenes(episodes: Sequence[Demonstration], seed: int) -> list[set[str]]:
    """Folds of whole scenes, those with each set of answers dealt out in turn; none where scenes are too few."""
    rng, kinds = np.random.default_rng([seed, 2]), by_answers(episodes, _by_scene(episodes))
    return deal([[kind[i] for i in rng.permutation(len(kind))] for kind in kinds])


def _by_scene(episodes: Sequence[Demonstration]) -> dict[str, list[int]]:
    scenes: dict[str, list[int]] = {}
    for index, episode in enumerate(episodes):
        scenes.setdefault(episode.scene, []).append(index)
    return scenes


def by_answers(episodes: Sequence[Demonstration], scenes: Mapping[str, Sequence[int]]) -> list[list[str]]:
    """Scenes, by the answers of their episodes."""
    kinds: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for scene in sorted(scenes):
        kinds.setdefault(tuple(sorted(episodes[i].answers for i in scenes[scene])), []).append(scene)
    return [kinds[kind] for kind in sorted(kinds)]


def _sides(
    episodes: Sequence[Demonstration],
    scenes: Mapping[str, Sequence[int]],
    held_out: float,
    validation: float,
    rng: np.random.Generator,
) -> dict[str, int]:
    """The side, as of `Split`, of scenes that are not trained on."""
    order = [[kind[i] for i in rng.permutation(len(kind))] for kind in by_answers(episodes, scenes)]
    answers = {scene: {a for i in members for a in episodes[i].answers} for scene, members in scenes.items()}
    held = {scene for members in order for scene in members[: round(held_out * len(members))]}
    held |= _of_rare(order, held_out, held, answers, rng)
    held = held or {max(order, key=len)[0]}
    rest = [[scene for scene in members if scene not in held] for members in order]
    # What is only looked at as training goes never takes the last scene of its kind.
    counts = [min(round(validation * len(all_)), len(left) - 1) for all_, left in zip(order, rest, strict=True)]
    looked_at = {scene for left, count in zip(rest, counts, strict=True) for scene in left[: max(count, 0)]}
    looked_at |= _of_rare(order, validation, held | looked_at, answers, rng)
    return dict.fromkeys(looked_at, 1) | dict.fromkeys(held, 2)


def _of_rare(
    order: Sequence[Sequence[str]],
    share: float,
    taken: Collection[str],
    answers: Mapping[str, Collection[int]],
    rng: np.random.Generator,
) -> set[str]:
    """A share of the kinds together that are too rare for a share of each, as sequences of several answers are.

    Never the last scene that has an answer.
    """
    rare = [scene for members in order if not round(share * len(members)) for scene in members]
    left = Counter(answer for members in order for scene in members if scene not in taken for answer in answers[scene])
    found: set[str] = set()
    for scene in (rare[i] for i in rng.permutation(len(rare))):
        spared = scene not in taken and all(left[answer] > 1 for answer in answers[scene])
        if spared and len(found) < round(share * len(rare)):
            found.add(scene)
            left.subtract(answers[scene])
    return found


def _check_shares(held_out: float, validation: float) -> None:
    if not 0.0 < held_out < 1.0:
        raise ValueError(f"held-out share is {held_out}: use a number between 0 and 1, for example 0.17")
    if not 0.0 <= validation < 1.0 - held_out:
        raise ValueError(
            f"validation share is {validation}: use a number from 0 to less than {1.0 - held_out:g}, which is what is "
            "not held out, for example 0.1"
        )


def _unfit(episode: BagEpisode, least: int) -> str:
    """Why nothing can be learned from an episode of less than `least` ticks that can be used; empty where it can."""
    if episode.span.success is False:
        return "the episode is annotated as failed"
    if episode.actions is None:
        return (
            "no actions are configured or recorded: name the command topic under `actions` in the config, or what was "
            "measured, with ahead_ms"
        )
    answered = np.isfinite(episode.actions).all(axis=1)
    known = episode.usable & answered
    if known.sum() >= least:
        return ""
    faulty = min(episode.faults, default=None)
    if not answered.any() and (blamed := label_faults(episode.notes)):
        return f"no tick has an action: {'; '.join(f'{note.where}: {note.what}; {note.remedy}' for note in blamed)}"
    first = "" if faulty is None else f"; tick {faulty}: {episode.fault_text(faulty)}"
    return f"{known.sum()} of {len(known)} ticks have a whole observation and an action, {least} are needed{first}"


def _trimmed(episode: BagEpisode, labels: Sequence[str], patience: int) -> tuple[Demonstration, str]:
    """The episode without its unusable start and its end without actions, and what of it was lost besides.

    patience: ticks by which a branch may be put off.
    """
    assert episode.actions is not None
    known = np.asarray(np.isfinite(episode.actions).all(axis=1))
    begin, end = int(np.flatnonzero(episode.usable)[0]), int(np.flatnonzero(known)[-1]) + 1
    usable = episode.usable[begin:end]
    held = begin + np.maximum.accumulate(np.where(usable, np.arange(end - begin), 0))
    demo = Demonstration(
        name=episode.name,
        scene=f"{episode.span.task} {episode.span.seed}" if episode.span.seed is not None else episode.name,
        stamps_ns=episode.stamps_ns[begin:end],
        images=at(episode.images, slice(begin, end) if usable.all() else held),
        state=episode.state[begin:end] if usable.all() else episode.state[held],
        actions=episode.actions[begin:end],
        usable=None if usable.all() else usable,
    )
    readable = np.flatnonzero(usable & known[begin:end])
    ticks = []
    for branch in episode.branches:
        next_ = readable[np.searchsorted(readable, branch.tick - begin) :][:1]
        if branch.tick < begin or not next_.size or next_[0] - (branch.tick - begin) > patience:
            return demo, f"its branches are not used: tick {branch.tick} has no whole observation with an action"
        ticks.append(int(next_[0]))
    answers = tuple(labels.index(str(branch.label)) for branch in episode.branches)
    return replace(demo, decision_ticks=tuple(ticks), answers=answers), ""
