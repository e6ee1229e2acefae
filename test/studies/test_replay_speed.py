"""The replay benchmark: bags as they should be, every row measured, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.replay import reduced_jpeg
from studies.replay import study as bench
from trace_memory_ros.bags.fields import COMPRESSED, IMAGE
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.replay.bag_replay import STAGES_TIMED, Replay
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "SIZE", (48, 64))


def test_every_row_is_measured_by_stage(tmp_path: Path) -> None:
    figures = bench.run(tmp_path, quick=True, seconds=1, rounds=1)
    assert set(figures["rows"]) == {"raw", "raw_paper_size", "raw_checksums", "jpeg"}
    for row in figures["rows"].values():
        assert set(row["ms_per_stream_s"]) == set(STAGES_TIMED)
        assert row["ok"] == row["ticks"] == 10
        assert row["times_real_time"] > 0
    assert figures["met"] == (figures["times_real_time"] >= bench.TARGET)
    assert figures["jpeg_met"] == (figures["rows"]["jpeg"]["times_real_time"] >= bench.TARGET)
    assert len([line for line in bench.tables(figures) if isinstance(line, str)]) == 1
    assert not (tmp_path / "bags").exists()


def test_reduced_jpegs_are_near_whole_ones() -> None:
    rows = reduced_jpeg.measure(2, [(480, 640)])
    assert {(row["source"], row["px"], row["scale"]) for row in rows} == {
        (source, px, scale) for source in ("photographs", "rendered") for px, scale in ((48, 4), (96, 2))
    }
    for row in rows:
        assert 0 < row["mean"] < 1.5
        assert row["mean"] < row["p99"] <= row["max"] < 40


def test_the_bag_has_the_promised_rates_in_log_order(tmp_path: Path) -> None:
    bag = bench.write_bag(tmp_path / "raw", 2, IMAGE)
    with BagReader(bag) as reader:
        counts = {name: info.messages for name, info in reader.topics.items()}
        times = [raw.log_ns for raw in reader.messages()]
    assert counts == {f"/camera/{c}/image_raw": 60 for c in ("overhead", "left_wrist", "right_wrist")} | {
        "/joint_states": 200
    }
    assert times == sorted(times)


def test_jpeg_and_raw_show_the_same_pictures(tmp_path: Path) -> None:
    raw, jpeg = (bench.write_bag(tmp_path / kind, 1, kind_) for kind, kind_ in (("raw", IMAGE), ("jpeg", COMPRESSED)))
    trained = bench.random_checkpoint(tmp_path / "checkpoint", "none", base_masked=True)
    runtime = MemoryRuntime.from_checkpoint(trained)
    plain = [dict(tick.observation.images) for tick in Replay(raw, runtime)]
    packed = [dict(tick.observation.images) for tick in Replay(jpeg, runtime, bench.jpeg_recording())]
    assert len(plain) == len(packed) == 10
    other = [*plain[1:], plain[0]]

    def gap(ones: list[dict[str, Any]], twos: list[dict[str, Any]]) -> float:
        return float(
            np.mean([np.abs(a[n].astype(int) - b[n]).mean() for a, b in zip(ones, twos, strict=True) for n in a])
        )

    assert gap(plain, packed) < 0.5 * gap(other, packed)


def test_checksums_are_right_and_checked(tmp_path: Path) -> None:
    bag = bench.write_bag(tmp_path / "raw", 1, IMAGE)
    file = next(bag.glob("*.mcap"))
    assert bench.add_checksums(file) > 0
    with BagReader(bag) as reader:
        assert len(list(reader.messages())) == 3 * 30 + 100
        assert reader.faults == []
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    for mapped in (False, True):
        with BagReader(bag, mapped=mapped) as reader:
            list(reader.messages())
            assert any("checksum" in str(fault) for fault in reader.faults), reader.faults
