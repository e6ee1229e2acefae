"""One self-contained HTML page that answers whether a policy uses earlier evidence, from its recorded episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from trace_memory_ros.evidence.figures import figures_of
from trace_memory_ros.evidence.history.transforms import NEGATIVE_CONTROL
from trace_memory_ros.evidence.report import charts, paper
from trace_memory_ros.evidence.report.episodes import NOTHING, episode_row
from trace_memory_ros.evidence.report.moments import FramesOf, moments_of
from trace_memory_ros.evidence.results import EpisodeEvidence, Evaluation, Reasons
from trace_memory_ros.evidence.verdict import Accuracy, Answer, Verdict, verdict
from trace_memory_ros.files import atomic
from trace_memory_ros.measure.drawing import colour_of
from trace_memory_ros.measure.page import render
from trace_memory_ros.measure.summary import commit, machine
from trace_memory_ros.observation.frames import Cameras

FILE_NAME = "index.html"
TEMPLATE = Path(__file__).with_name("page.html")
MOST_LISTED = 40
"""More episodes than this are folded away."""


class Expectation(NamedTuple):
    """A figure beside what is expected of it. tone: met, missed or open; limit: in words."""

    tone: str
    name: str
    figure: Mapping[str, Any]
    limit: str


def no_frames(episode: EpisodeEvidence) -> Cameras | None:
    """No frames of any episode."""
    return None


def write_report(
    out_dir: Path,
    command: str,
    evaluation: Evaluation,
    frames_of: FramesOf = no_frames,
    seen_px: int | None = None,
) -> Path:
    """Write `<out_dir>/index.html`, which needs no other file and no network; returns its path.

    frames_of: asked for the frames of the few episodes that are shown. seen_px: side of what the memory sees of them.
    """
    figures = evaluation.figures or figures_of(evaluation.episodes)
    model, found = evaluation.model, verdict(evaluation)
    page = render(
        TEMPLATE,
        title=f"Does the policy use earlier evidence? {model.task}, {model.mechanism}",
        model=model,
        colour=colour_of(model.mechanism),
        verdict=found,
        tone=tone(found),
        expectations=list(_expectations(evaluation, figures)),
        moments=moments_of(evaluation, frames_of, seen_px),
        charts=_charts(evaluation, figures),
        captions=_captions(evaluation),
        figures=figures,
        paper={"transforms": paper.TRANSFORMS, "stability": paper.STABILITY} if model.mechanism == "trace" else None,
        reasons=_reasons(evaluation.episodes),
        episodes=[episode_row(episode) for episode in evaluation.episodes],
        most_listed=MOST_LISTED,
        failed=evaluation.failed,
        command=command,
        checkpoint=Path(model.checkpoint).name,
        clock=str(dict(model.clock)),
        settings=_settings(evaluation) or NOTHING,
        commit=commit(),
        machine=machine(),
    )
    out_dir.mkdir(parents=True, exist_ok=True)
    path = out_dir / FILE_NAME
    atomic.write(path, page)
    return path


def tone(found: Verdict) -> str:
    """`met` where earlier evidence is used and decisions are right; `missed` where either is surely not so."""
    if found.answer is Answer.CURRENT or found.rightness.answer in (Accuracy.CHANCE, Accuracy.BELOW):
        return "missed"
    return "met" if found.answer is Answer.EARLIER and found.rightness.answer is Accuracy.ABOVE else "unknown"


def _expectations(evaluation: Evaluation, figures: Mapping[str, Any]) -> Iterator[Expectation]:
    for name, title in (("route_similarity", "route similarity"), ("branch_consistency", "branch consistency")):
        kept = figures["order_preserving"][name]
        if kept is not None:
            word = "met" if kept["mean"] >= charts.PRESERVED else "missed"
            limit = f", expected ≥ {charts.PRESERVED:g}"
            yield Expectation(word, f"{title} where the order is kept", kept, limit)
        control = figures["transforms"].get(NEGATIVE_CONTROL, {}).get(name)
        if control is not None and evaluation.model.uses_signature:
            word = "met" if control["mean"] <= charts.DESTROYED else "open"
            limit = f", ≤ {charts.DESTROYED:g} where the path is the evidence"
            yield Expectation(word, f"{title} in reverse", control, limit)


def _charts(evaluation: Evaluation, figures: Mapping[str, Any]) -> dict[str, str]:
    """SVG by name; empty where there is nothing to draw."""
    decisions, branches, timed = _drawn(evaluation)
    transforms = charts.transform_rows(figures, NEGATIVE_CONTROL)
    route = figures["chance"]["route_similarity"]
    chance = (route and route["mean"], figures["chance"]["branch_consistency_of_other_label"])
    return {
        "decisions": charts.decisions_chart(decisions) if decisions else "",
        "reads": charts.reads_chart(branches) if branches else "",
        "transforms": charts.transform_chart(transforms, *chance) if transforms else "",
        "latency": charts.latency_chart(timed) if timed else "",
    }


def _captions(evaluation: Evaluation) -> dict[str, str]:
    decisions, branches, timed = _drawn(evaluation)
    ticks = sum(e.ticks for e in evaluation.episodes)
    unusable = sum(e.ticks_stale + e.ticks_invalid for e in evaluation.episodes)
    return {
        "decisions": _picked(len(decisions)),
        "reads": _picked(len(branches)),
        "latency": f"Of the replay, at batch 1 on one thread, over {sum(e.ticks for e in timed)} ticks of "
        f"{len(timed)} episodes.",
        "episodes": f"{len(evaluation.episodes)} episodes, {ticks} ticks, {unusable} of them without usable inputs.",
    }


def _drawn(evaluation: Evaluation) -> tuple[list[Any], list[Any], list[EpisodeEvidence]]:
    """Decisions with writes before them, branches with several slots to read, and episodes that were timed."""
    decisions = [a for e in evaluation.episodes for a in e.attributions if a.writes]
    branches = [b for e in evaluation.episodes for b in e.branches if len(b.read_weights) > 1]
    return decisions, branches, [e for e in evaluation.episodes if e.latency_ms]


def _picked(count: int) -> str:
    if count > charts.MOST_ROWS:
        return f"{charts.MOST_ROWS} of {count} decisions, evenly picked."
    return f"All {count} decisions."


def _reasons(episodes: Sequence[EpisodeEvidence]) -> dict[str, str]:
    """Why a whole section is missing."""
    whole = [e.reasons for e in episodes]
    parts = [r for e in episodes for r in (e.reasons, *(a.reasons for a in e.attributions))]
    return {
        "moments": _why(parts, "attributions", "writes"),
        "transforms": _why(whole, "transforms"),
        "stability": _why(whole, "stability"),
    }


def _why(parts: Sequence[Reasons], *names: str) -> str:
    """The reason most often given for a missing field."""
    given = [reasons[name] for reasons in parts for name in names if name in reasons]
    return max(given, key=given.count) if given else "no episode has it"


def _settings(evaluation: Evaluation) -> str:
    plain = ((name, value) for name, value in evaluation.settings.items() if not isinstance(value, Mapping))
    return ", ".join(f"{name} {value}" for name, value in plain)
