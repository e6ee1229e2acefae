"""One self-contained HTML page that answers whether a policy uses earlier evidence, from its recorded episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from trace_memory_ros.evidence.figures import figures_of
from trace_memory_ros.evidence.history.transforms import NEGATIVE_CONTROL
from trace_memory_ros.evidence.report import charts, tables, texts
from trace_memory_ros.evidence.report.moment_chart import CameraFrames, moment_chart
from trace_memory_ros.evidence.results import AttributionEvidence, EpisodeEvidence, Evaluation, Reasons
from trace_memory_ros.evidence.verdict import Answer, change_without, verdict
from trace_memory_ros.measure.drawing import colour_of
from trace_memory_ros.measure.page import FIGURE, whole_page
from trace_memory_ros.measure.summary import commit, machine

FILE_NAME = "index.html"
MOST_LISTED = 40
"""More episodes than this are folded away."""
MOST_LABELS, MOST_WRONG = 4, 2
"""How many labels get a decision shown, and how many wrong decisions are shown besides."""
FramesOf = Callable[[EpisodeEvidence], CameraFrames | None]
"""Gives what an episode's cameras showed, or None where the frames are gone."""
Shown = tuple[EpisodeEvidence, AttributionEvidence]


def no_frames(episode: EpisodeEvidence) -> CameraFrames | None:
    """No frames of any episode."""
    return None


def write_bag_report(out_dir: Path, command: str, evaluation: Evaluation, frames_of: FramesOf = no_frames) -> Path:
    """Write `<out_dir>/index.html`, which needs no other file and no network; returns its path.

    frames_of: asked for the frames of the few episodes that are shown.
    """
    out_dir.mkdir(parents=True, exist_ok=True)
    path = out_dir / FILE_NAME
    title = f"Does the policy use earlier evidence? {evaluation.model.task}, {evaluation.model.mechanism}"
    path.write_text(whole_page(title, "".join(_sections(command, evaluation, frames_of))), encoding="utf-8")
    return path


def _sections(command: str, evaluation: Evaluation, frames_of: FramesOf) -> Iterator[str]:
    figures = evaluation.figures or figures_of(evaluation.episodes)
    model, episodes = evaluation.model, evaluation.episodes
    paper = model.mechanism == "trace"
    yield _head(evaluation, figures)
    yield _section("Which moment a decision came from", texts.MOMENTS, _moments(evaluation, frames_of))
    yield _section("All decisions", texts.ALL, _all_decisions(evaluation))
    yield _section("What is read at the branch", texts.READS, _reads(evaluation))
    yield _section("Other histories, same branch", texts.TRANSFORMS, _transforms(evaluation, figures, paper))
    yield _section("Longer histories", texts.STABILITY, _stability(evaluation, figures, paper))
    yield _section("Latency", "", _latency(episodes))
    yield _section("Episodes", _episode_counts(evaluation), _episodes(episodes))
    yield _section("Bags that could not be evaluated", "", _failed(evaluation))
    yield _section("How this was measured", "", _facts(command, evaluation))


def _section(title: str, intro: str, content: str) -> str:
    text = f"<p>{intro}</p>" if intro else ""
    return f"<section><h2>{title}</h2>{text}{content}</section>\n" if content else ""


def _missing(text: str) -> str:
    return f"<p><i>Not measured: {escape(text)}.</i></p>"


def _why(parts: Sequence[Reasons], *names: str) -> str:
    """The reason most often given for a missing field."""
    given = [parts_reasons[name] for parts_reasons in parts for name in names if name in parts_reasons]
    return max(given, key=given.count) if given else "no episode has it"


def _head(evaluation: Evaluation, figures: Mapping[str, Any]) -> str:
    model, found = evaluation.model, verdict(evaluation)
    tone = {Answer.EARLIER: "met", Answer.CURRENT: "missed", Answer.UNKNOWN: "unknown"}[found.answer]
    badge = f'<span class="badge" style="--c:{colour_of(model.mechanism)}">{escape(model.mechanism)}</span>'
    count = len(evaluation.episodes)
    lead = f"{badge} trained on task <b>{escape(model.task)}</b>, replayed over {count} recorded episodes."
    lines = "".join(
        f'<li class="{word}"><span class="mark">{mark}</span>{text}</li>'
        for word, mark, text in (*map(_detail, found.details), *_lines(evaluation, figures))
    )
    return (
        f'<h1>Does the policy use earlier evidence?</h1><p class="lead">{lead}</p>'
        f'<section class="verdict {tone}"><b>{escape(found.sentence)}</b><ul class="criteria">{lines}</ul></section>\n'
    )


