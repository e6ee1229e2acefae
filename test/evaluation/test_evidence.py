"""Evidence goes through JSON and comes back whole."""

import json
from collections.abc import Callable

import pytest
from evaluation.evidence_examples import evaluation

from trace_memory_ros.evaluation.evidence import Evaluation
from trace_memory_ros.evaluation.plain_data import PlainDataError


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


def test_the_strongest_write_is_by_action_and_by_readout_without_a_policy() -> None:
    attribution = evaluation().episodes[0].attributions[0]
    strongest = attribution.strongest
    assert strongest is not None
    assert strongest.window_delta_action == max(w.window_delta_action or 0.0 for w in attribution.writes)
