"""Attribution of the shipped memories points at the moment in which the cue could be seen."""

from pathlib import Path

import numpy as np
import pytest

from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.bags.branches import Branch
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.evidence.attribution.cues import attribution_evidence
from trace_memory_ros.evidence.branch_moment import BranchMoment
from trace_memory_ros.evidence.evaluator import EpisodeEvaluator
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.policies.references import BranchReferences

WEIGHTS = Path(__file__).parents[2] / "weights"
CONFIG = default_arm()
SIDES = ("left", "right")


def driven(env: ArmEnv, scenario: Scenario, render: bool) -> tuple[BagEpisode, np.ndarray]:
    """A demonstration up to where its branch's chunk ends, and the ticks at which the cue was visible."""
    observer, blind = LockstepObserver(CONFIG), np.zeros((CONFIG.image_px, CONFIG.image_px, 3), np.uint8)
    seen, actions, visible, branch = [], [], [], -1
    for step in demonstrate(env, scenario, render):
        images = step.sample.images or dict.fromkeys(CONFIG.camera_names, blind)
        seen.append(observer.observe(images, step.sample.joint_positions, step.sample.base_velocity))
        actions.append(step.action.astype(np.float32))
        visible.append(step.outcome.cue_visible)
        branch = len(actions) - 1 if step.decides else branch
        if 0 <= branch < len(actions) - 20:
            break
    count, streams = len(seen), tuple(stream.name for stream in CONFIG.inputs)
    side = SIDES[scenario.cue]
    episode = BagEpisode(
        name=side,
        bag=side,
        span=EpisodeSpan(side, 0, 0, 1),
        streams=streams,
        stamps_ns=np.array([o.stamp_ns for o in seen]),
        images={name: Frames.of(np.stack([o.images[name] for o in seen])) for name in CONFIG.camera_names},
        state=np.stack([o.state for o in seen if o.state is not None]),
        usable=np.ones(count, dtype=bool),
        faults={},
        input_stamps_ns=np.repeat(np.array([o.stamp_ns for o in seen])[:, None], len(streams), axis=1),
        actions=np.stack(actions),
        action_names=ACTION_NAMES,
        branches=(Branch(branch, side),),
        counters={},
    )
    return episode, np.flatnonzero(visible)


def moment_of(task: str, cue: int) -> tuple[BranchMoment, np.ndarray]:
    """The decision of an episode under the shipped memory; its twin tells what going the other way is."""
    evaluator = EpisodeEvaluator(WEIGHTS / f"{task}_trace")
    env = ArmEnv(task)
    try:
        own, visible = driven(env, Scenario(task, FIRST_EVALUATION_SEED, cue), render=True)
        twin, _ = driven(env, Scenario(task, FIRST_EVALUATION_SEED, 1 - cue), render=False)
    finally:
        env.close()
    references = BranchReferences(a for episode in (own, twin) for a in evaluator.branch_actions(episode))
    return evaluator.moments(own, own.usable, references)[0][0], visible


# The side that each of them does not take when nothing is remembered.
@pytest.mark.parametrize(("task", "side"), [("colour", "right"), ("origin", "left")])
def test_the_writes_that_matter_most_are_those_of_the_cue(task: str, side: str) -> None:
    moment, visible = moment_of(task, SIDES.index(side))
    found = attribution_evidence(moment, moment.recorded(), window=3, present_s=2.0)
    assert found.decision == side
    strongest = max(found.writes, key=lambda write: write.window_delta_action)
    assert strongest.tick in visible
    assert visible.max() < 0.25 * found.branch_tick
    elsewhere = [write.window_delta_action for write in found.writes if write.tick > visible.max()]
    assert np.median(elsewhere) < 0.5 * strongest.window_delta_action
    # What is remembered lies in slots: the path by itself, where the cue could be seen, tells less.
    paths = [write.path_delta_action for write in found.writes if write.tick in visible]
    assert all(path is not None and path < strongest.window_delta_action for path in paths)
