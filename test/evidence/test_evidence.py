"""Evidence goes through JSON and comes back whole."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from evidence.evidence_examples import episode, evaluation, write

from trace_memory_ros.evidence.results import AttributionEvidence, Evaluation
from trace_memory_ros.files.plain import PlainDataError


def test_an_evaluation_survives_json() -> None:
    made = evaluation()
    assert Evaluation.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False))) == made


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda d: d.update(schema=99), "schema 99"),
        (lambda d: d["episodes"][0]["branches"][0].update(colour=1), "colour"),
        (lambda d: d["episodes"][0].pop("bag"), "bag"),
        (lambda d: d.update(episodes=3), "evaluation.episodes"),
        (lambda d: d.update(model=None), "evaluation.model"),
    ],
)
def test_other_data_is_refused_by_name(spoil: Callable[[dict[str, object]], object], named: str) -> None:
    data = json.loads(json.dumps(evaluation().to_dict()))
    spoil(data)
    with pytest.raises(PlainDataError, match=named):
        Evaluation.from_dict(data)


def moments(*given: tuple[float, bool, float, bool]) -> AttributionEvidence:
    """Writes at ticks 0, 1, ...: change and flip by the window of writes, then by the stretches of path."""
    writes = tuple(
        replace(
            write(tick, 0.0),
            window_delta_readout=0.1 * tick,
            window_delta_action=by_writes,
            window_flipped=flips,
            path_delta_action=by_path,
            path_flipped=path_flips,
        )
        for tick, (by_writes, flips, by_path, path_flips) in enumerate(given)
    )
    return replace(episode().attributions[0], writes=writes)


@pytest.mark.parametrize(
    ("found", "tick", "through_path"),
    [
        (moments((0.1, False, 0.9, False), (0.2, False, 0.3, False)), 1, False),
        (moments((0.1, False, 0.9, False), (0.2, False, 0.3, True)), 1, True),
        (moments((0.4, True, 0.9, False), (0.2, False, 0.3, True)), 0, False),
        (moments((0.4, True, 0.9, True), (0.5, True, 0.3, True)), 0, True),
    ],
)
def test_the_strongest_moment_changes_the_decision_where_one_does(
    found: AttributionEvidence, tick: int, through_path: bool
) -> None:
    assert found.strongest is not None
    assert (found.strongest.tick, found.through_path) == (tick, through_path)


def test_without_a_policy_the_readout_tells_the_strongest_moment() -> None:
    found = moments((0.0, False, 0.0, False), (0.0, False, 0.0, False))
    silent = [replace(w, window_delta_action=None, path_delta_action=None) for w in found.writes]
    strongest = replace(found, writes=tuple(silent)).strongest
    assert strongest is not None
    assert strongest.tick == 1
    assert replace(found, writes=()).strongest is None
