"""Which joints make one curve of the panel: as a person says, or found by their names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import yaml

from trace_memory_ros.files.strict import ConfigError

MOST_CURVES = 6
ARMS = "{left arm: 'left_*', right arm: 'right_*'}"
"""The curves of the simulated arms."""


def groups_in(text: str) -> dict[str, str]:
    """Curve -> pattern of its joints' names, from YAML text; empty where curves are found by themselves."""
    try:
        given = yaml.safe_load(text) if text.strip() else {}
    except yaml.YAMLError as error:
        raise ConfigError(f"parameter joint_groups = {text!r}: is no YAML: {error}") from error
    if not isinstance(given, dict) or not all(isinstance(x, str) for item in given.items() for x in item):
        raise ConfigError(f"parameter joint_groups = {text!r}: give {{CURVE: PATTERN}}, as {{left arm: 'left_*'}}")
    if len(given) > MOST_CURVES:
        raise ConfigError(f"parameter joint_groups: {len(given)} curves are more than can be told apart, {MOST_CURVES}")
    return given


def alike(names: Sequence[str]) -> dict[str, list[str]]:
    """Limbs of one robot: joints whose names differ in one word alone, as left_elbow and right_elbow; else nothing."""
    words = [name.split("_") for name in names]
    for place in range(min(map(len, words), default=0)):
        rests: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        limbs: dict[str, list[str]] = defaultdict(list)
        for name, parts in zip(names, words, strict=True):
            rests[parts[place]].append((*parts[:place], *parts[place + 1 :]))
            limbs[parts[place]].append(name)
        sets = [sorted(rest) for rest in rests.values()]
        if 2 <= len(sets) <= MOST_CURVES and len(sets[0]) > 1 and all(rest == sets[0] for rest in sets):
            return dict(limbs)
    return {}
