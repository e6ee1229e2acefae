"""Markers drawn on a flat panel: panel coordinates in, valid visualization_msgs markers out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from geometry_msgs.msg import Point, Quaternion
from numpy.typing import NDArray
from std_msgs.msg import ColorRGBA
from transforms3d.affines import compose, decompose
from transforms3d.axangles import axangle2mat
from transforms3d.quaternions import mat2quat
from visualization_msgs.msg import Marker

from trace_memory_ros.nodes.markers.colours import Colour

Spot = tuple[float, float, float]
"""A point of the panel, in panel units: right, up, towards the viewer; the origin is the middle of the lower edge."""

MIN_SIZE = 1e-3
"""RViz refuses a marker with a zero scale; this is too small to see."""

_NARROW = frozenset("iljtfrI.,:;|'()[]!")
_WIDE = frozenset("mwMW%")


@dataclass(frozen=True)
class Placement:
    """Where the panel stands. position in m, yaw in degrees about z; one panel unit is `scale` m.

    At yaw 0 the panel faces -y. lifetime_s: a panel that nobody refreshes vanishes after this time. origin: the spot
    of the panel (right, up) that stands at `position_m`.
    Raises `ValueError` for a nameless frame, a number that is not finite, and a scale or lifetime that is not positive.
    """

    frame_id: str = "memory"
    position_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    yaw_deg: float = 0.0
    scale: float = 1.0
    lifetime_s: float = 1.0
    origin: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        if not self.frame_id:
            raise ValueError("Placement.frame_id is empty: name the tf frame the panel stands in")
        if not all(math.isfinite(x) for x in (*self.position_m, self.yaw_deg, self.scale, self.lifetime_s)):
            raise ValueError(f"{self}: every number must be finite")
        if self.scale <= 0 or self.lifetime_s <= 0:
            raise ValueError(f"{self}: scale and lifetime_s must be positive")

    def affine(self) -> NDArray[np.float64]:
        """`(4, 4)` transform from panel axes (x right, y away from the viewer, z up, panel units) to the frame (m)."""
        turn = axangle2mat((0.0, 0.0, 1.0), math.radians(self.yaw_deg))
        placed = np.asarray(compose(self.position_m, turn, [self.scale] * 3), dtype=np.float64)
        right, up = self.origin
        placed[:3, 3] -= placed[:3, :3] @ np.array([right, 0.0, up])
        return placed


def latin1(text: str) -> str:
    """The text in the one line of glyphs that RViz's font has; others become '?'."""
    return " ".join(text.split()).encode("latin-1", "replace").decode("latin-1")


def text_width(text: str, height: float) -> float:
    """Rough width of one line in RViz's font, panel units; RViz centres text and reports no width."""
    return height * sum(
        0.22 if c in _NARROW else 0.72 if c in _WIDE else 0.58 if c.isupper() or c == " " else 0.45 for c in text
    )


