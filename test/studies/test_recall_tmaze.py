"""The T-maze benchmark's bookkeeping."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.grid import HERE
from studies.recall.learning.tmaze import Choice
from studies.recall.tasks import tmaze
from studies.recall.tasks.tmaze import PHASES, Contestant, Walk


def choices(length: int, wrong: int) -> list[Choice]:
    return [Choice(length - k, (k >= wrong, True), (1.0 if k >= wrong else -2.0, 3.0)) for k in range(PHASES)]


def test_success_is_by_length_and_perfect_seeds_are_counted() -> None:
    walks = [Walk(1.0, choices(30, 0) + choices(100, wrong), 2.0) for wrong in (0, 5)]
    summary = tmaze._summary(Contestant("gru"), walks)
    assert summary["lengths"]["30"]["success"] == 1.0
    assert summary["lengths"]["100"]["by_seed"] == [1.0, 0.75]
    assert summary["lengths"]["100"]["perfect_seeds"] == 1
    assert summary["lengths"]["100"]["least_margin"] == -2.0
    assert summary["perfect_up_to"] == 30
    assert list(summary["lengths"]) == ["30", "100"]
    assert summary["cpu_us_per_step"] == pytest.approx(2e4)


def test_a_walk_is_kept_for_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tmaze.walks({"a, b": Contestant("gru", steps=1)}, 1, 30, tmp_path, HERE)
    assert [choice.steps for choice in found["a, b"][0].choices] == list(range(30 - PHASES + 1, 31))
    monkeypatch.setattr(tmaze, "train_and_walk", lambda *_: pytest.fail("measured again"))
    assert tmaze.walks({"a, b": Contestant("gru", steps=1)}, 1, 30, tmp_path, HERE) == found
    with pytest.raises(pytest.fail.Exception, match="measured again"):
        tmaze.walks({"a, b": Contestant("gru", steps=2)}, 1, 30, tmp_path, HERE)


def test_every_contestant_can_be_built() -> None:
    for contestant in tmaze.CONTESTANTS.values():
        assert tmaze.build(contestant, 0).memory.name == contestant.memory
