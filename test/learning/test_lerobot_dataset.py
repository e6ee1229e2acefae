"""Bags to a LeRobotDataset and back: values, stamps, branches, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
import yaml
from learning.tiny_bags import BRANCH_TICK, START_NS, TICKS, config_file, recording, write_bag
from policies.lerobot_examples import SMALL

from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.cli.main import main
from trace_memory_ros.learning.lerobot.export import (
    Exported,
    ExportOptions,
    export,
    features,
    frames_per_second,
    stretches,
)
from trace_memory_ros.learning.lerobot.importing import CONFIG, import_dataset
from trace_memory_ros.learning.lerobot.layout import Layout, described, read_layout, recording_of
from trace_memory_ros.learning.lerobot.source import DatasetSource, episodes_of
from trace_memory_ros.observation.frames import stacked
from trace_memory_ros.policies.lerobot.install import LerobotMissing, lerobot
from trace_memory_ros.policies.lerobot.runner import LerobotRunner

try:
    lerobot("lerobot.datasets.lerobot_dataset")
except LerobotMissing as missing:
    pytest.skip(str(missing), allow_module_level=True)

EVERY = slice(None)
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "lerobot_with_memory.py"
TASK = "go where the colour said"


def bags(folder: Path, config: RecordingConfig, lost: tuple[int, ...] = ()) -> list[BagEpisode]:
    """Two decoded episodes, the second without joints at the ticks `lost`."""
    found = []
    for side in (0, 1):
        write_bag(folder / f"bag_{side}", 3, side, config, lost if side else ())
        found += decode_bag(folder / f"bag_{side}", config)[0]
    return found


def there_and_back(
    folder: Path, episodes: list[BagEpisode], config: RecordingConfig, storage: str
) -> tuple[list[BagEpisode], RecordingConfig]:
    """The episodes after a detour through LeRobot."""
    export(episodes, config, ExportOptions("me/tiny", folder / "dataset", TASK, storage))
    written = list(import_dataset(folder / "dataset", folder / "back"))
    again = RecordingConfig.load(folder / "back" / CONFIG)
    return [episode for bag in written for episode in decode_bag(bag, again)[0]], again


@pytest.mark.parametrize("base", [False, True])
def test_values_and_stamps_survive_exactly_with_images(base: bool, tmp_path: Path) -> None:
    config = recording(cameras=2, base=base)
    before = bags(tmp_path, config)
    after, again = there_and_back(tmp_path, before, config, "image")
    assert len(again.observation.state) == len(config.observation.state)
    assert any(again.observation.masked) is (not base)
    assert len(after) == 2
    for one, other in zip(before, after, strict=True):
        assert other.ticks == TICKS and other.usable.all()
        assert np.array_equal(stacked(one.images, EVERY), stacked(other.images, EVERY))
        assert np.array_equal(one.state.astype(np.float32), other.state)
        assert one.actions is not None and np.array_equal(one.actions, other.actions)  # type: ignore[arg-type]
        assert one.action_names == other.action_names and one.branches == other.branches
        assert np.array_equal(one.stamps_ns, other.stamps_ns)
        assert other.branches[0].tick == BRANCH_TICK


def test_videos_keep_everything_but_the_last_bits_of_colours(tmp_path: Path) -> None:
    config = recording()
    with pytest.raises(ValueError, match="image_px = 16 is less than 32, too small for videos: choose storage image"):
        features(config, "video")
    config = replace(config, observation=replace(config.observation, image_px=48))
    before = bags(tmp_path, config)
    after, _ = there_and_back(tmp_path, before, config, "video")
    assert len(after) == 2
    for one, other in zip(before, after, strict=True):
        assert np.array_equal(one.state.astype(np.float32), other.state)
        assert np.array_equal(one.stamps_ns, other.stamps_ns)
        sent, got = stacked(one.images, EVERY), stacked(other.images, EVERY)
        error = np.abs(sent.astype(int) - got)
        assert 0 < error.mean() < 8
        shown, noise = got[:4, 0, 12:36, 12:36].mean((0, 1, 2)), got[4:].mean((0, 1, 2, 3))
        assert np.abs(shown - sent[:4, 0, 12:36, 12:36].mean((0, 1, 2))).max() < 12
        assert np.abs(noise - sent[4:].mean((0, 1, 2, 3))).max() < 4


def test_lerobot_reads_the_dataset_as_its_own(tmp_path: Path) -> None:
    config = recording()
    (first, second) = bags(tmp_path, config)
    export([first, second], config, ExportOptions("me/tiny", tmp_path / "dataset", TASK))
    dataset = lerobot("lerobot.datasets.lerobot_dataset").LeRobotDataset(
        "me/tiny", root=tmp_path / "dataset", delta_timestamps={"action": [0.0, 0.1, 0.2]}
    )
    assert (dataset.num_episodes, dataset.num_frames, dataset.fps) == (2, 2 * TICKS, 10)
    frame = dataset[TICKS + 2]
    assert frame["task"] == TASK and int(frame["frame_index"]) == 2
    assert abs(float(frame["timestamp"]) - 0.2) < 1e-6
    assert second.actions is not None
    assert np.array_equal(frame["action"].numpy(), second.actions[2:5])
    assert np.array_equal((frame["observation.images.eye_0"] * 255).round().numpy().astype(np.uint8).transpose(1, 2, 0),
                          stacked(second.images, 2)[0])  # fmt: skip
    assert dataset.meta.features["observation.state"]["names"] == list(config.observation.state)


def test_frames_of_any_rate_lie_on_its_grid(tmp_path: Path) -> None:
    config = recording(annotated=False)
    export(bags(tmp_path, config), config, ExportOptions("me/tiny", tmp_path / "dataset", TASK))
    (tmp_path / "dataset" / "meta" / "trace_memory.yaml").unlink()
    info = tmp_path / "dataset" / "meta" / "info.json"
    info.write_text(info.read_text().replace('"fps": 10', '"fps": 30'))
    (bag, _) = import_dataset(tmp_path / "dataset", tmp_path / "back")
    again = RecordingConfig.load(tmp_path / "back" / CONFIG)
    assert again.observation.tick_period_ms == 100
    frames = replace(again, observation=replace(again.observation, tick_period_ms=33))
    (episode,) = decode_bag(bag, frames)[0]
    stamps = np.unique(episode.input_stamps_ns)
    assert np.abs(stamps * 1e-9 - (1.0 + np.arange(len(stamps)) / 30)).max() < 1e-9
    (coarse,) = decode_bag(bag, again)[0]
    assert np.array_equal(coarse.stamps_ns, 1_000_000_000 + 100_000_000 * np.arange(coarse.ticks))
    assert coarse.ticks == TICKS // 3


def test_an_episode_with_a_gap_is_left_out_or_becomes_two(tmp_path: Path) -> None:
    config = recording()
    config = replace(
        config,
        observation=replace(
            config.observation,
            streams=tuple(replace(s, stale_after_ms=150.0) for s in config.observation.streams),
        ),
    )
    lost = (10, 11, 12)
    episodes = bags(tmp_path, config, lost)
    refused = export(episodes, config, ExportOptions("me/tiny", tmp_path / "refused", TASK))
    assert (refused.episodes, refused.frames) == (1, TICKS)
    assert len(refused.left_out) == 1 and "1 gaps, the first at tick 11" in refused.left_out[0]
    split = export(episodes, config, ExportOptions("me/tiny", tmp_path / "split", TASK, gaps="split"))
    assert split == Exported(3, 2 * TICKS - 2, 2, [])
    kept = yaml.safe_load((tmp_path / "split" / "meta" / "trace_memory.yaml").read_text())["episodes"]
    assert [episode["first_tick"] for episode in kept] == [0, 0, 13]
    assert [episode["first_stamp_ns"] - START_NS for episode in kept] == [0, 0, 1_300_000_000]
    assert [episode["branches"] for episode in kept[1:]] == [[], [{"tick": BRANCH_TICK - 13, "label": "right"}]]


def test_the_command_line_goes_there_and_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = recording()
    for side in (0, 1):
        write_bag(tmp_path / "bags" / f"bag_{side}", 3, side, config)
    there = ["bags", "to-lerobot", str(tmp_path / "bags"), "--config", str(config_file(tmp_path / "c", config))]
    there += ["--repo-id", "me/tiny", "--root", str(tmp_path / "dataset"), "--task", TASK]
    assert main(there) == 0
    assert f"2 episodes, {2 * TICKS} frames" in capsys.readouterr().out
    assert main(there) == 1
    assert "exists already: LeRobot writes datasets to new folders" in capsys.readouterr().err
    assert main(["bags", "from-lerobot", str(tmp_path / "dataset"), "--out", str(tmp_path / "back")]) == 0
    assert main(["bags", "check", str(tmp_path / "back"), "--config", str(tmp_path / "back" / CONFIG)]) == 0
    assert "2 ok" in capsys.readouterr().out


def test_what_is_no_dataset_is_refused_with_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a LeRobotDataset"):
        read_layout(tmp_path)
    (tmp_path / "meta").mkdir()
    info = tmp_path / "meta" / "info.json"
    known = {"codebase_version": "v2.1", "fps": 30, "features": {}}
    info.write_text(json.dumps(known))
    with pytest.raises(ValueError, match=r"is of format v2\.1, LeRobot 0\.4 reads v3\.0: convert it"):
        read_layout(tmp_path)
    state = {"dtype": "float32", "shape": [2], "names": {"motors": ["a", "b"]}}
    info.write_text(json.dumps({**known, "codebase_version": "v3.0", "features": {"observation.state": state}}))
    with pytest.raises(ValueError, match=r"lacks action, a camera: it has observation\.state"):
        read_layout(tmp_path)
    more = {"action": {**state, "names": None}, "observation.image": {"dtype": "video", "shape": [4, 4, 3]}}
    features = {"observation.state": state, **more}
    info.write_text(json.dumps({**known, "codebase_version": "v3.0", "features": features}))
    want = Layout(30, {"image": "observation.image"}, ("a", "b"), ("action_0", "action_1"), {"image": (4, 4)})
    assert read_layout(tmp_path) == want
    assert recording_of(want, True, {}).observation.state == ("joint_states.position.a", "joint_states.position.b")


def test_a_tick_period_that_is_no_whole_rate_is_refused() -> None:
    config = recording()
    slow = replace(config, observation=replace(config.observation, tick_period_ms=33))
    with pytest.raises(ValueError, match="tick_period_ms = 33 is 30.3 frames per second"):
        frames_per_second(slow)
    assert frames_per_second(config) == 10


def test_stretches_are_found_at_both_ends() -> None:
    assert stretches(np.array([1, 1, 0, 1, 0, 0, 1], bool)) == [range(2), range(3, 4), range(6, 7)]
    assert stretches(np.zeros(3, bool)) == []


def recorded(root: Path, storage: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two episodes as `lerobot-record` writes them, and a feature of branches; the states and images that they hold."""
    rng = np.random.default_rng(0)
    film = {"dtype": storage, "shape": (48, 64, 3), "names": ["height", "width", "channels"]}
    numbers = {"dtype": "float32", "shape": (2,), "names": ["pan.pos", "grip.pos"]}
    wanted = {"observation.state": numbers, "action": numbers, "observation.images.front": film}
    wanted["branch"] = {"dtype": "string", "shape": (1,), "names": None}
    factory = lerobot("lerobot.datasets.lerobot_dataset").LeRobotDataset
    dataset = factory.create("me/parts", fps=30, features=wanted, root=root, use_videos=storage == "video")
    told = []
    for side in ("left", "right"):
        state = rng.normal(size=(45, 2)).astype(np.float32)
        shown = np.repeat(rng.integers(0, 256, (45, 3, 4, 3)), 16, 1).repeat(16, 2).astype(np.uint8)
        for k in range(45):
            frame = {"observation.state": state[k], "action": -state[k], "observation.images.front": shown[k]}
            dataset.add_frame(frame | {"branch": side if k >= 30 else "", "task": TASK})
        dataset.save_episode(parallel_encoding=False)
        told.append((state, shown))
    dataset.finalize()
    return told