class Painter:
    """Collects markers. ids count up within a namespace, so no two markers share both.

    Sizes are in panel units and never drawn as zero; every number given must be finite.
    """

    def __init__(self, placement: Placement) -> None:
        self.markers: list[Marker] = []
        self._ids: Counter[str] = Counter()
        self._affine = placement.affine()
        origin, turn, _, _ = decompose(self._affine)
        self._origin = tuple(float(c) for c in origin)
        self._upright = _quaternion(turn)
        self._flat = _quaternion(turn @ axangle2mat((1.0, 0.0, 0.0), math.pi / 2))
        self._unit_m = placement.scale
        self._frame_id = placement.frame_id
        self._lifetime_s = placement.lifetime_s

    def box(self, ns: str, centre: Spot, size: Spot, colour: Colour) -> None:
        """A cuboid; size is its extent to the right, up and towards the viewer."""
        right, up, depth = size
        self._place(ns, Marker.CUBE, centre, (right, depth, up), colour)

    def disc(self, ns: str, centre: Spot, diameter: float, colour: Colour) -> None:
        """A flat disc that faces the viewer."""
        marker = self._place(ns, Marker.CYLINDER, centre, (diameter, diameter, 0.02), colour)
        marker.pose.orientation = self._flat

    def sphere(self, ns: str, centre: Spot, diameter: float, colour: Colour) -> None:
        """A ball."""
        self._place(ns, Marker.SPHERE, centre, (diameter,) * 3, colour)

    def text(self, ns: str, centre: Spot, text: str, height: float, colour: Colour) -> None:
        """One centred line."""
        self._write(ns, centre, latin1(text), height, colour)

    def block(self, ns: str, corner: Spot, lines: Sequence[str], height: float, colour: Colour) -> None:
        """Lines below each other, flush left; `corner` is the upper left one."""
        shown = [latin1(line) or " " for line in lines]
        if not shown:
            return
        width = max(text_width(line, height) for line in shown)
        centre = (corner[0] + width / 2, corner[1] - len(shown) * height * LINE_PITCH / 2, corner[2])
        self._write(ns, centre, "\n".join(shown), height, colour)

    def arrow(self, ns: str, tail: Spot, tip: Spot, width: float, colour: Colour) -> None:
        """An arrow whose shaft is `width` thick."""
        marker = self._add(ns, Marker.ARROW, colour)
        marker.points = [self._point(tail), self._point(tip)]
        self._scale(marker, (width, 2.6 * width + 0.02, 2.2 * width + 0.03))

    def line(self, ns: str, spots: Sequence[Spot], width: float, colour: Colour) -> None:
        """A polyline; nothing is drawn below two points."""
        if len(spots) > 1:
            marker = self._add(ns, Marker.LINE_STRIP, colour)
            marker.points = [self._point(spot) for spot in spots]
            self._scale(marker, (width, 0.0, 0.0))

    def dots(self, ns: str, spots: Sequence[Spot], colours: Sequence[Colour], diameter: float) -> None:
        """One ball per point, each in its own colour; nothing is drawn for no points."""
        if spots:
            self._points(ns, Marker.SPHERE_LIST, spots, colours, (diameter,) * 3)

    def boxes(self, ns: str, spots: Sequence[Spot], size: Spot, colours: Sequence[Colour]) -> None:
        """Equal cuboids in one marker, each in its own colour; nothing is drawn for no spots."""
        if spots:
            right, up, depth = size
            self._points(ns, Marker.CUBE_LIST, spots, colours, (right, depth, up))

    def _points(self, ns: str, kind: int, spots: Sequence[Spot], colours: Sequence[Colour], size: Spot) -> None:
        marker = self._add(ns, kind, (1.0, 1.0, 1.0, 1.0))
        marker.points = [self._point(spot) for spot in spots]
        marker.colors = [_rgba(colour) for colour in colours]
        self._scale(marker, size)

    def _add(self, ns: str, kind: int, colour: Colour) -> Marker:
        marker = Marker(ns=ns, id=self._ids[ns], type=kind, action=Marker.ADD, color=_rgba(colour))
        self._ids[ns] += 1
        marker.header.frame_id = self._frame_id
        seconds = math.floor(self._lifetime_s)
        marker.lifetime.sec = seconds
        marker.lifetime.nanosec = int((self._lifetime_s - seconds) * 1e9)
        x, y, z = self._origin
        marker.pose.position = Point(x=x, y=y, z=z)
        marker.pose.orientation = self._upright
        self.markers.append(marker)
        return marker

    def _place(self, ns: str, kind: int, centre: Spot, size: Spot, colour: Colour) -> Marker:
        marker = self._add(ns, kind, colour)
        x, y, z = (float(c) for c in self._affine[:3, :3] @ _axes(centre) + self._affine[:3, 3])
        marker.pose.position = Point(x=x, y=y, z=z)
        self._scale(marker, size)
        return marker

    def _write(self, ns: str, centre: Spot, text: str, height: float, colour: Colour) -> None:
        marker = self._place(ns, Marker.TEXT_VIEW_FACING, centre, (height,) * 3, colour)
        marker.text = text or " "

    def _scale(self, marker: Marker, size: Spot) -> None:
        x, y, z = (max(float(s), MIN_SIZE) * self._unit_m for s in size)
        marker.scale.x, marker.scale.y, marker.scale.z = x, y, z

    def _point(self, spot: Spot) -> Point:
        right, up, towards = spot
        return Point(x=right * self._unit_m, y=-towards * self._unit_m, z=up * self._unit_m)


LINE_PITCH = 1.17
"""Distance of two lines of a text block in RViz, in text heights."""


def _axes(spot: Spot) -> NDArray[np.float64]:
    right, up, towards = spot
    return np.array([right, -towards, up])


def _quaternion(turn: NDArray[np.float64]) -> Quaternion:
    w, x, y, z = (float(c) for c in mat2quat(turn))
    return Quaternion(x=x, y=y, z=z, w=w)


def _rgba(colour: Colour) -> ColorRGBA:
    red, green, blue, alpha = colour
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)
