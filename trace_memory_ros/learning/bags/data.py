"""Episodes of bags as something to learn from, and their split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from trace_memory_ros.bags.judge import label_faults
from trace_memory_ros.learning.demonstration import Demonstration
from trace_memory_ros.observation.frames import at
from trace_memory_ros.observation.periods import ticks_in

if TYPE_CHECKING:
    from trace_memory_ros.bags.episode import BagEpisode

LEAST_MS = 1_000
"""Fewer usable ticks with an action than make up this time are no demonstration."""
NEXT_MS = 500
"""A branch at an unusable tick is taken at the next usable one, if that comes as soon as this."""


@dataclass(frozen=True)
class BagData:
    """What a folder of bags gave. labels: sorted; answers index them. left_out: name and reason, also of parts."""

    episodes: tuple[Demonstration, ...]
    labels: tuple[str, ...]
    action_names: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def from_episodes(episodes: Sequence[BagEpisode], period_ms: int) -> BagData:
    """The episodes, of ticks `period_ms` apart, that can be learned from.

    Raises ValueError where none can, or their actions differ in name.
    """
    labels = tuple(sorted({str(branch.label) for episode in episodes for branch in episode.branches}))
    kept: list[Demonstration] = []
    left_out: list[tuple[str, str]] = []
    names: tuple[str, ...] = ()
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
        kept.append(demo)
        left_out += [(episode.name, lost)] if lost else []
    if len({demo.scene for demo in kept}) == 1:
        # A recorder that counts no scenes gives all episodes the same.
        kept = [replace(demo, scene=demo.name) for demo in kept]
    if not kept:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in left_out) or "there is no episode"
        raise ValueError(f"nothing to learn from: {reasons}")
    return BagData(tuple(kept), labels, names, tuple(left_out))


def split(episodes: Sequence[Demonstration], share: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices of training and held-out episodes: whole scenes, `share` of those with each set of answers, at least one.

    Raises ValueError where fewer than two scenes are there.
    """
    if not 0.0 < share < 1.0:
        raise ValueError(f"held-out share is {share}: use a number between 0 and 1, for example 0.17")
    scenes: dict[str, list[int]] = {}
    for index, episode in enumerate(episodes):
        scenes.setdefault(episode.scene, []).append(index)
    if len(scenes) < 2:
        raise ValueError(f"{len(episodes)} episodes of {len(scenes)} scene: a held-out split needs at least two scenes")
    kinds: dict[tuple[tuple[int, ...], ...], list[str]] = {}
    for scene in sorted(scenes):
        kinds.setdefault(tuple(sorted(episodes[i].answers for i in scenes[scene])), []).append(scene)
    rng = np.random.default_rng([seed, len(scenes)])
    order = [[kinds[kind][i] for i in rng.permutation(len(kinds[kind]))] for kind in sorted(kinds)]
    held = {scene for members in order for scene in members[: round(share * len(members))]}
    held = held or {max(order, key=len)[0]}
    sides: tuple[list[int], list[int]] = ([], [])
    for scene, members in scenes.items():
        sides[scene in held].extend(members)
    return sorted(sides[0]), sorted(sides[1])


def _unfit(episode: BagEpisode, least: int) -> str:
    """Why nothing can be learned from an episode of less than `least` ticks that can be used; empty where it can."""
    if episode.span.success is False:
        return "the episode is annotated as failed"
    if episode.actions is None:
        return "no actions are configured or recorded: name the command topic under `actions` in the config"
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
