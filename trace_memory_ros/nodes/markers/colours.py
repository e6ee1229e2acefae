"""Colours of the RViz panel, chosen in OKLCH so that lightness steps look even."""

from __future__ import annotations

import math

Colour = tuple[float, float, float, float]
"""Red, green, blue, alpha, each 0..1 (sRGB)."""

PANEL: Colour = (0.055, 0.065, 0.085, 1.0)
TRACK: Colour = (0.13, 0.15, 0.19, 1.0)
FAINT: Colour = (0.36, 0.40, 0.46, 1.0)
CAPTION: Colour = (0.66, 0.71, 0.78, 1.0)
TEXT: Colour = (0.96, 0.97, 1.0, 1.0)
GOOD: Colour = (0.30, 0.80, 0.45, 1.0)
WARNING: Colour = (1.0, 0.62, 0.10, 1.0)
ERROR: Colour = (1.0, 0.27, 0.27, 1.0)
READ: Colour = (0.45, 0.80, 1.0, 1.0)
CUE: Colour = (0.28, 0.30, 0.16, 1.0)
PATH: Colour = (0.92, 0.94, 0.97, 1.0)
LIMBS: tuple[Colour, ...] = ((0.55, 0.63, 0.90, 1.0), (0.85, 0.60, 0.75, 1.0))

_GOLDEN_ANGLE_DEG = 137.507764


def _gamma(linear: float) -> float:
    clipped = min(max(linear, 0.0), 1.0)
    return 12.92 * clipped if clipped <= 0.0031308 else 1.055 * clipped ** (1 / 2.4) - 0.055


def oklch(lightness: float, chroma: float, hue_deg: float) -> Colour:
    """An opaque sRGB colour from OKLCH coordinates, clipped to the gamut.

    lightness 0..1; chroma 0..0.37; hue in degrees. Source: Ottosson, "A perceptual color space for image
    processing", 2020.
    """
    a = chroma * math.cos(math.radians(hue_deg))
    b = chroma * math.sin(math.radians(hue_deg))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    red = 4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short
    green = -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short
    blue = -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short
    return _gamma(red), _gamma(green), _gamma(blue), 1.0


def strength_colour(strength: float) -> Colour:
    """Write strength 0..1 on a scale of evenly rising lightness, dark blue to bright yellow."""
    level = min(max(strength, 0.0), 1.0)
    return oklch(0.34 + 0.58 * level, 0.11 + 0.05 * level, 285.0 - 185.0 * level)


def slot_colour(slot: int) -> Colour:
    """A slot's own hue, the same in every part of the panel; neighbours lie far apart for any number of slots."""
    return oklch(0.74, 0.14, 25.0 + slot * _GOLDEN_ANGLE_DEG)


def limb_colour(curve: int) -> Colour:
    """Of a curve of joints: two arms as ever, further ones apart from them."""
    return LIMBS[curve] if curve < len(LIMBS) else oklch(0.74, 0.09, 60.0 + curve * _GOLDEN_ANGLE_DEG)


def faded(colour: Colour, alpha: float) -> Colour:
    """The colour at another opacity, 0..1."""
    return colour[0], colour[1], colour[2], alpha
