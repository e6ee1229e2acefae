"""What `trace-memory train BAGS/` does, step by step."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData
from trace_memory_ros.learning.bags.design import BagOptions, parse_clock
from trace_memory_ros.learning.bags.training import Prepared, bags_under, prepare, read_bags
from trace_memory_ros.learning.console import TrainingReport, bar, command, console
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.measure.summary import write_summary
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.window import PathWindow


def train_from(args: argparse.Namespace) -> dict[str, Any]:
    """Decode, split, train, save; returns the figures written to the summary."""
    if args.config is None:
        raise ValueError("bags need --config FILE; `trace-memory bags inspect BAG` proposes one")
    recording = RecordingConfig.load(args.config)
    options = _options(args)
    recipe = Recipe(steps=args.steps) if args.steps else Recipe()
    task = args.task or Path(args.source[0]).resolve().name
    data, failed = _decode(args, recording)
    plan = prepare(data, recording, options, recipe, args.held_out, args.split_seed, args.episodes)
    _describe(data, plan)
    folder: Path = args.out or Path("out/train") / f"{task}_{args.memory}_{args.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    start = load(args.policy_from) if args.policy_from else None
    resumed = {"save_to": folder / "training.safetensors", "resume": args.resume}
    with TrainingReport(plan.recipe.steps) as report:
        fitted = fit(plan.design, plan.data, plan.recipe, args.seed, start=start, report=report, **resumed)
    figures = fitted.figures()
    figures |= {
        "held_out_chunk_error": fitted.last.held_out_chunk_error,
        "training_episodes": len(plan.training.data.episodes),
        "labels": list(data.labels),
        "clock": plan.design.clock.to_dict(),
        "writes_per_episode": plan.writes,
        "failed_bags": [fault.to_dict() for verdict in failed for fault in verdict.faults],
        "left_out": [list(entry) for entry in data.left_out],
    }
    figures["model_id"] = fitted.save(folder, task, figures, command=command())
    write_summary(folder, command(), figures)
    console.print(f"checkpoint and summary.json in {folder}, model {figures['model_id'][:12]}", highlight=False)
    return figures


def _decode(args: argparse.Namespace, recording: RecordingConfig) -> tuple[BagData, list[BagVerdict]]:
    """The bags' episodes; says what is wrong with bags and parts of them."""
    bags = bags_under(args.source)
    with bar() as shown:
        row = shown.add_task("bags", total=len(bags))

        def report(_done: int, _total: int, verdict: BagVerdict) -> None:
            shown.advance(row)
            if not verdict.ok:
                console.print(str(verdict), style="yellow", highlight=False, markup=False, soft_wrap=True)

        data, failed = read_bags(bags, recording, args.cache, args.workers, report)
    if failed:
        console.print(f"{len(failed)} of {len(bags)} bags cannot be used; training on the rest", style="yellow")
    for name, reason in data.left_out:
        console.print(f"{name}: {reason}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    return data, failed


def _options(args: argparse.Namespace) -> BagOptions:
    options = BagOptions(
        memory=args.memory,
        depth=args.depth or BagOptions.depth,
        window=None if args.window is None else PathWindow(stretches=args.window),
        clock=None if args.clock is None else parse_clock(args.clock),
        chunk=args.chunk,
        policy=args.policy,
    )
    return options if args.state_floor is None else replace(options, state_floor=args.state_floor)


def _describe(data: BagData, plan: Prepared) -> None:
    """Say what is learned from, and what cannot be done for want of annotations."""
    table = Table("", "episodes", "ticks", "branches", box=None)
    for name, builder in (("training", plan.training), ("held out", plan.held_out)):
        demos = [episode.demo for episode in builder.data.episodes]
        counts = Counter(data.labels[answer] for demo in demos for answer in demo.answers)
        told = ", ".join(f"{label} {count}" for label, count in sorted(counts.items())) or "none annotated"
        table.add_row(name, str(len(demos)), str(sum(demo.ticks for demo in demos)), told)
    console.print(table)
    rule = ", ".join(str(value) for value in plan.design.clock.to_dict().values())
    lines = [f"update clock: {rule}; {plan.writes:.0f} writes in the median episode"]
    names, state = plan.design.observation.state_names, plan.state
    least = state.std.min()
    still = [name for name, std, on in zip(names, state.std, state.active, strict=True) if on and std <= least]
    lines.append(f"least spread of a state channel {least:.3g}: {', '.join(still)}")
    if not data.labels:
        lines.append(
            "no branch is annotated: reads are taken anywhere, batches are not balanced, the stages of the curriculum "
            "have a fixed length, and branch accuracy is not measured. Annotated branches give all these"
        )
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
