"""MIKASA: recordings as demonstrations, what is kept and gone on with, a small training and its loop, skipping."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from studies.grid import Run
from studies.mikasa import driver, names, study
from studies.mikasa.client import Acted, MikasaWorld, recorded, recordings_there
from studies.mikasa.names import ACTIONS, CAMERAS, FIRST_SEED, PROPRIO, PX, RECORDED
from studies.mikasa.plan import EXPERT, PLAYED, MikasaPlan, carry_out, chosen, split
from studies.mikasa.robot import Recorded, Seen, robot
from studies.mikasa.rows import EVERY_TICK, GATED, ROWS, SIGHTS, Sight, design_of, suited
from studies.worlds.environment import FOLDER, Unavailable
from trace_memory_ros.learning.decisions.candidates import Trial
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.observation.config import ObservationConfig

ROOT = Path(__file__).parents[2]
TASK = "RememberColor3"
SHORTEST_TICKS = 25
TICKS, CUE_GONE, ASKED = 12, 2, 4
TOKENS = SIGHTS["tokens"]


def small(sight: Sight) -> Recipe:
    first = replace(sight.recipe.memory_first, stage_steps=2, check_steps=2, attempts=1)
    return replace(sight.recipe, memory_first=first, steps=2, warm_up_steps=1)


def shown(seed: int, tick: int) -> Seen:
    """A red square on grey, the same until the choices come, and a hand that points down."""
    rng = np.random.default_rng([seed, max(tick, ASKED)])
    pictures = {name: np.full((PX, PX, 3), rng.integers(256), np.uint8) for name in CAMERAS}
    for picture in pictures.values():
        picture[40:52, 60:72] = (220, 20, 30)
    proprio = np.array([0.1, 0.01 * tick, 0.3, np.pi - 0.1 if tick % 2 else 0.1 - np.pi, 0.0, 0.0, 0.04])
    return Seen(pictures, proprio.astype(np.float32))


def write_recording(file: Path, seed: int, success: bool = True) -> None:
    """A recording as the world writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    found = {"schema": RECORDED, "seed": seed, "success": success, "success_at_end": success}
    if success:
        seen = [shown(seed, tick) for tick in range(TICKS)]
        found |= {name: np.stack([one.pictures[name] for one in seen]) for name in CAMERAS}
        actions = np.zeros((TICKS, len(ACTIONS)), np.float32)
        actions[ASKED:, 1] = seed % 3 - 1.0
        found |= {"proprio": np.stack([one.proprio for one in seen]), "actions": actions}
        found |= {"cue_gone": CUE_GONE, "asked": ASKED, "answer": seed % 3, "choices": 3}
    np.savez_compressed(file, **found)


class Shown(MikasaWorld):
    """A world without a simulator: an episode shows what its seed says and succeeds at the tick before the last."""

    def __init__(self, failing: tuple[int, ...] = ()) -> None:
        self.failing, self.made, self.acted, self.seed = failing, [], [], 0

    def record(self, task: str, seed: int, file: Path) -> None:
        self.made.append(seed)
        write_recording(file, seed, seed not in self.failing)

    def check(self, task: str, seed: int) -> dict:
        return {"success": True, "at_end": seed == FIRST_SEED, "steps": TICKS}

    def start(self, task: str, seed: int) -> Seen:
        self.seed, self.acted = seed, []
        return shown(seed, 0)

    def move(self, action) -> Acted:
        self.acted.append(action)
        tick = len(self.acted)
        return Acted(shown(self.seed, tick), tick == TICKS - 1, tick == TICKS, self.seed > FIRST_SEED, 0.02, 1)


def test_names_are_the_benchmarks() -> None:
    assert names.environment_id("RememberColor3-Long") == "RememberColor3-Long-VLA-v0"
    assert len(set(names.TASKS)) == len(names.TASKS) >= 12
    assert set(study.PUBLISHED) <= set(names.TASKS)


def test_a_recording_is_a_demonstration_with_its_decision(tmp_path: Path) -> None:
    write_recording(tmp_path / "5.npz", 5)
    demo = Recorded(tmp_path / "5.npz").demonstration(TASK, robot())
    assert (demo.ticks, demo.decision_ticks, demo.answers) == (TICKS, (ASKED,), (2,))
    assert demo.actions.shape == (TICKS, len(ACTIONS)) and demo.actions[ASKED, 1] == 1.0
    assert {name: frames[0].shape for name, frames in demo.images.items()} == dict.fromkeys(CAMERAS, (PX, PX, 3))
    assert demo.stamps_ns[1] - demo.stamps_ns[0] == 50_000_000
    # The benchmark's roll jumps from one end of its range to the other; the state's does not.
    np.testing.assert_allclose(np.abs(np.diff(demo.state[:, PROPRIO.index("roll")])), 0.2, atol=1e-5)


