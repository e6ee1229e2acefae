"""What a LeRobot policy or dataset calls its cameras, and what an observation does."""

from __future__ import annotations

import re
from collections.abc import Iterable

from trace_memory_ros.files.names import unique

IMAGES = "observation.images."


def camera_names(features: Iterable[str]) -> dict[str, str]:
    """Name of each camera -> its feature, in order: what is no letter, digit or underscore becomes an underscore.

    Of features whose names then are alike, the later ones are numbered from 2.
    """
    found: dict[str, str] = {}
    for feature in features:
        plain = re.sub(r"\W", "_", feature.removeprefix(IMAGES).removeprefix("observation."))
        found[unique(plain, found)] = feature
    return found
