"""Which branch a chunk takes: references without the own episode, ticks that were not recorded left out."""

from pathlib import Path

import numpy as np
import pytest
from evidence.recorded_examples import BRANCH, TICKS, recorded
from fixtures import tiny_checkpoint

from trace_memory_ros.evidence.decision import ChunkHead, recorded_chunk
from trace_memory_ros.policies.references import BranchActions, BranchReferences, chunk_distance, decide
from trace_memory_ros.runtime.checkpoint import load

NAN = np.nan


def chunk(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)[:, None]


def head(folder: Path) -> ChunkHead:
    tiny_checkpoint(folder)
    found = ChunkHead.of(load(folder))
    assert isinstance(found, ChunkHead)
    return found


def test_the_nearest_reference_decides_and_the_margin_says_how_clearly() -> None:
    decision = decide(chunk(1.0, 1.0), {"left": chunk(0.0, 0.0), "right": chunk(1.5, 1.5)})
    assert decision.label == "right"
    assert decision.margin == pytest.approx(0.5)


def test_what_one_reference_lacks_counts_for_none() -> None:
    references = {"left": chunk(0.0, NAN), "right": chunk(1.0, 0.0)}
    assert decide(chunk(0.2, 0.0), references).label == "left"


def test_an_episode_is_not_its_own_reference_where_others_have_its_label() -> None:
    known = BranchReferences(
        [
            BranchActions("a", "left", chunk(1.0)),
            BranchActions("b", "left", chunk(3.0)),
            BranchActions("c", "right", chunk(9.0)),
        ]
    )
    assert {k: v.item() for k, v in known.without("a").items()} == {"left": 3.0, "right": 9.0}
    assert {k: v.item() for k, v in known.without("c").items()} == {"left": 2.0, "right": 9.0}


def test_means_are_over_what_was_recorded() -> None:
    known = BranchReferences(
        [
            BranchActions("a", "left", chunk(1.0, NAN)),
            BranchActions("b", "left", chunk(3.0, 5.0)),
            BranchActions("c", "right", chunk(0.0, 0.0)),
        ]
    )
    np.testing.assert_array_equal(known.without("x")["left"], chunk(2.0, 5.0))


@pytest.mark.parametrize(("labels", "named"), [((), "have none"), (("left", "left"), "only 'left'")])
def test_fewer_than_two_labels_decide_nothing(labels: tuple[str, ...], named: str) -> None:
    known = BranchReferences(BranchActions(f"e{i}", label, chunk(0.0)) for i, label in enumerate(labels))
    assert named in known.without("e0")


def test_a_recorded_chunk_is_in_the_policys_order_and_units_and_ends_with_the_episode(tmp_path: Path) -> None:
    policy, episode = head(tmp_path), recorded()
    shuffled = tuple(reversed(episode.action_names))
    found = recorded_chunk(episode.actions[:, ::-1], TICKS - 2, policy, shuffled)
    elbow = policy.action_names.index("left_joint_4")
    assert found.shape == (policy.horizon, len(policy.action_names))
    # The tiny policy's actions have mean 0 and standard deviation 0.05.
    np.testing.assert_allclose(found[:2, elbow], 0.1 / 0.05, rtol=1e-6)
    assert np.isnan(found[2:]).all()


def test_a_chunk_that_cannot_be_told_has_a_reason(tmp_path: Path) -> None:
    policy, episode = head(tmp_path), recorded()
    assert "lack left_joint_1" in recorded_chunk(episode.actions[:, 1:], BRANCH, policy, episode.action_names[1:])
    nothing = np.full_like(episode.actions, NAN)
    assert "no action was recorded" in recorded_chunk(nothing, BRANCH, policy, episode.action_names)


def test_a_checkpoint_without_a_policy_says_so(tmp_path: Path) -> None:
    tiny_checkpoint(tmp_path, policy=False)
    assert "without a policy" in ChunkHead.of(load(tmp_path))


def test_distance_is_the_mean_absolute_difference() -> None:
    assert chunk_distance(chunk(0.0, 1.0), chunk(1.0, 4.0)) == 2.0
