"""Where the expert goes: points of the right cup, how far the left arm has turned there, and laps of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trace_memory_ros.arm.sim import layout

_RETURN_SPEED = 0.075
_STATION_TURNS = (0.8, -0.3, 0.8)


@dataclass(frozen=True)
class Waypoint:
    """Right cup in m, right wrist turn in rad, how far the left arm has turned (0..1), speed there in rad per tick.

    pinned: the corner is not rounded. stop: where the expert waits at a red lamp. straight: the left arm goes there
    directly, not along its helix. lap: from 0.
    """

    name: str
    cup_xyz: tuple[float, float, float]
    turn: float
    left: float
    speed: float
    pinned: bool = True
    stop: bool = False
    straight: bool = False
    lap: int = 0


def station(index: int, left: float, speed: float) -> Waypoint:
    """The waypoint at a station, from 0."""
    return Waypoint(f"station_{index + 1}", layout.STATION_XYZ[index], _STATION_TURNS[index], left, speed, stop=True)


def laps(lap: list[Waypoint], count: int) -> list[Waypoint]:
    """`count` times round: straight back to the first waypoint of `lap`, then the same poses again."""
    way = list(lap)
    for number in range(1, count):
        back = replace(lap[0], speed=_RETURN_SPEED, straight=True)
        way += [replace(w, name=f"{w.name}@{number + 1}", lap=number) for w in (back, *lap[1:])]
    return way
