"""What a tick of each backbone costs: CPU time on one thread by image size and cameras, and weights."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from studies.tables import table
from trace_memory_ros.runtime.model import one_thread
from trace_memory_ros.vision import registry
from trace_memory_ros.vision.base import VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig

BACKBONES = {
    "small of a memory": BackboneConfig("small", options={"layout": "vector"}),
    "small of a policy": BackboneConfig("small"),
    "resnet18, stride 16": BackboneConfig("resnet18", options={"stride": 16}),
    "resnet18": BackboneConfig("resnet18"),
    "efficientnet_lite0, stride 16": BackboneConfig("efficientnet_lite0", options={"stride": 16}),
    "efficientnet_lite0": BackboneConfig("efficientnet_lite0"),
    "timm:vit_small_patch14_dinov2": BackboneConfig("timm:vit_small_patch14_dinov2"),
}
SIZES, CAMERAS = (96, 224), (1, 3)
ROUNDS, QUICK_ROUNDS, WARM_UP = 25, 1, 2
SLOW_MS = 400.0


def run(out_dir: Path, quick: bool) -> dict[str, Any]:
    """Measure every backbone that is installed; nothing is kept in `out_dir`. ms: least CPU time of a tick."""
    one_thread()
    chosen = list(BACKBONES)[:2] if quick else list(BACKBONES)
    sizes, rounds = (SIZES[:1], QUICK_ROUNDS) if quick else (SIZES, ROUNDS)
    return {
        "backbones": {name: _costs(BACKBONES[name], sizes, rounds) for name in chosen},
        "rounds": rounds,
        "load_average": os.getloadavg()[0],
    }


def tables(figures: dict[str, Any]) -> Iterator[Table | str]:
    """Milliseconds by size and cameras, numbers per image, weights."""
    rows = figures["backbones"]
    cases = next(iter(rows.values()))["ms"]
    columns = ("backbone", *(f"{case}, ms" for case in cases), "d", "weights, MB")
    title = f"least CPU time of a tick on one thread, of {figures['rounds']}"
    yield table(title, columns, (_cells(name, row) for name, row in rows.items()))
    yield f"load average {figures['load_average']:.1f} on {os.cpu_count()} cores"


def _cells(name: str, row: dict[str, Any]) -> tuple[Any, ...]:
    spent = (f"{ms:.1f}" for ms in row["ms"].values())
    return (name, *spent, row["width"], f"{row['weights_mb']:.1f}")


def _costs(config: BackboneConfig, sizes: tuple[int, ...], rounds: int) -> dict[str, Any]:
    ms = {}
    for px in sizes:
        torch.manual_seed(0)
        backbone = registry.untrained(config, px)
        for cameras in CAMERAS:
            ms[f"{cameras} x {px} px"] = _least_ms(backbone, cameras, px, rounds)
    weights = sum(tensor.numel() * tensor.element_size() for tensor in backbone.state_dict().values())
    return {"ms": ms, "width": backbone.width, "weights_mb": weights / 1e6}


@torch.inference_mode()
def _least_ms(backbone: VisualBackbone, cameras: int, px: int, rounds: int) -> float:
    images = torch.randint(0, 256, (cameras, 3, px, px), dtype=torch.uint8)
    least = float("inf")
    for number in range(WARM_UP + rounds):
        begun = time.process_time()
        backbone(images)
        spent = 1e3 * (time.process_time() - begun)
        if number >= WARM_UP:
            least = min(least, spent)
        if number > WARM_UP + 4 and least > SLOW_MS:
            break
    return least
