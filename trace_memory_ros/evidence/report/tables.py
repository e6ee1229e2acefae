"""Tables of an evaluation's page, as HTML: every figure with its 95 % interval, a dash where nothing was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from trace_memory_ros.evidence.history.transforms import NEGATIVE_CONTROL
from trace_memory_ros.evidence.report.charts import Estimate, TransformRow
from trace_memory_ros.evidence.results import AttributionEvidence, EpisodeEvidence, FailedBag
from trace_memory_ros.evidence.verdict import matters

NOTHING = "–"
PAPER_TRANSFORMS = {
    "time_resampling": (92.40, 96.00),
    "speed_jitter": (89.80, 94.70),
    "state_offset": (91.20, 95.10),
    "sparse_sampling": (86.50, 92.30),
    "order_reversal": (37.80, 41.60),
}
"""Route similarity and branch consistency in table 3 of the TRACE paper, on its own robots and tasks."""
PAPER_STABILITY = {
    "reported": (0.010, 0.356, 0.646, 1.000, 1.000),
    "extended_1.25": (0.017, 0.374, 0.690, 0.982, 0.968),
    "extended_1.5": (0.025, 0.397, 0.710, 0.962, 0.936),
    "extended_2": (0.041, 0.431, 0.744, 0.928, 0.904),
    "distractor_1.5": (0.052, 0.462, 0.758, 0.907, 0.872),
    "shared_route_2": (0.035, 0.412, 0.737, 0.943, 0.916),
}
"""The same columns of table 12."""
_STABILITY = (
    ("slot_churn_per_tick", "slot churn<br>a tick"),
    ("write_entropy", "write<br>entropy"),
    ("slot_occupancy", "slot<br>occupancy"),
    ("readout_cosine", "readout<br>consistency"),
    ("decision_agreement", "decision<br>consistency"),
)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of HTML cells."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table class="cells"><tr>{top}</tr>{body}</table></div>'


def estimate(figure: Mapping[str, Any] | None) -> Estimate | None:
    """A figure of `evidence_figures` with its interval; None where it was not measured."""
    if figure is None:
        return None
    low, high = figure["ci95"]
    return Estimate(figure["mean"], low, high, figure.get("episodes", figure.get("decisions", 0)))


def told(figure: Mapping[str, Any] | None, digits: int = 2) -> str:
    """A figure as a table cell."""
    found = estimate(figure)
    if found is None:
        return NOTHING
    return f"<b>{found.mean:.{digits}f}</b> <small>{found.low:.{digits}f}–{found.high:.{digits}f}</small>"


def transform_rows(figures: Mapping[str, Any]) -> list[TransformRow]:
    """Every transform that was measured, in the order of the paper's table 3."""
    return [
        TransformRow(
            name, name == NEGATIVE_CONTROL, estimate(row["route_similarity"]), estimate(row["branch_consistency"])
        )
        for name, row in figures["transforms"].items()
    ]


def transform_table(figures: Mapping[str, Any], paper: bool) -> str:
    """A row a transform; the paper's figures beside it where they are of the same mechanism."""
    head = [
        "history transform",
        "route<br>similarity",
        "branch<br>consistency",
        "readout<br>cosine",
        "same<br>decision",
    ]
    head += ["action change<br>std. dev.", *(["TRACE paper:<br>route, branch"] if paper else [])]
    rows = []
    for name, row in figures["transforms"].items():
        cells = [escape(name.replace("_", " ")), told(row["route_similarity"], 1), told(row["branch_consistency"], 1)]
        cells += [told(row["readout_cosine"]), told(row["action_agreement"]), told(row["chunk_distance"])]
        if paper:
            cells.append(_claimed(PAPER_TRANSFORMS.get(name), 1))
        rows.append(cells)
    preserving = figures["order_preserving"]
    summary = [told(preserving[name], 1) for name in ("route_similarity", "branch_consistency")]
    rows.append(["<b>all that keep the order</b>", *summary, *[""] * (len(head) - 3)])
    return table(head, rows)


def stability_table(figures: Mapping[str, Any], paper: bool) -> str:
    """The rows of the paper's table 12."""
    head = ["history", "length", *(title for _, title in _STABILITY)]
    head += ["TRACE paper:<br>the same columns"] if paper else []
    rows = []
    for name, row in figures["stability"].items():
        extension = row["extension"]
        length = f"{extension['mean']:.2f}&nbsp;×" if extension else NOTHING
        cells = [escape(name.replace("_", " ")), length, *(told(row[field]) for field, _ in _STABILITY)]
        if paper:
            cells.append(_claimed(PAPER_STABILITY.get(name), 3))
        rows.append(cells)
    return table(head, rows)


def _claimed(values: Sequence[float] | None, digits: int) -> str:
    return f"<small class='paper'>{', '.join(f'{v:.{digits}f}' for v in values)}</small>" if values else NOTHING


def episode_table(episodes: Sequence[EpisodeEvidence]) -> str:
    """A row an episode: what went in, what was written, what was decided, and from which moment."""
    head = ("episode", "ticks", "not usable", "writes", "branch", "decision", "without earlier<br>evidence")
    rows = []
    for episode in episodes:
        unusable = episode.ticks_stale + episode.ticks_invalid
        faults = f"<br><small>{escape('; '.join(episode.faults[:3]))}</small>" if episode.faults else ""
        cells = [f"<code>{escape(episode.name)}</code>", str(episode.ticks), f"{unusable or NOTHING}{faults}"]
        cells += [str(episode.writes), *_decisions(episode)]
        rows.append(cells)
    return table((*head, "the moment that<br>matters most"), rows)


def _decisions(episode: EpisodeEvidence) -> list[str]:
    """Cells of label, decision, decision without earlier evidence and strongest moment, a line a branch."""
    by_tick = {attribution.branch_tick: attribution for attribution in episode.attributions}
    columns: list[list[str]] = [[], [], [], []]
    for branch in episode.branches:
        word = {True: "right", False: "wrong", None: ""}[branch.correct]
        mark = {True: "✓ ", False: "✗ ", None: ""}[branch.correct]
        decided = escape(branch.decision or NOTHING)
        columns[0].append(escape(branch.label or NOTHING))
        columns[1].append(f'<span class="{word}">{mark}{decided}</span>' if word else decided)
        without, moment = _attributed(by_tick.get(branch.tick))
        columns[2].append(without)
        columns[3].append(moment)
    return ["<br>".join(column) or NOTHING for column in columns]


def _attributed(attribution: AttributionEvidence | None) -> tuple[str, str]:
    if attribution is None:
        return NOTHING, NOTHING
    without = escape(attribution.earlier.decision or NOTHING) if attribution.earlier else NOTHING
    strongest = attribution.strongest
    if strongest is None:
        return without, NOTHING
    if not matters(attribution):
        return without, "no single one"
    return without, f"{(attribution.branch_stamp_ns - strongest.stamp_ns) / 1e9:.1f} s before"


def failed_table(failed: Sequence[FailedBag]) -> str:
    """A row a bag that could not be evaluated: what, where, and how to repair it."""
    rows = ([f"<code>{escape(f.bag)}</code>", escape(f.what), escape(f.where), escape(f.remedy)] for f in failed)
    return table(("bag", "what is wrong", "where", "remedy"), rows)
