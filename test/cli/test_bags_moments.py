"""`trace-memory bags moments` on a handful of tiny bags."""

from pathlib import Path

import pytest
import yaml
from learning.tiny_bags import config_file, places, recording, write_bags

from trace_memory_ros.cli.main import main
from trace_memory_ros.measure.summary import read_summary


def arguments(folder: Path, *more: str) -> list[str]:
    return ["bags", "moments", *places(folder), *more]


def test_a_verdict_a_page_and_annotations_are_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bags(tmp_path / "bags", 4, recording())
    config_file(tmp_path, recording())
    assert main(arguments(tmp_path, "--annotate", "found.yaml")) == 0
    said = capsys.readouterr().out
    figures = read_summary(tmp_path / "out").figures
    assert figures["verdict"] in said and figures["episodes"] == 8
    assert "what 1% of them pass" in said
    page = (tmp_path / "out" / "moments.html").read_text(encoding="utf-8")
    assert figures["verdict"] in page and "8 episodes were compared" in page
    files = sorted((tmp_path / "bags").glob("*/found.yaml"))
    assert len(files) == 8
    assert all(set(yaml.safe_load(file.read_text(encoding="utf-8"))) == {"branches"} for file in files)
    files[0].write_text("branches: []  # mine\n", encoding="utf-8")
    assert main(arguments(tmp_path, "--annotate", "found.yaml")) == 1
    assert "was edited" in capsys.readouterr().err


@pytest.mark.parametrize("file", ["/tmp/found.yaml", "../found.yaml"])
def test_one_file_for_the_annotations_of_all_bags_is_refused(
    tmp_path: Path, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, "--annotate", file)) == 1
    assert f"--annotate {file}: every bag would write the same file" in capsys.readouterr().err


def test_too_few_episodes_are_refused_with_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_bags(tmp_path / "bags", 1, recording())
    config_file(tmp_path, recording())
    assert main(arguments(tmp_path)) == 1
    assert "2 episodes: moments are found by comparing at least 8; record more" in capsys.readouterr().err


def test_an_alarm_that_is_no_share_is_refused_before_bags_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_bags(tmp_path / "bags", 1, recording())
    config_file(tmp_path, recording())
    assert main(arguments(tmp_path, "--alarm", "5")) == 1
    assert "alarm = 5.0: must be a share, 0 to 1" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
