"""Closed-loop episodes: the renderer is released whatever happens, and the expert can lead in."""

from pathlib import Path

import pytest

from trace_memory_ros.arm import closed_loop
from trace_memory_ros.arm.closed_loop import ClosedLoop, EpisodeOutcome, figures_of, run_episodes
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.scenario import Scenario

CHECKPOINT = Path(__file__).parents[2] / "weights" / "colour_none"
SCENARIO = Scenario(task="colour", seed=200_000, cue=1)


def test_an_episode_that_raises_releases_the_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[ArmEnv] = []

    def fail(self: ClosedLoop, scenario: Scenario) -> EpisodeOutcome:
        self.env.reset(scenario)
        self.env.render("overhead")
        raise FloatingPointError("the policy says NaN")

    close = ArmEnv.close
    monkeypatch.setattr(ArmEnv, "close", lambda env: (closed.append(env), close(env)))
    monkeypatch.setattr(closed_loop.ClosedLoop, "run", fail)
    with pytest.raises(FloatingPointError):
        run_episodes(CHECKPOINT, "colour", [SCENARIO])
    assert len(closed) == 1
    assert not closed[0]._renderers


def test_the_expert_leads_in_and_the_policy_follows_along() -> None:
    with ClosedLoop(CHECKPOINT, "colour") as loop:
        outcome = loop.run(SCENARIO, expert_ticks=1_000)
    assert outcome.success
    assert outcome.progress == 1.0
    assert outcome.writes == 0


def test_no_episode_has_no_figures() -> None:
    with pytest.raises(ValueError, match="0 trials"):
        figures_of([])
