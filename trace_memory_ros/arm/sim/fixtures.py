"""What stands on the table, as MJCF, and its colours."""

from __future__ import annotations

from trace_memory_ros.arm.sim import layout

XY = tuple[float, float]
Rgba = tuple[float, ...]

DISTRACTOR_SHAPES = ("box", "cylinder", "sphere", "box", "cylinder", "sphere")

PART_RGBA = "0.62 0.12 0.72 1"
GREY_RGBA = (0.36, 0.36, 0.38, 1.0)
LAMP_GREEN_RGBA = (0.05, 0.85, 0.15, 1.0)
LAMP_RED_RGBA = (0.95, 0.06, 0.05, 1.0)
PART_DECOY_RGBA = (*(float(c) for c in PART_RGBA.split()[:3]), 1.0)
HIDDEN_RGBA = (0.0, 0.0, 0.0, 0.0)
CUE_RGBA = ((0.05, 0.25, 0.95, 1.0), (1.0, 0.62, 0.0, 1.0))


def numbers(values: Rgba) -> str:
    """Numbers as an attribute."""
    return " ".join(str(value) for value in values)


def slab(name: str, xy: XY, half: XY, rgba: Rgba) -> str:
    """A glowing rectangle in a dark frame."""
    (x, y), (dx, dy) = xy, half
    return (
        f'<geom name="{name}_frame" type="box" pos="{x} {y} 0.004" size="{dx + 0.014} {dy + 0.014} 0.004"'
        ' material="joint"/>'
        f'<geom name="{name}" type="box" pos="{x} {y} 0.009" size="{dx} {dy} 0.003" {glow(rgba)}/>'
    )


def hidden_slab(name: str, xy: XY, half: XY) -> str:
    """A rectangle without a frame that cannot be seen until it is given a colour."""
    (x, y), (dx, dy) = xy, half
    return (
        f'<geom name="{name}" type="box" pos="{x} {y} 0.002" size="{dx} {dy} 0.003" material="glow"'
        f' rgba="{numbers(HIDDEN_RGBA)}"/>'
    )


def hidden_part(name: str) -> str:
    """What looks like a part once it is given a colour; nothing can touch it."""
    half = layout.PART_HALF
    return (
        f'<geom name="{name}" type="box" pos="0.1 0.1 {half}" euler="0 0 0.1" size="{half} {half} {half}"'
        f' material="part" rgba="{numbers(HIDDEN_RGBA)}"/>'
    )


def tray(name: str, xy: XY) -> str:
    """A shallow box for a part."""
    x, y = xy
    half, wall = layout.BIN_HALF, 0.006
    sides = "".join(
        f'<geom type="box" pos="{x + dx * half} {y + dy * half} 0.02" '
        f'size="{wall if dx else half} {wall if dy else half} 0.02" rgba="0.22 0.30 0.36 1"/>'
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )
    floor = f'<geom name="{name}" type="box" pos="{x} {y} 0.002" size="{half} {half} 0.002" rgba="0.38 0.46 0.52 1"/>'
    return floor + sides


def lamp() -> str:
    """The signal lamp, green."""
    (x, y), radius = layout.LAMP_XY, layout.LAMP_RADIUS
    return (
        f'<geom type="cylinder" pos="{x} {y} 0.006" size="{radius + 0.014} 0.006" material="joint"/>'
        f'<geom name="lamp" type="cylinder" pos="{x} {y} 0.01" size="{radius} 0.01" {glow(LAMP_GREEN_RGBA)}/>'
    )


def targets(names: tuple[str, ...], places: tuple[XY, ...], most_m: float = layout.TARGET_RADIUS) -> list[str]:
    """A white disc in a dark rim of radius `most_m` for each answer."""
    return [
        f'<geom name="target_{name}_{suffix}" type="cylinder" pos="{x} {y} {height}" size="{radius} {height}"'
        f' rgba="{rgba}"/>'
        for name, (x, y) in zip(names, places, strict=True)
        for suffix, radius, height, rgba in (
            ("rim", most_m, 0.002, "0.25 0.28 0.33 1"),
            ("face", most_m - 0.016, 0.003, "0.95 0.95 0.93 1"),
        )
    ]


def stations() -> list[str]:
    """A grey disc below each station."""
    return [
        f'<geom name="station_{i}" type="cylinder" pos="{x} {y} 0.002" size="0.05 0.002" rgba="0.42 0.47 0.50 1"/>'
        for i, (x, y, _) in enumerate(layout.STATION_XYZ, start=1)
    ]


def distractors() -> list[str]:
    """Placeholders: each scene gives them place, size and colour.

    A pose of their own keeps the compiler from marking them as sharing the world's frame, which would pin them there.
    """
    return [
        f'<geom name="distractor_{i}" type="{shape}" pos="0.1 0.6 {0.1 * i + 0.1}" size="0.03 0.03 0.03"/>'
        for i, shape in enumerate(DISTRACTOR_SHAPES)
    ]


def glow(rgba: Rgba) -> str:
    """Attributes of what shines by itself."""
    return f'material="glow" rgba="{numbers(rgba)}"'
