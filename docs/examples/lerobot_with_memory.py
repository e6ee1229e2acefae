"""A LeRobot policy and a trained memory, put together over the LeRobotDataset that both were trained on.

python docs/examples/lerobot_with_memory.py DATASET CHECKPOINT POLICY OUT [--steps N] [--whole] [--task TEXT]

CHECKPOINT is what `trace-memory train lerobot:DATASET` wrote, POLICY what `lerobot-train` did. OUT holds both, for
`LerobotRunner.from_folder`. --whole trains LeRobot's weights too, not the memory's adapter alone.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch

from trace_memory_ros import MemoryRuntime, RecordingConfig
from trace_memory_ros.learning.lerobot.dataset import Dataset
from trace_memory_ros.learning.lerobot.source import DatasetSource, episodes_of
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint, save
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.policy import MemoryOptions, MemoryPolicy, memory_batch
from trace_memory_ros.policies.runner import readout_of


def remembered(folder: Path, runtime: MemoryRuntime, shape: ConditionShape) -> list[dict[str, torch.Tensor]]:
    """What a live memory would publish by every frame of the dataset, as entries of a batch of one."""
    dataset, config = Dataset(folder), runtime.config.observation
    frames = []
    for index, path in zip(dataset.episodes, episodes_of(f"lerobot:{folder}"), strict=True):
        episodes, verdict = DatasetSource().decode(path, RecordingConfig(config))
        if not episodes:
            raise SystemExit(str(verdict))
        runtime.reset()
        ticks = [runtime.tick(episodes[0].observation(k))[0] for k in range(episodes[0].ticks)]
        for k in range(dataset.frames(index)):
            tick = round(k * 1e9 / dataset.layout.fps) // config.period_ns
            frames.append(memory_batch(readout_of(ticks[min(tick, len(ticks) - 1)], shape)))
    return frames


def train(
    policy: MemoryPolicy, frames: Any, memory: list[dict[str, torch.Tensor]], pre: Any, steps: int, batch: int
) -> Iterator[float]:
    """LeRobot's loss, step by step, on LeRobot's own batches with what was remembered by then."""
    optimiser = torch.optim.AdamW(policy.get_optim_params(), lr=1e-3 if policy.options.frozen else 1e-4)
    loader = torch.utils.data.DataLoader(frames, batch, shuffle=True, drop_last=True)
    seen = (entries for _ in count() for entries in loader)
    policy.train()
    for entries in islice(seen, steps):
        rows = [memory[i] for i in entries["index"].tolist()]
        held = {key: torch.cat([row[key] for row in rows]) for key in rows[0]}
        loss, _ = policy(pre({**entries, **held}))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        yield loss.item()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("dataset", "checkpoint", "policy", "out"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--task", default="")
    args = parser.parse_args()

    threads = torch.get_num_threads()
    runtime = MemoryRuntime.from_checkpoint(args.checkpoint)  # lets torch use one thread
    memory = runtime.model.memory
    shape = ConditionShape(memory.slot_count, memory.dims.width, memory.address_width)
    factory, datasets = lerobot("lerobot.policies.factory"), lerobot("lerobot.datasets.lerobot_dataset")
    config = lerobot("lerobot.configs.policies").PreTrainedConfig.from_pretrained(args.policy)
    base = factory.get_policy_class(config.type).from_pretrained(args.policy, config=config)
    pre, post = factory.make_pre_post_processors(config, pretrained_path=str(args.policy))
    known = datasets.LeRobotDatasetMetadata(args.dataset.name, root=args.dataset)
    steps_seen = lerobot("lerobot.datasets.factory").resolve_delta_timestamps(config, known)
    frames = datasets.LeRobotDataset(args.dataset.name, root=args.dataset, delta_timestamps=steps_seen)

    policy = MemoryPolicy(base, MemoryOptions(shape, frozen=not args.whole))
    entries = remembered(args.dataset, runtime, shape)
    torch.set_num_threads(threads)
    losses = list(train(policy, frames, entries, pre, args.steps, args.batch))
    names = Dataset(args.dataset).layout.actions
    save(args.out, LerobotCheckpoint(policy.eval(), pre, post, names, runtime.model_id, args.task))
    tenth = max(1, len(losses) // 10)
    print(f"loss {sum(losses[:tenth]) / tenth:.4f} to {sum(losses[-tenth:]) / tenth:.4f}; written to {args.out}")


main()
