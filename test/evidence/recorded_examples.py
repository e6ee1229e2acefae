"""Recorded episodes as arrays, made up: a random walk before random pictures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.bags.branches import Branch
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.evidence.evaluator import EpisodeEvaluator, donors, first_label
from trace_memory_ros.evidence.results import EpisodeEvidence
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.frames import of_stack
from trace_memory_ros.policies.references import BranchReferences

CONFIG = default_arm()
TICKS = 40
BRANCH = 30


def walk(ticks: int = TICKS, seed: int = 0, step: float = 0.15) -> np.ndarray:
    """States `(ticks, 17)`, SI units, the base at rest."""
    states = np.cumsum(np.random.default_rng(seed).normal(0, step, (ticks, 17)), axis=0)
    states[:, :3] = 0
    return states


def recorded(
    name: str = "walk_0",
    seed: int = 0,
    label: str | None = "left",
    unusable: tuple[int, ...] = (),
    actions: bool = True,
) -> BagEpisode:
    """An episode with one branch (None: without). From it on, the left or the right elbow is commanded to move."""
    rng = np.random.default_rng(seed)
    cameras, streams = CONFIG.camera_names, tuple(stream.name for stream in CONFIG.inputs)
    state, usable = walk(seed=seed), np.ones(TICKS, dtype=bool)
    state[list(unusable)] = np.nan
    usable[list(unusable)] = False
    commands = np.zeros((TICKS, len(ACTION_NAMES)), dtype=np.float32)
    commands[BRANCH:, 3] = 0.1 if label == "left" else -0.1
    stamps_ns = 10**9 + np.arange(TICKS) * CONFIG.period_ns
    return BagEpisode(
        name=name,
        bag=f"bags/{name}",
        span=EpisodeSpan(f"bags/{name}", 0, 0, 1),
        streams=streams,
        stamps_ns=stamps_ns,
        images=of_stack(cameras, rng.integers(0, 256, (TICKS, len(cameras), 48, 48, 3), dtype=np.uint8)),
        state=state,
        usable=usable,
        faults={tick: {"joint_states": "joint_states: stale"} for tick in unusable},
        input_stamps_ns=np.repeat(stamps_ns[:, None], len(streams), axis=1),
        actions=commands if actions else None,
        action_names=ACTION_NAMES,
        branches=() if label is None else (Branch(BRANCH, label),),
        counters={"overhead": {"received": TICKS}},
    )


def evaluate_episodes(episodes: Sequence[BagEpisode], evaluator: EpisodeEvaluator) -> list[EpisodeEvidence]:
    """Each episode against the references of all, continued with another's history, as a fleet does it with bags."""
    references = BranchReferences(actions for episode in episodes for actions in evaluator.branch_actions(episode))
    lent = donors([first_label(episode) for episode in episodes])
    return [
        evaluator.evaluate(episode, references, None if donor is None else episodes[donor])
        for episode, donor in zip(episodes, lent, strict=True)
    ]
