"""A LeRobotDataset as a source of episodes: values, ticks, branches, the cache, training and every kind of damage."""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import yaml
from learning.tiny_dataset import BRANCH_FRAME, FRAMES, JOINTS, SIZES, parquet, pyarrow, write_dataset

from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.cache import load_episodes
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.faults import BagVerdict
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.cli.bags_things import PICTURE
from trace_memory_ros.cli.main import main
from trace_memory_ros.files import outputs
from trace_memory_ros.learning.bags.recordings import recordings_under
from trace_memory_ros.learning.bags.training import read_bags
from trace_memory_ros.learning.lerobot.dataset import Dataset
from trace_memory_ros.learning.lerobot.frames import Unreadable
from trace_memory_ros.learning.lerobot.importing import CONFIG, import_dataset
from trace_memory_ros.learning.lerobot.layout import SIDECAR, described
from trace_memory_ros.learning.lerobot.source import DatasetSource, episodes_of
from trace_memory_ros.runtime.checkpoint import load

PX = 8
SHORT = ["--memory", "none", "--steps", "3", "--chunk", "4", "--held-out", "0.34"]


def recording_of(root: Path, **changes: Any) -> RecordingConfig:
    proposal = described(root)
    sizes = {"image_px": PX, "thumbnail_px": PX}
    return replace(proposal, observation=replace(proposal.observation, **{**sizes, **changes}))


def decoded(root: Path, recording: RecordingConfig) -> list[BagEpisode]:
    found = []
    for path in episodes_of(f"lerobot:{root}"):
        episodes, verdict = DatasetSource().decode(path, recording)
        assert verdict.ok, str(verdict)
        found += episodes
    return found


def only_verdict(root: Path, recording: RecordingConfig, episode: int = 0) -> BagVerdict:
    episodes, verdict = DatasetSource().decode(episodes_of(f"lerobot:{root}")[episode], recording)
    assert not episodes
    return verdict


def test_frames_become_ticks_with_the_datasets_own_values(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "parts", (0, 1))
    rows = parquet.read_table(root / "data/chunk-000/file-000.parquet").to_pylist()
    first, second = decoded(root, recording_of(root))
    assert (first.name, second.name) == ("parts#0", "parts#1")
    for index, episode in enumerate((first, second)):
        mine = [row for row in rows if row["episode_index"] == index]
        assert episode.ticks == FRAMES and episode.usable.all() and set(episode.images) == set(SIZES)
        assert np.array_equal(episode.state, [row["observation.state"] for row in mine])
        assert np.array_equal(episode.actions, np.float32([row["action"] for row in mine]))  # type: ignore[arg-type]
        assert np.array_equal(np.diff(episode.stamps_ns), np.full(FRAMES - 1, 100_000_000))
        for k in (0, 7):
            png = np.frombuffer(mine[k]["observation.images.front"]["bytes"], np.uint8)
            seen = cv2.resize(cv2.imdecode(png, 1)[..., ::-1], (PX, PX), interpolation=cv2.INTER_AREA)
            assert np.array_equal(episode.images["front"][k], seen)
    assert [(b.tick, b.label) for b in (*first.branches, *second.branches)] == [
        (BRANCH_FRAME, "left"),
        (BRANCH_FRAME, "right"),
    ]


def test_actions_that_were_exported_less_the_state_are_not_taken_from_it_twice(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "parts", (0, 1))
    rows = parquet.read_table(root / "data/chunk-000/file-000.parquet").to_pylist()
    written, state = (np.array([row[key] for row in rows[:FRAMES]]) for key in ("action", "observation.state"))
    plain = recording_of(root)
    assert plain.actions is not None
    parts = tuple(replace(part, relative=True) for part in plain.actions.parts)
    relative = replace(plain, actions=replace(plain.actions, parts=parts))
    (root / SIDECAR).write_text(yaml.safe_dump({"recording": relative.to_dict(), "episodes": []}))
    assert described(root) == relative
    (first, _), (absolute, _) = decoded(root, relative), decoded(root, plain)
    assert np.array_equal(first.actions, np.float32(written))  # type: ignore[arg-type]
    assert np.array_equal(absolute.actions, np.float32(written + state))  # type: ignore[arg-type]
    bags = list(import_dataset(root, tmp_path / "bags"))
    (imported,), _ = decode_bag(bags[0], RecordingConfig.load(tmp_path / "bags" / CONFIG))
    assert np.array_equal(imported.actions, absolute.actions)  # type: ignore[arg-type]


