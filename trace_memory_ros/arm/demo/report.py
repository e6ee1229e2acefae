"""One self-contained HTML page that shows what a demo measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from trace_memory_ros.arm.demo import charts
from trace_memory_ros.arm.demo.acceptance import EPISODES_FOR_PROOF, Criterion, criteria
from trace_memory_ros.arm.demo.results import Cell, DemoResult, IllustratedEpisode, Mode
from trace_memory_ros.arm.demo.strips import strips_of
from trace_memory_ros.files import atomic
from trace_memory_ros.measure.drawing import colour_of
from trace_memory_ros.measure.page import render
from trace_memory_ros.measure.summary import commit, machine

FILE_NAME = "index.html"
TEMPLATE = Path(__file__).with_name("page.html")


class CellRow(NamedTuple):
    """A row of the table of cells."""

    task: str
    memory: str
    cell: Cell | None
    paused: Cell | None
    progress: str
    write_rate: str


def write_report(out_dir: Path, command: str, result: DemoResult) -> Path:
    """Write `<out_dir>/index.html`, which needs no other file and no network; returns its path."""
    lines = criteria(result)
    page = render(
        TEMPLATE,
        title="An arm that remembers: demo results",
        verdict=verdict(lines),
        tone="missed" if any(line.met is False for line in lines) else "met",
        criteria=lines,
        strips=strips_of(result),
        memories=result.memories,
        colours={memory: colour_of(memory) for memory in result.memories},
        cells=list(_cells(result)),
        success=charts.success_chart(result),
        timelines=[_timeline(recording) for recording in _with_slots(result.recordings)],
        latency=_latency(result),
        command=command,
        commit=commit(),
        machine=machine(),
        result=result,
        seeds=sorted({episode.seed for episode in result.episodes}),
    )
    out_dir.mkdir(parents=True, exist_ok=True)
    path = out_dir / FILE_NAME
    atomic.write(path, page)
    return path


def verdict(lines: Iterable[Criterion]) -> str:
    """The whole result in a sentence."""
    lines = tuple(lines)
    missed = [line for line in lines if line.met is False]
    measured = [line for line in lines if line.met is not None]
    few = any(f"{EPISODES_FOR_PROOF} episodes make the proof" in line.evidence for line in lines)
    if missed:
        names = "; ".join(
            f"{line.name} ({line.evidence.split(' (')[0]}, required: {line.requirement})" for line in missed
        )
        return f"{len(measured) - len(missed)} of {len(measured)} requirements are met. Missed: {names}."
    if not measured:
        return "Nothing that has a requirement was measured."
    hint = f" Few episodes: make demo EPISODES={EPISODES_FOR_PROOF} gives the figures to quote." if few else ""
    return (
        f"All {len(measured)} requirements measured are met: the arm with memory takes the branch that the vanished "
        f"cue called for, the arm without guesses.{hint}"
    )


def _cells(result: DemoResult) -> Iterator[CellRow]:
    for task in result.tasks:
        for memory in result.memories:
            cell, paused = result.cell(task, memory), result.cell(task, memory, paused=True)
            progress = f"{cell.figures()['progress']:.2f}" if cell else "–"
            rate = f"{cell.figures()['write_rate_hz']:.2f}" if cell else "–"
            yield CellRow(task, memory, cell, paused, progress, rate)


def _with_slots(recordings: Iterable[IllustratedEpisode]) -> Iterator[IllustratedEpisode]:
    """Recordings with slots to show: one per task, memory and pause."""
    seen = set()
    for recording in recordings:
        key = (recording.episode.task, recording.episode.memory, recording.episode.pause_s > 0)
        if recording.timeline.route.shape[1] > 1 and len(recording.timeline.time_s) > 1 and key not in seen:
            seen.add(key)
            yield recording


def _timeline(recording: IllustratedEpisode) -> dict[str, str]:
    episode = recording.episode
    pause = f", with a pause of {episode.pause_s:g} s" if episode.pause_s else ""
    return {
        "memory": episode.memory,
        "title": f"{episode.task}{pause}",
        "outcome": f"seed {episode.seed}: {'correct branch' if episode.success else 'wrong or no branch'}",
        "svg": charts.timeline_chart(recording.timeline, f"{episode.task}-{episode.memory}-{episode.pause_s:g}"),
        "caption": _timeline_caption(recording),
    }


def _timeline_caption(recording: IllustratedEpisode) -> str:
    timeline, episode = recording.timeline, recording.episode
    text = f"{episode.write_count} writes in {episode.duration_s:.0f} s of simulated time"
    if timeline.branch_s is not None:
        end_s = timeline.time_s[-1] if timeline.decided_s is None else timeline.decided_s
        deciding = (timeline.time_s >= timeline.branch_s) & (timeline.time_s <= end_s)
        weights = timeline.read_weights[deciding].mean(axis=0) if deciding.any() else timeline.read_weights[-1]
        text += f"; between branch and target slot {int(weights.argmax()) + 1} is read most ({weights.max():.0%})"
    return text + "."


def _latency(result: DemoResult) -> dict[str, Any] | None:
    """Plot and caption; None where no real-time episode was run."""
    episodes = result.in_mode(Mode.REALTIME)
    if not episodes or not len(result.latency_ms):
        return None
    expected, published = sum(e.ticks_expected for e in episodes), sum(e.ticks_published for e in episodes)
    caption = (
        f"{len(result.latency_ms)} conditions of {len(episodes)} episode(s) with the simulator on the wall clock; "
        "robot, memory and policy have real-time priority where that is allowed. "
        f"Control ticks: {expected} expected, {published} published."
    )
    return {"svg": charts.latency_chart(result.latency_ms), "caption": caption}
