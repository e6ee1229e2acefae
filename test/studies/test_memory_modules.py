"""The comparison of memories: folders, scenes and figures; an open-loop scan is what live ticks are."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.grid import HERE, Run, Store, do
from studies.memory_modules import jobs
from studies.memory_modules import plan as plans
from studies.memory_modules.expert_episodes import ExpertEpisode, ExpertRecorder
from studies.memory_modules.open_loop import OpenLoop
from studies.memory_modules.plots import write_plots
from studies.memory_modules.table import figures_of
from studies.scenes import scenario_key
from studies.tables import success_of
from trace_memory_ros.arm.closed_loop import ClosedLoop
from trace_memory_ros.arm.sim.expert import Expert
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.observation.lockstep import LockstepObserver
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

WEIGHTS = Path(__file__).parents[2] / "weights"
SCENARIO = Scenario(task="colour", seed=200_000, cue=1)


@pytest.fixture(scope="module")
def episode() -> Iterator[ExpertEpisode]:
    checkpoint = OpenLoop(WEIGHTS / "colour_trace")
    config = checkpoint.checkpoint.config
    recorder = ExpertRecorder("colour", config.observation, checkpoint.model.state, config.clock, chunk=20)
    yield recorder.record(SCENARIO)
    recorder.close()


def _plan(tmp_path: Path, **changes: Any) -> plans.ModulesPlan:
    return plans.ModulesPlan(
        **{
            "tasks": ("colour",),
            "rows": ("none", "trace"),
            "seeds": (0, 1),
            "pairs": 2,
            "conditions": plans.CONDITIONS[:2],
            "recipes": plans.JOINT,
            "base_recipes": plans.BASE_RECIPES,
            "out_dir": tmp_path,
            "demos": tmp_path,
        }
        | changes
    )


@pytest.mark.parametrize("memory", ["trace", "gru"])
def test_an_open_loop_scan_is_what_live_ticks_are(episode: ExpertEpisode, memory: str) -> None:
    folder = WEIGHTS / f"colour_{memory}"
    with ClosedLoop(folder, "colour") as loop:
        runtime, observer = MemoryRuntime.from_checkpoint(folder), LockstepObserver(loop.runtime.config.observation)
        loop.env.reset(SCENARIO)
        expert = Expert(loop.env, SCENARIO)
        runtime.reset()
        observer.reset()
        writes = []
        for tick in range(episode.branch_tick + 1):
            sample = loop.env.observe()
            condition, _ = runtime.tick(observer.observe(sample.images, sample.joint_positions, sample.base_velocity))
            writes += [tick] if condition.wrote else []
            loop.env.apply(expert.act(sample))
            loop.env.advance(loop.period_s)
    readout, wrote = OpenLoop(folder).scan([episode, episode])
    np.testing.assert_array_equal(episode.writes, writes)
    assert wrote.tolist() == [len(writes)] * 2
    np.testing.assert_allclose(readout.vector[0].numpy(), condition.vector, atol=1e-5)
    np.testing.assert_allclose(readout.tokens[1].numpy().ravel(), np.ravel(condition.tokens), atol=1e-5)
    np.testing.assert_allclose(readout.address[0].numpy(), condition.address, atol=1e-5)


def test_a_trained_memory_decides_its_own_episode_right(episode: ExpertEpisode) -> None:
    twin = replace(episode, actions=episode.actions + np.float32(0.3))
    decisions = OpenLoop(WEIGHTS / "colour_trace").decide([episode, twin])
    assert [decision.right for decision in decisions] == [True, False]
    assert decisions[0].ticks == episode.branch_tick + 1


def test_an_episode_of_another_clock_is_refused(episode: ExpertEpisode) -> None:
    other = replace(episode, writes=episode.writes[:-1], thumbnails=episode.thumbnails[:-1])
    with pytest.raises(ValueError, match=r"the episode has \d+ writes.*record again"):
        OpenLoop(WEIGHTS / "colour_trace").scan([other])


def test_an_episode_survives_the_disk(episode: ExpertEpisode, tmp_path: Path) -> None:
    episode.save(tmp_path / "a" / "b.npz")
    back = ExpertEpisode.load(tmp_path / "a" / "b.npz")
    for name in ("thumbnails", "writes", "state", "images", "actions"):
        np.testing.assert_array_equal(getattr(back, name), getattr(episode, name))


def test_what_a_run_depends_on_names_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, run = _plan(tmp_path), Run("colour", "trace", 0)
    longer = _plan(tmp_path, recipes={"colour": replace(plan.recipes["colour"], steps=999)})
    folders = {}
    for base in ("a", "b"):
        monkeypatch.setattr(plans, "base_id", lambda folder, base=base: base)
        folders[base] = plan.run_folder(run)
        assert folders[base] == _plan(tmp_path, pairs=5).run_folder(run)
    assert len({*folders.values(), longer.run_folder(run)}) == 3


def test_seeds_share_scenes_only_where_said(tmp_path: Path) -> None:
    plan = _plan(tmp_path)
    own = [{s.seed for s in plan.scenarios("colour", seed, plans.CONDITIONS[0])} for seed in (0, 1)]
    assert not own[0] & own[1]
    long = next(c for c in plans.CONDITIONS if c.shared)
    assert plan.scenarios("colour", 0, long) == plan.scenarios("colour", 1, long)
    recorded = [what for what in _plan(tmp_path, conditions=(long,)).to_record() if what[2] is long]
    assert len(recorded) == 1


def test_a_setting_added_to_scenarios_later_changes_no_key() -> None:
    assert scenario_key(SCENARIO) == scenario_key(replace(SCENARIO, extra_pause_s=0.0))
    assert scenario_key(SCENARIO) != scenario_key(replace(SCENARIO, extra_pause_s=1.0))


def test_rows_without_a_mechanism_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(plans.ROWS, "trace", "not_yet_written")
    assert plans.known_rows(("gru", "trace")) == (("gru",), ("trace",))


def _episodes(*success: bool) -> dict[str, Any]:
    return {
        "episodes": [
            {"seed": i // 2, "cue": i % 2, "success": won, "writes": 30, "elapsed_s": 20.0}
            for i, won in enumerate(success)
        ]
    }


def test_the_interval_covers_episodes_and_seeds() -> None:
    alike = success_of([_episodes(*[True] * 9, False)] * 3)
    apart = success_of([_episodes(*[True] * 10), _episodes(*[True] * 10), _episodes(*[True] * 7, *[False] * 3)])
    assert alike is not None
    assert apart is not None
    assert alike["success"] == apart["success"] == 0.9
    assert apart["by_seed"] == [1.0, 1.0, 0.7]
    assert apart["ci95"][0] < alike["ci95"][0] < 0.9
    assert success_of([_episodes(*[True] * 6)] * 3)["ci95"][0] < 1.0  # type: ignore[index]
    shared = success_of([_episodes(*[True] * 9, False)] * 3, alike=True)
    assert shared is not None and (shared["success"], shared["episodes"]) == (0.9, 30)
    once = success_of([_episodes(*[True] * 9, False)])
    assert once is not None and shared["ci95"] == pytest.approx(once["ci95"])
    assert alike["writes_per_s"] == 1.5
    assert success_of([]) is None


def test_a_failed_run_is_in_the_figures_and_the_others_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = _plan(tmp_path, rows=("none",), conditions=plans.CONDITIONS[:1])
    monkeypatch.setattr(plans, "base_id", lambda folder: "base")
    runs = plan.runs()

    def crash(*_: Any) -> dict[str, Any]:
        raise FloatingPointError("the loss is nan at step 7")

    monkeypatch.setattr(jobs, "train_row", crash)
    do(partial(jobs.train_and_decide, plan), runs[1:], plan.run_folder, HERE)
    done = Store(plan.run_folder(runs[0]))
    trained = {
        "memory_parameters": 0,
        "state_bytes": 0,
        "held_out_branch_accuracy": {"value": 0.5},
        "memory_steps": 0,
        "attempts": 0,
    }
    done.write("training", {}, trained | {"memory_s": 0.0, "joint_s": 1.0})
    done.write("closed_loop", {}, _episodes(True, False, False, False))
    monkeypatch.setattr("studies.memory_modules.table.step_times_ms", lambda checkpoints: {})
    everything = figures_of(plan)
    assert everything["missing"] == ["colour none"]
    figures = everything["tasks"]["colour"]["none"]
    assert figures["runs"] == 1
    assert figures["failed"] == {"1": "FloatingPointError: the loss is nan at step 7"}
    assert figures["closed_loop"]["success"] == 0.25


def test_plots_are_drawn_of_what_there_is(tmp_path: Path) -> None:
    won = success_of([_episodes(True, True, False, True)])
    rows = {"gru": {"closed_loop": won, "open_loop": {"x1": won, "x16": None}}, "none": {"runs": 0}}
    conditions = {"x1": {"label": "1x"}, "x16": {"label": "16x"}}
    paths = write_plots({"tasks": {"origin": rows, "colour": rows}, "conditions": conditions}, tmp_path)
    assert [path.name for path in paths] == ["memory_modules_delay.png", "memory_modules_writes.png"]
    assert all(1_000 < path.stat().st_size < 300_000 for path in paths)


def test_a_read_can_be_given_the_address_of_another_episode(episode: ExpertEpisode) -> None:
    loop = OpenLoop(WEIGHTS / "colour_trace")
    before = episode.writes < episode.branch_tick - 60
    elsewhere = replace(
        episode, state=episode.state[:-60], writes=episode.writes[before], thumbnails=episode.thumbnails[before]
    )
    (own, _), (same, _), (other, _) = (loop.scan([episode], asked) for asked in (None, [episode], [elsewhere]))
    assert np.array_equal(own.address, same.address)
    assert np.array_equal(own.tokens, other.tokens)
    assert not np.allclose(own.address, other.address, atol=1e-3)
