"""The signature benchmark compares equal work and survives absent peers."""

import sys
from pathlib import Path

import numpy as np
import pytest

from studies.engine import show
from studies.signature import peers
from studies.signature import study as bench
from trace_memory_ros.signature.naive import signature


def test_every_contestant_that_runs_here_computes_the_definition() -> None:
    path = peers.closed_path(bench.DIM)
    contestants, missing = bench.gather(path)
    bench.check(contestants, signature(path, peers.DEPTH))
    keys = {contestant.key for contestant in contestants}
    assert keys <= set(peers.LABELS)
    assert {"update", "update_and_value", "kernel_call", "kernel"} <= keys
    assert keys | set(missing) >= {"roughpy", "iisignature", "c"}


def test_a_contestant_that_computes_something_else_is_refused() -> None:
    path = peers.closed_path(bench.DIM)
    wrong = peers.Contestant("update", lambda: None, lambda: np.zeros(5219))
    with pytest.raises(RuntimeError, match="update is off"):
        bench.check([wrong], signature(path, peers.DEPTH))


def test_figures_without_peers_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("roughpy", "iisignature"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(bench, "QUICK_ROUNDS", 3)
    figures = bench.run(tmp_path, quick=True)
    show(bench.tables(figures))
    assert set(figures["missing"]) == {"roughpy", "iisignature", "c"}
    assert figures["speedup"] is None
    assert figures["met"] is False
    assert figures["update_us"] > 0
    assert "not measured: roughpy is not installed: pip install" in " ".join(capsys.readouterr().out.split())
