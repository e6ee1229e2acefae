"""Closed-loop episodes: the renderer is released whatever happens, and the expert can lead in."""

from dataclasses import replace
from pathlib import Path

import pytest

from trace_memory_ros.arm import closed_loop
from trace_memory_ros.arm.closed_loop import ClosedLoop, EpisodeOutcome, figures_of, run_episodes
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.policies import families
from trace_memory_ros.runtime.checkpoint import load, save
from trace_memory_ros.vision.encoder import ContentEncoder

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


def test_memory_and_policy_with_the_same_eyes_look_once_a_tick(tmp_path: Path) -> None:
    loaded = load(CHECKPOINT)
    config, options = loaded.config, loaded.policy.options
    policy = families.family("act").build(options)
    policy.load_state_dict(loaded.tensors_of("policy."))
    seen = replace(config.observation, thumbnail_px=options["image_px"])
    eyes = replace(config.encoder, thumbnail_px=options["image_px"], backbone=policy.backbone.config, shared=True)
    encoder = ContentEncoder(eyes, policy.backbone)
    kept = {name: tensor for name, tensor in loaded.tensors.items() if not name.startswith("encoder.")}
    kept |= {f"encoder.{name}": tensor for name, tensor in encoder.state_dict().items()}
    save(tmp_path, replace(config, observation=seen, encoder=eyes), kept)
    with ClosedLoop(CHECKPOINT, "colour") as apart:
        assert not apart.one_pass
    with ClosedLoop(tmp_path, "colour") as loop:
        assert loop.one_pass
        loop.period_s, looks = 2.0, []  # an episode of few ticks
        for one in (loop.runtime.model.encoder.vision, loop.policy.eyes):
            one.register_forward_hook(lambda *_: looks.append(1))
        assert loop.run(SCENARIO).ticks == len(looks)
