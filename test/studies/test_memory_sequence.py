"""What the sequence benchmark asks of memories, and how it counts."""

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from studies.grid import Run, Store
from studies.memory_sequence import study as bench
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.learning.decisions.candidates import Trial
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.observation.config import default_arm

PLAN = bench.SequencePlan(
    tasks=(bench.TASK,),
    rows=("none", "gru"),
    seeds=(0, 1, 2),
    pairs=2,
    columns=bench.COLUMNS[:2],
    recipe=bench.RECIPE,
    lessons=bench.LESSONS,
    out_dir=Path("out"),
    demos=Path("demos"),
)


@pytest.mark.parametrize("column", bench.COLUMNS, ids=lambda column: column.label)
def test_a_columns_pairs_differ_in_every_cue_and_in_nothing_else(column: bench.Column) -> None:
    for seed in (200_000, 200_001):
        one, other = (column.scenario("sequence", seed, cue) for cue in (0, 1))
        assert other == one.counterfactual()
        assert len(one.answers) == column.cues
        assert all(a != b for a, b in zip(one.answers, other.answers, strict=True))
        assert (one.overwrite is not None) == column.overwritten
        assert one.decoys == other.decoys == column.decoys
        assert replace(one, cue=other.cue, cues=other.cues, overwrite=other.overwrite) == other


def test_columns_ask_for_different_orders() -> None:
    orders = {bench.COLUMNS[-3].scenario("sequence", seed, 0).cues for seed in range(40)}
    assert len(orders) > 15


def test_decisions_and_whole_episodes_are_counted_over_seeds(tmp_path: Path) -> None:
    plan = replace(PLAN, out_dir=tmp_path)
    first, second = (column.label for column in plan.columns)
    for seed, right in ((0, [[1, 1], [1, 0]]), (1, [[1, 1], [1, 1]])):
        figures = {"right": {first: right, second: [[0]]}, "memory_parameters": 5, "state_bytes": 6}
        figures["writes_per_s"] = {first: 0.25 + 0.5 * seed, second: 1.0}
        Store(plan.run_folder(Run(bench.TASK, "gru", seed))).write("figures", plan.settings(), figures)
    found = bench.figures_of(plan, "gru")
    assert found["runs"] == 2
    assert found[first]["decisions"] == 0.875
    assert found[first]["all_in_order"] == 0.75
    assert found[first]["per_seed"] == [0.75, 1.0]
    assert found[second]["decisions"] == 0.0
    # All wrong, of one decision: it is not sure that all are.
    assert found[second]["decisions_ci95"] == [0.0, wilson_interval(0, 1).high]
    assert (found[first]["writes_per_s"], found[second]["writes_per_s"]) == (0.5, 1.0)
    assert bench.figures_of(plan, "none") == {"runs": 0}


def test_episodes_that_several_trainings_decide_are_no_more_episodes(tmp_path: Path) -> None:
    right = [[1, 1]] * 8 + [[1, 0]] * 4
    found = []
    for seeds in ((0,), (0, 1, 2)):
        plan = replace(PLAN, out_dir=tmp_path, seeds=seeds)
        labels = [column.label for column in plan.columns]
        figures = {"right": dict.fromkeys(labels, right), "memory_parameters": 5, "state_bytes": 6}
        figures["writes_per_s"] = dict.fromkeys(labels, 1.0)
        for seed in seeds:
            Store(plan.run_folder(Run(bench.TASK, "gru", seed))).write("figures", plan.settings(), figures)
        found.append(bench.figures_of(plan, "gru"))
    once, thrice = found
    assert (once["runs"], thrice["runs"]) == (1, 3)
    assert thrice[labels[0]]["decisions_ci95"] == pytest.approx(once[labels[0]]["decisions_ci95"])


