"""What was found, in words: ways by what the robot does there, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from trace_memory_ros.moments.find import Found
from trace_memory_ros.moments.groups import UNCLEAR
from trace_memory_ros.moments.kinds import TOLD, Kind
from trace_memory_ros.moments.recorded import RADII

LETTERS = "ABCDEFGH"


def way_names(found: Found, kind: Kind, actions: Sequence[str], units: Sequence[str] = ()) -> list[str]:
    """A name for each way: a letter, and by how much the action that tells it best changes."""
    taken = [
        [found.ways[one.stretch.episode][one.stretch.peak] for one in kind.occurrences if one.way == way]
        for way in range(len(kind.ways))
    ]
    clear = [way for way, ways in enumerate(taken) if ways]
    names = [f"{letter}: nowhere clear" for letter in LETTERS[: len(taken)]]
    if not clear:
        return names
    centres = np.stack([np.median(taken[way], axis=0) for way in clear]) @ found.space.way_axes.T + found.space.way_mean
    moved = centres.reshape(len(centres), len(RADII), -1)[:, -1] * np.sqrt(len(RADII))
    telling = int(np.ptp(moved, axis=0).argmax())
    scale = float(found.space.action_scale[telling])
    unit = f" {units[telling]}" if units and units[telling] else ""
    for way, row in zip(clear, moved, strict=True):
        names[way] = f"{LETTERS[way]}: {actions[telling]} {row[telling] * scale:+.2f}{unit}"
    return names


def counts(kind: Kind) -> list[int]:
    """Occurrences of each way."""
    told = Counter(one.way for one in kind.occurrences)
    return [told[way] for way in range(len(kind.ways))]


def unclear(kind: Kind) -> int:
    """Occurrences whose way cannot be told."""
    return sum(one.way == UNCLEAR for one in kind.occurrences)


def confidence(kind: Kind) -> str:
    """How sure it is that the present does not show the way."""
    seen = kind.visibility
    if seen is None:
        return "cannot be judged: too few of a way"
    if not kind.is_choice:
        return f"no choice: {kind.passing:.0%} of episodes do one thing and then the other"
    told = f"the present tells {seen.right:.0%} (chance up to {seen.chance:.0%})"
    return told if seen.right < TOLD else f"{told}: seen, not remembered"


def verdict(found: Found) -> str:
    """Whether a memory is needed, and where."""
    needed = [kind for kind in found.kinds if kind.needs_memory]
    if needed:
        return f"needs a memory: {len(needed)} moment{'s' if len(needed) > 1 else ''}"
    unjudged = sum(kind.visibility is None and kind.is_choice for kind in found.kinds)
    if unjudged:
        return (
            f"cannot be told: at {unjudged} moment{'s' if unjudged > 1 else ''} the ways part, and too few episodes "
            "show clearly which and when to judge whether the present tells; record more"
        )
    seen = sum(kind.is_choice for kind in found.kinds)
    passed = len(found.kinds) - seen
    others = f"; at {seen} the ways part, and the present shows which" if seen else ""
    others += f"; at {passed} one thing is done and then the other, which is no choice" if passed else ""
    return f"needs none: no moment was found at which only the past tells what to do{others}"


def figures(found: Found, actions: Sequence[str]) -> dict[str, Any]:
    """What a summary says."""
    return {
        "verdict": verdict(found),
        "needs_memory": any(kind.needs_memory for kind in found.kinds),
        "episodes": len(found.ways),
        "threshold": found.threshold,
        "alarm": found.search.alarm,
        "moments": [_figures(found, kind, actions) for kind in found.kinds],
    }


def _figures(found: Found, kind: Kind, actions: Sequence[str]) -> dict[str, Any]:
    names = way_names(found, kind, actions)
    return {
        "needs_memory": kind.needs_memory,
        "episodes": kind.episodes,
        "ways": dict(zip(names, counts(kind), strict=True)),
        "unclear": unclear(kind),
        "passing": kind.passing,
        "present_tells": None if kind.visibility is None else kind.visibility._asdict(),
        "tick": float(np.median([one.tick for one in kind.occurrences])),
    }
