"""Robots that nobody here owns: their bags inspected, trained on, judged, replayed and run live, by commands alone."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from rich.table import Table

from studies import options
from studies.grid import Figures, Store, say
from studies.robots.robots import ROBOTS, Robot
from studies.tables import table
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.cli.main import main as command

SCHEMA = 2
"""Of the bags and of what is found on them."""
MEMORIES: dict[str, tuple[str, ...]] = {
    "none": ("--memory", "none"),
    "first_frame": ("--memory", "first_frame"),
    "gru": ("--memory", "gru"),
    "trace": ("--memory", "trace", "--window", "0", "--noise", "1"),
    "trace_window": ("--memory", "trace", "--window", "8", "--noise", "1"),
    "default": (),
}
EDITED = ("two_arms_wrench",)
"""Robots with numbers that a proposal lists and does not take: velocities, forces."""
SHIPPED = Path(__file__).parents[2] / "config" / "robots"
SMALL = (
    "recipe.memory_first.clock_factors=[4.0, 1.0]",
    "recipe.memory_first.stage_steps=2",
    "recipe.memory_first.attempts=1",
    "recipe.steps=2",
    "bags.cross_validation=false",
    "policy.chunk=6",
)
"""A training that ends in seconds and learns nothing."""
FRESH = 1_000
"""The first scene that no training sees."""


@dataclass(frozen=True)
class RobotsPlan:
    """What a call is decided by. words: added to `trace-memory train`."""

    episodes: int
    fresh: int
    seconds: float
    out_dir: Path
    words: tuple[str, ...] = field(default=())

    def settings(self, robot: Robot, part: str) -> Figures:
        """What a robot's figures depend on."""
        sizes = {"episodes": self.episodes, "fresh": self.fresh, "seconds": self.seconds, "words": list(self.words)}
        return {"schema": SCHEMA, "robot": robot.name, "part": part, **sizes}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Robots, memories, sizes."""
    options.add_names(parser, "--robots", ROBOTS, "robots")
    options.add_names(parser, "--memories", MEMORIES, "memories")
    options.add_counts(parser, episodes=(72, "bags to train on"), fresh=(40, "bags that no training sees"))


def run(
    out_dir: Path, quick: bool, robots: tuple[str, ...], memories: tuple[str, ...], episodes: int, fresh: int
) -> Figures:
    """Synthesise bags and take each robot through every command; kept parts are not done again."""
    plan = RobotsPlan(episodes, fresh, 8.0, out_dir)
    if quick:
        words = tuple(word for value in SMALL for word in ("--set", value))
        plan = RobotsPlan(6, 2, 4.0, out_dir, words)
    store = Store(out_dir / "parts")
    chosen = memories[-1:] if quick else memories
    figures: Figures = {}
    for robot in (ROBOTS[name] for name in robots):
        _record(plan, robot)
        inspected = partial(_inspect, plan, robot)
        found = {"inspect": store.get(f"{robot.name}-inspect", plan.settings(robot, "inspect"), inspected)}
        for memory in chosen:
            job = partial(_take_through, plan, robot, memory)
            done = store.get(f"{robot.name}-{memory}", plan.settings(robot, memory), job)
            say(f"{robot.name} {memory}: {done['right']} of {done['decisions']} fresh decisions right")
            found[memory] = done
        figures[robot.name] = found
    return {"episodes": plan.episodes, "fresh": plan.fresh, "seconds": plan.seconds, "robots": figures}


def tables(figures: Figures) -> Iterator[Table]:
    """Decisions on fresh bags, and what the live run gave."""
    names = [name for name in MEMORIES if any(name in found for found in figures["robots"].values())]
    title = f"right decisions on fresh bags, trained on {figures['episodes']} bags"
    rows = [[robot, *(_cell(found.get(name)) for name in names)] for robot, found in figures["robots"].items()]
    yield table(title, ["robot", *names], rows)
    live = [
        [robot, name, run["conditions"], run["ticks"], ", ".join(map(str, run["commands"].values())), _parity(run)]
        for robot, found in figures["robots"].items()
        for name, run in ((name, found[name]["live"]) for name in names if name in found)
    ]
    yield table("live", ["robot", "memory", "conditions", "ticks", "commands by topic", "max |live - replay|"], live)


def _cell(found: Figures | None) -> str:
    if found is None:
        return "-"
    low, high = found["ci95"] or (0.0, 1.0)
    return f"{found['right']}/{found['decisions']} ({low:.2f} to {high:.2f})"


def _parity(live: Figures) -> str:
    return "-" if live["replay"] is None else f"{live['replay']['max_abs']:g}"


def _folder(plan: RobotsPlan, robot: Robot) -> Path:
    """Of its bags and what is made of them. The commands take all bags that are there: those of these sizes alone."""
    sizes = f"{plan.episodes}-{plan.fresh}-{plan.seconds:g}s"
    return plan.out_dir / f"bags_{SCHEMA}" / f"{robot.name}-{sizes}"


def _record(plan: RobotsPlan, robot: Robot) -> None:
    """The bags that are not there yet."""
    for kind, first, count in (("train", 0, plan.episodes), ("fresh", FRESH, plan.fresh)):
        for scene in range(first, first + count):
            robot.recorded(_folder(plan, robot) / kind / f"{scene:04d}", scene, plan.seconds)


def _inspect(plan: RobotsPlan, robot: Robot) -> Figures:
    """`bags inspect` and, where a person would add to what it proposes, `config/robots`: what all that follows uses."""
    folder = _folder(plan, robot)
    _call("bags", "inspect", folder / "train", "--out", folder / "proposed.yaml")
    proposed = yaml.safe_load((folder / "proposed.yaml").read_text(encoding="utf-8"))
    if robot.name in EDITED:
        shipped = yaml.safe_load((SHIPPED / f"{robot.name}.yaml").read_text(encoding="utf-8"))
        proposed |= {key: shipped[key] for key in ("observation", "actions")}
    (folder / "observation.yaml").write_text(yaml.safe_dump(proposed, sort_keys=False), encoding="utf-8")
    recording = RecordingConfig.load(folder / "observation.yaml")
    assert recording.actions is not None
    return {
        "state": list(recording.observation.state),
        "path": list(recording.observation.path),
        "actions": list(recording.actions.names),
        "tick_period_ms": recording.observation.tick_period_ms,
        "cameras": {camera.topic: camera.transport for camera in recording.observation.cameras},
    }


def _take_through(plan: RobotsPlan, robot: Robot, memory: str) -> Figures:
    """Train, evaluate, replay, live."""
    folder = _folder(plan, robot)
    config, out = ("--config", folder / "observation.yaml"), folder / memory
    cache = ("--cache", plan.out_dir / "cache")
    _call("train", folder / "train", *config, *cache, *MEMORIES[memory], "--out", out / "checkpoint", *plan.words)
    _call("evaluate", folder / "fresh", *config, *cache, "--checkpoint", out / "checkpoint", "--out", out / "evidence")
    bag = next(iter(sorted((folder / "fresh").iterdir())))
    replayed = ("--out", out / "replayed", "--summary", out / "replay")
    _call("replay", bag, *config, "--checkpoint", out / "checkpoint", *replayed)
    trained, judged = (_figures(out / name) for name in ("checkpoint", "evidence"))
    # Only this needs ROS.
    from studies.robots.live import run_live

    recording = RecordingConfig.load(folder / "observation.yaml")
    right = judged["verdict"]["right"]
    return {
        "held_out": trained["held_out_branch_accuracy"],
        "cross_validation": trained["cross_validation"],
        "training_cpu_s": trained["memory_cpu_s"] + trained["joint_cpu_s"],
        "right": right["right"],
        "decisions": right["decisions"],
        "ci95": right["ci95"],
        "uses_earlier_evidence": judged["verdict"]["answer"],
        "replay": {key: _figures(out / "replay").get(key) for key in ("ticks", "statuses", "times_real_time")},
        "live": run_live(robot, recording, out / "checkpoint", FRESH, plan.seconds, out),
    }


def _call(*words: object) -> None:
    """A command of `trace-memory`; raises RuntimeError where it fails."""
    line = [str(word) for word in words]
    if command(line):
        raise RuntimeError(f"trace-memory {' '.join(line)} failed: see above")


def _figures(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["figures"]
    return found
