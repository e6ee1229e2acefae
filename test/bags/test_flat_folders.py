"""Folders of storage files without metadata.yaml: episodes of their own, or parts of one recording."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from bags.bad import storage_file

from studies.tiny_bags import RECORDING, Entry, recording_of, write
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import BagFault, Grade
from trace_memory_ros.bags.layout import find_bags
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.cli.main import main

TICKS = 30
S = 1_000_000_000


def put(folder: Path, name: str, entries: list[Entry], storage: str = "mcap") -> Path:
    """One storage file, as any recorder but rosbag2's leaves it."""
    folder.mkdir(exist_ok=True)
    bag = write(folder.parent / "written", entries, storage)
    file = storage_file(bag)
    target = folder / f"{name}{file.suffix}"
    shutil.move(file, target)
    shutil.rmtree(bag)
    return target


def recorded_at(log_ns: int) -> list[Entry]:
    """An episode whose first message is logged at `log_ns`."""
    entries = sorted(recording_of(TICKS), key=lambda entry: entry.log_ns)
    shift = log_ns - entries[0].log_ns
    return [Entry(e.topic, e.type_name, e.log_ns + shift, e.message) for e in entries]


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("step_s", [20, 0])
def test_numbered_episodes_are_bags_of_their_own(tmp_path: Path, storage: str, step_s: int) -> None:
    """Recorded one after the other; or by a simulator whose clock began again."""
    folder = tmp_path / "lab"
    files = [put(folder, f"episode_{k}", recorded_at((100 + k * step_s) * S), storage) for k in range(3)]
    assert find_bags(folder) == files
    for file in files:
        episodes, verdict = decode_bag(file, RECORDING)
        assert verdict.grade is Grade.OK, str(verdict)
        assert [episode.ticks for episode in episodes] == [TICKS]


def test_the_folder_itself_is_refused_as_a_bag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "lab"
    length_ns = recorded_at(0)[-1].log_ns
    for k in range(2):
        put(folder, f"episode_{k}", recorded_at(k * (length_ns + 20 * S)))
    with pytest.raises(BagFault, match="holds 2 files recorded up to 20 s apart, and no metadata.yaml"):
        BagReader(folder)
    assert main(["bags", "inspect", str(folder)]) == 0
    assert "2 bags" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "kept"), [("lab", (0, 1, 2, 3)), ("run", (0, 3))])
def test_parts_of_one_recording_stay_together(tmp_path: Path, name: str, kept: tuple[int, ...]) -> None:
    """By their times; and by the folder's name, where the recorder was paused or parts are lost."""
    folder = tmp_path / name
    entries = recorded_at(50 * S)
    size = -(-len(entries) // 4)
    parts = [entries[k * size : (k + 1) * size] for k in kept]
    for k, part in zip(kept, parts, strict=True):
        put(folder, f"run_{k}", part)
    assert find_bags(folder) == [folder]
    with BagReader(folder) as reader:
        assert len(list(reader.messages())) == sum(map(len, parts))


def test_parts_by_topic_stay_together(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    entries = recorded_at(50 * S)
    put(folder, "run_0", [e for e in entries if "image" in e.topic])
    put(folder, "run_1", [e for e in entries if "image" not in e.topic])
    assert find_bags(folder) == [folder]
    assert decode_bag(folder, RECORDING)[0][0].ticks == TICKS


def test_a_file_that_cannot_be_read_is_still_a_bag_to_be_named(tmp_path: Path) -> None:
    folder = tmp_path / "lab"
    length_ns = recorded_at(0)[-1].log_ns
    files = [put(folder, f"episode_{k}", recorded_at(k * (length_ns + 20 * S))) for k in range(3)]
    files[1].write_bytes(b"not a storage file at all")
    assert find_bags(folder) == files
    with pytest.raises(BagFault, match="begins with"):
        BagReader(files[1])
