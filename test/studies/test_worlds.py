"""Worlds of others: signatures of what is seen, scans and closed loops that agree, tables, and what is skipped."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from grid_jobs import short_imitation

from studies.grid import Store
from studies.metaworld import study as metaworld
from studies.metaworld.names import Cue
from studies.popgym import study
from studies.worlds import plan as worlds
from studies.worlds.client import Floats, Lessons, Outcome, World
from studies.worlds.environment import FOLDER, Unavailable, interpreter
from studies.worlds.model import WorldPolicy
from studies.worlds.path import TICKS, ObservationPath
from studies.worlds.plan import Job, WorldPlan
from studies.worlds.protocol import Interface
from studies.worlds.rows import ROWS
from studies.worlds.training import Imitation, imitate, judge, play
from trace_memory_ros.learning.sizes import LADDER
from trace_memory_ros.signature.naive import signature

SYMBOLS = Interface(4, (4,), 0, 0.0, 0.0, previous_action=True, teacher="says what it sees")
NUMBERS = Interface(3, (), 2, -1.0, 3.0, previous_action=True, teacher="", path=(0, 2))
ROOT = Path(__file__).parents[2]


def lessons_of(observations: Floats, actions: Floats) -> Lessons:
    return Lessons(observations, actions, np.ones(observations.shape[:2], bool), actions)


def symbol_lessons(episodes: int, ticks: int) -> Lessons:
    """Every action is the symbol that is seen."""
    seen = np.random.default_rng(0).integers(0, 4, (episodes, ticks))
    return lessons_of(np.eye(4, dtype=np.float32)[seen], seen[..., None].astype(np.float32))


def number_lessons(episodes: int, ticks: int) -> Lessons:
    rng = np.random.default_rng(0)
    shown = rng.normal(5.0, 2.0, (episodes, ticks, 3)).astype(np.float32)
    shown[:, 1:, 1] = 0.0
    return lessons_of(shown, rng.uniform(-1, 3, (episodes, ticks, 2)).astype(np.float32))


@pytest.mark.parametrize("window", [None, 3])
def test_signatures_are_those_of_the_path_of_observations_and_time(window: int | None) -> None:
    seen = np.random.default_rng(1).normal(size=(2, 9, 3)).astype(np.float32)
    xi, delta = ObservationPath(3, 2, window).advance(seen)
    points = np.concatenate([seen, np.broadcast_to(np.arange(9)[None, :, None] / TICKS, (2, 9, 1))], axis=-1)
    for t in range(9):
        first = 0 if window is None else max(t - window, 0)
        for row in range(2):
            np.testing.assert_allclose(xi[row, t], signature(points[row, first : t + 1], 2), atol=1e-12)
    np.testing.assert_allclose(delta.cumsum(axis=1), xi, atol=1e-12)


@pytest.mark.parametrize("share", [0.5, 1.0])
@pytest.mark.parametrize("window", [None, 2, 5])
def test_a_path_may_be_given_in_pieces(window: int | None, share: float) -> None:
    seen = np.random.default_rng(2).normal(size=(2, 12, 8)).astype(np.float32)
    path = ObservationPath(8, 2, window)
    due = np.random.default_rng(3).random((2, 12)) < share
    whole = ObservationPath(8, 2, window).advance(seen, due)
    pieces = [path.advance(seen[:, a:b], due[:, a:b]) for a, b in ((0, 1), (1, 2), (2, 7), (7, 8), (8, 12))]
    for at_once, parts in zip(whole, zip(*pieces, strict=True), strict=True):
        np.testing.assert_allclose(np.concatenate(parts, axis=1), at_once, atol=1e-12)


class Replayed(World):
    """A world that shows what it was going to show whatever is done; keeps what was done."""

    def __init__(self, observations: Floats) -> None:
        self.observations, self.acted = observations, []

    def begin(self, task: str, seeds: object) -> Floats:
        return self.observations[:, 0]

    def act(self, actions: Floats) -> Outcome:
        self.acted.append(actions)
        tick, count = len(self.acted), len(actions)
        last = tick == self.observations.shape[1]
        shown = np.zeros_like(self.observations[:, 0]) if last else self.observations[:, tick]
        return Outcome(shown, np.full(count, 0.5), np.full(count, last), np.full(count, tick == 2))


@pytest.mark.parametrize(
    "row", ["none", "first_frame", "last_k", "gru", "gru+cache", "trace", "trace+window", "elmur", "prism"]
)
@pytest.mark.parametrize(
    ("interface", "made", "writes"),
    [(SYMBOLS, symbol_lessons, None), (NUMBERS, number_lessons, None), (NUMBERS, number_lessons, 3)],
)
def test_closed_loop_decides_what_the_scan_decides(row: str, interface: Interface, made, writes: int | None) -> None:
    torch.manual_seed(0)
    lessons = made(4, 7)
    policy = WorldPolicy(ROWS[row], interface, lessons, writes).eval()
    world = Replayed(lessons.observations)
    played = play(policy, world, "any", range(4))
    acted = np.stack(world.acted, axis=1)
    before = np.concatenate([np.zeros_like(acted[:, :1]), acted[:, :-1]], axis=1)
    with torch.no_grad():
        decided = policy(lessons.observations, before, torch.from_numpy(lessons.mask))
    scanned = policy.chosen(decided.decisions.flatten(0, 1)).reshape(acted.shape)
    np.testing.assert_allclose(acted, scanned, atol=1e-4)
    assert (played.returns, played.successes, played.steps) == ([3.5] * 4, [True] * 4, [7] * 4)


def test_an_arm_that_is_held_writes_nothing_however_long() -> None:
    lessons = number_lessons(4, 9)
    policy = WorldPolicy(ROWS["trace"], NUMBERS, lessons, writes=4).eval()
    moved = policy.due(lessons.observations)
    assert moved[:, 0].all() and 2 <= moved.sum(axis=1).mean() <= 6
    held = np.repeat(lessons.observations, [1, 1, 30, 1, 1, 1, 1, 1, 1], axis=1)
    due = policy.due(held)
    np.testing.assert_array_equal(np.delete(due, np.s_[3:32], axis=1), moved)
    assert not due[:, 3:32].any()
    # Increments add up between writes, too.
    xi, delta = ObservationPath(2, 4).advance(lessons.observations[..., [0, 2]], moved)
    for row in range(4):
        np.testing.assert_allclose(delta[row, moved[row]].cumsum(axis=0), xi[row, moved[row]], atol=1e-12)


def test_what_the_teacher_does_is_learned_and_what_it_cannot_show_is_not() -> None:
    lessons = symbol_lessons(32, 6)
    recipe = Imitation(steps=80, batch_ticks=96)
    torch.manual_seed(0)
    policy = WorldPolicy(ROWS["none"], SYMBOLS, lessons)
    imitate(policy, lessons, recipe, 0)
    assert judge(policy, lessons).agreement > 0.95
    shuffled = lessons._replace(actions=np.random.default_rng(5).permuted(lessons.actions, axis=1))
    torch.manual_seed(0)
    blind = WorldPolicy(ROWS["none"], SYMBOLS, shuffled)
    imitate(blind, shuffled, recipe, 0)
    assert judge(blind, shuffled).agreement < 0.8


def test_padding_teaches_nothing() -> None:
    lessons = symbol_lessons(8, 6)
    mask = lessons.mask.copy()
    mask[:, 4:] = False
    spoiled = lessons.actions.copy()
    spoiled[:, 4:] = 3 - spoiled[:, 4:]
    found = []
    for actions in (lessons.actions, spoiled):
        torch.manual_seed(0)
        policy = WorldPolicy(ROWS["gru"], SYMBOLS, lessons)
        short = Lessons(lessons.observations, actions, mask, actions)
        imitate(policy, short, Imitation(steps=5), 0)
        found.append((judge(policy, short), policy.head[0].weight.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("shown", [True, False])
def test_a_policy_is_shown_what_was_carried_out_and_taught_what_the_teacher_did(shown: bool) -> None:
    interface = replace(SYMBOLS, previous_action=shown)
    lessons = symbol_lessons(8, 6)
    others = lessons._replace(executed=(lessons.actions + 1) % interface.choices[0])
    found = []
    for each in (lessons, others):
        torch.manual_seed(0)
        policy = WorldPolicy(ROWS["gru"], interface, each)
        imitate(policy, each, Imitation(steps=3), 0)
        found.append(judge(policy, each).loss)
    assert (found[0] != found[1]) == shown


def test_a_step_whose_gradient_is_no_number_is_left_out() -> None:
    lessons = symbol_lessons(8, 6)
    policy = WorldPolicy(ROWS["gru"], SYMBOLS, lessons)
    before = policy.head[0].weight.detach().clone()
    broken = policy.head[0].weight.register_hook(lambda grad: grad * float("inf"))
    imitate(policy, lessons, Imitation(steps=2), 0)
    assert torch.equal(policy.head[0].weight, before)
    broken.remove()
    imitate(policy, lessons, Imitation(steps=2), 0)
    assert math.isfinite(judge(policy, lessons).loss)


def test_lessons_are_judged_whole_and_each_decision_counts_alike() -> None:
    lessons = symbol_lessons(37, 6)
    mask = lessons.mask.copy()
    mask[3, 2:] = False
    lessons = lessons._replace(mask=mask)
    policy = WorldPolicy(ROWS["gru"], SYMBOLS, lessons).eval()
    losses, agreed = [], []
    for row in range(37):
        only = lessons.of(slice(row, row + 1))
        found, count = judge(policy, only), int(only.mask.sum())
        losses.append((found.loss, count))
        agreed.append(found.agreement * count)
    total = sum(count for _, count in losses)
    whole = judge(policy, lessons)
    assert whole.loss == pytest.approx(sum(loss * count for loss, count in losses) / total, rel=1e-5)
    assert whole.agreement == pytest.approx(sum(agreed) / total) and whole.write_share == 1.0


def test_a_number_that_is_not_shown_stays_zero() -> None:
    lessons = number_lessons(4, 5)
    scaled = WorldPolicy(ROWS["none"], NUMBERS, lessons)._scaled(lessons.observations)
    assert (scaled[:, 1:, 1] == 0).all()
    np.testing.assert_allclose(scaled[:, 0, 1].std(), 1.0, atol=1e-3)


def plan_of(folder: Path) -> WorldPlan:
    return WorldPlan(folder, ("RepeatFirstEasy", "AutoencodeEasy"), ("none", "gru"), (0, 1), 2, "returns")


def test_sums_leave_out_rows_that_lack_a_task(tmp_path: Path) -> None:
    grid = plan_of(tmp_path)
    scores = {"teacher": [1.0, 1.0], "none": [-0.5, 0.5], "gru": [0.5, 1.0]}
    for job in grid.jobs():
        if not (job.task == "AutoencodeEasy" and job.row == "gru"):
            Store(grid.folder(job)).write("figures", grid.settings(job), {"scores": scores[job.row], "words": "all"})
    figures = worlds.figures_of(grid, {"first": ["RepeatFirstEasy"], "unknown": ["Labyrinth"]})
    assert {row: found["score"] for row, found in figures["sum"]["rows"].items()} == {"teacher": 2.0, "none": 0.0}
    assert list(figures["means"]) == ["first"]
    assert figures["means"]["first"]["rows"]["gru"]["score"] == 0.75
    assert figures["tasks"]["RepeatFirstEasy"]["rows"]["gru"]["by_seed"] == [0.75, 0.75]
    shown = list(worlds.tables(figures, "two"))
    assert list(shown[0].columns[3].cells) == ["+0.75", "", "+0.75", ""]


def test_auto_is_the_simplest_that_imitates_nearly_as_well_by_task_and_seed(tmp_path: Path) -> None:
    grid = WorldPlan(tmp_path, ("RepeatFirstEasy", "AutoencodeEasy"), LADDER, (0, 1), 2, "returns")
    losses = {"none": 1.0, "first_frame": 0.9, "gru+gate": 0.5, "gru": 0.2, "gru+cache": 0.19}
    scores = {"teacher": 1.0, "none": 0.0, "first_frame": 0.1, "gru+gate": 0.3, "gru": 0.8, "gru+cache": 0.5}
    for job in grid.jobs():
        loss = 0.01 if (job.row, job.seed) == ("gru+cache", 1) else losses.get(job.row)
        if job.task != "AutoencodeEasy" or job.row != "gru":
            kept = {"scores": [scores[job.row]] * 2, "words": "all"} | ({} if loss is None else {"loss": loss})
            Store(grid.folder(job)).write("figures", grid.settings(job), kept)
    first, second = (found["rows"] for found in worlds.figures_of(grid, {})["tasks"].values())
    assert first["auto"]["taken"] == ["gru", "gru+cache"] and first["auto"]["by_seed"] == [0.8, 0.5]
    assert "auto" not in second


def test_a_later_seed_stands_alone(tmp_path: Path) -> None:
    grid = replace(plan_of(tmp_path), seeds=(2,))
    for job in grid.jobs():
        scores = [1.0, 1.0] if job.row == "teacher" else [0.0, 0.5]
        Store(grid.folder(job)).write("figures", grid.settings(job), {"scores": scores, "words": "all"})
    assert {(job.row, job.seed) for job in grid.jobs()} == {("teacher", 0), ("none", 2), ("gru", 2)}
    figures = worlds.figures_of(grid, {})
    sums = {row: cell["score"] for row, cell in figures["sum"]["rows"].items()}
    assert sums == {"teacher": 2.0, "none": 0.5, "gru": 0.5}
    assert figures["seeds"] == [2]
    earlier = worlds.figures_of(plan_of(tmp_path), {})["tasks"].values()
    assert {row for task in earlier for row in task["rows"]} == {"teacher"}


def test_a_loss_that_became_no_number_is_none(tmp_path: Path) -> None:
    grid = WorldPlan(tmp_path, ("reach",), ("gru",), (0,), 2, "returns")
    for job in grid.jobs():
        kept = {"scores": [0.5, 0.5], "words": "all", "loss": float("nan")}
        Store(grid.folder(job)).write("figures", grid.settings(job), kept)
    cell = worlds.figures_of(grid, {})["tasks"]["reach"]["rows"]["gru"]
    assert cell["loss"] is None and cell["score"] == 0.5


def test_shares_of_few_episodes_are_not_certain(tmp_path: Path) -> None:
    for seeds in ((0,), (0, 1, 2)):
        # Every training plays the same episodes.
        grid = WorldPlan(tmp_path, ("reach",), ("gru",), seeds, 20, "successes")
        for job in grid.jobs():
            Store(grid.folder(job)).write("figures", grid.settings(job), {"scores": [1.0] * 20, "words": "all"})
        low, high = worlds.figures_of(grid, {})["tasks"]["reach"]["rows"]["gru"]["ci95"]
        assert high == 1.0 and 0.8 < low < 0.9


def test_another_recipe_or_count_of_episodes_is_another_measurement(tmp_path: Path) -> None:
    grid, job = plan_of(tmp_path), Job("RepeatFirstEasy", "gru", 0)
    others = (
        WorldPlan(tmp_path, grid.tasks, grid.rows, (0, 1), 3, "returns"),
        WorldPlan(tmp_path, grid.tasks, grid.rows, (0, 1), 2, "returns", lambda task, row: Imitation(steps=7)),
        WorldPlan(tmp_path, grid.tasks, grid.rows, (0, 1), 2, "returns", variants=lambda task: {"a": task, "b": task}),
    )
    assert len({grid.folder(job), *(other.folder(job) for other in others)}) == 4
    assert len({grid.folder(each) for each in grid.jobs()}) == len(grid.jobs()) == 2 * (1 + 2 * 2)


def test_a_row_can_be_taught_by_a_recipe_of_its_own(tmp_path: Path) -> None:
    recipes = {"none": Imitation(steps=7), "gru": Imitation(steps=7, learning_rate=1e-3)}
    grid = WorldPlan(tmp_path, ("hall",), ("none", "gru"), (0,), 1, "returns", lambda task, row: recipes[row])
    for job in grid.jobs():
        Store(grid.folder(job)).write("figures", grid.settings(job), {"scores": [1.0], "words": "all"})
    figures = worlds.figures_of(grid, {})
    found = {row: figures["recipes"][name] for row, name in figures["tasks"]["hall"]["recipes"].items()}
    assert found == {row: asdict(recipe) for row, recipe in recipes.items()}


def test_workers_find_what_one_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT / 'test' / 'echo_world.py'}\n")
    python.chmod(0o755)
    monkeypatch.setattr(worlds, "interpreter", lambda *_: python)
    found = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        grid = WorldPlan(folder, ("hall", "cave"), ("none", "gru"), (0, 1), 3, "returns", short_imitation)
        assert worlds.skipped(grid, Path(), Path(), "echo", workers) is None
        figures = worlds.figures_of(grid, {})
        assert figures["sum"]["rows"]["gru"]["score"] > 1.5 and figures["sum"]["rows"]["teacher"]["score"] == 2.0
        assert figures["tasks"]["cave"]["teacher"] == "says what it sees in cave"
        scores = [[cell["by_seed"] for cell in task["rows"].values()] for task in figures["tasks"].values()]
        found.append((scores, sorted(file.parent.name for file in folder.glob("runs/*/figures.json"))))
    assert found[0] == found[1]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_world_that_does_not_answer_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int) -> None:
    monkeypatch.setattr(worlds, "interpreter", lambda *_: Path("/bin/true"))
    grid = WorldPlan(tmp_path, ("hall", "cave"), ("none",), (0,), 3, "returns", short_imitation)
    figures = worlds.skipped(grid, Path(), Path(), "echo", workers)
    assert figures is not None and "echo ended with 0" in figures["skipped"]


def test_a_world_that_cannot_be_set_up_is_skipped_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    call = {"environments": ("diagnostic",), "memories": ("gru",), "report": False}
    figures = study.run(
        tmp_path, True, seeds=1, first_seed=0, episodes=1, workers=1, **call, packages=tmp_path / "taken" / "popgym"
    )
    (line,) = study.tables(figures)
    assert "python -m venv failed" in line and str(tmp_path / "taken") in line


needs_popgym = pytest.mark.skipif(
    not (ROOT / FOLDER / "popgym" / "complete").exists(), reason="needs the packages of `trace-memory bench popgym`"
)


@needs_popgym
def test_teachers_of_the_diagnostic_tasks_make_no_mistake() -> None:
    python = interpreter(study.REQUIREMENTS, ROOT / FOLDER / "popgym")
    with World(python, study.MODULE) as world:
        for task in ("RepeatFirstEasy", "RepeatPreviousEasy", "AutoencodeEasy", "CountRecallEasy"):
            judged = world.judge(task, range(3))
            np.testing.assert_allclose(judged["returns"], 1.0)
            assert world.teach(task, range(3), 20).actions.shape == (3, 20, 1)
        with pytest.raises(RuntimeError, match="is no environment of POPGym"):
            world.describe("LabyrinthEscape")


@needs_popgym
def test_a_teacher_that_is_disturbed_says_what_it_would_have_done() -> None:
    python = interpreter(study.REQUIREMENTS, ROOT / FOLDER / "popgym")
    with World(python, study.MODULE) as world:
        cart, pendulum = (
            world.teach(task, range(10), 200, 0.1) for task in ("PositionOnlyCartPoleEasy", "PositionOnlyPendulumEasy")
        )
        untouched = world.teach("PositionOnlyCartPoleEasy", range(3), 200)
    # Half of the pushes at random are the teacher's own.
    assert 0.03 < (cart.executed != cart.actions)[cart.mask].mean() < 0.07
    assert cart.mask.all()
    assert np.abs(pendulum.executed).max() <= 2.0 < np.abs(pendulum.actions).max() + 1e-6
    assert 0.05 < (pendulum.executed - pendulum.actions)[pendulum.mask].std() < 0.25
    np.testing.assert_array_equal(untouched.executed, untouched.actions)


def test_a_world_that_does_not_start_is_named(tmp_path: Path) -> None:
    with World(Path("/bin/true"), "studies.popgym.world") as world, pytest.raises(Unavailable, match="studies.popgym"):
        world.describe("RepeatFirstEasy")


def test_cues_are_read_as_they_are_written() -> None:
    cue = Cue(5, 0, 20)
    assert Cue.parse(cue.of("reach-wall")) == ("reach-wall", cue)
    for name in ("reach", "door-open:1:0:0", "reach:1:0"):
        with pytest.raises(ValueError, match="TASK:SHOWN"):
            Cue.parse(name)
    assert len({*metaworld.variants("reach").values()}) == len(metaworld.CUES) == 3
