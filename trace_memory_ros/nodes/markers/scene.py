"""The RViz panel: what came in over the topics, and the marker array that shows it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from trace_memory_ros.msg import EpisodeStatus, MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes.markers import colours
from trace_memory_ros.nodes.markers import text as words
from trace_memory_ros.nodes.markers.history import EpisodeHistory
from trace_memory_ros.nodes.markers.joints import JointDistances
from trace_memory_ros.nodes.markers.layout import COMPACT, PANEL_HEIGHT, PANEL_WIDTH
from trace_memory_ros.nodes.markers.painter import Painter, Placement
from trace_memory_ros.nodes.markers.path import draw_path
from trace_memory_ros.nodes.markers.slots import draw_gate, draw_reads, draw_routing, draw_slots

DULL = 0.5
"""Opacity of bars and arrows that don't describe this tick."""


@dataclass(frozen=True)
class SceneView:
    """Everything one picture shows. silent_s: wall seconds since the newest diagnostics, infinite before the first."""

    diagnostics: MemoryDiagnostics | None
    reason: str
    episode: EpisodeStatus | None
    history: EpisodeHistory
    joint_fault: str
    curves: Sequence[str]
    silent_s: float
    silent_after_s: float

    @property
    def silent(self) -> bool:
        """Whether the memory has stopped publishing."""
        return self.silent_s > self.silent_after_s


def draw_scene(view: SceneView, placement: Placement, compact: bool = False) -> list[Marker]:
    """All markers of one picture, each with its own (ns, id). compact: without path, figures and legend."""
    painter = Painter(placement)
    middle = (COMPACT.middle, COMPACT.bottom + COMPACT.height / 2) if compact else (0.0, PANEL_HEIGHT / 2)
    size = (COMPACT.width, COMPACT.height) if compact else (PANEL_WIDTH, PANEL_HEIGHT)
    painter.box("panel", (*middle, -0.035), (*size, 0.04), colours.PANEL)
    right = middle[0] + size[0] / 2 - 0.1
    message = view.diagnostics
    if message is None:
        words.draw_header(painter, "memory", "", "NO SIGNAL", colours.ERROR, right)
        words.draw_banner(painter, "waiting for the first message on memory/diagnostics", colours.ERROR)
        return painter.markers
    status, colour = words.STATUS_WORDS.get(message.status, (f"STATUS {message.status}", colours.ERROR))
    current = status == "OK" and not view.silent
    title = f"{message.mechanism or 'unknown'} memory"
    shown = ("NO SIGNAL", colours.ERROR) if view.silent else (status, colour)
    words.draw_header(painter, title, "" if compact else words.episode_line(view.episode), *shown, right)
    draw_slots(painter, message, view.history.greatest_norm, 1.0 if current else DULL)
    draw_reads(painter, message, 1.0 if current else DULL)
    draw_routing(painter, message)
    draw_gate(painter, message)
    faults = [*message.faults, *([view.joint_fault] if view.joint_fault else [])]
    if compact:
        words.draw_summary(painter, message, faults, COMPACT.left + 0.1, COMPACT.bottom + 0.26)
    else:
        draw_path(painter, view.history)
        words.draw_captions(painter, message, view.curves)
        words.draw_figures(painter, message, max(0, message.write_count - view.history.writes_seen))
        words.draw_inputs(painter, message, faults)
    if view.silent:
        words.draw_banner(
            painter, f"no memory/diagnostics for {view.silent_s:.0f} s: memory_node stopped?", colours.ERROR
        )
    elif not current:
        words.draw_banner(painter, f"{status}: {view.reason or 'no reason given'}", colour)
    return painter.markers


def delete_all(placement: Placement) -> Marker:
    """Clears everything of this topic in RViz; must come first in its array."""
    marker = Marker(ns="all", id=0, action=Marker.DELETEALL)
    marker.header.frame_id = placement.frame_id
    marker.pose.orientation.w = 1.0
    return marker


def deletions(gone: Iterable[tuple[str, int]], placement: Placement) -> list[Marker]:
    """Markers that take away what the last picture had and this one has not."""
    out = []
    for ns, number in sorted(gone):
        marker = delete_all(placement)
        marker.ns, marker.id, marker.action = ns, number, Marker.DELETE
        out.append(marker)
    return out


class MarkerScene:
    """Keeps the newest of every topic and turns it into marker arrays; times are wall seconds, given by the caller."""

    def __init__(
        self,
        placement: Placement,
        joints: JointDistances,
        max_points: int,
        silent_after_s: float,
        compact: bool = False,
    ) -> None:
        self._placement = replace(placement, origin=(COMPACT.middle, COMPACT.bottom)) if compact else placement
        self._joints = joints
        self._compact = compact
        self._silent_after_s = silent_after_s
        self._history = EpisodeHistory(max_points)
        self._diagnostics: MemoryDiagnostics | None = None
        self._condition: MemoryCondition | None = None
        self._episode: EpisodeStatus | None = None
        self._heard_s = -math.inf
        self._shown: set[tuple[str, int]] = set()
        self._clear_next = True

    def on_diagnostics(self, message: MemoryDiagnostics, now_s: float) -> None:
        """Take in one tick's diagnostics."""
        if self._history.starts_anew(message):
            self._joints.restart()
            self._clear_next = True
        cue_visible = self._episode is not None and self._episode.cue_visible
        self._history.observe(message, self._joints.distances(), cue_visible)
        self._diagnostics = message
        self._heard_s = now_s

    def on_condition(self, message: MemoryCondition) -> None:
        """Take in one tick's condition: it names the reason when a tick is stale or invalid."""
        self._condition = message

    def on_joints(self, topic: str, message: JointState) -> None:
        """Take in a joint state."""
        self._joints.take(topic, message)

    def on_episode(self, message: EpisodeStatus) -> None:
        """Take in the task's report."""
        self._episode = message

    def picture(self, now_s: float) -> MarkerArray:
        """The array to publish: cleared first on a new episode, and without leftovers of the last picture."""
        view = SceneView(
            diagnostics=self._diagnostics,
            reason=self._condition.reason if self._condition else "",
            episode=self._episode,
            history=self._history,
            joint_fault=self._joints.fault,
            curves=tuple(self._joints.distances()),
            silent_s=now_s - self._heard_s,
            silent_after_s=self._silent_after_s,
        )
        markers = draw_scene(view, self._placement, self._compact)
        keys = {(marker.ns, marker.id) for marker in markers}
        before = [delete_all(self._placement)] if self._clear_next else deletions(self._shown - keys, self._placement)
        self._shown, self._clear_next = keys, False
        return MarkerArray(markers=[*before, *markers])
