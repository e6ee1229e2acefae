"""What the evidence benchmark concludes from evaluations: targets, and whether attribution points at the cue."""

from dataclasses import replace
from pathlib import Path

import pytest
from evidence.evidence_examples import episode, evaluation, transform, write

from studies.evidence.cues import cue_figures, cues_hidden_ns
from studies.evidence.study import row_figures, rows_of, targets
from trace_memory_ros.arm.recorder import record_bag
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.evidence.figures import figures_of
from trace_memory_ros.evidence.results import Evaluation


def of_task(task: str, kept: float, back: float) -> Evaluation:
    made = tuple(
        replace(
            episode(f"{task}_{label}", label, label),
            task=task,
            transforms=(
                transform("state_offset", kept),
                replace(transform("order_reversal", back), branch_consistency=60.0),
            ),
        )
        for label in ("left", "right")
    )
    return replace(evaluation(), episodes=made, failed=(), figures=figures_of(made))


def test_targets_are_met_or_missed_by_their_figures() -> None:
    evaluations = {"origin": of_task("origin", 90.0, 40.0), "colour": of_task("colour", 84.0, 70.0)}
    hidden = {e.bag: 10**9 for made in evaluations.values() for e in made.episodes}
    found = targets({"trace": row_figures(evaluations, hidden)})
    similarity, consistency = found["trace: route_similarity"], found["trace: branch_consistency"]
    assert similarity["order_preserving"] == 87
    assert (similarity["order_preserving_met"], similarity["reversed_met"]) == (True, True)
    assert consistency["reversed_on_origin"] == 60
    assert (consistency["order_preserving_met"], consistency["reversed_met"]) == (True, False)


def test_a_memory_without_signatures_has_no_target() -> None:
    made = of_task("origin", 90.0, 40.0)
    plain = replace(made, model=replace(made.model, uses_signature=False))
    hidden = {e.bag: 10**9 for e in made.episodes}
    assert targets({"gru": row_figures({"origin": plain, "colour": plain}, hidden)}) == {}


def test_attribution_is_compared_with_when_the_cue_was_visible() -> None:
    early, late = episode("early", "left"), episode("late", "right")
    writes = (write(0, 0.1), write(10, 0.9), write(20, 0.2))
    late = replace(late, attributions=(replace(late.attributions[0], writes=writes, label="right"),))
    made = replace(evaluation(), episodes=(early, late))
    # The strongest write lies at tick 0 of the first, and at tick 10 of the second; the cue is hidden from tick 5 on.
    found = cue_figures(made, {e.bag: 5 * 10**8 for e in made.episodes})
    assert found["by_writes"]["at_the_cue"] == 0.5
    assert found["by_writes"]["flipped_at_the_cue"] == 0.5
    assert found["by_label"]["left"]["by_writes"]["at_the_cue"] == 1
    assert found["by_path"]["decisions"] == 0
    assert found["by_path"]["at_the_cue"] is None
    assert found["writes_then"] == pytest.approx(2 / 6)


def test_a_bag_tells_until_when_its_cue_was_visible(tmp_path: Path) -> None:
    env = ArmEnv("colour")
    try:
        record_bag(tmp_path / "bag", Scenario("colour", 7, 0), env)
    finally:
        env.close()
    seconds = (cues_hidden_ns(tmp_path / "bag") - 10**9) * 1e-9
    assert 1.8 < seconds < 2.9


def test_a_row_that_was_not_trained_is_left_out(tmp_path: Path) -> None:
    assert "trace+window" not in rows_of(tmp_path)
    for task in ("origin", "colour"):
        (tmp_path / f"{task}-trace+window-0-abc").mkdir()
        (tmp_path / f"{task}-trace+window-0-abc" / "config.yaml").touch()
    assert rows_of(tmp_path)["trace+window"]["origin"] == tmp_path / "origin-trace+window-0-abc"


def test_of_several_trainings_of_a_row_none_is_taken_at_random(tmp_path: Path) -> None:
    for name in ("origin-trace+window-0-abc", "origin-trace+window-0-def", "colour-trace+window-0-abc"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").touch()
    with pytest.raises(ValueError, match=r"origin-trace\+window-0-abc.*origin-trace\+window-0-def; remove all but one"):
        rows_of(tmp_path)
    assert set(rows_of(tmp_path, ("gru",))) == {"gru"}