def test_things_touched_in_turn_are_a_decision_each(tmp_path: Path) -> None:
    write_recording(tmp_path / "5.npz", 5)
    with np.load(tmp_path / "5.npz") as kept:
        several = {name: kept[name] for name in kept.files} | {"asked": [ASKED, 7, 9], "answer": [2, 0, 3]}
    np.savez(tmp_path / "6.npz", **several)
    found = Recorded(tmp_path / "6.npz")
    assert found.current and found.asked == ASKED
    demo = found.demonstration("ChainOfColors3", robot())
    assert (demo.decision_ticks, demo.answers) == ((ASKED, 7, 9), (2, 0, 3))


def test_a_failed_recording_teaches_nothing(tmp_path: Path) -> None:
    write_recording(tmp_path / "0.npz", 0, success=False)
    with pytest.raises(ValueError, match="the expert failed"):
        Recorded(tmp_path / "0.npz").demonstration(TASK, robot())


def test_the_robot_is_described_by_data() -> None:
    config = robot()
    assert config.camera_names == CAMERAS and config.state_dim == len(PROPRIO)
    assert config.state_units == ("m", "m", "m", "rad", "rad", "rad", "m")
    assert ObservationConfig.from_dict(config.to_dict()) == config
    assert not any(config.channel_moved_by(name) for name in ACTIONS)


def test_recording_goes_on_where_it_was_and_failures_are_counted(tmp_path: Path) -> None:
    first, second = Shown(failing=(1,)), Shown(failing=(1,))
    assert [one.success for one in recorded(first, tmp_path, TASK, 2)] == [True, False, True]
    assert sum(one.success for one in recorded(second, tmp_path, TASK, 4)) == 4
    assert (first.made, second.made) == ([0, 1, 2], [3, 4])
    assert len(recordings_there(tmp_path, TASK, 3)) == 4 and recordings_there(tmp_path, "RememberShape3", 3) == []


def test_an_expert_that_fails_ends_the_recording(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="solved 0 of 20"):
        list(recorded(Shown(failing=tuple(range(100))), tmp_path, TASK, 2))


def test_recordings_that_were_told_otherwise_are_made_anew(tmp_path: Path) -> None:
    first = list(recorded(Shown(), tmp_path, TASK, 3))
    with np.load(tmp_path / TASK / "1.npz") as kept:
        np.savez(tmp_path / TASK / "1.npz", **{name: kept[name] for name in kept.files if name != "schema"})
    assert len(recordings_there(tmp_path, TASK, 3)) == 1
    world = Shown()
    assert len(list(recorded(world, tmp_path, TASK, 3))) == len(first) == 3
    assert world.made == [1]


def test_splits_share_nothing_and_hold_all() -> None:
    parts = split(list(range(60)))
    assert [len(part) for part in parts] == [44, 6, 10] and sorted(one for part in parts for one in part) == list(
        range(60)
    )


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("eyes", SIGHTS)
def test_rows_differ_in_their_memory_alone(row: str, eyes: str) -> None:
    design, other = (design_of(one, SIGHTS[eyes]) for one in (row, "gru"))
    as_other = {name: getattr(other, name) for name in ("memory", "options", "depth", "window")}
    assert replace(design, **as_other) == other


def test_what_is_shown_for_a_few_ticks_is_written_at_every_tick() -> None:
    things = SIGHTS["things"]
    assert design_of("gru", things, "BlinkCountButtonPressEasy").clock == EVERY_TICK
    blinks = suited(things.recipe, "BlinkCountButtonPressEasy")
    assert (blinks.augmentation.hue, blinks.recognition_weight, blinks.memory_first.reads) == (0.0, 0.0, 6)
    assert design_of("gru", things, "ChainOfColors3").clock == EVERY_TICK
    assert design_of("gru", things, TASK) == design_of("gru", things, "RememberShape9")
    changed = suited(things.recipe, "SeqOfColors5").memory_first
    assert (changed.reads, changed.state_noise_times) == (6, 5.0)
    assert suited(things.recipe, TASK) == things.recipe


