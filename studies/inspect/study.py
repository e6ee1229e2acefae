"""Looking into large bags: processor time and memory of `bags inspect`, whatever else the bags hold."""

from __future__ import annotations

import argparse
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from rich.table import Table

from studies import options
from studies.grid import Figures, say
from studies.tables import table
from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.bags.writer import BagFileWriter

SCHEMA = 1
CASES = {
    "mcap raw": ("mcap", "none", fields.IMAGE),
    "mcap zstd jpeg": ("mcap", "chunk", fields.COMPRESSED),
    "mcap jpeg": ("mcap", "none", fields.COMPRESSED),
    "sqlite3 jpeg": ("sqlite3", "none", fields.COMPRESSED),
}
"""Storage, compression, type of the cameras."""
CAMERAS, CAMERA_HZ, JOINT_HZ, BEGIN_NS = 3, 30, 100, 1_750_000_000_000_000_000
JOINTS = tuple(f"joint_{i}" for i in range(1, 7))
OTHER = "std_msgs/msg/Float32"
# Reports what its only child took, in s and KiB.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Cases and sizes."""
    options.add_names(parser, "--cases", CASES, "cases")
    options.add_counts(parser, megabytes=(1_000, "of images"), rows=(3_000_000, "messages on a topic nobody needs"))


def run(out_dir: Path, quick: bool, cases: tuple[str, ...], megabytes: int, rows: int) -> Figures:
    """Write a bag of each kind, look into it with a process of its own, and remove it."""
    if quick:
        megabytes, rows = min(megabytes, 20), min(rows, 20_000)
    figures: Figures = {}
    for name in cases:
        bag = out_dir / "bags" / name.replace(" ", "_")
        if bag.exists():
            shutil.rmtree(bag)
        seconds = write_bag(bag, name, megabytes, rows)
        size = sum(file.stat().st_size for file in bag.rglob("*") if file.is_file())
        figures[name] = {"megabytes": size / 1e6, "seconds": seconds, **inspect(bag)}
        say(f"{name}: {figures[name]['cpu_s']:.1f} CPU s, {figures[name]['mebibytes']:.0f} MiB")
        shutil.rmtree(bag)
    return {"schema": SCHEMA, "image_megabytes": megabytes, "other_messages": rows, "cases": figures}


def tables(figures: Figures) -> Iterator[Table]:
    """A row per kind of bag."""
    rows = [
        [name, f"{found['megabytes']:.0f}", f"{found['cpu_s']:.1f}", f"{found['mebibytes']:.0f}"]
        for name, found in figures["cases"].items()
    ]
    title = f"bags inspect, {figures['other_messages']} messages besides"
    yield table(title, ["bag", "MB", "CPU s", "MiB"], rows)


def inspect(bag: Path) -> Figures:
    """Processor time and peak memory of `trace-memory bags inspect`. Raises RuntimeError where it fails."""
    command = [sys.executable, "-m", "trace_memory_ros.cli.main", "bags", "inspect", str(bag)]
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], capture_output=True, text=True, check=True)
    code, cpu_s, kibibytes = done.stdout.split()
    if code != "0":
        raise RuntimeError(f"bags inspect {bag} ended with {code}: {done.stderr[-500:]}")
    return {"cpu_s": float(cpu_s), "mebibytes": float(kibibytes) / 1024}


def write_bag(bag: Path, case: str, megabytes: int, rows: int) -> float:
    """Three cameras, joints, commands, and `rows` messages more; returns its seconds."""
    storage, compression, image_type = CASES[case]
    image = _image(image_type)
    frames = max(CAMERA_HZ, int(megabytes * 1e6 / len(image) / CAMERAS))
    ticks = frames * JOINT_HZ // CAMERA_HZ
    other = _bytes(messages.filled(OTHER, {"data": 1.0}), OTHER)
    cameras = [f"camera_{i}/image_raw{'/compressed' * (image_type == fields.COMPRESSED)}" for i in range(CAMERAS)]
    topics = dict.fromkeys(cameras, image_type)
    topics |= {"joint_states": fields.JOINTS, "arm/joint_trajectory": fields.TRAJECTORY, "debug/value": OTHER}
    with BagFileWriter(bag, topics, storage, compression) as writer:
        shown = written = 0
        for k in range(ticks):
            ns = BEGIN_NS + k * 1_000_000_000 // JOINT_HZ
            pose = np.sin(0.01 * k + np.arange(len(JOINTS)))
            writer.write("joint_states", messages.joint_state(JOINTS, pose, ns), ns)
            if k % 10 == 0:
                writer.write("arm/joint_trajectory", messages.trajectory(JOINTS, pose, ns, 100_000_000), ns)
            while shown * JOINT_HZ <= k * CAMERA_HZ:
                struct.pack_into("<iI", image, 4, *divmod(BEGIN_NS + shown * 1_000_000_000 // CAMERA_HZ, 1_000_000_000))
                for camera in cameras:
                    writer.write_raw(camera, bytes(image), ns)
                shown += 1
            while written * ticks < rows * (k + 1):
                writer.write_raw("debug/value", other, ns + 1)
                written += 1
    return ticks / JOINT_HZ


def _image(image_type: str) -> bytearray:
    """A serialised picture of 640x480, stamped 0."""
    blocks = np.random.default_rng(0).integers(0, 255, (60, 80, 3)).astype(np.uint8)
    pixels = cv2.resize(blocks, (640, 480))
    if image_type == fields.IMAGE:
        return bytearray(_bytes(messages.image(np.asarray(pixels, np.uint8), 0), image_type))
    jpeg = cv2.imencode(".jpg", pixels)[1].tobytes()
    return bytearray(_bytes(messages.compressed_image(jpeg, 0), image_type))


def _bytes(message: Any, type_name: str) -> bytes:
    return bytes(typestore().serialize_cdr(message, type_name))
