"""At the branch twins are alike to the bit, or probes that find the cue where it shows stay at chance."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import CAMERA_NAMES, TASK_NAMES, WATCHED_TASKS
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.sample import RawSample
from trace_memory_ros.arm.sim.scenario import Scenario

TRAIN_PAIRS = 8
TEST_PAIRS = 12
CUE_TICK = 5


def features(sample: RawSample) -> np.ndarray:
    """Thumbnails 16x16 of every camera and joint angles, `(2318,)`."""
    thumbs = [sample.images[n].reshape(16, 6, 16, 6, 3).mean(axis=(1, 3)).ravel() / 255 for n in CAMERA_NAMES]
    return np.concatenate([*thumbs, list(sample.joint_positions.values())])


def episode(env: ArmEnv, scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Features when the cue shows and when the lamp at the branch turns green."""
    cue, waited = None, False
    for tick, step in enumerate(demonstrate(env, scenario, render=False)):
        if tick == CUE_TICK:
            cue = features(env.observe())
        if waited and not step.lamp_red:
            assert cue is not None
            assert step.outcome.branch == -1
            return cue, features(env.observe())
        waited = step.lamp_red and step.outcome.stages["branch"]
    raise AssertionError(f"no branch in {scenario}")


def collect(env: ArmEnv, seeds: range) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scenarios = [Scenario(env.task, seed, cue, noise_std_rad=0.0) for seed in seeds for cue in (0, 1)]
    shown, branch = zip(*(episode(env, s) for s in scenarios), strict=True)
    return np.stack(shown), np.stack(branch), np.array([s.cue for s in scenarios])


def probe_accuracy(hidden: int, train: np.ndarray, test: np.ndarray, y: np.ndarray, y_test: np.ndarray) -> float:
    """Held-out accuracy of a logistic (hidden = 0) or one-hidden-layer probe."""
    torch.manual_seed(0)
    mean, std = train.mean(axis=0), train.std(axis=0)
    # A channel that hardly varies would turn rounding into a signal of unit size.
    inputs, held_out = (torch.tensor((x - mean) / np.maximum(std, 1e-3), dtype=torch.float32) for x in (train, test))
    width = inputs.shape[1]
    net = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, 1)) if hidden else nn.Linear(width, 1)
    optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
    labels = torch.tensor(y, dtype=torch.float32)
    for _ in range(200):
        optimiser.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(net(inputs).squeeze(1), labels).backward()
        optimiser.step()
    with torch.no_grad():
        guess = (net(held_out).squeeze(1) > 0).numpy()
    return float((guess == y_test).mean())


@pytest.mark.timeout(600)
def test_which_bin_it_was_is_gone_at_the_branch() -> None:
    env = ArmEnv("origin")
    try:
        shown, branch, cues = collect(env, range(100, 100 + TRAIN_PAIRS))
        shown_test, branch_test, cues_test = collect(env, range(900, 900 + TEST_PAIRS))
    finally:
        env.close()
    for hidden in (0, 32):
        assert probe_accuracy(hidden, shown, shown_test, cues, cues_test) >= 0.95
        assert probe_accuracy(hidden, branch, branch_test, cues, cues_test) <= 0.55


@pytest.mark.parametrize("task", [name for name in TASK_NAMES if name not in ("origin", *WATCHED_TASKS)])
def test_twins_are_alike_to_the_bit_at_the_branch(task: str) -> None:
    env = ArmEnv(task)
    try:
        _, branch, _ = collect(env, range(100, 103))
    finally:
        env.close()
    assert np.array_equal(branch[0::2], branch[1::2])
    assert not np.array_equal(branch[0], branch[2])
