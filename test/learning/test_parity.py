"""The training scan and the live runtime are one computation."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning.synthetic import TICKS, design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.memory.registry import names
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.window import PathWindow

WINDOW = PathWindow(length=0.5, stretches=2, deadband=0.1)
CASES = [(name, None) for name in names()] + [("trace", WINDOW)]
CASES += [(f"{name}+gate", window) for name in names() for window in (None, WINDOW)]


@pytest.mark.parametrize(("memory", "window"), CASES, ids=str)
def test_training_scan_equals_live_ticks(memory: str, window: PathWindow | None, tmp_path: Path) -> None:
    plan = replace(design(memory, depth=2 if memory.startswith("trace") else 0), window=window)
    builder, _ = build.prepare(plan, [pair(0)], [pair(1)])
    torch.manual_seed(0)
    agent = build.build_agent(plan, builder)
    build.save_checkpoint(agent, plan, builder, "synthetic", {}, tmp_path)
    checkpoint = load(tmp_path)
    agent.load_state_dict({k: v for k, v in checkpoint.tensors.items() if not k.startswith("normaliser.")})
    agent.eval()
    demo = builder.data.episodes[0].demo
    with torch.no_grad():
        readout, _ = agent.recall(builder.build([0], [1.0], [np.arange(TICKS)]))
    runtime = MemoryRuntime(checkpoint)
    wrote = []
    for tick in range(TICKS):
        images = dict(zip(plan.observation.camera_names, demo.images[tick], strict=True))
        stamp_ns = tick * plan.observation.period_ns
        condition, _ = runtime.tick(Observation(tick, stamp_ns, images, demo.state[tick], {}, {}))
        wrote.append(condition.wrote)
        for name in ("tokens", "vector", "read_weights", "address"):
            expected = getattr(readout, name)[tick].numpy().ravel()
            live = np.ravel(getattr(condition, name))
            np.testing.assert_allclose(live, expected, atol=1e-5, err_msg=f"{name} at tick {tick}")
    due = builder.clock.write_mask(builder.data.episodes[0].state).tolist()
    assert not any(written for written, chance in zip(wrote, due, strict=True) if not chance)
    if memory.removesuffix("+gate") != "none":
        # A fresh gate is open.
        assert wrote == due