def test_auto_is_what_the_validation_pairs_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_validation = {"none": 4, "first_frame": 5, "gru+gate": 7, "gru": 8, "gru+cache": 10}

    def measure(plan: bench.SequencePlan, run: Run) -> dict[str, object]:
        trial = Trial(None, Accuracy.of(on_validation[run.row], 10))
        right = {column.label: [[int(run.row == "gru+cache")]] for column in plan.columns}
        written = dict.fromkeys(right, 0.5)
        told = {"right": right, "writes_per_s": written, "trial": trial.to_plain()}
        return {**told, "memory_parameters": 1, "state_bytes": 1}

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(bench, "_render_all", lambda plan: None)
    figures = bench.run(tmp_path, False, rows=("gru", "auto"), seeds=2, workers=0)
    shares = {row: found["6 cues"]["per_seed"] for row, found in figures["rows"].items()}
    assert shares == {"gru": [0.0, 0.0], "auto": [1.0, 1.0]}
    assert list(bench.tables(figures))[2:] == ["auto took gru+cache (2)"]


def test_figures_of_another_plan_do_not_count(tmp_path: Path) -> None:
    plan = replace(PLAN, out_dir=tmp_path)
    Store(plan.run_folder(Run(bench.TASK, "gru", 0))).write("figures", replace(plan, pairs=3).settings(), {})
    assert bench.figures_of(plan, "gru") == {"runs": 0}


def test_unknown_rows_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    bench.add_options(parser)
    assert parser.parse_args(["--rows", "gru, trace"]).rows == ("gru", "trace")
    with pytest.raises(SystemExit):
        parser.parse_args(["--rows", "gru,memristor"])
    assert "memristor: choose from none, first_frame, last_k, gru" in capsys.readouterr().err
    assert "rows, by comma, of none, first_frame, last_k, gru," in " ".join(parser.format_help().split())


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rendered")


def test_brief_shows_are_recorded_and_kept_by_coarse_clocks(rendered: Path) -> None:
    from studies.memory_modules.plan import row_design
    from trace_memory_ros.learning import build

    column = bench.Column("2 cues", 2)
    pairs = list(collect("sequence", [5], default_arm(), rendered, scenario_of=column.scenario))
    again = list(collect("sequence", [5], default_arm(), rendered, scenario_of=column.scenario))
    for demo, kept in zip(pairs[0], again[0], strict=True):
        assert demo.shown is not None
        assert kept.shown is not None
        assert demo.shown.tolist() == kept.shown.tolist()
        assert 10 < demo.shown.sum() < demo.ticks / 2
        assert len(demo.decision_ticks) == 2
    builder = build.prepare(row_design("gru"), pairs).training
    fine, coarse = (builder._due(builder.data.episodes[0], factor) for factor in (1.0, 16.0))
    shown = pairs[0][0].shown
    assert len(coarse) < len(fine)
    assert [t for t in coarse if shown[t]] == [t for t in fine if shown[t]]


def test_lessons_hold_no_more_cues_than_they_say_and_weigh_the_joints_that_decide(rendered: Path) -> None:
    from studies.memory_modules.plan import row_design
    from studies.memory_sequence import training as learn
    from trace_memory_ros.learning import build

    columns = (bench.Column("1 cue", 1), bench.Column("2 cues", 2))
    pairs = [p for c in columns for p in collect("sequence", [5], default_arm(), rendered, scenario_of=c.scenario)]
    varied = learn.recombined(pairs)
    assert len(varied) == learn.VARIANTS[1] + learn.VARIANTS[2]
    assert len({twins[0].answers for twins in varied if len(twins[0].answers) == 2}) > 1
    builder = build.prepare(row_design("gru"), varied).training
    assert learn.up_to(builder, 1).data.pairs == learn.VARIANTS[1]
    assert learn.up_to(builder, 6).data.pairs == len(varied)
    weights = learn.joint_weights(builder)
    assert weights.mean() == pytest.approx(1.0)
    left_arm, right_arm = weights[:7], weights[7:14]
    assert (left_arm == left_arm.min()).all()
    assert right_arm.max() == pytest.approx(learn.DECISIVE_WEIGHT * float(left_arm.min()))
