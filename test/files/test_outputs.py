"""Where commands may write: never over what a person, or another command, made."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest

from trace_memory_ros.files import outputs
from trace_memory_ros.files.outputs import MARKER, OutputError

TRAIN, REPLAY = "trace-memory train", "trace-memory replay"


def test_new_and_empty_folders_and_ones_own_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "a" / "new", tmp_path / "empty"):
        for _ in range(2):
            assert outputs.claim(folder, TRAIN) == folder
        assert outputs.written_by(folder) == TRAIN
        (folder / "model").write_text("weights")
        outputs.claim(folder, TRAIN)
        assert (folder / "model").read_text() == "weights"


def test_what_another_command_or_a_person_made_is_refused(tmp_path: Path) -> None:
    outputs.claim(tmp_path / "model", TRAIN)
    with pytest.raises(OutputError, match=r"model was written by `trace-memory train`: give a new .* by --out"):
        outputs.claim(tmp_path / "model", REPLAY)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "me.png").write_bytes(b"x")
    with pytest.raises(OutputError, match="photos holds files that no command of this package wrote"):
        outputs.claim(tmp_path / "photos", TRAIN)
    with pytest.raises(OutputError, match=r"me.png is no folder: give another place by --summary"):
        outputs.claim(tmp_path / "photos" / "me.png", TRAIN, "--summary")
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["me.png"]


@pytest.mark.parametrize(
    ("command", "author"),
    [
        ("trace-memory train bags --out x", TRAIN),
        ("trace-memory bench replay --quick", "trace-memory bench replay"),
        ("make", "make"),
    ],
)
def test_a_summary_tells_who_wrote_older_results(tmp_path: Path, command: str, author: str) -> None:
    (tmp_path / "summary.json").write_text(json.dumps({"command": command}))
    assert outputs.written_by(tmp_path) == author
    outputs.claim(tmp_path, author)
    assert (tmp_path / MARKER).read_text() == f"{author}\n"


def test_a_summary_that_cannot_be_read_tells_nothing(tmp_path: Path) -> None:
    for content in ("", "[]", "{}", "\x00"):
        (tmp_path / "summary.json").write_text(content)
        with pytest.raises(OutputError, match="no command of this package"):
            outputs.claim(tmp_path, TRAIN)


def test_a_folder_that_is_written_anew_must_hold_ones_own_files_alone(tmp_path: Path) -> None:
    folder = tmp_path / "bag"
    folder.mkdir()
    (folder / "bag.mcap").write_bytes(b"x")
    with pytest.raises(OutputError, match="holds what no command of this package wrote"):
        outputs.vacate(folder, REPLAY, "", lambda name: name.endswith(".mcap"))
    with pytest.raises(OutputError, match="holds what `trace-memory train` wrote"):
        outputs.vacate(folder, REPLAY, TRAIN, lambda name: name.endswith(".mcap"))
    (folder / "notes.txt").write_text("important")
    with pytest.raises(OutputError, match="holds notes.txt, and only what `trace-memory replay` wrote itself"):
        outputs.vacate(folder, REPLAY, REPLAY, lambda name: name.endswith(".mcap"))
    assert (folder / "bag.mcap").exists()
    (folder / "notes.txt").unlink()
    outputs.vacate(folder, REPLAY, REPLAY, lambda name: name.endswith(".mcap"))
    assert not folder.exists()


def test_a_file_that_was_edited_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "a" / "observation.yaml"
    outputs.write_file(file, "joints: [a]\n", TRAIN)
    outputs.write_file(file, "joints: [b]\n", TRAIN)
    assert file.read_text().startswith("joints: [b]\n# Written by trace-memory train; sealed ")
    with pytest.raises(OutputError, match="is not as `trace-memory replay` wrote it"):
        outputs.write_file(file, "joints: [c]\n", REPLAY)
    edited = file.read_text().replace("[b]", "[b, gripper]")
    for content in (edited, edited + "more: 1\n", "joints: [d]\n", "\udcff", ""):
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
        with pytest.raises(OutputError, match="or was edited: give another file by --out"):
            outputs.write_file(file, "joints: [c]\n", TRAIN)
        assert file.read_bytes() == content.encode("utf-8", "surrogateescape")


def test_where_nothing_can_be_written_another_place_is_asked_for() -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "mine").mkdir()
        outputs.mark(home / "mine", TRAIN)
        for path, mode in ((home / "mine", 0o555), (home, 0o555)):
            path.chmod(mode)
        try:
            if user == 0:
                os.seteuid(65534)  # root may write everywhere
            for path in (home / "mine", home / "new"):
                with pytest.raises(OutputError, match=r"cannot be written \(Permission denied\): give another place"):
                    outputs.claim(path, TRAIN)
            with pytest.raises(OutputError, match=r"cannot be written \(Permission denied\)"):
                outputs.write_file(home / "observation.yaml", "", TRAIN)
        finally:
            os.seteuid(user)
            home.chmod(0o755)
            (home / "mine").chmod(0o755)
