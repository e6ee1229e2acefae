"""What a LeRobotDataset says of itself, read from its JSON alone: no pyarrow, PyAV or LeRobot."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from learning.tiny_bags import recording

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.cli.main import main
from trace_memory_ros.learning.lerobot.export import features as export_features
from trace_memory_ros.learning.lerobot.frames import Unreadable, check_file
from trace_memory_ros.learning.lerobot.layout import described, read_layout
from trace_memory_ros.learning.lerobot.source import folder_of, is_dataset, state_columns

STATE = {"dtype": "float32", "shape": [2], "names": {"motors": ["pan.pos", "grip.pos"]}}


def dataset(root: Path, features: dict[str, Any], **info: Any) -> Path:
    known = {"codebase_version": "v3.0", "fps": 30, "features": features, "total_episodes": 1, **info}
    (root / "meta").mkdir(parents=True, exist_ok=True)
    (root / "meta" / "info.json").write_text(json.dumps(known))
    return root


def features(**more: Any) -> dict[str, Any]:
    film = {"dtype": "video", "shape": [480, 640, 3], "names": ["height", "width", "channels"]}
    plain = {"observation.state": STATE, "action": {**STATE, "names": None}}
    return {**plain, "observation.images.front": film, **more}


def test_a_recorded_dataset_proposes_a_robot(tmp_path: Path) -> None:
    depth_first = {"dtype": "image", "shape": [3, 120, 160], "names": None}
    config = described(dataset(tmp_path, features(**{"observation.images.wrist.left": depth_first})))
    seen = config.observation
    assert [(c.name, c.topic) for c in seen.cameras] == [
        ("front", "camera/front/image_raw"),
        ("wrist_left", "camera/wrist_left/image_raw"),
    ]
    assert seen.state == ("joint_states.position.pan.pos", "joint_states.position.grip.pos")
    assert seen.tick_period_ms == 100 and config.branches is None
    assert config.actions is not None and config.actions.names == ("action_0", "action_1")
    assert read_layout(tmp_path).sizes == {"front": (480, 640), "wrist_left": (120, 160)}
    branch = {"dtype": "string", "shape": [1], "names": None}
    assert described(dataset(tmp_path, features(branch=branch))).branches is not None


def test_cameras_whose_names_are_alike_in_a_topic_are_all_kept(tmp_path: Path) -> None:
    film = {"dtype": "video", "shape": [480, 640, 3], "names": ["height", "width", "channels"]}
    alike = {f"observation.images.{name}": film for name in ("a-b", "a.b", "0", "\u00e9lan")}
    config = described(dataset(tmp_path, features(**alike)))
    assert [(c.name, c.topic) for c in config.observation.cameras] == [
        ("front", "camera/front/image_raw"),
        ("a_b", "camera/a_b/image_raw"),
        ("a_b_2", "camera/a_b_2/image_raw"),
        ("0", "camera/camera_0/image_raw"),
        ("\u00e9lan", "camera/_lan/image_raw"),
    ]


def test_an_export_from_here_is_described_by_its_own_configuration(tmp_path: Path) -> None:
    config = recording(cameras=2)
    root = dataset(tmp_path, features())
    (root / "meta" / "trace_memory.yaml").write_text(yaml.safe_dump({"recording": config.to_dict(), "episodes": []}))
    assert described(root) == config


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ({"grip.pos": 1, "pan.pos": 0}, ("pan.pos", "grip.pos")),
        ({"motors": ["grip", "grip"]}, ("grip", "grip_2")),
        (["pan.pos"], ("action_0", "action_1")),
    ],
)
def test_names_of_numbers_however_they_are_written(tmp_path: Path, names: Any, found: tuple[str, ...]) -> None:
    config = described(dataset(tmp_path, features(action={**STATE, "names": names})))
    assert config.actions is not None and config.actions.names == found


@pytest.mark.parametrize(
    ("fps", "period_ms"), [(50, 20), (30, 100), (24, 125), (15, 200), (33, 30), (29, 34), (12, 83), (4, 250), (3, 333)]
)
def test_a_tick_is_whole_frames_unless_that_is_far_longer_than_a_frame(
    tmp_path: Path, fps: int, period_ms: int
) -> None:
    assert described(dataset(tmp_path, features(), fps=fps)).observation.tick_period_ms == period_ms


def test_a_rate_that_is_no_whole_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"fps = 29\.97: frames are placed by a whole number"):
        read_layout(dataset(tmp_path, features(), fps=29.97))


def test_an_export_declares_every_camera_at_its_own_size() -> None:
    config = recording(cameras=2)
    first, second = config.observation.cameras
    config = replace(config, observation=replace(config.observation, cameras=(first, replace(second, image_px=40))))
    sides = {name: entry["shape"][0] for name, entry in export_features(config, "image").items() if "image" in name}
    names = [f"observation.images.{one.name}" for one in (first, second)]
    assert sides == dict(zip(names, (config.observation.image_px, 40), strict=True))
    with pytest.raises(ValueError, match=f"larger image_px for camera {first.name}"):
        export_features(config, "video")


@pytest.mark.parametrize(("reach", "unit"), [(3.1, "rad"), (98.0, "raw")])
def test_the_range_of_the_state_tells_radians_from_other_units(tmp_path: Path, reach: float, unit: str) -> None:
    root = dataset(tmp_path, features())
    stats = {"observation.state": {"min": [-reach, 0.0], "max": [reach, 0.1]}}
    (root / "meta" / "stats.json").write_text(json.dumps(stats))
    assert set(described(root).observation.state_units) == {unit}


def test_channels_find_their_numbers(tmp_path: Path) -> None:
    names = ("pan.pos", "grip.pos")
    by_name = state_columns(tmp_path, ("j.position.grip.pos", "masked.x", "j.position.pan.pos"), names)
    assert np.array_equal(by_name, [1, -1, 0])
    assert np.array_equal(state_columns(tmp_path, ("j.position.a", "j.position.b"), names), [0, 1])
    # A base that stands is masked in what is exported here, and counts for nothing on either side.
    assert np.array_equal(state_columns(tmp_path, ("masked.vx", "j.position.b"), ("masked.vx", "pan.pos")), [-1, 1])
    with pytest.raises(BagFault, match=r"has the state pan\.pos, grip\.pos; the configuration names .*bags inspect"):
        state_columns(tmp_path, ("j.position.grip.pos", "j.position.b"), names)


def test_files_that_are_not_there_are_told_apart(tmp_path: Path) -> None:
    film = tmp_path / "file-000.mp4"
    with pytest.raises(Unreadable, match="cannot be read .*copy the dataset again"):
        check_file(film)
    film.write_bytes(b"")
    with pytest.raises(Unreadable, match="is empty; copy the dataset again"):
        check_file(film)
    film.write_text("version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(Unreadable, match="was not fetched; this is a pointer of Git LFS"):
        check_file(film)
    film.write_bytes(b"\x00\x00\x00 ftypisom")
    check_file(film)


def test_sources_are_told_apart() -> None:
    assert is_dataset("lerobot:data/parts") and not is_dataset("data/parts")
    assert folder_of("lerobot:data/parts") == folder_of("data/parts") == Path("data/parts")


def test_the_command_line_names_what_it_cannot_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dataset(tmp_path / "old", features(), codebase_version="v2.1")
    assert main(["train", f"lerobot:{tmp_path / 'old'}"]) == 1
    assert "is of format v2.1, LeRobot 0.4 reads v3.0: convert it" in capsys.readouterr().err
    assert main(["bags", "inspect", f"lerobot:{tmp_path / 'nothing'}"]) == 1
    assert "is not a LeRobotDataset" in capsys.readouterr().err
    assert main(["train", f"lerobot:{tmp_path / 'old'}", str(tmp_path)]) == 1
    assert "bags need --config FILE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("policy.family=akt", "policy family 'akt' is unknown here"),
        ("policy.options.haeds=2", "policy.options of family 'act': unknown key 'haeds'; did you mean 'heads'"),
        ("memory.among=[gru, traec]", "memory mechanism 'traec' is unknown: did you mean 'trace'"),
        ("memory={name: gru, options: {hiden: 3}}", "unknown key 'hiden'; did you mean 'hidden'"),
    ],
)
def test_what_nobody_brings_is_refused_before_anything_is_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: str, said: str
) -> None:
    dataset(tmp_path / "parts", features())
    assert main(["train", f"lerobot:{tmp_path / 'parts'}", "--set", asked, "--out", str(tmp_path / "out")]) == 1
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_policy_that_can_only_be_run_is_refused_before_anything_is_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "stranger-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[trace_memory_ros.policies]\nforeign = builtins:dict\n")
    monkeypatch.syspath_prepend(package.parent)
    dataset(tmp_path / "parts", features())
    words = ["train", f"lerobot:{tmp_path / 'parts'}", "--policy", "foreign", "--out", str(tmp_path / "out")]
    assert main(words) == 1
    assert "'foreign' can be run here but not trained" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
