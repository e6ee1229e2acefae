"""A recorded episode's evidence: whole where everything is there, and with reasons where something is not."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from evidence.recorded_examples import BRANCH, TICKS, evaluate_episodes, recorded
from fixtures import tiny_checkpoint

from trace_memory_ros.bags.branches import Branch
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.evidence.decision import ChunkHead, recorded_chunk
from trace_memory_ros.evidence.evaluator import (
    NO_BRANCH,
    EpisodeEvaluator,
    EvidenceSettings,
    donors,
)
from trace_memory_ros.evidence.history.comparison import CLOCK_ALONE, NO_WRITE, ONE_SLOT
from trace_memory_ros.evidence.history.transforms import transforms
from trace_memory_ros.evidence.results import EpisodeEvidence
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.frames import Frames, at
from trace_memory_ros.policies.references import BranchReferences
from trace_memory_ros.runtime.clock import PathLength

CLOCK = PathLength(0.8, 0.3)


def pair() -> list[BagEpisode]:
    return [recorded("left_0", 0, "left"), recorded("right_1", 1, "right")]


def evaluator(folder: Path, mechanism: str = "trace", policy: bool = True) -> EpisodeEvaluator:
    tiny_checkpoint(folder, mechanism, clock=CLOCK, policy=policy)
    return EpisodeEvaluator(folder)


def without_latency(evidence: EpisodeEvidence) -> dict[str, object]:
    data: dict[str, object] = json.loads(json.dumps(evidence.to_dict(), allow_nan=False))
    assert data.pop("latency_ms")
    return data


def test_everything_is_there_and_survives_json(tmp_path: Path) -> None:
    found = evaluate_episodes(pair(), evaluator(tmp_path))
    one = found[0]
    assert EpisodeEvidence.from_dict(json.loads(json.dumps(one.to_dict(), allow_nan=False))) == one
    assert (one.name, one.task, one.ticks, one.ticks_stale, one.reasons) == ("left_0", "origin", TICKS, 0, {})
    assert [t.name for t in one.transforms] == list(transforms(100))
    assert all(t.route_similarity is not None and t.branch_consistency is not None for t in one.transforms)
    offset = one.transform("state_offset")
    assert offset is not None
    assert offset.route_similarity == pytest.approx(100, abs=1e-4)
    assert offset.branch_consistency == pytest.approx(100, abs=1e-4)
    assert offset.writes_moved == 0
    assert [row.extension for row in one.stability] == pytest.approx([1, 1.25, 1.5, 2, 1.5, 2], abs=0.05)
    assert one.stability[0].readout_cosine == pytest.approx(1)
    (branch,), (attribution,) = one.branches, one.attributions
    assert (branch.tick, branch.label) == (BRANCH, "left")
    assert branch.decision == attribution.decision
    assert branch.decision in ("left", "right")
    before = [tick for tick in one.timeline.write_ticks if tick <= BRANCH]
    assert [w.tick for w in attribution.writes] == before
    assert attribution.earlier is not None
    # 2 s before tick 30 is tick 10.
    assert attribution.earlier.writes == sum(tick < 10 for tick in before)
    assert len(one.timeline.time_s) == TICKS
    assert len(one.timeline.route) == one.writes


def test_an_episodes_evidence_does_not_hang_on_what_was_evaluated_before(tmp_path: Path) -> None:
    made = evaluator(tmp_path)
    one, other = evaluate_episodes(pair(), made)
    back = evaluate_episodes(pair()[::-1], made)
    assert without_latency(back[1]) == without_latency(one)
    assert without_latency(back[0]) == without_latency(other)


def test_another_seed_draws_other_transforms(tmp_path: Path) -> None:
    tiny_checkpoint(tmp_path, clock=CLOCK)
    found = [
        evaluate_episodes(pair(), EpisodeEvaluator(tmp_path, EvidenceSettings(seed=seed)))[0].transforms
        for seed in (0, 1)
    ]
    assert [t.path_points for t in found[0]] != [t.path_points for t in found[1]]


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"window": 2}, "window = 2: must be odd, such as 3"),
        ({"window": 0}, "window = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"present_s": -1.0}, "present seconds = -1.0"),
        ({"present_s": float("nan")}, "present seconds = nan"),
    ],
)
def test_settings_out_of_range_are_refused_before_any_bag_is_read(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        EvidenceSettings(**wrong)


def test_without_a_policy_the_memorys_own_figures_still_come(tmp_path: Path) -> None:
    one = evaluate_episodes(pair(), evaluator(tmp_path, policy=False))[0]
    found = one.transforms[0]
    assert found.route_similarity is not None
    assert found.readout_cosine is not None
    assert found.action_agreement is None
    assert "without a policy" in found.reasons["action_agreement"]
    assert "without a policy" in found.reasons["branch_consistency"]
    assert one.attributions[0].writes[0].delta_action is None
    assert one.attributions[0].writes[0].delta_readout > 0
    assert one.attributions[0].strongest is not None
    assert one.branches[0].correct is None


def test_without_branches_the_writes_still_come(tmp_path: Path) -> None:
    episode = recorded("walk", 0, None)
    (one,) = evaluate_episodes([episode], evaluator(tmp_path))
    assert (one.branches, one.transforms, one.stability, one.attributions) == ((), (), (), ())
    assert one.reasons["transforms"] == NO_BRANCH
    assert one.write_entropy is not None


def test_without_actions_or_another_label_nothing_is_decided_but_chunks_are_compared(tmp_path: Path) -> None:
    made = evaluator(tmp_path)
    (silent,) = evaluate_episodes([recorded(actions=False)], made)
    (alone,) = evaluate_episodes([recorded()], made)
    assert "have none" in silent.branches[0].reasons["decision"]
    assert "only 'left'" in alone.branches[0].reasons["decision"]
    for one in (silent, alone):
        assert one.transforms[0].action_agreement is None
        assert one.transforms[0].chunk_distance is not None
        assert one.attributions[0].writes[0].delta_action is not None
        assert one.attributions[0].writes[0].flipped is None
        assert "another" not in one.reasons
        assert [row.name for row in one.stability][-1] == "distractor_1.5"
        assert "donor" in one.reasons["stability.shared_route_2"]


def twice(name: str, seed: int, first: str, second: str) -> BagEpisode:
    """An episode with two decisions; at the second the same labels are the opposite motion, further on."""
    episode, at = recorded(name, seed, first), (12, BRANCH)
    commands = np.zeros_like(episode.actions)
    commands[at[0] :, 3] = 0.1 if first == "left" else -0.1
    commands[at[1] :, 3] = 0.5 if second == "left" else 0.7
    return replace(episode, actions=commands, branches=tuple(map(Branch, at, (first, second))))


def test_each_of_several_decisions_is_told_by_what_was_done_at_its_own_place(tmp_path: Path) -> None:
    made = evaluator(tmp_path)
    episodes = [twice("a", 0, "left", "right"), twice("b", 1, "right", "left"), twice("c", 2, "left", "left")]
    known = BranchReferences(actions for episode in episodes for actions in made.branch_actions(episode))
    for episode in episodes:
        moments, _ = made.moments(episode, episode.usable, known)
        done = [recorded_chunk(episode.actions, m.tick, made.head, episode.action_names) for m in moments]
        # Who does what was recorded decides as was annotated.
        told = [moment.decide(chunk) for moment, chunk in zip(moments, done, strict=True)]
        assert [one and one.label for one in told] == [branch.label for branch in episode.branches]


def test_a_decision_keeps_its_place_where_one_before_it_cannot_be_used(tmp_path: Path) -> None:
    whole = [twice("a", 0, "left", "right"), twice("b", 1, "right", "right")]
    lost = recorded("c", 2, "left", unusable=(12,))
    lost = replace(twice("c", 2, "left", "right"), state=lost.state, usable=lost.usable, faults=lost.faults)
    found = evaluate_episodes([*whole, lost], evaluator(tmp_path))
    assert [[branch.place for branch in one.branches] for one in found] == [[0, 1], [0, 1], [1]]


def test_unusable_ticks_are_no_history_and_an_unusable_branch_is_none(tmp_path: Path) -> None:
    made = evaluator(tmp_path)
    (gaps,) = evaluate_episodes([recorded(unusable=(5, 6, 12))], made)
    assert gaps.ticks_stale == 3
    assert gaps.stability[0].ticks == BRANCH - 3
    assert {5, 6, 12}.isdisjoint(w.tick for w in gaps.attributions[0].writes)
    assert gaps.faults == ("joint_states: stale",)
    (blind,) = evaluate_episodes([recorded(unusable=(BRANCH,))], made)
    assert blind.branches == ()
    assert blind.reasons["branches"] == f"the observation at the branch, tick {BRANCH}, cannot be used"


def test_a_decision_before_which_nothing_lies_so_early_is_not_tried_without_it(tmp_path: Path) -> None:
    made = evaluator(tmp_path)
    # 2 s are 20 ticks: the second branch has one before them, the first has none.
    for tick, tried in ((20, False), (21, True)):
        early = [replace(episode, branches=(Branch(tick, episode.branches[0].label),)) for episode in pair()]
        (attribution,) = evaluate_episodes(early, made)[0].attributions
        assert (attribution.earlier is not None) is tried
        assert ("2 s before" in attribution.reasons.get("earlier", "")) is not tried


def test_an_episode_that_has_nothing_to_lend_takes_no_other_along(tmp_path: Path) -> None:
    blind = recorded("right_1", 1, "right", unusable=tuple(range(BRANCH + 1)))
    one, other = evaluate_episodes([recorded("left_0", 0, "left"), blind], evaluator(tmp_path))
    assert "donor" in one.reasons["stability.shared_route_2"]
    assert (len(one.branches), len(other.branches)) == (1, 0)


def test_a_policy_is_given_cameras_of_unlike_sizes_at_its_own(tmp_path: Path) -> None:
    arm = default_arm()
    first = replace(arm.cameras[0], image_px=96)
    tiny_checkpoint(tmp_path, observation=replace(arm, cameras=(first, *arm.cameras[1:])), clock=CLOCK)
    made = EpisodeEvaluator(tmp_path)

    def larger(episode: BagEpisode) -> BagEpisode:
        doubled = episode.images[first.name][:].repeat(2, axis=1).repeat(2, axis=2)
        return replace(episode, images={**episode.images, first.name: Frames.of(doubled)})

    one = evaluate_episodes(list(map(larger, pair())), made)[0]
    assert one.branches[0].decision in ("left", "right")
    assert isinstance(made.head, ChunkHead)
    # What was doubled is the same again at the policy's side.
    seen, small = (made.head.seen(images, BRANCH) for images in (larger(pair()[0]).images, pair()[0].images))
    assert np.array_equal(seen, small)


def test_a_memory_without_signatures_says_what_transforms_can_reach(tmp_path: Path) -> None:
    one = evaluate_episodes(pair(), evaluator(tmp_path, "gru"))[0]
    found = one.transforms[0]
    assert found.reasons["path"] == CLOCK_ALONE
    assert found.reasons["route_similarity"] == ONE_SLOT
    assert one.attributions[0].writes[0].path_delta_action is None
    assert one.attributions[0].earlier is not None
    assert one.attributions[0].earlier.flipped_without_path is None


def test_nothing_remembered_has_no_direction(tmp_path: Path) -> None:
    one = evaluate_episodes(pair(), evaluator(tmp_path, "none"))[0]
    assert one.transforms[0].readout_cosine is None
    assert "zero" in one.transforms[0].reasons["readout_cosine"]
    assert one.attributions[0].writes == ()
    assert one.attributions[0].reasons["writes"]


def gated(folder: Path, limit: float | None = None) -> EpisodeEvaluator:
    """TRACE behind a gate that opens where one content feature is above `limit`, by default its value at tick 0."""
    made = evaluator(folder, "trace+gate")
    contents = torch.stack([made.scanner.contents(at(e.images, slice(BRANCH)), e.state[:BRANCH]) for e in pair()])
    begin = contents[:, 0].amax(dim=0)
    feature = int((contents > begin).sum(dim=(0, 1)).argmax())
    gate = made.runtime.model.memory.get_submodule("gate")
    with torch.no_grad():
        for parameter in gate.parameters():
            parameter.zero_()
        gate.get_parameter("seen.weight")[:, feature] = 1.0
        gate.get_parameter("seen.bias").fill_(-float(begin[feature]) - 1e-6 if limit is None else -limit)
        gate.get_parameter("logit.weight").fill_(1.0)
    return made


def test_an_episode_whose_gate_refuses_the_first_tick_is_evaluated(tmp_path: Path) -> None:
    for one in evaluate_episodes(pair(), gated(tmp_path)):
        first = one.timeline.write_ticks[0]
        assert 0 < first < BRANCH
        assert one.reasons == {}
        similarities = [t.route_similarity for t in one.transforms]
        assert all(value is not None and 0 <= value <= 100 for value in similarities)
        offset = one.transform("state_offset")
        assert offset is not None
        assert offset.route_similarity == pytest.approx(100, abs=1e-4)
        assert one.attributions[0].earlier is not None


def test_an_episode_in_which_the_gate_refuses_everything_is_evaluated_and_says_so(tmp_path: Path) -> None:
    one = evaluate_episodes(pair(), gated(tmp_path, limit=1e6))[0]
    assert one.timeline.write_ticks == ()
    assert one.branches[0].decision in ("left", "right")
    assert one.reasons["route_by_chance"] == NO_WRITE
    assert {t.route_similarity for t in one.transforms} == {None}
    assert {t.reasons["route_similarity"] for t in one.transforms} == {NO_WRITE}
    assert json.dumps(one.to_dict(), allow_nan=False)


def test_donors_have_another_label_where_there_is_one() -> None:
    assert donors(["left", "left", "right"]) == [2, 2, 0]
    assert donors(["left", None, "left"]) == [2, None, 0]
    assert donors(["left", None]) == [None, None]
