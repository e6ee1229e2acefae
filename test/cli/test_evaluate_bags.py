"""`trace-memory evaluate BAGS --checkpoint C` leaves report, figures and evidence, and says what it could not tell."""

import json
from pathlib import Path

import pytest
from fixtures import tiny_checkpoint
from learning.tiny_bags import BRANCH_TICK, config_file, recording, write_bags

from trace_memory_ros.cli.evaluate_bags import recording_of
from trace_memory_ros.cli.main import main
from trace_memory_ros.evidence.results import Evaluation
from trace_memory_ros.measure.summary import read_summary

# Each evaluation starts worker processes, which import all of torch; on a busy machine that alone takes minutes.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    config_file(folder, recording())
    write_bags(folder, 1, recording())
    broken = folder / "broken"
    broken.mkdir()
    (broken / "broken_0.mcap").write_bytes(b"not a bag")
    return folder


def evaluate(bags: Path, tmp_path: Path, *options: str) -> int:
    tiny_checkpoint(tmp_path / "model", observation=recording().observation)
    out = ("--out", str(tmp_path / "out"), "--cache", str(tmp_path / "cache"))
    return main(["evaluate", str(bags), "--checkpoint", str(tmp_path / "model"), *out, *options])


def test_bags_give_report_figures_and_evidence_and_a_broken_one_is_listed(
    bags: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate(bags, tmp_path, "--seed", "3") == 0
    found = Evaluation.from_dict(json.loads((tmp_path / "out" / "evaluation.json").read_text()))
    assert [e.branches[0].tick for e in found.episodes] == [BRANCH_TICK, BRANCH_TICK]
    assert [Path(fault.bag).name for fault in found.failed] == ["broken"]
    assert found.settings["seed"] == 3
    figures = read_summary(tmp_path / "out").figures
    assert figures["transforms"]["state_offset"]["route_similarity"]["mean"] == pytest.approx(100, abs=1e-3)
    # The policy commands other joints than these bags record.
    assert figures["verdict"]["answer"] == "cannot be told"
    assert figures["failed"][0]["remedy"]
    assert (tmp_path / "out" / "index.html").stat().st_size > 10_000
    said = capsys.readouterr().out
    assert "order reversal" in said
    assert "cannot be told" in said
    assert str(bags / "observation.yaml") in said.replace("\n", "")


def test_nothing_but_broken_bags_is_a_failure(bags: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(bags / "observation.yaml")
    assert evaluate(bags / "broken", tmp_path, "--config", config) == 1
    assert "broken" in capsys.readouterr().out


def test_neither_form_is_refused_with_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "some/bags"]) == 1
    error = capsys.readouterr().err
    assert "TASK CHECKPOINT" in error
    assert "--checkpoint" in error


def test_sources_whose_files_say_unlike_things_are_not_read_by_the_first(tmp_path: Path) -> None:
    one, alike, other = (str(tmp_path / name) for name in ("one", "alike", "other"))
    for folder, annotated in ((one, True), (alike, True), (other, False)):
        config_file(Path(folder), recording(annotated=annotated))
    assert recording_of(None, [one, alike, str(tmp_path)], tmp_path) == recording()
    with pytest.raises(ValueError, match=r"one/observation.yaml and .*other/observation.yaml differ .* --config"):
        recording_of(None, [one, alike, other], tmp_path)
