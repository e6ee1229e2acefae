"""Recordings by name: bags in folders of their own may be called alike."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from studies.tiny_bags import RECORDING, recording_of, write
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.learning.bags.data import deal_scenes, from_episodes, split
from trace_memory_ros.learning.bags.recordings import load_recordings, recordings_under


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Six bags of unlike length, one a folder, all of one name."""
    for k in range(6):
        write(tmp_path / "bags" / f"ep_{k}" / "rosbag", recording_of(20 + k))
    return tmp_path / "bags"


def loaded(root: Path) -> list[BagEpisode]:
    found = load_recordings(recordings_under([root]), RECORDING, root.parent / "cache")
    assert all(isinstance(one, BagEpisode) for one in found)
    return [one for one in found if isinstance(one, BagEpisode)]


def test_bags_of_one_name_are_scenes_of_their_own(root: Path) -> None:
    data = from_episodes(loaded(root), RECORDING.observation.tick_period_ms)
    assert [demo.name for demo in data.episodes] == [f"ep_{k}/rosbag" for k in range(6)]
    parts = split(data.episodes, held_out=0.34, validation=0.0, seed=0)
    assert len(parts.training) == 4 and len(parts.held_out) == 2
    assert len(deal_scenes(data.episodes, 0)) > 1


def test_a_moved_bag_is_called_by_its_new_name(root: Path) -> None:
    loaded(root)
    for k in range(6):
        (root / f"ep_{k}" / "rosbag").rename(root / f"take_{k}")
    assert [one.name for one in loaded(root)] == [f"take_{k}" for k in range(6)]


def test_a_bag_is_read_once_however_often_and_under_whatever_name_it_is_given(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "latest").symlink_to("ep_5")
    monkeypatch.chdir(root.parent)
    twice = recordings_under(["bags", root, root / "ep_0", "bags/../bags"])
    assert twice == [Path("bags") / f"ep_{k}" / "rosbag" for k in range(6)]


def test_a_copy_of_a_bag_is_left_out_and_named(root: Path) -> None:
    shutil.copytree(root / "ep_3", root / "of yesterday")
    data = from_episodes(loaded(root), RECORDING.observation.tick_period_ms)
    assert [demo.name for demo in data.episodes] == [f"ep_{k}/rosbag" for k in range(6)]
    ((name, reason),) = data.left_out
    assert name == "of yesterday/rosbag" and reason.startswith("is a copy of ep_3/rosbag")
