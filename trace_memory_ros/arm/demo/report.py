"""One self-contained HTML page that shows what a demo measured."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from trace_memory_ros.arm.demo import charts
from trace_memory_ros.arm.demo.acceptance import EPISODES_FOR_PROOF, Criterion, criteria
from trace_memory_ros.arm.demo.results import Cell, DemoResult, Mode, Recording
from trace_memory_ros.arm.demo.strips import strip
from trace_memory_ros.measure.drawing import colour_of
from trace_memory_ros.measure.page import DEMO, FIGURE, whole_page
from trace_memory_ros.measure.summary import commit, machine

FILE_NAME = "index.html"


def write_report(out_dir: Path, command: str, result: DemoResult) -> Path:
    """Write `<out_dir>/index.html`, which needs no other file and no network; returns its path."""
    lines = criteria(result)
    body = DEMO.format(
        verdict=escape(verdict(lines)),
        tone=_tone(lines),
        criteria="".join(map(_criterion, lines)),
        strips="".join(strip(task, result) for task in result.tasks),
        table=_table(result),
        success=FIGURE.format(svg=charts.success_chart(result), caption=_SUCCESS_CAPTION),
        timelines="".join(map(_timeline, _told(result.recordings))) or "<p>No episode was recorded.</p>",
        realtime=_realtime(result),
        facts=_facts(command, result),
    )
    out_dir.mkdir(parents=True, exist_ok=True)
    path = out_dir / FILE_NAME
    path.write_text(whole_page("An arm that remembers: demo results", body), encoding="utf-8")
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


_SUCCESS_CAPTION = (
    "Dots: share of episodes that took the correct branch; bars: 95 % Wilson intervals. Filled: plain episodes; open: "
    "with the pause inserted between cue and branch. Dashed: guessing between two branches."
)


def _tone(lines: Iterable[Criterion]) -> str:
    return "missed" if any(line.met is False for line in lines) else "met"


def _criterion(line: Criterion) -> str:
    mark = {"met": "✓", "missed": "✗"}.get(line.word, "–")
    return (
        f'<li class="{line.word.split()[0]}"><span class="mark">{mark}</span><b>{escape(line.name)}</b><br>'
        f"{escape(line.requirement)}: {line.word}<br><small>{escape(line.evidence)}</small></li>"
    )


def _table(result: DemoResult) -> str:
    rows = []
    for task in result.tasks:
        for memory in result.memories:
            cell, paused = result.cell(task, memory), result.cell(task, memory, paused=True)
            progress = f"{cell.figures()['progress']:.2f}" if cell else "–"
            rate = f"{cell.figures()['write_rate_hz']:.2f}" if cell else "–"
            rows.append(
                f"<tr><td>{escape(task)}</td><td>{_badge(memory)}</td>{_share(cell)}{_share(paused)}"
                f"<td>{progress}</td><td>{rate}</td></tr>"
            )
    return "".join(rows)


def _badge(memory: str) -> str:
    return f'<span class="badge" style="--c:{colour_of(memory)}">{escape(memory)}</span>'


def _share(cell: Cell | None) -> str:
    if cell is None:
        return "<td>–</td><td>–</td>"
    low, high = cell.ci95
    return (
        f"<td><b>{cell.branch_success:.2f}</b> <small>{low:.2f}–{high:.2f}</small></td>"
        f"<td>{cell.successes} of {cell.trials}</td>"
    )


def _told(recordings: Iterable[Recording]) -> Iterable[Recording]:
    """Recordings with slots to show: one per task, memory and pause."""
    seen = set()
    for recording in recordings:
        key = (recording.episode.task, recording.episode.memory, recording.episode.pause_s > 0)
        if recording.timeline.route.shape[1] > 1 and len(recording.timeline.time_s) > 1 and key not in seen:
            seen.add(key)
            yield recording


def _timeline(recording: Recording) -> str:
    episode = recording.episode
    pause = f", with a pause of {episode.pause_s:g} s" if episode.pause_s else ""
    outcome = "correct branch" if episode.success else "wrong or no branch"
    title = f"{_badge(episode.memory)} {escape(episode.task)}{pause} <small>seed {episode.seed}: {outcome}</small>"
    svg = charts.timeline_chart(recording.timeline, f"{episode.task}-{episode.memory}-{episode.pause_s:g}")
    return f"<h3>{title}</h3>" + FIGURE.format(svg=svg, caption=_timeline_caption(recording))


def _timeline_caption(recording: Recording) -> str:
    timeline, episode = recording.timeline, recording.episode
    text = f"{episode.write_count} writes in {episode.duration_s:.0f} s of simulated time"
    if timeline.branch_s is not None:
        end_s = timeline.time_s[-1] if timeline.decided_s is None else timeline.decided_s
        deciding = (timeline.time_s >= timeline.branch_s) & (timeline.time_s <= end_s)
        weights = timeline.read_weights[deciding].mean(axis=0) if deciding.any() else timeline.read_weights[-1]
        text += f"; between branch and target slot {int(weights.argmax()) + 1} is read most ({weights.max():.0%})"
    return text + "."


def _realtime(result: DemoResult) -> str:
    episodes = result.in_mode(Mode.REALTIME)
    if not episodes or not len(result.latency_ms):
        return "<p>No real-time episode was run.</p>"
    expected, published = sum(e.ticks_expected for e in episodes), sum(e.ticks_published for e in episodes)
    caption = (
        f"{len(result.latency_ms)} conditions of {len(episodes)} episode(s) with the simulator on the wall clock. "
        f"Control ticks: {expected} expected, {published} published."
    )
    return FIGURE.format(svg=charts.latency_chart(result.latency_ms), caption=caption)


def _facts(command: str, result: DemoResult) -> str:
    seeds = sorted({episode.seed for episode in result.episodes})
    host = machine()
    facts = {
        "command": f"<code>{escape(command)}</code>",
        "version": escape(commit()),
        "machine": escape(f"{host['cpu']}, {host['cores']} cores, {host['memory_gib']} GiB"),
        "wall time": f"{result.wall_s / 60:.1f} min for {len(result.episodes)} episodes",
        "seeds": f"{seeds[0]} to {seeds[-1]}, never trained on; each is run with both cues" if seeds else "none",
        "models": "<br>".join(f"{escape(name)} <code>{key[:12]}</code>" for name, key in result.model_ids.items())
        or "–",
        "bag": escape(result.bag) if result.bag else "not recorded",
    }
    return "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items())
