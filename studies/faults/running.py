"""Rows one after another: on nodes that they share as long as these are well, or on nodes of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from studies.faults import command_rows, network_rows, process_rows, stored_rows, stream_rows
from studies.faults.bench import MEMORY, POLICY, Bench, BenchFailed
from studies.faults.judge import COLUMNS
from studies.faults.network_rows import HERE, THERE, inside, networks
from studies.faults.setting import Setting
from studies.faults.trial import Row, Trial
from studies.grid import Figures
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeFailed
from trace_memory_ros.nodes.transport import leave_loopback, open_environment, private_environment

ROWS = {
    row.name: row
    for rows in (stream_rows.rows, process_rows.rows, stored_rows.rows, network_rows.rows, command_rows.rows)
    for row in rows()
}
DISK_BYTES = 512 * 1024
ALONE_S = 400.0
MET, MISSED, SKIPPED = "met", "missed", "skipped"


class Runner:
    """Runs rows below `folder`; a context manager, which ends what it started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shared: Bench | None = None
        self._benches = 0

    def __enter__(self) -> Runner:
        self._claim = DomainClaim()
        self._environment = private_environment(self._claim.id)
        os.environ.update(self._environment)
        return self

    def __exit__(self, *exception: object) -> None:
        self._drop()
        self._claim.release()

    def run(self, row: Row) -> Figures:
        """What came of a row."""
        if reason := row.lacks():
            return _figures(row, SKIPPED, {}, [reason], 0.0)
        if row.networks:
            self._drop()
            return run_elsewhere(row, self._folder / row.name)
        if row.bench is not None:
            with self._bench(row) as bench:
                return _measured(row, bench)
        if self._shared is None:
            self._benches += 1
            self._shared = _started(Bench(self._fresh(f"shared{self._benches}"), self._claim.id, self._environment))
        figures = _measured(row, self._shared)
        if figures["verdict"] == MISSED:
            self._drop()
        return figures

    @contextmanager
    def _bench(self, row: Row) -> Iterator[Bench]:
        """Nodes of the row's own; those that are shared end first, so that nobody hears both."""
        self._drop()
        assert row.bench is not None
        folder = self._fresh(row.name)
        disk = _small_disk(folder / "kept", row.bench.mount)
        with disk, Bench(folder, self._claim.id, self._environment, row.bench) as bench:
            yield _started(bench)

    def _fresh(self, name: str) -> Path:
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _drop(self) -> None:
        if self._shared is not None:
            self._shared.close()
            self._shared = None


def run_elsewhere(row: Row, folder: Path) -> Figures:
    """Run a row in a process of its own, in a network namespace with the robot; memory_node in another."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = inside(HERE, sys.executable, "-m", "studies.faults.running", row.name, str(folder))
    failed = ""
    with networks(), (folder / "log").open("wb") as log:
        try:
            subprocess.run(command, timeout=ALONE_S, stdout=log, stderr=subprocess.STDOUT, check=True)
        except subprocess.CalledProcessError:
            failed = "failed"
        except subprocess.TimeoutExpired:
            failed = f"did not end within {ALONE_S:g} s"
    if failed:
        text = (folder / "log").read_text(errors="replace")[-600:]
        return _figures(row, MISSED, {"crash": [f"the row's own process {failed}: {text}"]}, [], 0.0)
    found: Figures = json.loads((folder / "figures.json").read_text(encoding="utf-8"))
    return found


def main(name: str, folder: Path) -> None:
    """Within a network namespace: a row, its figures in `folder`."""
    row = ROWS[name]
    with DomainClaim() as domain:
        transports = (row.bench or Setting()).transports
        environment = open_environment(domain, transports)
        leave_loopback()
        os.environ.update(environment)
        prefixes = {MEMORY: inside(THERE)}
        with row.link() as link, Bench(folder, domain, environment, row.bench, prefixes) as bench:
            bench.link = link
            figures = _measured(row, _started(bench))
    (folder / "figures.json").write_text(json.dumps(figures), encoding="utf-8")


def _started(bench: Bench) -> Bench:
    try:
        for node in (MEMORY, POLICY):
            bench.start(node)
        bench.ready(MEMORY, POLICY)
    except BaseException:
        bench.close()
        raise
    return bench


def _measured(row: Row, bench: Bench) -> Figures:
    begun = time.monotonic()
    trial = Trial(bench)
    try:
        trial.healthy()
        row.run(trial)
    except (BenchFailed, EpisodeFailed, NodeFailed) as error:
        trial.found["promise lost"].append(f"{type(error).__name__}: {error}")
    found = {column: faults for column, faults in trial.finish().items() if faults}
    return _figures(row, MISSED if found else MET, found, trial.seen, time.monotonic() - begun)


def _figures(row: Row, verdict: str, found: dict[str, list[str]], seen: Sequence[str], seconds: float) -> Figures:
    columns = {column: found.get(column, []) for column in COLUMNS}
    told = {"theme": row.theme, "fault": row.fault, "expected": row.expected, "verdict": verdict}
    return {**told, "columns": columns, "seen": list(seen), "seconds": round(seconds, 1)}


@contextmanager
def _small_disk(folder: Path, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    folder.mkdir()
    options = f"size={DISK_BYTES}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True, capture_output=True)
    try:
        yield
    finally:
        with suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", "-l", str(folder)], check=True, capture_output=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