@pytest.mark.parametrize("row", GATED)
def test_a_gate_may_write_once_in_the_shortest_episode(row: str) -> None:
    design = design_of(row, SIGHTS["things"])
    updates = -(-SHORTEST_TICKS // design.clock.to_dict()["n"])
    assert updates * design.options["rho"] >= 1


def plan_of(folder: Path, sight: Sight = TOKENS, **changes) -> MikasaPlan:
    plan = MikasaPlan(folder / "out", folder / "recordings", (TASK,), ("gru",), 1, 12, 2, sight, small(sight))
    return replace(plan, **changes)


def test_another_recipe_or_number_of_demonstrations_is_another_training(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    longer = plan_of(tmp_path, recipe=TOKENS.recipe)
    others = plan_of(tmp_path, demonstrations=13), longer, plan_of(tmp_path, SIGHTS["colours"])
    others = *others, plan_of(tmp_path, episodes=3)
    folders = [one.folder(one.runs()[1]) for one in (plan, *others)]
    # More episodes are played by the same checkpoint.
    assert len(set(folders)) == 4 and folders[0] == folders[4]
    assert list(plan.canonical_seeds()) == [4242424242, 4242424243]


@pytest.mark.parametrize("eyes", SIGHTS)
def test_a_training_is_played_and_told_and_not_done_again(tmp_path: Path, eyes: str) -> None:
    plan = plan_of(tmp_path, SIGHTS[eyes])
    carry_out(plan, Shown())
    assert study.figures_of(plan)["failed"] == {}
    made = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").rglob("*.*")}
    world = Shown()
    carry_out(replace(plan, episodes=3), world)
    assert world.made == [] and len(world.acted) == TICKS and len(world.acted[0]) == len(ACTIONS)
    assert all(file.stat().st_mtime_ns == made[file] for file in made)
    figures = study.figures_of(replace(plan, episodes=3))
    found = figures["tasks"][TASK]
    assert found["recordings"] == {"recorded": 12, "failed": 0, "cue_gone_ticks": [2, 2], "asked_ticks": [4, 4]}
    gru, expert = found["rows"]["gru"], found["rows"][EXPERT]
    assert "touched" not in gru
    assert (gru["success"]["right"], gru["success_at_end"]["right"], gru["writes"]) == (3, 0, 2)
    assert (gru["at_right"]["right"], gru["at_right"]["count"], gru["beside_m"]) == (2, 3, 0.02)
    assert (expert["success"]["count"], expert["success_at_end"]["right"]) == (3, 1)
    assert gru["memory_first"][0]["held_out"]["count"] == gru["held_out_episodes"][0] == 2
    shown_table, published = list(study.tables(figures))
    assert "too few to tell" in next(iter(shown_table.columns[1].cells)) and "ELMUR 0.89" in published


def test_it_is_told_how_many_were_touched_rightly(tmp_path: Path) -> None:
    task = "ChainOfColors3"
    plan = plan_of(tmp_path, tasks=(task,), episodes=3)
    store = plan.store(Run(task, "gru", 0))
    store.write(
        "training",
        {},
        dict.fromkeys(study.TOLD, None) | {"memory_first": {"held_out": None, "named": [[1, 0], [1, 1]]}},
    )
    played = {"success": False, "success_at_end": False, "at_right": True, "beside_m": 0.5, "steps": 9, "writes": 9}
    for seed, touched in zip(plan.canonical_seeds(), (0, 2, 3), strict=True):
        store.write(f"episode_{seed}", PLAYED, played | {"touched": touched})
    figures = study.figures_of(plan)
    found = figures["tasks"][task]["rows"]["gru"]
    assert {n: one["right"] for n, one in found["touched"].items()} == {"1": 2, "2": 2, "3": 1}
    assert [one["right"] for one in found["named"]] == [2, 1]
    assert "at_right" not in found and figures["clocks"] == {task: EVERY_TICK.to_dict()}
    lines = [line for line in study.tables(figures) if isinstance(line, str)]
    assert lines[2].startswith(f"{task}: 3 touched rightly: gru 1/3")
    assert lines[3] == f"{task}: held-out decisions named, memory alone: gru 2/2, 1/2"


def test_episodes_that_several_trainings_play_are_no_more_episodes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, tasks=("RememberColor3",), episodes=4, seeds=2)
    one = {"success": True, "success_at_end": True, "at_right": True, "beside_m": 0.5, "steps": 9, "writes": 9}
    for training in range(2):
        store = plan.store(Run("RememberColor3", "gru", training))
        for seed in plan.canonical_seeds():
            store.write(f"episode_{seed}", PLAYED, one)
    found = study.figures_of(plan)["tasks"]["RememberColor3"]["rows"]["gru"]["success"]
    assert (found["right"], found["count"]) == (8, 8)
    assert found["ci95"] == pytest.approx(list(wilson_interval(4, 4)))


def test_of_presses_it_is_told_how_many_episodes_were_solved(tmp_path: Path) -> None:
    task = "BlinkCountButtonPressEasy"
    plan = plan_of(tmp_path, tasks=(task,), episodes=1)
    store = plan.store(Run(task, "gru", 0))
    # The hand's way tells what is next soon after a decision, so that naming it then tells nothing of a memory.
    first = {"held_out": {"right": 3, "count": 4}, "named": [[1, 0, 1]]}
    store.write("training", {}, dict.fromkeys(study.TOLD, None) | {"memory_first": first})
    played = {"success": True, "success_at_end": True, "at_right": True, "beside_m": 0.5, "touched": 2}
    store.write(f"episode_{FIRST_SEED}", PLAYED, played | {"steps": 9, "writes": 9})
    figures = study.figures_of(plan)
    found = figures["tasks"][task]["rows"]["gru"]
    assert found["success"]["right"] == 1 and not found.keys() & {"named", "touched", "at_right"}
    assert list(figures["recipes_step_by_step"]) == [task]


def test_auto_takes_a_row_by_the_validation_demonstrations(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, rows=("none", "first_frame", "gru"))
    right = {"none": 1, "first_frame": 4}
    for row, count in right.items():
        trial = Trial(None, Accuracy.of(count, 4)).to_plain()
        assert chosen(plan, TASK, 0) is None
        plan.store(Run(TASK, row, 0)).write("memory_first", {}, {"trial": trial})
    # What decides all rightly ends the search.
    assert chosen(plan, TASK, 0) == "first_frame"


def test_pictures_come_as_they_were_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = shown(3, 0)
    sent = {
        "pictures": [base64.b64encode(seen.pictures[name].tobytes()).decode() for name in CAMERAS],
        "proprio": seen.proprio.tolist(),
    }
    world = Shown()
    sent |= {"success": True, "done": False, "at_right": True, "beside_m": 0.03, "touched": 2}
    monkeypatch.setattr(world, "_ask", lambda what, **request: sent, raising=False)
    acted = MikasaWorld.move(world, [0.0] * len(ACTIONS))
    assert acted[1:] == (True, False, True, 0.03, 2)
    for name in CAMERAS:
        np.testing.assert_array_equal(acted.seen.pictures[name], seen.pictures[name])
    np.testing.assert_array_equal(acted.seen.proprio, seen.proprio)


def test_a_world_that_cannot_be_set_up_is_skipped_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    sizes = {"demonstrations": 2, "episodes": 1, "seeds": 1, "memory_steps": 2, "steps": 2}
    paths = {"packages": tmp_path / "taken" / "mikasa", "recordings": tmp_path}
    figures = study.run(tmp_path, True, (TASK,), ("gru",), "tokens", **sizes, device="cpu", report=False, **paths)
    (line,) = study.tables(figures)
    assert "python -m venv failed" in line


def test_a_system_without_debians_packages_is_told_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    monkeypatch.setattr(driver, "shutil", SimpleNamespace(which=lambda name: None))
    with pytest.raises(Unavailable, match="set VK_ICD_FILENAMES"):
        driver.variables(tmp_path / "vulkan")
    monkeypatch.setenv("VK_ICD_FILENAMES", "/somewhere/lvp_icd.json")
    assert driver.variables(tmp_path / "vulkan") == {}


@pytest.mark.skipif(
    not all((ROOT / FOLDER / name / "complete").exists() for name in ("mikasa", "vulkan")),
    reason="needs the packages and the driver of `trace-memory bench mikasa`",
)
def test_the_expert_solves_canonical_episodes() -> None:
    with MikasaWorld(ROOT / FOLDER / "mikasa") as world:
        assert world.task(TASK)["steps"] == 25
        assert all(world.check(task, FIRST_SEED + k)["success"] for task in (TASK, *names.COUNTED) for k in range(3))
        seen = world.start(TASK, FIRST_SEED)
        assert set(seen.pictures) == set(CAMERAS) and seen.proprio.shape == (len(PROPRIO),)