def _lines(evaluation: Evaluation, figures: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What stands behind the verdict: tone, mark and HTML of a line."""
    if evaluation.failed:
        count = len(evaluation.failed)
        yield _line(False, "bags that could not be evaluated", f"{count}: each is listed below with its remedy")
    accuracy = figures["branch_accuracy"]
    yield _line(None, "decisions right", tables.told(accuracy) if accuracy else "no branch has a label and a decision")
    for name, title in (("route_similarity", "route similarity"), ("branch_consistency", "branch consistency")):
        kept = figures["order_preserving"][name]
        if kept is not None:
            expected = f"{tables.told(kept, 1)}, expected ≥ {charts.PRESERVED:g}"
            yield _line(kept["mean"] >= charts.PRESERVED, f"{title} where the order is kept", expected)
        control = figures["transforms"].get(NEGATIVE_CONTROL, {}).get(name)
        if control is not None and evaluation.model.uses_signature:
            expected = f"{tables.told(control, 1)}, ≤ {charts.DESTROYED:g} where the path is the evidence"
            yield _line(True if control["mean"] <= charts.DESTROYED else None, f"{title} in reverse", expected)


def _detail(text: str) -> tuple[str, str, str]:
    return "open", "•", escape(text)


def _line(met: bool | None, name: str, text: str) -> tuple[str, str, str]:
    word, mark = {True: ("met", "✓"), False: ("missed", "✗"), None: ("open", "•")}[met]
    return word, mark, f"<b>{name}</b><br><small>{text}</small>"


def shown_decisions(evaluation: Evaluation) -> list[Shown]:
    """The middle decision of each label by how much its strongest moment matters, and the first wrong ones."""
    every = [(e, a) for e in evaluation.episodes for a in e.attributions if a.writes]
    labels = list(dict.fromkeys(a.label or a.decision for _, a in every))[:MOST_LABELS]
    chosen: list[Shown] = []
    for label in labels:
        of_label = sorted((s for s in every if (s[1].label or s[1].decision) == label), key=_strength)
        chosen.append(of_label[len(of_label) // 2])
    wrong = [s for s in every if s[1].label and s[1].decision and s[1].label != s[1].decision and s not in chosen]
    return chosen + wrong[:MOST_WRONG]


def _strength(shown: Shown) -> float:
    strongest = shown[1].strongest
    assert strongest is not None
    return change_without(strongest)


def _moments(evaluation: Evaluation, frames_of: FramesOf) -> str:
    shown = shown_decisions(evaluation)
    if not shown:
        parts = [r for e in evaluation.episodes for r in (e.reasons, *(a.reasons for a in e.attributions))]
        return _missing(_why(parts, "attributions", "writes")) if evaluation.episodes else ""
    figures = []
    for place, (episode, attribution) in enumerate(shown):
        frames = frames_of(episode)
        svg = moment_chart(episode, attribution, frames, f"moment{place}")
        gone = "" if frames else " The camera frames of this episode are no longer there."
        figures.append(
            f"<h3>{_title(episode, attribution)}</h3>" + FIGURE.format(svg=svg, caption=_caption(attribution) + gone)
        )
    return "".join(figures)


def _title(episode: EpisodeEvidence, attribution: AttributionEvidence) -> str:
    if attribution.label is None or attribution.decision is None:
        return f"<code>{escape(episode.name)}</code>"
    right = attribution.label == attribution.decision
    word = (
        f'<span class="{"right" if right else "wrong"}">{"✓" if right else "✗"} {escape(attribution.decision)}</span>'
    )
    return (
        f"<code>{escape(episode.name)}</code> <small>right branch: {escape(attribution.label)}, decided:</small> {word}"
    )


def _caption(attribution: AttributionEvidence) -> str:
    earlier = attribution.earlier
    if earlier is None or earlier.flipped is None:
        return f"{len(attribution.writes)} writes before the decision."
    begin = f"With a memory that begins {earlier.present_s:g} s before the decision"
    parts = [f"{begin} the policy {_goes(earlier.flipped, earlier.decision)}"]
    for what, flipped in (("writes", earlier.flipped_without_writes), ("path", earlier.flipped_without_path)):
        if flipped is not None:
            parts.append(f"without the earlier {what} alone it {_goes(flipped)}")
    return "; ".join(parts) + "."


def _goes(flipped: bool, decision: str | None = None) -> str:
    if not flipped:
        return "takes the same branch"
    return f"goes {escape(decision)} instead" if decision else "takes another"


def _all_decisions(evaluation: Evaluation) -> str:
    decisions = [a for e in evaluation.episodes for a in e.attributions if a.writes]
    return _figure(charts.decisions_chart(decisions), _some(len(decisions))) if decisions else ""


def _reads(evaluation: Evaluation) -> str:
    branches = [b for e in evaluation.episodes for b in e.branches if len(b.read_weights) > 1]
    return _figure(charts.reads_chart(branches), _some(len(branches))) if branches else ""


def _some(count: int) -> str:
    return (
        f"{charts.MOST_ROWS} of {count} decisions, evenly picked."
        if count > charts.MOST_ROWS
        else f"All {count} decisions."
    )


def _figure(svg: str, caption: str) -> str:
    return FIGURE.format(svg=svg, caption=caption)


def _transforms(evaluation: Evaluation, figures: Mapping[str, Any], paper: bool) -> str:
    rows = tables.transform_rows(figures)
    if not rows:
        return _missing(_why([e.reasons for e in evaluation.episodes], "transforms")) if evaluation.episodes else ""
    reach = f"In this checkpoint a transform of the path reaches {escape(evaluation.model.path_feeds)}. "
    return _figure(
        charts.transform_chart(rows, *_chance(figures)), reach + texts.TRANSFORM_CHART
    ) + tables.transform_table(figures, paper)


def _chance(figures: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Both diagnostics where nothing is remembered in order; None where that was not measured."""
    chance = figures["chance"]
    route = chance["route_similarity"]
    return route and route["mean"], chance["branch_consistency_of_other_label"]


def _stability(evaluation: Evaluation, figures: Mapping[str, Any], paper: bool) -> str:
    if figures["stability"]:
        return tables.stability_table(figures, paper)
    return _missing(_why([e.reasons for e in evaluation.episodes], "stability")) if evaluation.episodes else ""


def _latency(episodes: Sequence[EpisodeEvidence]) -> str:
    timed = [episode for episode in episodes if episode.latency_ms]
    if not timed:
        return ""
    caption = (
        f"Of the replay, at batch 1 on one thread, over {sum(e.ticks for e in timed)} ticks of {len(timed)} episodes."
    )
    return _figure(charts.latency_chart(timed), caption)


def _episode_counts(evaluation: Evaluation) -> str:
    ticks = sum(e.ticks for e in evaluation.episodes)
    lost = sum(e.ticks_stale + e.ticks_invalid for e in evaluation.episodes)
    return f"{len(evaluation.episodes)} episodes, {ticks} ticks, {lost} of them without usable inputs."


def _episodes(episodes: Sequence[EpisodeEvidence]) -> str:
    rows = tables.episode_table(episodes) if episodes else ""
    return f"<details><summary>all episodes</summary>{rows}</details>" if len(episodes) > MOST_LISTED else rows


def _failed(evaluation: Evaluation) -> str:
    return tables.failed_table(evaluation.failed) if evaluation.failed else ""


def _facts(command: str, evaluation: Evaluation) -> str:
    host, model = machine(), evaluation.model
    settings = ", ".join(
        f"{name} {value}" for name, value in evaluation.settings.items() if not isinstance(value, Mapping)
    )
    facts = {
        "command": f"<code>{escape(command)}</code>",
        "checkpoint": f"{escape(Path(model.checkpoint).name)} <code>{escape(model.model_id[:12])}</code>",
        "memory": escape(f"{model.mechanism}, {model.slots} × {model.slot_kind}; written by clock {dict(model.clock)}"),
        "settings": escape(settings) or tables.NOTHING,
        "version": escape(commit()),
        "machine": escape(f"{host['cpu']}, {host['cores']} cores, {host['memory_gib']} GiB"),
    }
    return "<dl>" + "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts.items()) + "</dl>"
