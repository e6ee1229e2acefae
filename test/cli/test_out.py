"""Every command's `--out`: what it did not write itself it leaves alone, and says so before it computes anything."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from fixtures import tiny_checkpoint

from studies import tiny_bags as tiny
from studies.tiny_bags import recording_of, write
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.cli.main import main

RECORDING = replace(tiny.RECORDING, observation=replace(tiny.OBSERVATION, image_px=16, thumbnail_px=4))


def robot(folder: Path) -> Path:
    """A bag, what is what in it, and a checkpoint for it; returns the bag."""
    (folder / "recording.yaml").write_text(yaml.safe_dump(RECORDING.to_dict()))
    tiny_checkpoint(folder / "checkpoint", observation=RECORDING.observation)
    return write(folder / "bags" / "one", recording_of(12))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


COMMANDS = {
    "train bags": ["train", "BAGS", "--config", "CONFIG", "--cache", "CACHE", "--out", "OUT"],
    "train a task": ["train", "origin", "--demos", "CACHE", "--out", "OUT"],
    "bags things": ["bags", "things", "BAGS", "--config", "CONFIG", "--cache", "CACHE", "--out", "OUT"],
    "sweep": ["sweep", "SWEEP", "--out", "OUT"],
    "evaluate bags": ["evaluate", "BAGS", "--checkpoint", "CHECKPOINT", "--cache", "CACHE", "--out", "OUT"],
    "evaluate a task": ["evaluate", "origin", "CHECKPOINT", "--out", "OUT"],
    "demonstrate": ["demonstrate", "origin", "--seeds", "1", "--out", "OUT"],
    "bench": ["bench", "fuzz-bags", "--quick", "--out", "OUT"],
    "demo": ["demo", "--episodes", "2", "--out", "OUT"],
    "replay": ["replay", "BAG", "--checkpoint", "CHECKPOINT", "--config", "CONFIG", "--out", "OUT"],
    "replay's summary": ["replay", "BAG", "--checkpoint", "CHECKPOINT", "--config", "CONFIG", "--summary", "OUT"],
    "convert": ["bags", "convert", "OLD", "--out", "OUT"],
    "inspect": ["bags", "inspect", "BAG", "--out", "OUT/observation.yaml"],
    "permissions": ["permissions", "origin_trace", "--out", "OUT/policy.xml"],
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_place_with_other_things_in_it_is_refused_untouched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    bag = robot(tmp_path)
    (tmp_path / "walk.bag").write_bytes(b"#ROSBAG V2.0\n")
    (tmp_path / "sweep.yaml").write_text("source: [bags]\n")
    out = write(tmp_path / "precious", recording_of(3))
    (out / "observation.yaml").write_text("mine: true\n")
    (out / "policy.xml").write_text("<policy/>\n")
    places = {"BAGS": bag.parent, "BAG": bag, "CONFIG": tmp_path / "recording.yaml", "CACHE": tmp_path / "cache",
              "CHECKPOINT": tmp_path / "checkpoint", "OUT": out, "OLD": tmp_path / "walk.bag",
              "SWEEP": tmp_path / "sweep.yaml"}  # fmt: skip
    words = [str(places.get(word, word)).replace("OUT/", f"{out}/") for word in COMMANDS[name]]
    before = contents(out)
    assert main(words) == 1
    said = capsys.readouterr().err
    assert str(out) in said and ("give" in said) and ("--out" in said or "--summary" in said), said
    assert contents(out) == before


def test_a_replay_replaces_its_own_bag_and_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = robot(tmp_path)
    words = ["replay", str(bag), "--checkpoint", str(tmp_path / "checkpoint")]
    words += ["--config", str(tmp_path / "recording.yaml"), "--summary", str(tmp_path / "summary")]
    for _ in range(2):
        assert main([*words, "--out", str(tmp_path / "new")]) == 0
    with BagReader(tmp_path / "new") as reader:
        assert reader.topics["/memory/condition"].messages == 12
    (tmp_path / "new" / "notes.txt").write_text("important")
    capsys.readouterr()
    assert main([*words, "--out", str(tmp_path / "new")]) == 1
    assert "holds notes.txt" in capsys.readouterr().err
    for place in (bag, bag / "one.mcap"):
        before = contents(bag)
        assert main([*words, "--out", str(place)]) == 1
        assert contents(bag) == before


def test_a_replay_beside_a_bag_in_a_folder_that_is_read_only_asks_for_out(capsys: pytest.CaptureFixture[str]) -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        Path(folder).chmod(0o755)
        Path(other).chmod(0o777)
        bag, config = robot(Path(folder)), Path(folder) / "recording.yaml"
        words = ["replay", str(bag), "--checkpoint", str(Path(folder) / "checkpoint"), "--config", str(config)]
        try:
            if user == 0:
                os.seteuid(65534)
            assert main([*words, "--summary", f"{other}/summary"]) == 1
        finally:
            os.seteuid(user)
        assert "cannot be written (Permission denied): give another place by --out" in capsys.readouterr().err


def test_an_edited_proposal_survives_another_inspection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag, out = write(tmp_path / "one", recording_of(12)), tmp_path / "observation.yaml"
    for _ in range(2):
        assert main(["bags", "inspect", str(bag), "--out", str(out)]) == 0
    out.write_text(out.read_text().replace("image_px: 48", "image_px: 96"))
    assert main(["bags", "inspect", str(bag), "--out", str(out)]) == 1
    assert "or was edited: give another file by --out" in capsys.readouterr().err
    assert "image_px: 96" in out.read_text()
