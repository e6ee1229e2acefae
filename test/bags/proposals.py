"""An arm's topics as they come in recordings, and what is proposed for a bag of such."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bags import strangers
from bags.strangers import Topic, image, joints, record, trajectory

from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.inspection import Proposal, inspect

CAMERA = Topic("/camera/image_raw", strangers.IMAGE, 15, image(), 0.02)
STATES = Topic("/joint_states", strangers.JOINTS, 50, joints(strangers.SIX))
COMMANDS = Topic("/arm_controller/joint_trajectory", strangers.TRAJECTORY, 10, trajectory(strangers.SIX))
ARM = (CAMERA, STATES, COMMANDS)


def proposed(tmp_path: Path, topics: Sequence[Topic], seconds: float = 3.0, clock_off_s: float = 0.0) -> Proposal:
    """What is proposed for such a bag; it must hold together and decode it."""
    bag = record(tmp_path / "bag", topics, seconds, clock_off_s)
    proposal = inspect(bag)
    assert proposal.recording is not None, proposal.missing
    episodes, verdict = decode_bag(bag, proposal.recording)
    assert episodes and episodes[0].usable.mean() > 0.8, str(verdict)
    actions = episodes[0].actions
    assert actions is None or np.isfinite(actions[5:]).all(), str(verdict)
    return proposal


def whys(proposal: Proposal) -> dict[str, str]:
    return {one.topic: one.why for one in proposal.passed_over}
