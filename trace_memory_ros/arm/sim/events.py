"""What happens on the way, by seed: decoys, pauses of later laps, the pace at which a sequence is shown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trace_memory_ros.arm.sim.seeding import FloatArray, generator

STATIONS = 3
LONG_PAUSE_STATION = 1
DECOYS_PER_LAP = 2 * STATIONS
MAX_CUES = 6
MOST_SWAPS = 4
# Seconds after a station was reached, for the first and the second decoy of a leg.
_DECOY_START_S = (0.2, 2.1)


def draw_pauses(rng: np.random.Generator) -> FloatArray:
    """Seconds of red lamp at each station `(STATIONS,)`; 0: stays green."""
    pauses = rng.uniform(0.3, 1.5, STATIONS)
    green = rng.random(STATIONS) < 0.5
    green[LONG_PAUSE_STATION] = False
    pauses[green] = 0.0
    # A pause as short as the others teaches a policy to stop, not to stay.
    if rng.random() < 0.3:
        pauses[LONG_PAUSE_STATION] = rng.uniform(1.5, 4.5)
    return pauses


def later_pauses(task: str, seed: int, laps: int) -> FloatArray:
    """Seconds of red lamp `(laps - 1, STATIONS)` on the laps after the first."""
    rng = generator(task, seed, "laps")
    return np.array([draw_pauses(rng) for _ in range(laps - 1)]).reshape(laps - 1, STATIONS)


@dataclass(frozen=True)
class Decoy:
    """Something that looks like a cue and is none: `side` 0 or 1 shows for `length_s` from `delay_s` after a station.

    lap: from 0. station: from 0. part_offset: metres, part_yaw: rad, where the decoy is a part.
    """

    lap: int
    station: int
    delay_s: float
    length_s: float
    side: int
    part_offset: tuple[float, float]
    part_yaw: float


def draw_decoys(task: str, seed: int, laps: int, decoys: int) -> tuple[Decoy, ...]:
    """Draw decoys on legs of the shared segment, at most two to a leg, never two at once, in any order."""
    rng = generator(task, seed, "decoys")
    slots = rng.permutation(laps * DECOYS_PER_LAP)[:decoys]
    drawn = []
    for slot in slots:
        lap, in_lap = divmod(int(slot), DECOYS_PER_LAP)
        station, half = divmod(in_lap, 2)
        drawn.append(
            Decoy(
                lap,
                station,
                delay_s=_DECOY_START_S[half] + float(rng.uniform(0, 0.6)),
                length_s=float(rng.uniform(0.8, 1.2)),
                side=int(rng.integers(2)),
                part_offset=(float(rng.uniform(-0.015, 0.015)), float(rng.uniform(-0.015, 0.015))),
                part_yaw=float(rng.uniform(-0.4, 0.4)),
            )
        )
    return tuple(drawn)


@dataclass(frozen=True)
class ShowPace:
    """Seconds: before the first colour, of a colour, of grey between two; of red lamp after, and at each visit."""

    lead_s: float
    lit_s: float
    gap_s: float
    after_s: float
    visit_pause_s: tuple[float, ...]

    def length_s(self, count: int) -> float:
        """From the lamp's turning red to the end of the last of `count` colours."""
        return self.lead_s + count * self.lit_s + (count - 1) * self.gap_s

    def shown(self, elapsed_s: float, count: int) -> int:
        """Which of `count` colours is lit, -1 for grey."""
        index, into_s = divmod(elapsed_s - self.lead_s, self.lit_s + self.gap_s)
        return int(index) if 0 <= index < count and into_s < self.lit_s else -1


def draw_pace(task: str, seed: int) -> ShowPace:
    """Draw the pace of an episode's shows and visits."""
    rng = generator(task, seed, "show")
    return ShowPace(
        lead_s=float(rng.uniform(0.1, 0.3)),
        lit_s=float(rng.uniform(0.75, 0.85)),
        gap_s=float(rng.uniform(0.36, 0.44)),
        after_s=float(rng.uniform(0.3, 0.6)),
        visit_pause_s=tuple(float(s) for s in rng.uniform(1.1, 1.5, MAX_CUES)),
    )
