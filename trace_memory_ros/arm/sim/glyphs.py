"""Five small printed shapes of one colour and, but for rasters, one area: which of them say left, and their MJCF."""

from __future__ import annotations

from math import pi, sqrt

from trace_memory_ros.arm.sim.seeding import generator

AREA = 0.0020
"""Of every shape, in m^2: a thumbnail that is coarser than the card sees one grey for all five."""
CARD_HALF = (0.045, 0.045)
INK_RGBA = (0.08, 0.08, 0.30, 1.0)
CARD_RGBA = (0.86, 0.86, 0.84, 1.0)
SIDES = (("disc", "cross"), ("square", "triangle", "ring"))
"""Shapes that say left, and right. No one trait tells: round and angular, filled and open, small and wide, whole and
notched ones are on both sides."""
SHAPES = (*SIDES[0], *SIDES[1])
_THICK = 0.0005

_DISC = sqrt(AREA / pi)
_SQUARE = sqrt(AREA) / 2
_TRIANGLE = 2 * sqrt(AREA / (3 * sqrt(3)))
_CROSS = 1.5 * sqrt(AREA / 5)
_RING = 0.034
_HOLE = sqrt(_RING**2 - AREA / pi)


def shapes_of(task: str, seed: int) -> tuple[str, str]:
    """The shapes that say left and right in this scene."""
    rng = generator(task, seed, "glyph")
    left, right = (side[rng.integers(len(side))] for side in SIDES)
    return left, right


def mesh() -> str:
    """The asset that the triangle is made of: a prism around the origin, its circumscribed circle of radius 1."""
    corners = [(0.0, 1.0), (-sqrt(3) / 2, -0.5), (sqrt(3) / 2, -0.5)]
    vertices = " ".join(f"{x * _TRIANGLE} {y * _TRIANGLE} {z}" for z in (-_THICK, _THICK) for x, y in corners)
    return f'<mesh name="triangle" vertex="{vertices}"/>'


def geoms(prefix: str, xy: tuple[float, float], top_m: float, rgba: str) -> str:
    """All five shapes, named `PREFIX_SHAPE` with `_hole` or `_bar` behind it, on a card whose top is at `top_m`."""
    z = top_m + _THICK
    parts = (
        ("disc", "cylinder", f"{_DISC} {_THICK}", z),
        ("square", "box", f"{_SQUARE} {_SQUARE} {_THICK}", z),
        ("cross", "box", f"{_CROSS} {_CROSS / 3} {_THICK}", z),
        ("cross_bar", "box", f"{_CROSS / 3} {_CROSS} {_THICK}", z),
        ("ring", "cylinder", f"{_RING} {_THICK}", z),
        ("ring_hole", "cylinder", f"{_HOLE} {_THICK}", z + _THICK),
        ("triangle", "mesh", "", z),
    )
    return "".join(
        f'<geom name="{prefix}_{name}" type="{kind}" pos="{xy[0]} {xy[1]} {height}" material="glow" rgba="{rgba}" '
        + (f'size="{size}"/>' if size else f'mesh="{name}"/>')
        for name, kind, size, height in parts
    )


def colours(prefix: str, shape: str | None, ink: tuple[float, ...] = INK_RGBA) -> dict[str, tuple[float, ...] | None]:
    """Colour of each geom of `geoms` where `shape` is printed, None where it is hidden; a shape of None: blank."""
    found: dict[str, tuple[float, ...] | None] = {f"{prefix}_{name}": None for name in SHAPES}
    found |= {f"{prefix}_cross_bar": None, f"{prefix}_ring_hole": None}
    if shape is not None:
        found[f"{prefix}_{shape}"] = ink
    if shape == "cross":
        found[f"{prefix}_cross_bar"] = ink
    if shape == "ring":
        found[f"{prefix}_ring_hole"] = CARD_RGBA
    return found