@pytest.mark.parametrize(("fps", "period_ms"), [(10, None), (30, None), (30, 33), (30, 50), (25, None), (33, None)])
def test_at_any_rate_the_episodes_are_those_of_the_same_bags(tmp_path: Path, fps: int, period_ms: int | None) -> None:
    root = write_dataset(tmp_path / "parts", (1,), fps=fps)
    (bag,) = import_dataset(root, tmp_path / "bags")
    recording = RecordingConfig.load(tmp_path / "bags" / CONFIG)
    observation = replace(recording.observation, image_px=PX, thumbnail_px=PX)
    recording = replace(
        recording, observation=replace(observation, tick_period_ms=period_ms or observation.tick_period_ms)
    )
    (mine,), ((other,), verdict) = decoded(root, recording), decode_bag(bag, recording)
    assert verdict.ok
    for name in ("stamps_ns", "state", "usable", "input_stamps_ns", "actions"):
        assert np.array_equal(getattr(mine, name), getattr(other, name)), name
    assert mine.branches == other.branches and mine.action_names == other.action_names
    assert mine.streams == other.streams
    for camera in SIZES:
        assert np.array_equal(mine.images[camera][:], other.images[camera][:])
        assert len(mine.images[camera].pixels) == len(set(mine.images[camera].index.tolist()))


def test_videos_are_read_as_images_are(tmp_path: Path) -> None:
    stored = write_dataset(tmp_path / "stored", (0, 1))
    filmed = write_dataset(tmp_path / "filmed", (0, 1), storage="video")
    recording = recording_of(stored)
    for one, other in zip(decoded(stored, recording), decoded(filmed, recording), strict=True):
        assert np.array_equal(one.state, other.state)
        for camera in SIZES:
            error = np.abs(one.images[camera][:].astype(int) - other.images[camera][:])
            assert 0 < error.mean() < 8 and other.images[camera][0].std() > 20


def test_cameras_have_their_own_sizes_and_crops(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "parts", (1,))
    recording = recording_of(root)
    front, wrist = recording.observation.cameras
    cameras = (replace(front, crop=(0.25, 0.0, 0.75, 1.0)), replace(wrist, image_px=12))
    (episode,) = decoded(root, replace(recording, observation=replace(recording.observation, cameras=cameras)))
    (picture,) = Dataset(root).pictures(0, "front", {3})
    middle = cv2.resize(picture[:, 6:18], (PX, PX), interpolation=cv2.INTER_AREA)
    assert np.array_equal(episode.images["front"][3], middle)
    assert episode.images["wrist"].px == 12


def test_a_second_run_reads_the_cache_and_a_changed_dataset_is_decoded_again(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "parts", (0, 1))
    recording, cache = recording_of(root), tmp_path / "cache"
    paths = episodes_of(f"lerobot:{root}")

    def state() -> list[Any]:
        return [episode.state for episode in load_episodes(paths, recording, cache, source=DatasetSource())]  # type: ignore[union-attr]

    first = state()
    assert len(list(cache.glob("*/0000.npz"))) == 2 and len(list(cache.glob("*/0000.0.npy"))) == 2
    assert all(np.array_equal(a, b) for a, b in zip(first, state(), strict=True))
    assert len(list(cache.glob("*/bag.json"))) == 2
    write_dataset(root, (1, 0))
    changed = state()
    assert not np.array_equal(changed[0], first[0]) and len(list(cache.glob("*/bag.json"))) == 4


def test_joints_may_have_the_robots_own_names_in_the_datasets_order(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "parts", (0,))
    usual = recording_of(root)
    (before,) = decoded(root, usual)

    def named(*joints: str) -> RecordingConfig:
        plain = usual.to_dict()
        plain["observation"]["streams"][0]["select"] = {"position": list(joints)}
        return RecordingConfig.from_dict(plain)

    (turned,) = decoded(root, named(*reversed(JOINTS)))
    assert np.array_equal(turned.state, before.state[:, ::-1])
    (renamed,) = decoded(root, named("j1", "j2", "j3"))
    assert np.array_equal(renamed.state, before.state)
    for joints in (("j1", "j2"), (JOINTS[1], "j2", "j3")):
        verdict = only_verdict(root, named(*joints))
        assert "has the state shoulder.pos, elbow.pos, gripper.pos; the configuration names" in str(verdict)


