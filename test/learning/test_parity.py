"""The training scan and the live runtime are one computation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learning.synthetic import TICKS, design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.memory.registry import names
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.clock import SinceWrite
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.window import PathWindow


@dataclass(frozen=True)
class EverySeconds:
    """A rule of time, as a third party would add it."""

    seconds: float
    deadband: float = 0.0

    def reached(self, since: SinceWrite) -> bool:
        return since.elapsed_ns >= self.seconds * 1e9

    def scaled(self, factor: float) -> EverySeconds:
        return replace(self, seconds=self.seconds * factor)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "every", "n": 1}


WINDOW = PathWindow(length=0.5, stretches=2, deadband=0.1)
CASES = [(name, None) for name in names()] + [("trace", WINDOW)]
CASES += [("gru+cache", None), ("gru+cache+gate", None), ("trace+cache", WINDOW)]
CASES += [(f"{name}+gate", window) for name in names() for window in (None, WINDOW)]


@pytest.mark.parametrize(("memory", "window"), CASES, ids=str)
def test_training_scan_equals_live_ticks(memory: str, window: PathWindow | None, tmp_path: Path) -> None:
    plan = replace(design(memory, depth=2 if memory.startswith("trace") else 0), window=window)
    builder = build.prepare(plan, [pair(0)]).training
    wrote = compare(plan, builder, tmp_path)
    due = builder.clock.write_mask(builder.data.episodes[0].state).tolist()
    assert not any(written for written, chance in zip(wrote, due, strict=True) if not chance)
    if memory.removesuffix("+gate") not in ("none", "first_frame"):
        # A fresh gate is open.
        assert wrote == due


def test_a_rule_of_time_writes_live_where_it_writes_in_training(tmp_path: Path) -> None:
    plan = replace(design("gru"), clock=EverySeconds(0.45))
    held_up = np.cumsum(np.random.default_rng(0).integers(1, 4, TICKS)) * 100_000_000
    one, other = (replace(demo, stamps_ns=held_up) for demo in pair(0))
    builder = build.prepare(plan, [(one, other)]).training
    wrote = np.flatnonzero(compare(plan, builder, tmp_path))
    gaps = np.diff(held_up[wrote])
    assert len(wrote) > 3 and gaps.min() >= 450_000_000 and len(set(np.diff(wrote))) > 1


def compare(plan: Design, builder: BatchBuilder, folder: Path) -> list[bool]:
    """Assert that reads in training and live are alike at each tick; which ticks wrote."""
    torch.manual_seed(0)
    agent = build.build_agent(plan, builder)
    build.save_checkpoint(agent, plan, builder, "synthetic", {}, folder)
    checkpoint = load(folder)
    # A rule that is not in the registry of rules does not survive the file.
    checkpoint = replace(checkpoint, config=replace(checkpoint.config, clock=plan.clock))
    agent.load_state_dict({k: v for k, v in checkpoint.tensors.items() if not k.startswith("normaliser.")})
    agent.eval()
    demo = builder.data.episodes[0].demo
    with torch.no_grad():
        readout, _ = agent.recall(builder.build([0], [1.0], [np.arange(TICKS)]))
    runtime = MemoryRuntime(checkpoint)
    wrote = []
    for tick in range(TICKS):
        images = {name: frames[tick] for name, frames in demo.images.items()}
        stamp_ns = int(demo.stamps_ns[tick])
        condition, _ = runtime.tick(Observation(tick, stamp_ns, images, demo.state[tick], {}, {}))
        wrote.append(condition.wrote)
        for name in ("tokens", "vector", "read_weights", "address"):
            expected = getattr(readout, name)[tick].numpy().ravel()
            live = np.ravel(getattr(condition, name))
            np.testing.assert_allclose(live, expected, atol=1e-5, err_msg=f"{name} at tick {tick}")
    return wrote
