"""`trace-memory train BAGS/` end to end on a handful of tiny bags, and `demonstrate`'s refusals."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning.tiny_bags import ACTIONS, JOINTS, config_file, places, recording, write_bag, write_bags
from safetensors.torch import save_file

from trace_memory_ros.bags.recording import BESIDE_CHECKPOINT, RecordingConfig
from trace_memory_ros.cli.evaluate_bags import recording_of
from trace_memory_ros.cli.main import main
from trace_memory_ros.learning.bags.recordings import recordings_under
from trace_memory_ros.learning.bags.training import read_bags
from trace_memory_ros.learning.run_config import FILE, read_file
from trace_memory_ros.learning.selection import FOLDER, memory_file
from trace_memory_ros.measure.summary import read_summary
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.clock import EveryTicks


def arguments(folder: Path, *more: str) -> list[str]:
    short = ["--memory", "none", "--steps", "3", "--chunk", "4", "--held-out", "0.34"]
    return ["train", *places(folder), *short, *more]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_bags(tmp_path / "bags", 3, recording(cameras=2))
    config_file(tmp_path, recording(cameras=2))
    return tmp_path


def test_bags_become_a_checkpoint_and_a_bad_one_is_listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bag(folder / "bags" / "cut_off", 9, 0, recording(cameras=2))
    (file,) = (folder / "bags" / "cut_off").glob("*.mcap")
    file.write_bytes(file.read_bytes()[:300])
    assert main(arguments(folder)) == 0
    said = capsys.readouterr().out
    assert "cut_off: unusable" in said
    assert "1 of 7 recordings cannot be used" in said
    assert "left 2, right 2" in said
    figures = read_summary(folder / "out").figures
    assert figures["training_episodes"] == 4 and figures["held_out_episodes"] == 2
    assert [Path(fault["bag"]).name for fault in figures["failed_bags"]] == ["cut_off"] * len(figures["failed_bags"])
    config = load(folder / "out").config
    assert config.observation == recording(cameras=2).observation
    assert config.actions == recording(cameras=2).actions
    assert config.policy is not None and tuple(config.policy.options["action_names"]) == ACTIONS
    assert config.task == "bags"


def test_what_was_what_in_the_bags_is_kept_for_evaluation_and_replay(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder)) == 0
    kept, bag = folder / "out" / BESIDE_CHECKPOINT, folder / "bags" / "00_0"
    assert RecordingConfig.load(kept) == recording(cameras=2) == recording_of(None, [str(bag)], folder / "out")
    replay = ["replay", str(bag), "--checkpoint", str(folder / "out"), "--summary", str(folder / "replayed")]
    assert main([*replay, "--no-bag"]) == 0
    kept.write_text("observation: 3")
    assert main([*replay, "--no-bag"]) == 1
    assert BESIDE_CHECKPOINT in capsys.readouterr().err


def test_relative_actions_are_learned_and_kept(folder: Path) -> None:
    given = recording(cameras=2)
    assert given.actions is not None
    (part,) = given.actions.parts
    joints = replace(part, select=JOINTS, relative=True)
    config_file(folder, replace(given, actions=ActionConfig((joints,))))
    assert main(arguments(folder)) == 0
    loaded = load(folder / "out")
    assert loaded.config.actions == ActionConfig((joints,))
    bags, cache = recordings_under([folder / "bags"]), folder / "cache"
    relative, _ = read_bags(bags, replace(given, actions=ActionConfig((joints,))), cache)
    absolute, _ = read_bags(bags, given, cache)
    for one, other in zip(relative.episodes, absolute.episodes, strict=True):
        columns = [ACTIONS.index(joint) for joint in JOINTS]
        states = one.state[:, [given.observation.state.index(f"joints.position.{joint}") for joint in JOINTS]]
        np.testing.assert_allclose(one.actions, other.actions[:, columns] - states, atol=1e-6)


def test_commands_by_another_clock_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = recording(cameras=2)
    assert given.actions is not None
    received = ActionConfig(tuple(replace(part, stamp="received") for part in given.actions.parts))
    config_file(folder, replace(given, actions=received, log_offset_ms=5000))
    assert main(arguments(folder)) == 1
    said = capsys.readouterr()
    assert "the recorder's clock is 5.0 s behind the header stamps of eye_0 beyond log_offset_ms: 5000" in said.out
    assert "nothing to learn from" in said.err and "or log_offset_ms: 0" in said.err


def test_a_run_is_resumed_where_it_was(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(folder)) == 0
    first = read_summary(folder / "out").figures["model_id"]
    tensors = load(folder / "out").tensors
    assert main(arguments(folder, "--resume")) == 0
    assert "resumed joint phase at step 3 of 3" in capsys.readouterr().out
    run = (folder / "out" / "run.yaml").read_bytes()
    assert first != ""
    again = load(folder / "out").tensors
    assert all((tensors[name] == again[name]).all() for name in tensors)
    with_other = [word if word != "3" else "5" for word in arguments(folder, "--resume")]
    assert main(with_other) == 1
    assert "written by another run" in capsys.readouterr().err
    assert (folder / "out" / "run.yaml").read_bytes() == run
    assert main(arguments(folder, "--resume", "--split-seed", "3")) == 1
    assert "episodes.training: " in capsys.readouterr().err
    write_bags(folder / "bags", 4, recording(cameras=2))
    assert main(arguments(folder, "--resume")) == 1
    assert "episodes.training: 4 of SHA-256" in capsys.readouterr().err


def test_a_run_does_not_go_on_with_other_contents_of_its_episodes(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder, "--clock", "every:2")) == 0
    given = recording(cameras=2)
    turned = replace(given.observation, state=given.observation.state[::-1], path=given.observation.path[::-1])
    config_file(folder, replace(given, observation=turned))
    assert main(arguments(folder, "--clock", "every:2", "--resume")) == 1
    assert "observation.state: " in capsys.readouterr().err
    config_file(folder, given)
    write_bag(folder / "bags" / "00_0", 17, 0, given)
    assert main(arguments(folder, "--clock", "every:2", "--resume")) == 1
    assert "numbers.training: 4 of SHA-256" in capsys.readouterr().err


def test_without_annotations_it_says_what_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bags(tmp_path / "bags", 3, recording(annotated=False))
    config_file(tmp_path, recording(annotated=False))
    assert main(arguments(tmp_path, "--clock", "every:2", "--task", "shelf", "--episodes", "3")) == 0
    said = capsys.readouterr().out
    assert "no branch is annotated" in said
    assert "held-out chunk error" in said
    assert "branch accuracy:" not in said
    assert read_summary(tmp_path / "out").figures["held_out_branch_accuracy"] is None
    assert load(tmp_path / "out").config.task == "shelf"


def test_the_file_beside_a_checkpoint_takes_the_run_back(folder: Path) -> None:
    recipe = folder / "mine.yaml"
    recipe.write_text(
        "seed: 5\nmemory: {name: gru, options: {hidden: 12}}\nclock: {kind: every, n: 3}\n"
        "recipe: {learning_rate: 5e-4, branch_reach: 3, augmentation: {shift_px: 1}, "
        "memory_first: {clock_factors: [2, 1], delay_factors: [2], stage_steps: 3, check_steps: 2, settle_steps: 0, "
        "attempts: 1}}\n"
    )
    words = [*arguments(folder), "--recipe", str(recipe), "--set", "recipe.augmentation.shift_px=0"]
    words[words.index("none")] = "gru"
    assert main(words) == 0
    values = read_file(folder / "out" / FILE)
    assert (values["seed"], values["recipe"]["steps"], values["recipe"]["branch_reach"]) == (5, 3, 3)
    assert values["recipe"]["augmentation"]["shift_px"] == 0
    assert values["memory"].pop("among") == ["none", "first_frame", "gru+gate", "gru", "gru+cache"]
    assert values["memory"] == {"name": "gru", "options": {"hidden": 12}, "width": 64, "slots": 8}
    first = load(folder / "out")
    back = ["train", str(folder / "bags"), "--config", str(folder / "observation.yaml"), "--out", str(folder / "d")]
    assert main([*back, "--cache", str(folder / "cache"), "--recipe", str(folder / "out" / FILE)]) == 0
    assert read_file(folder / "d" / FILE) == read_file(folder / "out" / FILE)
    again = load(folder / "d")
    assert first.config.clock == again.config.clock == EveryTicks(3)
    assert all((first.tensors[name] == again.tensors[name]).all() for name in first.tensors)


FAST = (
    "recipe.memory_first={clock_factors: [2], delay_factors: [], stage_steps: 2, check_steps: 2, settle_steps: 0}",
    "recipe.memory_first.attempts=1",
)


def remembering(folder: Path) -> list[str]:
    words = [*arguments(folder, "--depth", "1"), *(word for value in FAST for word in ("--set", value))]
    words[words.index("none")] = "trace"
    return words


def test_few_episodes_are_judged_by_folds_and_all_are_trained_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bags(tmp_path / "bags", 4, recording())
    config_file(tmp_path, recording())
    assert main([*remembering(tmp_path), "--noise", "10,1"]) == 0
    said = capsys.readouterr().out
    assert "2 decisions would be held out, fewer than 20" in said
    assert "fold 4, trace, noise x10: train" in said and "fold 4, trace: train" in said
    assert "too few to tell" in said and "held-out branch accuracy" not in said
    figures = read_summary(tmp_path / "out").figures
    assert (figures["training_episodes"], figures["held_out_episodes"]) == (8, 0)
    folded = figures["cross_validation"]
    assert (folded["folds"], folded["accuracy"]["count"], folded["accuracy"]["claimed"]) == (4, 8, False)
    assert main([*remembering(tmp_path), "--noise", "10,1", "--resume"]) == 0
    assert read_summary(tmp_path / "out").figures["cross_validation"] == folded
    noise = read_file(tmp_path / "out" / FILE)["recipe"]["augmentation"]["signature_noise"]
    assert noise == pytest.approx(0.05 * folded["noise"])


AMONG = ("--memory", "auto", "--set", "memory.among=[first_frame, gru]")


def test_the_memory_is_chosen_by_folds_where_episodes_are_few(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bags(tmp_path / "bags", 4, recording())
    config_file(tmp_path, recording())
    words = [*remembering(tmp_path), *AMONG, "--set", "recipe.memory_first.delay_factors=[2]"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "fold 4, first_frame: train" in said and "after longer delays" in said
    folded = read_summary(tmp_path / "out").figures["cross_validation"]
    assert folded["accuracy"]["count"] == 8 and folded["memory"] in ("first_frame", "gru")
    assert {one["count"] for one in folded["tried"]} == {16}
    assert read_file(tmp_path / "out" / FILE)["memory"]["name"] == folded["memory"]


def test_the_memory_is_chosen_by_validation_episodes_and_not_trained_again(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [*remembering(folder), *AMONG, "--no-cross-validation", "--validation", "0.34"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "validation episodes, first_frame: train" in said and ", and it is the simplest" in said
    figures = read_summary(folder / "out").figures
    assert {one["held_out"]["count"] for one in figures["selection"]["tried"]} == {2}
    assert (figures["memory_steps"], figures["held_out_episodes"]) == (0, 2)
    taken = load(folder / "out")
    assert taken.config.memory.name == figures["selection"]["memory"]

    def never(*_: object, **__: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("trace_memory_ros.learning.selection.learn_memory", never)
    assert main([*words, "--resume"]) == 0
    assert all((taken.tensors[name] == load(folder / "out").tensors[name]).all() for name in taken.tensors)


def test_where_nothing_is_decided_the_memory_is_chosen_by_its_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bags(tmp_path / "bags", 3, recording(annotated=False))
    config_file(tmp_path, recording(annotated=False))
    assert main([*remembering(tmp_path), *AMONG, "--validation", "0.34", "--clock", "every:2"]) == 0
    said = capsys.readouterr().out
    assert "validation episodes, gru: train None, others None, chunk error" in said
    assert "what else was tried gains little over it" in said
    selection = read_summary(tmp_path / "out").figures["selection"]
    assert [one["memory"] for one in selection["tried"]] == ["first_frame", "gru"]


def test_without_validation_episodes_the_usual_memory_is_taken(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*remembering(folder), *AMONG, "--no-cross-validation", "--validation", "0"]) == 0
    assert "memory gru: no episode is there to choose by, raise bags.validation" in capsys.readouterr().out
    first = load(folder / "out")
    assert first.config.memory.name == "gru"
    # A memory that an earlier run kept there may know what is held out now.
    kept = memory_file(folder / "out" / FOLDER, "gru")
    kept.parent.mkdir(exist_ok=True)
    save_file({name: torch.zeros_like(value) for name, value in first.tensors.items()}, kept)
    assert main([*remembering(folder), *AMONG, "--no-cross-validation", "--validation", "0"]) == 0
    again = load(folder / "out")
    assert all((first.tensors[name] == again.tensors[name]).all() for name in first.tensors)


def test_without_folds_it_says_that_it_cannot_know(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*remembering(folder), "--no-cross-validation"]) == 0
    said = capsys.readouterr().out
    assert "2 decisions are held out, fewer than 20: how well this decides on other episodes stays unknown" in said
    assert "held-out branch accuracy, never looked at before" in said and "/2 right, too few to tell" in said
    assert read_summary(folder / "out").figures["cross_validation"] is None


@pytest.mark.parametrize(
    ("sides", "said"),
    [((0, 0, 0, 0), "every branch has the answer 'left'"), ((0, 0, 0, 1), "fewer than 3 episodes have the answer")],
)
def test_answers_that_do_not_vary_are_named(
    sides: tuple[int, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for scene, side in enumerate(sides):
        write_bag(tmp_path / "bags" / str(scene), scene, side, recording())
    config_file(tmp_path, recording())
    assert main(arguments(tmp_path)) == 0
    assert said in capsys.readouterr().out


def test_one_episode_is_refused_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bag(tmp_path / "bags" / "only", 0, 0, recording())
    config_file(tmp_path, recording())
    assert main(arguments(tmp_path)) == 1
    assert "1 episode of 1 scene: a held-out split needs at least two scenes" in capsys.readouterr().err


def test_training_from_bags_loads_no_simulator(folder: Path) -> None:
    words = arguments(folder)
    code = f"import sys; from trace_memory_ros.cli.main import main; assert not main({words!r}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert "torch" in loaded
    assert {"mujoco", "trace_memory_ros.arm", "rclpy"} & set(loaded) == set()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (["--clock", "often"], "use path:LENGTH"),
        (["--held-out", "2"], "held-out share is 2.0"),
        (["--chunk", "0"], "policy.chunk = 0"),
        (["--episodes", "0"], "train on at least 1"),
        (["--set", "memory.slot=4"], "unknown key 'slot'; did you mean 'slots'?"),
        (["--set", "recipe.steps=many"], "recipe.steps = 'many': must be an integer"),
        (["--set", "memory"], "write KEY=VALUE"),
        (["--recipe", "nowhere.yaml"], "nowhere.yaml cannot be read"),
        (["--recipe", "weights/origin_none/model.safetensors"], "model.safetensors cannot be read as a run's"),
        (["--threads", "0"], "--threads is 0: give at least 1"),
        (["--split-seed", "-1"], "bags.split_seed = -1: must be an integer, at least 0"),
    ],
)
def test_wrong_options_are_one_line(
    folder: Path, change: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(folder, *change)) == 1
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("start", "reason"),
    [("nowhere", "nowhere/config.yaml cannot be read"), ("weights/origin_trace_diffusion", "is of family 'diffusion'")],
)
@pytest.mark.parametrize("source", ["bags", "task"])
def test_a_policy_to_start_from_is_opened_before_anything_is_done(
    tmp_path: Path, source: str, start: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bags").mkdir()
    config_file(tmp_path, recording())
    words = arguments(tmp_path) if source == "bags" else ["train", "colour", "--out", str(tmp_path / "out")]
    assert main([*words, "--policy-from", start, "--demos", str(tmp_path / "demos")]) == 1
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "demos").exists() and not (tmp_path / "out").exists()


def test_bags_need_a_configuration_and_must_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(tmp_path)]) == 1
    assert "need --config" in capsys.readouterr().err
    assert main(["train", str(tmp_path / "nowhere")]) == 1
    assert "or one of the tasks" in capsys.readouterr().err
    config_file(tmp_path, recording())
    assert main(["train", str(tmp_path), "--config", str(tmp_path / "observation.yaml")]) == 1
    assert "holds no bag" in capsys.readouterr().err
