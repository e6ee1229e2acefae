"""The page of a search: what looks the same, side by side, and how it goes on."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import cv2
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from trace_memory_ros.files import atomic
from trace_memory_ros.measure import page
from trace_memory_ros.measure.drawing import BRANCH, FAINT, STYLE, TRACE, svg
from trace_memory_ros.moments import words
from trace_memory_ros.moments.find import Found
from trace_memory_ros.moments.kinds import Kind
from trace_memory_ros.observation.frames import Cameras

NAME = "moments.html"
TEMPLATE = Path(__file__).parent / "page.html"
OFFSETS_S = (-1.0, 0.0, 1.0, 2.0, 3.0)
EXAMPLES = 3
PICTURE_PX = 128


class Strip(NamedTuple):
    """One occurrence through one camera, a tile for each of `OFFSETS_S`."""

    episode: str
    camera: str
    tiles: tuple[str, ...]


class Way(NamedTuple):
    """A way on: its name, how often it was taken, examples."""

    name: str
    times: int
    strips: tuple[Strip, ...]


class Section(NamedTuple):
    """A kind of moment."""

    title: str
    needed: bool
    ways: tuple[Way, ...]
    unclear: int
    confidence: str
    chart: str


def write_page(
    folder: Path,
    command: str,
    found: Found,
    names: Sequence[str],
    frames: Sequence[Cameras],
    actions: Sequence[str],
    notes: Sequence[str],
    period_ms: int,
) -> Path:
    """Write `NAME` into `folder`; names, frames: of the episodes that were compared, in their order."""
    sections = [
        _section(number, kind, found, names, frames, actions, period_ms) for number, kind in enumerate(found.kinds)
    ]
    html = page.render(
        TEMPLATE,
        title="Moments at which only the past tells",
        command=command,
        verdict=words.verdict(found),
        needed=any(kind.needs_memory for kind in found.kinds),
        episodes=len(names),
        alarm=found.search.alarm,
        offsets=[f"{offset:+.0f} s" if offset else "the moment" for offset in OFFSETS_S],
        sections=sorted(sections, key=lambda section: not section.needed),
        notes=list(notes),
    )
    path = folder / NAME
    atomic.write(path, html)
    return path


def _section(
    number: int,
    kind: Kind,
    found: Found,
    names: Sequence[str],
    frames: Sequence[Cameras],
    actions: Sequence[str],
    period_ms: int,
) -> Section:
    called = words.way_names(found, kind, actions)
    ways = []
    for way, (name, count) in enumerate(zip(called, words.counts(kind), strict=True)):
        members = sorted((one for one in kind.occurrences if one.way == way), key=lambda one: -one.stretch.score)
        shown = [(one.stretch.episode, one.tick) for one in members[:EXAMPLES]]
        strips = [strip for i, tick in shown for strip in _strips(names[i], frames[i], tick, period_ms)]
        ways.append(Way(name, count, tuple(strips)))
    said = [f"{way.name} ({way.times})" for way in ways]
    title = f"These look the same, and then go {' or '.join(said)}; in {kind.episodes} of {len(names)} episodes"
    chart = _chart(number, kind, period_ms)
    return Section(title, kind.needs_memory, tuple(ways), words.unclear(kind), words.confidence(kind), chart)


def _strips(episode: str, cameras: Cameras, tick: int, period_ms: int) -> list[Strip]:
    ticks = [tick + round(1e3 * offset / period_ms) for offset in OFFSETS_S]
    return [
        Strip(episode, name, tuple(_png(frames[at]) if 0 <= at < len(frames) else "" for at in ticks))
        for name, frames in cameras.items()
    ]


def _png(image: np.ndarray) -> str:
    """A picture for the page, enlarged where it is small."""
    shown = cv2.resize(image, (PICTURE_PX, PICTURE_PX), interpolation=cv2.INTER_AREA)
    done, data = cv2.imencode(".png", cv2.cvtColor(shown, cv2.COLOR_RGB2BGR))
    assert done
    return "data:image/png;base64," + base64.b64encode(data.tobytes()).decode()


def _chart(number: int, kind: Kind, period_ms: int) -> str:
    """When in each episode it comes: stretches over which ways part, and the tick at which they do."""
    rows = sorted(kind.occurrences, key=lambda one: (one.way, one.tick))
    colours = [TRACE, BRANCH, "#5566c9", "#9a6a4f"]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 0.9 + min(0.06 * len(rows), 3.5)), layout="constrained")
        ax = figure.subplots()
        for place, one in enumerate(rows):
            colour = FAINT if one.way < 0 else colours[one.way % len(colours)]
            begin_s, end_s, at_s = (tick * period_ms / 1e3 for tick in (one.stretch.first, one.stretch.last, one.tick))
            ax.plot((begin_s, end_s), (place, place), color=colour, lw=1.4, alpha=0.5)
            ax.plot(at_s, place, "o", ms=2.6, color=colour)
        ax.set_yticks(())
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.set_xlim(left=0)
        ax.set_xlabel("time in the episode, s; a row an occurrence, coloured by the way taken")
        return svg(figure, f"moment{number}", "When the moment comes")