def test_what_is_not_finite_is_no_tick(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "parts", (0,))
    path = root / "data/chunk-000/file-000.parquet"
    rows = parquet.read_table(path).to_pylist()
    rows[5]["observation.state"][1] = rows[8]["action"][0] = float("nan")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    (episode,), verdict = DatasetSource().decode(episodes_of(f"lerobot:{root}")[0], recording_of(root))
    assert np.flatnonzero(~episode.usable).tolist() == [5]
    assert episode.fault_text(5) == "joint_states.position.elbow.pos is not finite"
    assert "1 ticks have no whole state: tick 5" in str(verdict) and episode.observation(5).state is None
    assert episode.actions is not None
    assert np.argwhere(np.isnan(episode.actions)).tolist() == [[8, 0]]


def damaged(root: Path, kind: str) -> None:
    film = root / "videos/observation.images.wrist/chunk-000/file-000.mp4"
    table = root / "data/chunk-000/file-000.parquet"
    match kind:
        case "no video":
            film.unlink()
        case "video cut off":
            film.write_bytes(film.read_bytes()[:600])
        case "video of another size":
            shutil.copy(root / "videos/observation.images.front/chunk-000/file-000.mp4", film)
        case "pointer":
            film.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
        case "table cut off":
            table.write_bytes(table.read_bytes()[:-200])
        case "table without rows":
            parquet.write_table(parquet.read_table(table).slice(3), table)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("no video", r"wrist/chunk-000/file-000\.mp4: cannot be read \(No such file.*\); copy the dataset again"),
        ("video cut off", r"file-000\.mp4: is no video that can be decoded .*copy the dataset again"),
        (
            "video of another size",
            r"camera wrist has images of 24x20, meta/info\.json says 16x32; leave the episode out",
        ),
        ("pointer", r"file-000\.mp4: was not fetched; this is a pointer of Git LFS, not the file: run `git lfs pull`"),
        ("table cut off", r"file-000\.parquet: cannot be read as a table .*cut off: copy the dataset again"),
        ("table without rows", r"holds 21 frames of episode 0, meta/episodes says 24; copy the dataset again"),
    ],
)
def test_damage_is_named_with_the_remedy_and_costs_only_its_episode(tmp_path: Path, kind: str, said: str) -> None:
    root = write_dataset(tmp_path / "parts", (0, 1), storage="video")
    recording = recording_of(root)
    damaged(root, kind)
    paths = episodes_of(f"lerobot:{root}")
    first, second = load_episodes(paths, recording, tmp_path / "cache", source=DatasetSource())
    assert isinstance(first, BagVerdict)
    assert re.search(said, str(first), re.DOTALL), str(first)
    assert isinstance(second, BagEpisode) is (kind != "table cut off")