@pytest.mark.parametrize("storage", ["image", "video"])
def test_what_lerobot_recorded_is_read_frame_by_frame(tmp_path: Path, storage: str) -> None:
    root = tmp_path / "parts"
    told = recorded(root, storage)
    config = described(root)
    assert config.observation.tick_period_ms == 100 and config.branches is not None
    config = replace(config, observation=replace(config.observation, image_px=64))
    for path, (state, shown), side in zip(episodes_of(f"lerobot:{root}"), told, ("left", "right"), strict=True):
        (episode,), verdict = DatasetSource().decode(path, config)
        assert verdict.ok and episode.ticks == 15 and [(b.tick, b.label) for b in episode.branches] == [(10, side)]
        assert np.array_equal(episode.state, state[::3])
        assert episode.actions is not None and np.array_equal(episode.actions, -state[::3])
        seen = np.stack([cv2.resize(picture, (64, 64), interpolation=cv2.INTER_AREA) for picture in shown[::3]])
        error = np.abs(episode.images["front"][:].astype(int) - seen).mean()
        assert error == 0 if storage == "image" else 0 < error < 12


def test_a_lerobot_policy_gets_the_memory_of_its_own_dataset(tmp_path: Path) -> None:
    """docs/examples/lerobot_with_memory.py: a memory of the dataset and LeRobot's ACT, in one folder that runs."""
    root, config = tmp_path / "parts", tmp_path / "observation.yaml"
    recorded(root, "image")
    proposal = described(root)
    small = replace(proposal, observation=replace(proposal.observation, image_px=16, thumbnail_px=8))
    config.write_text(yaml.safe_dump(small.to_dict()))
    short = [
        "--memory",
        "none",
        "--steps",
        "2",
        "--chunk",
        "4",
        "--held-out",
        "0.5",
        "--cache",
        str(tmp_path / "cache"),
    ]
    asked = ["train", f"lerobot:{root}", "--config", str(config), "--out", str(tmp_path / "memory")]
    assert main([*asked, *short]) == 0
    kinds, factory = lerobot("lerobot.configs.types"), lerobot("lerobot.policies.factory")
    feature, kind = kinds.PolicyFeature, kinds.FeatureType
    seen = {
        "observation.images.front": feature(kind.VISUAL, (3, 48, 64)),
        "observation.state": feature(kind.STATE, (2,)),
    }
    act = factory.make_policy_config(
        "act", device="cpu", input_features=seen, output_features={"action": feature(kind.ACTION, (2,))}, **SMALL["act"]
    )
    stats = lerobot("lerobot.datasets.lerobot_dataset").LeRobotDatasetMetadata("parts", root=root).stats
    base = factory.get_policy_class("act")(act)
    for part in (base, *factory.make_pre_post_processors(act, dataset_stats=stats)):
        part.save_pretrained(tmp_path / "act")
    given = [str(tmp_path / name) for name in ("parts", "memory", "act", "both")]
    command = [sys.executable, str(EXAMPLE), *given, "--steps", "3", "--batch", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"loss \d+\.\d+ to \d+\.\d+; written to", done.stdout)
    runner = LerobotRunner.from_folder(tmp_path / "both")
    assert runner.action_names == ("pan.pos", "grip.pos") and runner.checkpoint.memory_model_id
