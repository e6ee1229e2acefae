"""Rows: snapshots and checkpoints that are damaged, foreign or old, and a disk that is full."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from studies.faults.bench import MEMORY, POLICY, Bench
from studies.faults.judge import CRASH, GREEN, MOTION, PROMISE
from studies.faults.models import made_up_checkpoint
from studies.faults.robot import SECOND_NS
from studies.faults.setting import Setting
from studies.faults.trial import Row, Trial
from studies.faults.watch import WARN
from trace_memory_ros.nodes.memory.snapshot_file import read_snapshot, write_snapshot
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

THEME = "stored"
HOUR_NS = 3_600 * SECOND_NS


def rows() -> Iterator[Row]:
    """By what is wrong with which file."""
    empty = "the memory begins empty and is WARN, naming why; the policy is ERROR until ~/enable"
    for name, fault, change, words in (
        ("snapshot_corrupt", "a byte of the snapshot is another", _flip, ("checksum",)),
        ("snapshot_cut", "the snapshot ends early", _cut, ("safetensors",)),
        ("snapshot_foreign", "the snapshot is another model's", _foreign, ("began empty",)),
        ("snapshot_old", "the snapshot is an hour old", _old, ("s old", "restore_max_age_s")),
    ):
        yield Row(name, THEME, f"kill -9 of memory_node, and {fault}", empty, _restarted_with(change, words))
    full = "memory is WARN, naming the disk; conditions and commands go on; then it is kept again"
    yield Row(
        "disk_full", THEME, "the disk of the snapshots is full", full, _full_disk, Setting(mount=True), lacks=_no_mount
    )
    refused = "memory_node ends with exit code 1, naming the file; the one that runs goes on"
    yield Row("checkpoint_corrupt", THEME, "a checkpoint whose weights end early", refused, _corrupt_checkpoint)
    other = "the policy refuses every condition, naming both models; no command"
    yield Row("checkpoint_foreign", THEME, "a policy of another checkpoint", other, _foreign_checkpoint)


def _snapshot(bench: Bench) -> Path:
    # Beside it lie what was refused, and what a killed node wrote half.
    files = [file for file in bench.kept.glob("*.safetensors") if not file.name.startswith(".")]
    (found,) = (file for file in files if "refused" not in file.name)
    return found


def _restarted_with(change: Callable[[Bench, Path], None], words: tuple[str, ...]) -> Callable[[Trial], None]:
    def run(trial: Trial) -> None:
        bench, watch = trial.bench, trial.watch
        bench.kill(MEMORY)
        change(bench, _snapshot(bench))
        given = len(watch.conditions)
        bench.start(MEMORY)
        bench.ready(MEMORY)
        trial.named("memory", WARN, *words)
        trial.expect(PROMISE, "conditions come", lambda: len(watch.conditions) > given)
        first = watch.conditions[given] if len(watch.conditions) > given else None
        trial.check(
            PROMISE, "the memory begins at tick 0", first is not None and first.tick == 0 and not first.restored
        )
        trial.stands_still("no command before ~/enable")
        trial.begins_anew()

    return run


def _flip(bench: Bench, file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-2] ^= 1
    file.write_bytes(content)


def _cut(bench: Bench, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _foreign(bench: Bench, file: Path) -> None:
    head = read_snapshot(file, MemoryRuntime.from_checkpoint(bench.checkpoint))
    other = MemoryRuntime.from_checkpoint(made_up_checkpoint(bench.folder / "foreign", seed=1))
    write_snapshot(file, other.snapshot(), head)


def _old(bench: Bench, file: Path) -> None:
    runtime = MemoryRuntime.from_checkpoint(bench.checkpoint)
    head = read_snapshot(file, runtime)
    write_snapshot(file, runtime.snapshot(), replace(head, written_ns=time.time_ns() - HOUR_NS))


def _no_mount() -> str:
    if os.geteuid() or not shutil.which("mount"):
        return "mounting a small disk (tmpfs) needs root"
    return ""


def _full_disk(trial: Trial) -> None:
    filler = trial.bench.kept / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    trial.named("memory", WARN, "cannot be written")
    trial.commands_go_on(20)
    trial.check(GREEN, "the node is not green", trial.watch.says(f"kestrel/{MEMORY}", WARN))
    filler.unlink()
    trial.recovers()
    trial.check(PROMISE, "a snapshot is kept", _snapshot(trial.bench).stat().st_size > 0)


def _corrupt_checkpoint(trial: Trial) -> None:
    bench = trial.bench
    damaged = bench.folder / "damaged"
    if not damaged.exists():
        shutil.copytree(bench.checkpoint, damaged)
        weights = damaged / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
    process = bench.start(MEMORY, "damaged", {"checkpoint": str(damaged), "snapshot_dir": ""})
    trial.ends("damaged", 1, 60.0)
    trial.check(CRASH, "its log names the file", str(damaged) in process.log and "Traceback" not in process.log)
    trial.recovers()


def _foreign_checkpoint(trial: Trial) -> None:
    bench = trial.bench
    foreign = made_up_checkpoint(bench.folder / "foreign", seed=1)
    bench.processes.pop(POLICY).stop()
    bench.start(POLICY, "foreign_policy", {"checkpoint": str(foreign), "start_enabled": True})
    bench.ready("foreign_policy")
    trial.named("policy", WARN, "refused: this policy is of model")
    trial.commands_cease()
    trial.check(
        MOTION, "it never sent one", not trial.watch.arm or trial.watch.arm[-1].sent_ns < time.time_ns() - SECOND_NS
    )
    bench.processes.pop("foreign_policy").stop()
    bench.start(POLICY)
    bench.ready(POLICY)
    bench.client.trigger("policy_node/enable")
    trial.recovers()