@pytest.mark.parametrize("kind", ["no video", "video of another size", "table without rows"])
def test_bags_are_written_of_the_other_episodes_and_none_of_half_an_episode(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    root, out = write_dataset(tmp_path / "parts", (0, 1), storage="video"), tmp_path / "bags"
    damaged(root, kind)
    assert main(["bags", "from-lerobot", str(root), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "left out: episode 0: " in said and "1 episodes; left out: 1;" in said
    assert [path.name for path in out.iterdir() if path.is_dir()] == ["episode_000001"]
    damaged(root, "table cut off")
    assert main(["bags", "from-lerobot", str(root), "--out", str(out)]) == 1
    with pytest.raises(Unreadable):
        list(import_dataset(root, out))


def test_bags_of_an_earlier_import_do_not_stay_among_those_of_another_dataset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many, few = write_dataset(tmp_path / "many", (0, 1, 0)), write_dataset(tmp_path / "few", (1,))
    out = tmp_path / "out"
    assert main(["bags", "from-lerobot", str(many), "--out", str(out)]) == 0
    (out / "episode_by_hand").mkdir()
    assert main(["bags", "from-lerobot", str(few), "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir() if path.is_dir()) == ["episode_000000", "episode_by_hand"]
    assert "removed, of an earlier import: episode_000001, episode_000002" in capsys.readouterr().out


def test_a_dataset_that_cannot_be_listed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_dataset(tmp_path / "parts", (0, 1))
    with pytest.raises(ValueError, match="is not a LeRobotDataset"):
        episodes_of(f"lerobot:{tmp_path}")
    info = json.loads((root / "meta/info.json").read_text())
    (root / "meta/info.json").write_text(json.dumps({**info, "total_episodes": 3}))
    with pytest.raises(ValueError, match=r"meta/episodes lists 2 episodes, meta/info\.json says 3: copy the dataset"):
        episodes_of(f"lerobot:{root}")
    (root / "meta/info.json").write_text(json.dumps({**info, "codebase_version": "v2.1"}))
    with pytest.raises(ValueError, match=r"is of format v2\.1, LeRobot 0\.4 reads v3\.0: convert it"):
        episodes_of(f"lerobot:{root}")
    (root / "meta/info.json").write_text(json.dumps(info))
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ValueError, match=r'pyarrow, which is not installed; pip install "trace_memory_ros\[datasets\]"'
    ):
        Dataset(root)


def test_two_datasets_and_a_camera_that_one_lacks(tmp_path: Path) -> None:
    first = write_dataset(tmp_path / "first", (0, 1))
    second = write_dataset(tmp_path / "second", (1, 0))
    recording = recording_of(first)
    sources = recordings_under([f"lerobot:{first}", f"lerobot:{second}", f"lerobot:{first}"])
    data, failed = read_bags(sources, recording, tmp_path / "cache")
    assert len(data.episodes) == 4 and not failed and data.labels == ("left", "right")
    assert len({demo.scene for demo in data.episodes}) == 4
    info = second / "meta/info.json"
    info.write_text(info.read_text().replace("images.wrist", "images.hand"))
    data, failed = read_bags(sources, recording, tmp_path / "cache")
    assert len(data.episodes) == 2
    assert "has no camera 'wrist', but front, hand" in str(failed[0])


def test_a_state_that_is_no_radians_says_so(tmp_path: Path) -> None:
    assert not described(write_dataset(tmp_path / "rad", (0,))).observation.units
    degrees = described(write_dataset(tmp_path / "degrees", (0,), scale=50.0)).observation
    assert set(degrees.state_units) == {"raw"} and degrees.path == degrees.state


def test_the_command_line_inspects_and_trains_to_a_checkpoint_that_runs_on_ros(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_dataset(tmp_path / "parts", (0, 1, 0, 1, 0, 1), storage="video")
    config = tmp_path / "observation.yaml"
    assert main(["bags", "inspect", f"lerobot:{root}", "--out", str(config)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "6 of 6 episodes have all their files" in out and "camera wrist, 16x32, video" in out
    plain = yaml.safe_load(config.read_text())
    plain["observation"] |= {"image_px": 16, "thumbnail_px": PX}
    config.write_text(yaml.safe_dump(plain))
    outputs.claim(tmp_path / "out", "trace-memory train")
    recording_of(root).keep_beside(tmp_path / "out")  # of bags, from which the folder's first checkpoint learned
    asked = ["train", f"lerobot:{root}", "--config", str(config), "--out"]
    assert main([*asked, str(tmp_path / "out"), "--cache", str(tmp_path / "cache"), *SHORT]) == 0
    assert RecordingConfig.beside(tmp_path / "out") is None
    observation = load(tmp_path / "out").config.observation
    assert [camera.topic for camera in observation.cameras] == [
        "camera/front/image_raw",
        "camera/wrist/image_raw",
    ]
    assert observation.streams[0].topic == "joint_states"
    (bag, *_) = import_dataset(root, tmp_path / "bags")
    assert main(["replay", str(bag), "--checkpoint", str(tmp_path / "out"), "--out", str(tmp_path / "replayed")]) == 0


def test_moments_are_searched_and_things_drawn_of_datasets_as_of_bags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_dataset(tmp_path / "parts", (0, 1) * 4)
    config = tmp_path / "observation.yaml"
    config.write_text(yaml.safe_dump(recording_of(root).to_dict()))
    asked = [f"lerobot:{root}", "--config", str(config), "--cache", str(tmp_path / "cache"), "--out"]
    assert main(["bags", "moments", *asked, str(tmp_path / "moments")]) == 0
    assert "8 episodes; threshold" in capsys.readouterr().out
    assert main(["bags", "things", *asked, str(tmp_path / "things"), "--episodes", "2", "--ticks", "3"]) == 0
    said = capsys.readouterr().out
    assert all(camera in said for camera in SIZES) and (tmp_path / "things" / PICTURE).is_file()
    assert main(["bags", "moments", *asked, str(tmp_path / "more"), "--annotate", "found.yaml"]) == 1
    assert f"found.yaml: writes beside bags, and lerobot:{root} is a LeRobotDataset" in capsys.readouterr().err


def test_without_a_configuration_the_dataset_says_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write_dataset(tmp_path / "one", (0,))
    assert main(["train", f"lerobot:{one}", "--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache")]) == 1
    said = capsys.readouterr()
    assert "expects a live robot on camera/front/image_raw, camera/wrist/image_raw, joint_states" in said.out
    assert "a held-out split needs at least two scenes" in said.err
    assert main(["train", f"lerobot:{tmp_path / 'none'}"]) == 1
    assert "give folders of bags, lerobot:FOLDER for a LeRobotDataset" in capsys.readouterr().err
