"""Warnings: for who learns episodes by heart, not for who remembers what was seen."""

from dataclasses import replace

import pytest
import torch
from learning.tiny_bags import recording, write_bags
from torch import Tensor

from trace_memory_ros.learning import build
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.training import Prepared, prepare, read_bags
from trace_memory_ros.learning.data.batches import BatchBuilder, EpisodeBatch
from trace_memory_ros.learning.decisions.by_heart import Probe, probe_address, warnings
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.runtime.clock import EveryTicks

ELBOW = 4
"""Its channel of the state; the first action moves it."""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("bags")
    write_bags(folder, 8, recording())
    data, _ = read_bags(sorted(folder.iterdir()), recording(), folder / "cache")
    options = BagOptions("trace", chunk=4, clock=EveryTicks(2), width=16, slots=2)
    return prepare(data, recording(), options, Recipe(), 0.2)


@pytest.fixture(scope="module")
def agent(plan: Prepared) -> Agent:
    torch.manual_seed(0)
    return build.build_agent(plan.design, plan.training).eval()


def turned(builder: BatchBuilder, batch: EpisodeBatch, sides: Tensor) -> Tensor:
    """Chunks that turn the elbow to the sides `(B,)`, 0 or 1, from where it is."""
    actions = torch.zeros_like(batch.actions)
    actions[..., 0] = batch.raw_state[..., None, ELBOW] + sides[:, None, None] - 0.5
    return builder.statistics.normalise_actions(actions)


class ByHeart:
    """Knows which training episode has which address."""

    def __init__(self, builder: BatchBuilder) -> None:
        episodes = builder.data.episodes
        reads = [torch.tensor(e.demo.decision_ticks).numpy() for e in episodes]
        self.builder = builder
        self.known = builder.build(list(range(len(episodes))), [1.0] * len(episodes), reads).reads.xi[:, 0]
        self.answers = torch.tensor([e.demo.answers[0] for e in episodes])

    def __call__(self, batch: EpisodeBatch) -> Tensor:
        nearest = torch.cdist(batch.reads.xi[:, 0], self.known).argmin(dim=1)
        return turned(self.builder, batch, self.answers[nearest])


class HasSeen:
    """Remembers whether the first picture was red."""

    def __init__(self, builder: BatchBuilder) -> None:
        self.builder = builder

    def __call__(self, batch: EpisodeBatch) -> Tensor:
        first = batch.writes.thumbnails[:, 0].mean(dim=(-2, -1))
        return turned(self.builder, batch, (first[:, 0, 0] > first[:, 0, 2]).long())


def test_who_knows_episodes_by_their_address_is_warned_of(plan: Prepared, agent: Agent) -> None:
    probe = probe_address(ByHeart(plan.training), agent.memory, plan.training, Recipe())
    assert probe is not None
    count = len(plan.training.data.episodes)
    assert (probe.named.right, probe.by_path.right, probe.by_sight.right) == (count, count, 0)
    (warning,) = warnings(Accuracy.of(40, 40), None, probe)
    assert f"names {count} of {count} training episodes" in warning and "--window 8" in warning


def test_who_remembers_what_was_seen_is_not(plan: Prepared, agent: Agent) -> None:
    probe = probe_address(HasSeen(plan.training), agent.memory, plan.training, Recipe())
    assert probe is not None
    assert (probe.by_path.right, probe.by_sight.right) == (0, probe.by_sight.count)
    assert warnings(Accuracy.of(40, 40), Accuracy.of(19, 20), probe) == []


def test_noise_hides_which_episode_an_address_is_of(plan: Prepared, agent: Agent) -> None:
    loud = Recipe(augmentation=Recipe().augmentation.stronger(30.0, 1.0))
    probe = probe_address(ByHeart(plan.training), agent.memory, plan.training, loud)
    assert probe is not None and probe.named.value < 0.5 and not probe.by_heart


def test_what_holds_on_other_episodes_is_not_warned_of() -> None:
    # Where the way travelled is the cue, decisions go by the path, and rightly.
    probe = Probe(Accuracy.of(20, 20), Accuracy.of(20, 20), Accuracy.of(0, 20))
    assert warnings(Accuracy.of(40, 40), Accuracy.of(24, 24), probe) == []
    assert len(warnings(Accuracy.of(40, 40), Accuracy.of(4, 4), probe)) == 1


def test_training_and_held_out_decisions_that_disagree_are_warned_of() -> None:
    (warning,) = warnings(Accuracy.of(40, 40), Accuracy.of(11, 20), None, "cross-validated")
    assert "training decisions 40/40" in warning and "cross-validated decisions 11/20" in warning
    assert "more demonstrations" in warning and "--memory gru" in warning and "noise" in warning
    assert warnings(Accuracy.of(40, 40), Accuracy.of(18, 20)) == []
    assert warnings(Accuracy.of(40, 40), None) == warnings(None, None) == []


def test_without_an_address_there_is_nothing_to_probe(plan: Prepared) -> None:
    gru = build.build_agent(replace(plan.design, memory="gru", options={}, depth=0), plan.training)
    assert probe_address(HasSeen(plan.training), gru.memory, plan.training, Recipe()) is None
