"""Which decisions a page shows moment by moment, and what stands under each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from trace_memory_ros.evidence.report.moment_chart import moment_chart
from trace_memory_ros.evidence.report.seen import seen_picture
from trace_memory_ros.evidence.results import AttributionEvidence, EpisodeEvidence, Evaluation
from trace_memory_ros.evidence.verdict import change_without
from trace_memory_ros.observation.frames import Cameras

MOST_LABELS, MOST_WRONG = 4, 2
"""How many labels get a decision shown, and how many wrong decisions are shown besides."""
FramesOf = Callable[[EpisodeEvidence], Cameras | None]
"""Gives what an episode's cameras showed, or None where the frames are gone."""
Shown = tuple[EpisodeEvidence, AttributionEvidence]


class Moment(NamedTuple):
    """A decision as the page shows it. right: None where no label or no decision is there.

    seen: address of the picture that the memory saw at the moment that matters most, seen_s into the episode; empty
    where there are no frames.
    """

    episode: str
    label: str | None
    decision: str | None
    right: bool | None
    svg: str
    caption: str
    seen: str
    seen_s: float


def moments_of(evaluation: Evaluation, frames_of: FramesOf, seen_px: int | None = None) -> list[Moment]:
    """The shown decisions, drawn; `frames_of` is asked for the frames of these alone.

    seen_px: side of what the memory sees; None for that of the frames.
    """
    return [_moment(place, *shown, frames_of, seen_px) for place, shown in enumerate(shown_decisions(evaluation))]


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


def _moment(
    place: int, episode: EpisodeEvidence, attribution: AttributionEvidence, frames_of: FramesOf, seen_px: int | None
) -> Moment:
    frames, strongest = frames_of(episode), attribution.strongest
    tick = attribution.branch_tick if strongest is None else strongest.tick
    label, decision = attribution.label, attribution.decision
    return Moment(
        episode.name,
        label,
        decision,
        None if label is None or decision is None else label == decision,
        moment_chart(episode, attribution, frames, f"moment{place}"),
        _caption(attribution) + ("" if frames else " The camera frames of this episode are no longer there."),
        seen_picture(frames, tick, seen_px or min(one.px for one in frames.values())) if frames else "",
        float(episode.timeline.time_s[tick]),
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
    return f"goes {decision} instead" if decision else "takes another"
