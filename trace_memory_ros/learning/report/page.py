"""`training.html`: how a training went, on one page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trace_memory_ros.files import atomic
from trace_memory_ros.learning.report import charts, logs
from trace_memory_ros.measure.page import render

FILE = "training.html"
STAGES = {
    "wait": "waiting for the batch",
    "augment": "augmenting",
    "forward": "forward",
    "backward": "backward",
    "optimiser": "optimiser",
}
TITLES = ["phase", "a step", "memory ticks / s", *STAGES.values()]


def write_page(folder: Path, title: str, figures: Mapping[str, Any]) -> Path | None:
    """Write the page beside the log of `folder`; figures: those of the summary. None where there is no log."""
    lines = logs.read(folder)
    if not lines:
        return None
    drawn = [
        (svg, caption)
        for svg, caption in (
            (
                charts.accuracy_chart(lines),
                "Decisions right at branches, with 95 % intervals; never of held-out episodes.",
            ),
            (charts.loss_chart(lines), "Unweighted losses; those of the joint phase are means since the line before."),
            (
                charts.memory_chart(lines),
                "Share of the update clock's ticks that wrote, the gate, and the size of the state.",
            ),
        )
        if svg
    ]
    page = render(
        Path(__file__).with_name("page.html"),
        title=title,
        held_out=_judged(figures),
        facts=_facts(figures),
        charts=drawn,
        titles=TITLES,
        stages=_stages(figures.get("stages", {})),
    )
    path = folder / FILE
    atomic.write(path, page)
    return path


def _judged(figures: Mapping[str, Any]) -> tuple[str, str]:
    """Tone and words of the accuracy on episodes that nothing looked at before; of folds where none are held out."""
    folded = figures.get("cross_validation")
    if folded:
        tone, text = _accuracy(folded["accuracy"], f"in {folded['folds']} folds, each held out in turn")
        return tone, f"{text} The memory alone was trained for each fold, and then on all episodes."
    held = figures.get("held_out_branch_accuracy")
    return _accuracy(held, "on held-out episodes") if held else ("unknown", "No held-out decision could be judged.")


def _accuracy(found: Mapping[str, Any], where: str) -> tuple[str, str]:
    low, high = found["ci95"]
    counted = f"{found['right']} of {found['count']} decisions right {where}"
    if not found["claimed"]:
        return "unknown", f"{counted}: too few to claim anything."
    return ("met" if low > 0.5 else "missed"), f"{found['value']:.2f}: {counted} ({low:.2f} to {high:.2f})."


def _facts(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    parts = figures.get("parameters", {})
    hardware = figures.get("hardware", {})
    episodes = {name: figures.get(f"{name}_episodes", 0) for name in ("training", "validation", "held_out")}
    minutes = {name: figures.get(f"{name}_s", 0.0) / 60.0 for name in ("memory", "joint")}
    since = ", since it was resumed" if figures.get("resumed") else ""
    return [
        ("episodes", ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in episodes.items())),
        ("parameters", ", ".join(f"{name} {count:,}" for name, count in parts.items())),
        (f"minutes{since}", ", ".join(f"{name} {value:.1f}" for name, value in minutes.items())),
        (f"attempts{since}", str(figures.get("attempts", 0))),
        ("hardware", ", ".join(f"{name} {value}" for name, value in hardware.items())),
        ("model", str(figures.get("model_id", ""))),
    ]


def _stages(times: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Rows of a table: phase, then milliseconds a step, ticks per second and the share of every stage."""
    return [
        (
            charts.PHASES.get(phase, phase),
            [f"{found['step_ms']:.1f} ms", f"{found['ticks_per_s']:,.0f}"]
            + [f"{found['share'].get(stage, 0.0):.0%}" for stage in STAGES],
        )
        for phase, found in times.items()
    ]
