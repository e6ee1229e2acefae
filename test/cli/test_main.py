"""The front of `trace-memory`: every command is there, and a refusal is one line and an exit status."""

from pathlib import Path

import pytest

from trace_memory_ros.arm.closed_loop import EpisodeOutcome, figures_of
from trace_memory_ros.cli.main import COMMANDS, main


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([command, "--help"])
    assert exit_.value.code == 0
    assert f"trace-memory {command}" in capsys.readouterr().out


def test_no_command_is_refused_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([])
    assert exit_.value.code == 2
    assert "command" in capsys.readouterr().err


def test_a_missing_checkpoint_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "origin", str(tmp_path / "nothing")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("trace-memory evaluate: ")
    assert str(tmp_path / "nothing") in error
    assert "Traceback" not in error


def test_an_unknown_policy_family_is_one_line_with_the_known_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "origin", "--policy", "flow", "--out", str(tmp_path), "--demos", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("trace-memory train: policy family 'flow' is unknown here: there are act, diffusion")
    assert "Traceback" not in error


def test_figures_of_an_evaluation() -> None:
    episodes = [EpisodeOutcome(1, 0, 0, True, 1.0, 20.0, 200, 40), EpisodeOutcome(1, 1, 0, False, 0.5, 20.0, 200, 60)]
    figures = figures_of(episodes)
    assert figures["branch_success"] == 0.5
    assert figures["episodes"] == 2
    assert figures["progress"] == 0.75
    assert figures["writes_per_episode"] == 50
    assert figures["ci95"][0] < 0.5 < figures["ci95"][1]
