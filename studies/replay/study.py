"""How fast a bag is replayed on one core: three 640x480 cameras at 30 Hz and joints at 100 Hz, by stage.

There are ten ticks a second. Every stage is shown, in milliseconds per second of bag: read (file to messages), decode
(messages to observations), encode, signature, memory, write (conditions and diagnostics to a new bag), rest.
Rows: raw rgb8 without and with checksums of chunks (`ros2 bag record` writes them), JPEG, TRACE at the paper's size.
A second table says what unpacking JPEG at a smaller scale changes. Times are the best of some rounds on a warm file
cache; processor time is what an idle core would give.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
from rich.table import Table

from studies.grid import Figures
from studies.options import count
from studies.parity.models import random_checkpoint, shipped
from studies.replay import reduced_jpeg
from studies.tables import table
from trace_memory_ros.bags import mcap_records as mcap
from trace_memory_ros.bags import messages
from trace_memory_ros.bags.compression import checksum
from trace_memory_ros.bags.fields import COMPRESSED, IMAGE, JOINTS
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.observation.config import CameraConfig, default_arm
from trace_memory_ros.replay.bag_replay import Replay
from trace_memory_ros.replay.output_bag import replay_to_bag
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

TARGET = 20.0
SIZE = (480, 640)
CAMERA_HZ, JOINT_HZ = 30, 100
START_NS = 1_000_000_000_000
PICTURES = 12
ROUNDS, QUICK_ROUNDS = 7, 2
JPEG_QUALITY = 90


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options beside --quick and --out."""
    parser.add_argument("--seconds", type=count, help="of bag (default: 10; 83 MB each)")
    parser.add_argument(
        "--rounds", type=count, help=f"replays of each row, of which the best counts (default: {ROUNDS})"
    )


def run(out_dir: Path, quick: bool, seconds: int | None = None, rounds: int | None = None) -> Figures:
    """Write the bags, replay each, and remove them again."""
    cv2.setNumThreads(1)
    cores = _one_core()
    folder = out_dir / "bags"
    seconds, rounds = seconds or (2 if quick else 10), rounds or (QUICK_ROUNDS if quick else ROUNDS)
    trained = shipped("trace") or random_checkpoint(out_dir / "trace", "trace", base_masked=True)
    paper = random_checkpoint(out_dir / "paper", "trace", base_masked=True, paper=True)
    try:
        raw, jpeg = write_bag(folder / "raw", seconds, IMAGE), write_bag(folder / "jpeg", seconds, COMPRESSED)
        rows = {"raw": measure(raw, trained, rounds), "raw_paper_size": measure(raw, paper, rounds)}
        add_checksums(next(raw.glob("*.mcap")))
        rows["raw_checksums"] = measure(raw, trained, rounds)
        rows["jpeg"] = measure(jpeg, trained, rounds, jpeg_recording())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _free(cores)
    main, jpeg_row = rows["raw"], rows["jpeg"]
    return {
        "met": main["times_real_time"] >= TARGET,
        "times_real_time": main["times_real_time"],
        "times_real_time_cpu": main["times_real_time_cpu"],
        "jpeg_met": jpeg_row["times_real_time"] >= TARGET,
        "jpeg_times_real_time": jpeg_row["times_real_time"],
        "target": TARGET,
        "weights": "trained" if shipped("trace") else "random",
        "seconds": seconds,
        "rounds": rounds,
        "load_average": os.getloadavg()[0],
        "rows": rows,
        "reduced_jpeg": reduced_jpeg.measure(*((2, reduced_jpeg.SIZES[:1]) if quick else ())),
    }


def tables(figures: Figures) -> Iterator[Table | str]:
    """Speed and the time of each stage, by row."""
    stages = list(figures["rows"]["raw"]["ms_per_stream_s"])
    columns = ("", "x real time", "median", "by CPU time", *(f"{stage}, ms/s" for stage in stages))
    speeds = ("times_real_time", "times_real_time_median", "times_real_time_cpu")
    rows = (
        (name, *(f"{row[s]:.1f}" for s in speeds), *(f"{row['ms_per_stream_s'][stage]:.2f}" for stage in stages))
        for name, row in figures["rows"].items()
    )
    yield table(f"replay of {figures['seconds']} s on one core, best of {figures['rounds']}", columns, rows)
    verdicts = (f"{name} {'met' if figures[met] else 'MISSED'}" for name, met in (("raw", "met"), ("JPEG", "jpeg_met")))
    yield f"load average {figures['load_average']:.1f}; target {figures['target']:g}x: {', '.join(verdicts)}"
    yield from reduced_jpeg.tables(figures["reduced_jpeg"])


