"""Bags of several files, folders of several forms of one run, and what metadata.yaml says of them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from backports import zstd
from bags.bad import edit_metadata, storage_file

from studies import tiny_bags as tiny
from studies.tiny_bags import RECORDING, recording_of, write
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import BagFault, Grade
from trace_memory_ros.bags.inspection import inspect
from trace_memory_ros.bags.layout import REPLAY, author_of, bags_under, find_bags, layout_of
from trace_memory_ros.bags.messages import CONDITION
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.cli.main import main

TICKS = 30


def split(bag: Path, parts: int = 3, storage: str = "mcap", order: tuple[int, ...] = ()) -> Path:
    """A recording in `parts` files, as `ros2 bag record --max-bag-duration` leaves it; `order`: as listed."""
    entries = sorted(recording_of(TICKS), key=lambda entry: entry.log_ns)
    bag.mkdir(parents=True)
    size = -(-len(entries) // parts)
    names, information = [], None
    for k in range(parts):
        one = write(bag.parent / f"part {k}", entries[k * size : (k + 1) * size], storage)
        file = storage_file(one)
        names.append(f"{bag.name}_{k}{file.suffix}")
        shutil.move(file, bag / names[-1])
        found = yaml.safe_load((one / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
        shutil.rmtree(one)
        information = added(information, found)
    assert information is not None
    information["relative_file_paths"] = [names[k] for k in order or range(parts)]
    (bag / "metadata.yaml").write_text(yaml.safe_dump({"rosbag2_bagfile_information": information}))
    return bag


def added(one: dict[str, Any] | None, other: dict[str, Any]) -> dict[str, Any]:
    if one is None:
        return other
    for mine, theirs in zip(one["topics_with_message_count"], other["topics_with_message_count"], strict=True):
        mine["message_count"] += theirs["message_count"]
    return one


def times(bag: Path, begin_ns: int | None = None, end_ns: int | None = None) -> tuple[list[int], str]:
    with BagReader(bag) as reader:
        found = [message.log_ns for message in reader.messages(None, begin_ns, end_ns)]
        return found, "\n".join(map(str, reader.faults))


def verdict_text(bag: Path) -> str:
    return str(decode_bag(bag, RECORDING)[1])


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_an_interval_that_a_part_has_nothing_of(tmp_path: Path, storage: str) -> None:
    bag = split(tmp_path / "run", storage=storage)
    whole, faults = times(bag)
    assert whole == sorted(whole) and len(whole) == 5 * TICKS and not faults
    assert times(bag, whole[-1], None)[0] == whole[-1:]
    assert times(bag, whole[0] - 50, whole[0] + 1)[0] == [t for t in whole if t <= whole[0]]
    episodes, verdict = decode_bag(bag, RECORDING)
    assert verdict.grade is Grade.OK and episodes[0].ticks == TICKS


def test_parts_listed_out_of_order_are_read_by_their_times_and_said(tmp_path: Path) -> None:
    bag = split(tmp_path / "run", order=(2, 0, 1))
    found, faults = times(bag)
    assert found == sorted(found) and len(found) == 5 * TICKS
    assert "another order than that of their times" in faults
    assert decode_bag(bag, RECORDING)[0][0].usable.all()


def test_parts_that_overlap_are_merged(tmp_path: Path) -> None:
    """As a recorder that splits by topic leaves them."""
    bag = tmp_path / "run"
    bag.mkdir()
    for k, topics in enumerate((("front/image", "odom"), ("joint_states", "hand/image", "command"))):
        one = write(tmp_path / f"part {k}", [entry for entry in recording_of(TICKS) if entry.topic in topics])
        shutil.move(storage_file(one), bag / f"run_{k}.mcap")
    found, _ = times(bag)
    assert found == sorted(found) and len(found) == 5 * TICKS
    (episode,), _ = decode_bag(bag, RECORDING)
    assert episode.ticks == TICKS and episode.usable.all()


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("content", [b"", b"not a storage file at all"])
def test_a_part_that_cannot_be_read_leaves_the_others(tmp_path: Path, storage: str, content: bytes) -> None:
    bag = split(tmp_path / "run", storage=storage)
    last = min(bag.glob("run_2.*"))
    last.write_bytes(content)
    found, faults = times(bag)
    assert len(found) == 100 and last.name in faults and "its messages are lost" in faults
    assert decode_bag(bag, RECORDING)[1].grade is Grade.DEGRADED


def test_all_that_was_found_is_told_where_no_part_can_be_read(tmp_path: Path) -> None:
    bag = split(tmp_path / "run")
    for file in bag.glob("*.mcap"):
        file.write_bytes(b"")
    with pytest.raises(BagFault) as caught:
        BagReader(bag)
    assert {"run_0.mcap", "run_1.mcap", "run_2.mcap"} == {f.where for f in (*caught.value.also, caught.value)}


def twin(bag: Path, source: str, target: str) -> None:
    """The same run once more: packed, or in the other storage."""
    file = bag / source
    if target.endswith((".zstd", ".zst")):
        (bag / target).write_bytes(zstd.compress(file.read_bytes()))
    else:
        other = write(bag.parent / "other", recording_of(TICKS), "sqlite3" if target.endswith("db3") else "mcap")
        shutil.move(storage_file(other), bag / target)


@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("target", ["run.db3", "run.mcap.zstd", "run.mcap.zst"])
def test_one_run_in_two_forms_is_read_once(tmp_path: Path, target: str, metadata: bool) -> None:
    bag = write(tmp_path / "run", recording_of(TICKS))
    twin(bag, "run.mcap", target)
    if not metadata:
        (bag / "metadata.yaml").unlink()
    found, faults = times(bag)
    assert len(found) == 5 * TICKS and found == sorted(found)
    assert target in faults and "has the name of run.mcap and is taken for the same run" in faults
    # Among other files, each of which is a bag.
    write(tmp_path / "else", recording_of(2))
    shutil.copy(tmp_path / "else" / "else.mcap", bag / "walk.mcap")
    (bag / "metadata.yaml").unlink(missing_ok=True)
    assert [path.name for path in find_bags(bag)] == ["run.mcap", "walk.mcap"]
    assert "is taken for the same run" in "\n".join(map(str, layout_of(bag / "run.mcap").faults))


@pytest.mark.parametrize(("listed", "there"), [("run.mcap", "run.mcap.zstd"), ("run.mcap.zstd", "run.mcap")])
def test_a_part_that_was_packed_or_unpacked_since_is_found(tmp_path: Path, listed: str, there: str) -> None:
    bag = write(tmp_path / "run", recording_of(TICKS))
    if there != "run.mcap":
        twin(bag, "run.mcap", there)
        (bag / "run.mcap").unlink()
    edit_metadata(bag, lambda data: data.update(relative_file_paths=[listed]))
    found, faults = times(bag)
    assert len(found) == 5 * TICKS and not faults


Change = Callable[[dict[str, Any]], object]


def topics_of(information: dict[str, Any]) -> list[dict[str, Any]]:
    return [topic["topic_metadata"] for topic in information["topics_with_message_count"]]


CLAIMS: list[tuple[Change, str]] = [
    (
        lambda d: [topic.update(serialization_format="wrong_format") for topic in topics_of(d)],
        "is encoded as 'wrong_format'",
    ),
    (lambda d: d.update(relative_file_paths=["run.mcap", "run.mcap"]), "lists run.mcap twice: it is read once"),
    (lambda d: d.update(compression_mode="MESSAGE", compression_format="lzma"), "is packed with 'lzma'"),
    (lambda d: d.update(version=12), "has version 12"),
    (lambda d: d["relative_file_paths"].extend(f"run_{k}.mcap" for k in range(1, 13)), "run_12.mcap"),
]


@pytest.mark.parametrize(("change", "said"), CLAIMS, ids=[said for _, said in CLAIMS])
@pytest.mark.parametrize("proposes", [True, False])
def test_what_metadata_claims_is_said_by_every_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Change, said: str, proposes: bool
) -> None:
    """Also where nothing can be proposed."""
    entries = [entry for entry in recording_of(TICKS) if proposes or "image" not in entry.topic]
    bag = write(tmp_path / "run", entries)
    edit_metadata(bag, change)
    for command in ("inspect", "check"):
        assert main(["bags", command, str(bag)]) == (0 if proposes else 1)
        assert said in capsys.readouterr().out


def test_a_cut_file_is_said_where_nothing_can_be_proposed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "run", [entry for entry in recording_of(TICKS) if entry.topic == "odom"])
    file = storage_file(bag)
    file.write_bytes(file.read_bytes()[:-200])
    for command in ("inspect", "check"):
        assert main(["bags", command, str(bag)]) == 1
        assert "the file is cut off or damaged" in capsys.readouterr().out


def test_a_topic_that_begins_late_and_a_time_of_zero(tmp_path: Path) -> None:
    """Of a camera that begins after 65 s all is seen, and one message of another clock moves no window."""
    front = {"front/image", "joint_states", "odom", "command"}
    entries = [entry for entry in recording_of(750) if entry.topic in front]
    entries += [entry for k in range(660, 750) for entry in tiny.tick_entries(k) if entry.topic == "hand/image"]
    entries[3].log_ns = 0
    proposal = inspect(write(tmp_path / "run", entries))
    assert proposal.recording is not None
    assert proposal.recording.observation.camera_names == ("front", "hand")
    assert proposal.topics["/front/image"].rate_hz == pytest.approx(10.0)
    assert len(proposal.topics["/hand/image"].stamps_ns[0]) == 90
    assert len(proposal.topics["/joint_states"].stamps_ns[0]) < 750


def test_names_without_a_slash_can_be_configured(tmp_path: Path) -> None:
    bag = write(tmp_path / "run", recording_of(TICKS), "sqlite3")
    import sqlite3

    connection = sqlite3.connect(storage_file(bag))
    connection.execute("UPDATE topics SET name = substr(name, 2)")
    connection.commit()
    connection.close()
    edit_metadata(bag, lambda d: [
        t["topic_metadata"].update(name=t["topic_metadata"]["name"][1:]) for t in d["topics_with_message_count"]
    ])  # fmt: skip
    assert verdict_text(bag).endswith("ok")
    assert inspect(bag).recording is not None


# Paths that are no bag


def test_a_folder_without_bags_does_not_end_a_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "run", recording_of(TICKS))
    (tmp_path / "photos").mkdir()
    assert main(["bags", "check", str(tmp_path / "photos"), str(tmp_path / "gone"), str(bag), str(bag)]) == 1
    said = capsys.readouterr().out
    assert "photos: unusable" in said and "holds no bag" in said and "does not exist" in said
    assert "1 ok, 2 unusable" in said


@pytest.mark.parametrize("name", ["run", "run.mcap", "run.db3"])
def test_a_parent_folder_is_told_from_a_bag(tmp_path: Path, name: str) -> None:
    write(tmp_path / "day" / name, recording_of(TICKS))
    assert find_bags(tmp_path / "day") == [tmp_path / "day" / name]
    with pytest.raises(BagFault, match="is a folder of bags, not a bag; give one of them: run"):
        BagReader(tmp_path / "day")


def test_a_data_sets_own_metadata_does_not_make_its_folder_a_bag(tmp_path: Path) -> None:
    run = write(tmp_path / "day" / "run", recording_of(2))
    (tmp_path / "day" / "metadata.yaml").write_text("author: somebody\n")
    assert find_bags(tmp_path / "day") == [run]
    # One that tells of files that are gone still is a bag's.
    storage_file(run).unlink()
    assert find_bags(tmp_path / "day") == [run]
    (run / "metadata.yaml").write_text("cut off")
    assert find_bags(run) == [run]


@pytest.mark.parametrize("link", ["latest", "run_2"])
def test_a_link_to_a_bag_is_no_other_bag(tmp_path: Path, link: str) -> None:
    day, run = tmp_path / "day", write(tmp_path / "day" / "run_1", recording_of(2))
    (day / link).symlink_to("run_1")
    assert find_bags(day) == [run]
    (tmp_path / "all").symlink_to("day")
    assert bags_under([day, tmp_path / "all", day / ".." / "day" / "run_1"]) == [run]


def test_what_a_replay_wrote_beside_recordings_is_no_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    day = tmp_path / "day"
    run = write(day / "run", recording_of(TICKS))
    assert author_of(run) and author_of(run) != REPLAY
    replay = day / "run_replay"
    BagFileWriter(replay, {"memory/condition": CONDITION}, command=REPLAY).close()
    assert find_bags(day) == [run]
    assert main(["bags", "check", str(day)]) == 0
    assert capsys.readouterr().out.endswith("1 ok\n")
    shutil.rmtree(run)
    assert find_bags(day) == find_bags(replay) == [replay]


def test_ros_1_bags_are_named_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = tmp_path / "day" / "walk.bag"
    old.parent.mkdir()
    old.write_bytes(b"#ROSBAG V2.0\n")
    for path in (old, tmp_path / "day"):
        with pytest.raises(BagFault, match="ROS 1 bag.*trace-memory bags convert"):
            BagReader(path)
        assert main(["bags", "inspect", str(path)]) == 1
        assert "trace-memory bags convert" in capsys.readouterr().err
        assert main(["bags", "check", str(path)]) == 1
        assert "trace-memory bags convert" in capsys.readouterr().out
    assert "ROS 1 bag" in verdict_text(old)
    write(tmp_path / "day" / "walk", recording_of(2))
    assert find_bags(tmp_path / "day") == [tmp_path / "day" / "walk"]


def test_a_folder_that_nobody_may_list_asks_for_permission(tmp_path: Path) -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        bag = write(Path(folder) / "bag", recording_of(2))
        bag.chmod(0)
        try:
            if user == 0:
                os.seteuid(65534)
            with pytest.raises(BagFault, match="grant permission"):
                BagReader(bag)
        finally:
            os.seteuid(user)
            bag.chmod(0o755)


def test_a_dataset_where_a_bag_is_needed_is_told_how_to_become_one() -> None:
    said = r"names a LeRobotDataset .*`trace-memory bags from-lerobot data/parts --out BAGS`"
    for name in (Path("lerobot:data/parts"), Path("lerobot:data/parts").absolute()):
        (bag,) = find_bags(name)
        with pytest.raises(BagFault, match=said):
            layout_of(bag)
