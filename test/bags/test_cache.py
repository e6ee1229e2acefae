"""Bags are decoded once; what comes out of the cache is what was decoded, and one bad bag stops no other."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from bags.dying import dies

from studies import tiny_bags as tiny
from studies.tiny_bags import RECORDING, recording_of, write
from trace_memory_ros.bags import cache
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.cache import cache_key, load_episodes
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.faults import BagVerdict, Grade
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.observation.config import ObservationConfig, SensorConfig

ARRAYS = ("stamps_ns", "state", "usable", "input_stamps_ns")


def equal(one: BagEpisode, other: BagEpisode) -> bool:
    for name in ARRAYS:
        a, b = getattr(one, name), getattr(other, name)
        if a.dtype != b.dtype or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
            return False
    assert one.actions is not None and other.actions is not None
    if not all(np.array_equal(frames[:], other.images[name][:]) for name, frames in one.images.items()):
        return False
    rest = ("name", "bag", "span", "cameras", "streams", "faults", "action_names", "branches", "notes", "unfinished")
    return np.array_equal(one.actions, other.actions, equal_nan=True) and all(
        getattr(one, name) == getattr(other, name) for name in (*rest, "counters")
    )


@pytest.fixture
def bags(tmp_path: Path) -> list[Path]:
    entries = recording_of(20)
    del entries[30]  # a joint state: a fault to be kept
    entries += tiny.episode_entries(6, 2, 0) + tiny.episode_entries(6, 12, 1)
    write(tmp_path / "one", entries)
    write(tmp_path / "two", recording_of(8) + tiny.episode_entries(8, 0, 3), "sqlite3", "file")
    (tmp_path / "bad.mcap").write_bytes(b"no bag")
    return [tmp_path / "one", tmp_path / "bad.mcap", tmp_path / "two"]


@pytest.mark.parametrize("workers", [1, 2])
def test_cached_episodes_are_the_decoded_ones(tmp_path: Path, bags: list[Path], workers: int) -> None:
    seen: list[tuple[int, int, str]] = []

    def report(done: int, total: int, verdict: BagVerdict) -> None:
        seen.append((done, total, Path(verdict.bag).name))

    for _ in range(2):
        results = load_episodes(bags, tiny.BY_STATUS, tmp_path / "cache", workers, report)
        decoded = [episode for bag in (bags[0], bags[2]) for episode in decode_bag(bag, tiny.BY_STATUS)[0]]
        first, second, verdict, third = results
        assert isinstance(verdict, BagVerdict) and verdict.grade is Grade.UNUSABLE
        for found, expected in zip((first, second, third), decoded, strict=True):
            assert isinstance(found, BagEpisode) and equal(found, expected)
    assert sorted(name for _, _, name in seen) == sorted(2 * ["one", "two", "bad.mcap"])
    assert [done for done, _, _ in seen] == [1, 2, 3, 1, 2, 3]


def test_a_bag_is_decoded_once_and_again_when_it_or_the_configuration_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []

    def counted(bag: Path, recording):  # type: ignore[no-untyped-def]
        decoded.append(bag.name)
        return decode_bag(bag, recording)

    monkeypatch.setattr(cache, "decode_bag", counted)
    bag, store = write(tmp_path / "bag", recording_of(8)), tmp_path / "cache"

    def load(path: Path = bag, recording=RECORDING) -> BagEpisode:  # type: ignore[no-untyped-def]
        (episode,) = load_episodes([path], recording, store)
        assert isinstance(episode, BagEpisode)
        return episode

    load()
    load()
    assert decoded == ["bag"]
    bag.rename(tmp_path / "moved")
    moved = load(tmp_path / "moved")
    assert (moved.bag, moved.name) == (str(tmp_path / "moved"), "moved")
    assert len(decoded) == 1, "the content is the same"
    load(tmp_path / "moved", replace(RECORDING, observation=replace(RECORDING.observation, image_px=3)))
    assert len(decoded) == 2
    write(tmp_path / "moved", recording_of(9))
    assert load(tmp_path / "moved").ticks == 9
    assert len(decoded) == 3


def test_a_half_written_entry_does_not_count(tmp_path: Path) -> None:
    bag, store = write(tmp_path / "bag", recording_of(8)), tmp_path / "cache"
    load_episodes([bag], RECORDING, store)
    (entry,) = (path for path in store.iterdir() if path.name != "hashes")
    (entry / "0000.npz").unlink()
    (again,) = load_episodes([bag], RECORDING, store)
    assert isinstance(again, BagEpisode) and again.ticks == 8
    (entry / "bag.json").write_text("{")
    (again,) = load_episodes([bag], RECORDING, store)
    assert isinstance(again, BagEpisode)


@pytest.mark.parametrize("lost", ["0000.npz", "0000.1.npy"])
def test_a_file_that_was_lost_is_decoded_again(tmp_path: Path, lost: str) -> None:
    bag, store = write(tmp_path / "run", recording_of(4)), tmp_path / "cache"
    load_episodes([bag], RECORDING, store)
    (file,) = store.glob(f"*/{lost}")
    file.unlink()
    (episode,) = load_episodes([bag], RECORDING, store)
    assert isinstance(episode, BagEpisode) and len(episode.images["hand"][:]) == 4


def test_an_unexpected_error_is_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("one")

    monkeypatch.setattr(cache, "decode_bag", fail)
    bag = write(tmp_path / "bag", recording_of(3))
    (verdict,) = load_episodes([bag], RECORDING, tmp_path / "cache")
    assert isinstance(verdict, BagVerdict) and "ZeroDivisionError: one" in str(verdict)


def test_a_process_that_dies_costs_only_its_bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_decode_into", dies)
    bags = [tmp_path / name for name in ("one", "two", "three")]
    verdicts = dict(cache._decode_all(bags, RECORDING, tmp_path, 2, cache.BagSource()))
    assert {bag.name: verdict.grade for bag, verdict in verdicts.items()} == {
        "one": Grade.OK,
        "two": Grade.UNUSABLE,
        "three": Grade.OK,
    }
    assert "died" in str(verdicts[bags[1]])


def test_spans_survive_as_plain_data(tmp_path: Path) -> None:
    (episode,) = decode_bag(write(tmp_path / "bag", recording_of(3)), RECORDING)[0]
    assert type(episode.span)(**asdict(episode.span)) == episode.span


def test_another_order_of_what_is_selected_is_another_entry(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", recording_of(3))
    observation, found = tiny.OBSERVATION, {}
    for groups in (("position", "velocity"), ("velocity", "position")):
        joints = SensorConfig("joints", "joint_states", 250, select=dict.fromkeys(groups, tiny.JOINTS))
        config = ObservationConfig(observation.cameras, streams=(joints,), image_px=4, thumbnail_px=2)
        found[config.state] = cache_key(bag, RecordingConfig(config), tmp_path / "cache")
    assert len(found) == len(set(found.values())) == 2