def measure(bag: Path, checkpoint: Path, rounds: int, recording: RecordingConfig | None = None) -> Figures:
    """The best of `rounds` replays of a bag, by wall and by processor time; the breakdown is that of the former."""
    reports = []
    for _ in range(rounds):
        runtime = MemoryRuntime.from_checkpoint(checkpoint)
        runtime.warm_up()
        replay = Replay(bag, runtime, recording)
        replay_to_bag(replay, bag.parent / "replayed")
        reports.append(replay.report)
    best = min(reports, key=lambda report: report.wall_s)
    figures = best.figures()
    figures["times_real_time_cpu"] = max(report.times_real_cpu for report in reports)
    figures["times_real_time_median"] = float(np.median([report.times_real for report in reports]))
    keep = ("times_real_time", "times_real_time_median", "times_real_time_cpu", "ms_per_stream_s", "ticks", "megabytes")
    return {name: figures[name] for name in keep} | {"ok": figures["statuses"]["OK"]}


def write_bag(folder: Path, seconds: int, image_type: str) -> Path:
    """A bag of smooth pictures and sweeping joints, raw or JPEG."""
    config = default_arm()
    topics = {camera.topic: image_type for camera in config.cameras} | {"joint_states": JOINTS}
    payloads = _pictures(image_type)
    names = [one.output for one in config.streams[0].selected]
    with BagFileWriter(folder, topics) as writer:
        for k in range(seconds * JOINT_HZ):
            ns = START_NS + k * 1_000_000_000 // JOINT_HZ
            joints = messages.joint_state(names, np.sin(0.01 * k + np.arange(len(names))), ns)
            writer.write("joint_states", joints, ns)
            for frame in range(-(-k * CAMERA_HZ // JOINT_HZ), -(-(k + 1) * CAMERA_HZ // JOINT_HZ)):
                at_ns = START_NS + frame * 1_000_000_000 // CAMERA_HZ
                for c, camera in enumerate(config.cameras):
                    data = bytearray(payloads[(frame + 4 * c) % PICTURES])
                    struct.pack_into("<iI", data, 4, *divmod(at_ns, 1_000_000_000))
                    writer.write_raw(camera.topic, bytes(data), at_ns)
    return folder


def _pictures(image_type: str) -> list[bytes]:
    """Serialised pictures stamped 0: blurred noise, which packs about as a camera's images do."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(PICTURES):
        noise = rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8)
        pixels = np.asarray(cv2.GaussianBlur(noise, (0, 0), 3.0), dtype=np.uint8)
        message = messages.image(pixels, 0)
        if image_type == COMPRESSED:
            bgr = np.ascontiguousarray(pixels[..., ::-1])
            packed = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1]
            message = messages.compressed_image(packed.tobytes(), 0)
        found.append(bytes(typestore().serialize_cdr(message, image_type)))
    return found


def jpeg_recording() -> RecordingConfig:
    """The arm's streams with compressed cameras."""
    config = default_arm()
    cameras = tuple(CameraConfig(c.name, c.topic, c.stale_after_ms, "compressed") for c in config.cameras)
    return RecordingConfig(replace(config, cameras=cameras))


def add_checksums(file: Path) -> int:
    """Write the checksum into every uncompressed chunk of an mcap file, in place; returns how many."""
    written = 0
    with file.open("r+b") as stream:
        size = file.stat().st_size
        at = len(mcap.MAGIC)
        while at + mcap.RECORD.size <= size - len(mcap.MAGIC):
            stream.seek(at)
            op, length = mcap.RECORD.unpack(stream.read(mcap.RECORD.size))
            if op == mcap.CHUNK:
                body = stream.read(length)
                head = mcap.chunk_head(body)
                stream.seek(at + mcap.RECORD.size + 24)
                stream.write(struct.pack("<I", checksum(body[head.data_at :])))
                written += 1
            at += mcap.RECORD.size + length
    return written


def _one_core() -> set[int] | None:
    """Stay on one core from here on; returns the cores that were allowed, None where that cannot be set."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    return cores


def _free(cores: set[int] | None) -> None:
    if cores is not None:
        os.sched_setaffinity(0, cores)
