"""What `trace-memory train BAGS/` does, step by step."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.table import Table

from trace_memory_ros.bags.cache import load_episodes
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.layout import find_bags
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.cli.train_output import bar, command, console
from trace_memory_ros.cli.train_phases import figures_of, run_phases
from trace_memory_ros.evaluation.summary import write_summary
from trace_memory_ros.learning import build
from trace_memory_ros.learning.bag_builders import prepare_unpaired
from trace_memory_ros.learning.bag_data import BagData, from_episodes, split
from trace_memory_ros.learning.bag_design import BagOptions, bag_design, bag_recipe, parse_clock
from trace_memory_ros.learning.batches import BatchBuilder
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.signature.normalise import Standardiser


def train_from(args: argparse.Namespace) -> dict[str, Any]:
    """Decode, split, train, save; returns the figures written to the summary."""
    if args.config is None:
        raise ValueError("bags need --config FILE; `trace-memory bags inspect BAG` proposes one")
    recording = RecordingConfig.load(args.config)
    options = _options(args)
    recipe = Recipe(steps=args.steps) if args.steps else Recipe()
    task = args.task or Path(args.source[0]).resolve().name
    folder: Path = args.out or Path("out/train") / f"{task}_{args.memory}_{args.seed}"
    data, failed = decode(args.source, recording, args.cache, args.workers)
    started = time.monotonic()
    train_at, held_at = split(data.episodes, args.held_out, args.split_seed)
    train_at = _fewer(train_at, args.episodes, args.seed)
    training, held_out = [data.episodes[i] for i in train_at], [data.episodes[i] for i in held_at]
    design, state = bag_design(options, recording, data.action_names, training)
    recipe = bag_recipe(recipe, recording.observation.tick_period_ms, training)
    builders = prepare_unpaired(design, state, training, held_out)
    _describe(data, builders, design, state)
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed)
    agent = build.build_agent(design, builders[0])
    if args.policy_from:
        build.adopt_policy(agent, load(args.policy_from))
    last = run_phases(agent, *builders, recipe, args.seed, folder / "training.safetensors", args.resume)
    figures = figures_of(agent, builders[1], last, started)
    figures |= {
        "held_out_chunk_error": last.held_out_chunk_error,
        "training_episodes": len(training),
        "labels": list(data.labels),
        "clock": design.clock.to_dict(),
        "writes_per_episode": _writes(builders[0]),
        "failed_bags": failed,
        "left_out": [list(entry) for entry in data.left_out],
    }
    provenance = {"command": command(), "seed": args.seed, "recipe": recipe.to_dict(), "figures": dict(figures)}
    figures["model_id"] = build.save_checkpoint(agent, design, builders[0], task, provenance, folder)
    write_summary(folder, command(), figures)
    console.print(f"checkpoint and summary.json in {folder}, model {figures['model_id'][:12]}", highlight=False)
    return figures


def decode(
    sources: Sequence[str | Path], recording: RecordingConfig, cache: Path, workers: int
) -> tuple[BagData, list[dict[str, str]]]:
    """The episodes of all bags under `sources`, and what is wrong with those that gave none, which is printed too.

    Raises ValueError where nothing is left.
    """
    bags = [bag for source in sources for bag in find_bags(Path(source))]
    episodes: list[BagEpisode] = []
    failed: list[dict[str, str]] = []
    with bar() as shown:
        row = shown.add_task("bags", total=len(bags))
        for result in load_episodes(bags, recording, cache, workers, lambda *_: shown.advance(row)):
            if isinstance(result, BagEpisode):
                episodes.append(result)
            else:
                failed += [fault.to_dict() for fault in result.faults]
                console.print(str(result), style="red", highlight=False, markup=False)
    if not episodes:
        raise ValueError(f"none of the {len(bags)} bags under {', '.join(map(str, sources))} can be used")
    data = from_episodes(episodes)
    for name, reason in data.left_out:
        console.print(f"{name}: {reason}", style="yellow", highlight=False, markup=False)
    return data, failed


def _options(args: argparse.Namespace) -> BagOptions:
    options = BagOptions(
        memory=args.memory,
        depth=args.depth or BagOptions.depth,
        window=None if args.window is None else PathWindow(stretches=args.window),
        clock=None if args.clock is None else parse_clock(args.clock),
        chunk=args.chunk,
    )
    return options if args.state_floor is None else replace(options, state_floor=args.state_floor)


def _fewer(indices: list[int], most: int | None, seed: int) -> list[int]:
    """At most `most` of the indices, at random."""
    if most is None or most >= len(indices):
        return indices
    if most < 1:
        raise ValueError(f"--episodes is {most}: use at least 1")
    return sorted(np.random.default_rng([seed, 3]).choice(indices, most, replace=False).tolist())


def _describe(
    data: BagData, builders: tuple[BatchBuilder, BatchBuilder], design: build.Design, state: Standardiser
) -> None:
    """Say what is learned from, and what cannot be done for want of annotations."""
    table = Table("", "episodes", "ticks", "branches", box=None)
    for name, builder in zip(("training", "held out"), builders, strict=True):
        demos = [episode.demo for episode in builder.data.episodes]
        counts = Counter(data.labels[answer] for demo in demos for answer in demo.answers)
        told = ", ".join(f"{label} {count}" for label, count in sorted(counts.items())) or "none annotated"
        table.add_row(name, str(len(demos)), str(sum(demo.ticks for demo in demos)), told)
    console.print(table)
    lengths = ", ".join(f"{key} {value}" for key, value in design.clock.to_dict().items())
    console.print(f"update clock: {lengths}; {_writes(builders[0]):.0f} writes per episode (median)", highlight=False)
    names = design.observation.state_names
    floored = [n for n, std, on in zip(names, state.std, state.active, strict=True) if on and std <= state.std.min()]
    console.print(f"state channels at the least spread of {state.std.min():.3g}: {', '.join(floored)}", highlight=False)
    if not data.labels:
        console.print(
            "no branch is annotated: reads are taken anywhere, batches are not balanced, the curriculum's stages have "
            "a fixed length, and branch accuracy is not measured. Annotate branches (docs/training.md) to have these",
            style="yellow",
        )


def _writes(builder: BatchBuilder) -> float:
    return float(np.median([episode.write_mask(builder.clock).sum() for episode in builder.data.episodes]))
