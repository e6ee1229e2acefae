"""The parity benchmark in a short form: memory_node over DDS, recorded and replayed; and what it would not let pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from studies.grid import Figures
from studies.parity import study as bench
from studies.parity.disturbed_streams import Disturbance, DisturbedStreams, Event
from studies.parity.models import random_checkpoint, shipped
from trace_memory_ros.memory import registry
from trace_memory_ros.observation.config import CameraConfig, default_arm
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

TICKS = 100


@pytest.mark.timeout(400)
def test_live_over_dds_equals_replay_and_training(tmp_path: Path) -> None:
    checkpoint = random_checkpoint(tmp_path / "checkpoint", "trace")
    live = bench.record_live(tmp_path, checkpoint, TICKS, seed=3, disturbance={"burst_every_s": 2.5, "damaged": 0.02})
    assert live["conditions"] >= TICKS - 5
    assert all(live["messages"][name] > 0 for name in ("dropped", "repeated", "reordered", "damaged"))
    figures, conditions = bench.compare_replays(tmp_path / "bag", checkpoint)
    for how in ("stamps_alone", "as_recorded"):
        assert figures[how]["identical"], figures[how]
        assert figures[how]["max_abs"] == 0.0
        assert figures[how]["ticks_compared"] == len(conditions)
        assert figures[how]["statuses"]["OK"] > TICKS / 2
    scan = bench.scan_difference(load(checkpoint), tmp_path / "bag", conditions)
    assert scan["max_abs"] <= bench.SCAN_TARGET
    assert scan["writes_live"] == scan["writes_due_in_training"]
    changed = [replace(c, tokens=c.tokens + np.float32(1e-3)) for c in conditions]
    assert bench.scan_difference(load(checkpoint), tmp_path / "bag", changed)["max_abs"] > 5e-4


@pytest.mark.timeout(400)
def test_live_over_dds_equals_replay_with_jpeg_cameras(tmp_path: Path) -> None:
    checkpoint = random_checkpoint(tmp_path / "checkpoint", "trace", transport="compressed")
    disturbance = {"burst_every_s": 2.5, "damaged": 0.05, "image_px": 128}
    live = bench.record_live(tmp_path, checkpoint, TICKS, seed=3, disturbance=disturbance)
    assert live["conditions"] >= TICKS - 5
    figures, conditions = bench.compare_replays(tmp_path / "bag", checkpoint)
    for how in ("stamps_alone", "as_recorded"):
        assert figures[how]["identical"], figures[how]
        assert figures[how]["max_abs"] == 0.0
        assert figures[how]["ticks_compared"] == len(conditions)
    reasons = [condition.reason for condition in conditions]
    assert all(any(text in reason for reason in reasons) for text in ("is cut off", "cannot be decoded"))
    assert bench.scan_difference(load(checkpoint), tmp_path / "bag", conditions)["max_abs"] <= bench.SCAN_TARGET


def test_a_live_run_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the live run in .* failed: (?s:.*)nothing"):
        bench.record_live(tmp_path, tmp_path / "nothing", 10, seed=0)


def test_weights_that_were_trained_anew_are_run_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def measured(kind: str, **figures: object) -> Callable[[], Figures]:
        def measure() -> Figures:
            ran.append(kind)
            same = {"identical": True, "max_abs": 0.0, "ticks_live": 5, "ticks_replayed": 5}
            return {"stamps_alone": same, "as_recorded": same, "training_scan": {"max_abs": 0.0}}

        return measure

    monkeypatch.setattr(bench, "_lossless", lambda _, memory, *__: measured(memory))
    monkeypatch.setattr(bench, "_side", lambda _, kind, *__: measured(kind))
    once = ["gru", *bench.SIDES]
    for model_id, runs in (("a", once), ("a", once), ("b", once * 2)):
        monkeypatch.setattr(bench, "load", lambda path, model_id=model_id: SimpleNamespace(model_id=model_id))
        bench.run(tmp_path, True, ("gru",))
        assert ran == runs


def test_figures_are_met_only_when_everything_is_equal() -> None:
    good = {"identical": True, "ticks_live": 5, "ticks_replayed": 5}
    lossless = {"stamps_alone": good, "as_recorded": good, "training_scan": {"max_abs": 1e-6}}
    sides = {kind: {"as_recorded": good} for kind in ("deadlines", "lossy_recorder_only")}
    assert bench._met({"trace": lossless}, sides)
    for broken in (
        {"stamps_alone": {**good, "identical": False}},
        {"stamps_alone": {**good, "ticks_live": 6}},
        {"training_scan": {"max_abs": 2e-5}},
    ):
        assert not bench._met({"trace": {**lossless, **broken}}, sides)
    assert not bench._met({"trace": lossless}, {**sides, "deadlines": {"as_recorded": {**good, "identical": False}}})


@pytest.mark.parametrize("memory", registry.names())
def test_every_memory_has_a_checkpoint_to_run(memory: str, tmp_path: Path) -> None:
    runtime = MemoryRuntime.from_checkpoint(shipped(memory) or random_checkpoint(tmp_path, memory))
    assert runtime.config.mechanism == memory


def test_streams_are_disturbed_as_asked_and_come_again_by_seed() -> None:
    how = Disturbance(recorder_only=0.05, node_only=0.05, late_every_s=5.0)
    streams, again = (DisturbedStreams(default_arm(), 30.0, how, seed=1) for _ in range(2))
    assert streams.events == again.events
    assert streams.events != DisturbedStreams(default_arm(), 30.0, how, seed=2).events
    assert all(count > 0 for count in streams.counts.values()), streams.counts
    arrivals = [event.at_ns for event in streams.events]
    assert arrivals == sorted(arrivals)
    stamps = Counter((event.stream.name, event.stamp_ns) for event in streams.events)
    assert sum(count - 1 for count in stamps.values()) == streams.counts["repeated"]
    backwards = 0
    for stream in default_arm().inputs:
        own = [event.stamp_ns for event in streams.events if event.stream is stream or event.stream == stream]
        backwards += sum(b < a for a, b in zip(own, own[1:], strict=False))
    assert backwards >= streams.counts["reordered"] - 2
    calm = Disturbance(dropped=0.0, repeated=0.0, reordered=0.0, damaged=0.0, burst_every_s=0.0, latency_ms=0.0)
    assert len(DisturbedStreams(default_arm(), 10.0, calm).events) == 3 * 300 + 500


def test_payloads_depend_on_stamp_and_number_alone() -> None:
    streams = DisturbedStreams(default_arm(), 1.0, Disturbance())
    camera = streams.config.cameras[0]
    assert isinstance(camera, CameraConfig)
    one, two = (streams.payload(Event(at, camera, 10**12 + 5, 7)) for at in (1, 2))
    assert one == two
    assert streams.payload(Event(1, camera, 10**12 + 6, 7)) != one
    assert streams.payload(Event(1, camera, 10**12 + 5, 8)) != one
    assert streams.payload(Event(1, camera, 10**12 + 5, 7, "size")) != one
