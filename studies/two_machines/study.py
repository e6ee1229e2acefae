"""Does a policy act on another machine than memory and robot, over real DDS, and how much goes over the network?"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.table import Table

from studies import options
from studies.faults.network_rows import HERE, inside, networks, no_networks
from studies.grid import Figures, Store, say
from studies.tables import table
from studies.two_machines.link import WAYS

SECONDS, QUICK_S = 30.0, 5.0
ALONE_S = 300.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Ways of finding one another."""
    options.add_names(parser, "--ways", WAYS, "ways")


def run(out_dir: Path, quick: bool, ways: tuple[str, ...]) -> Figures:
    """Each way in two network namespaces joined by a virtual cable, without delay or loss. Raises ValueError where
    there can be none."""
    if reason := no_networks():
        raise ValueError(f"two machines need network namespaces: {reason}")
    seconds, store = QUICK_S if quick else SECONDS, Store(out_dir / "ways")
    figures: Figures = {}
    for name in ways:
        measure = partial(elsewhere, name, out_dir, seconds)
        figures[name] = store.get(name, {"seconds": seconds}, measure)
        say(f"{name}: {figures[name]['missed'] or figures[name]['link_mbit_s']}")
    return {"seconds": seconds, "ways": figures}


def elsewhere(name: str, out_dir: Path, seconds: float) -> Figures:
    """Measure one way by a process in the robot's namespace."""
    folder = out_dir / "benches" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = inside(HERE, sys.executable, "-m", "studies.two_machines.link", name, str(folder), str(seconds))
    with networks(), (folder / "log").open("wb") as log:
        done = subprocess.run(command, timeout=ALONE_S + seconds, stdout=log, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: its process failed: {(folder / 'log').read_text(errors='replace')[-600:]}")
    found: Figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    return found


def tables(figures: Figures) -> Iterator[Table]:
    """A row per way; then what each topic takes."""
    ways = figures["ways"]
    heads = ["way", "conditions OK", "commands", "command's age p50 / p99 / max, ms", "to the policy", "back, Mbit/s"]
    rows = [[name, *(["missed", "-", "-", "-", "-"] if one["missed"] else _cells(one))] for name, one in ways.items()]
    yield table("policy on another machine", heads, rows)
    good = [one for one in ways.values() if not one["missed"]]
    if good:
        shares = good[0]["stream_mbit_s"].items()
        yield table("messages to the policy", ["topic", "Mbit/s"], [[name, f"{rate:.2f}"] for name, rate in shares])


def _cells(one: Figures) -> list[str]:
    ages = " / ".join(f"{age:.0f}" for age in one["command_age_ms"] or [])
    there, back = one["link_mbit_s"].values()
    return [f"{one['conditions_ok']} of {one['conditions']}", str(one["commands"]), ages, f"{there:.1f}", f"{back:.2f}"]
