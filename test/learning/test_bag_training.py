"""Training data out of bags of any robot: unpaired labels, unusable ticks, no annotation, split, clock, references."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learning.tiny_bags import ACTIONS, BRANCH_TICK, TICKS, recording, write_bag, write_bags

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning import build
from trace_memory_ros.learning.bags.data import Split, split
from trace_memory_ros.learning.bags.design import BagOptions, choose_clock, parse_clock
from trace_memory_ros.learning.bags.plans import Plans
from trace_memory_ros.learning.bags.recordings import recordings_under
from trace_memory_ros.learning.bags.training import VALIDATION, Prepared, prepare, read_bags
from trace_memory_ros.learning.data.batches import EpisodeBatch
from trace_memory_ros.learning.data.dataset import UnpairedSet, divergent_ticks
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, chunk_error
from trace_memory_ros.learning.decisions.candidates import Candidate, Trial, select
from trace_memory_ros.learning.decisions.found import Decisions, without_decisions
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import Progress
from trace_memory_ros.learning.run_config import RunConfig
from trace_memory_ros.learning.selection import Planned, learn_alone
from trace_memory_ros.learning.trainer import Trainer
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.runtime.clock import EveryTicks, PathLength, UpdateClock

SHORT = Recipe(
    memory_first=MemoryFirst(
        clock_factors=(4.0, 1.0), stage_steps=400, batch_pairs=5, reads=6, settle_steps=25, check_pairs=4
    ),
    steps=4,
    reads=3,
    batch_pairs=2,
    augmentation=Augmentation(shift_px=0, state_noise=0.0, signature_noise=0.0, clock_jitter=0.0),
)
OPTIONS = BagOptions(memory="gru", chunk=4, clock=EveryTicks(2), width=24)


def prepared(
    folder: Path,
    config: RecordingConfig,
    options: BagOptions = OPTIONS,
    share: float = 0.25,
    validation: float = VALIDATION,
) -> Prepared:
    bags = sorted(path for path in folder.iterdir() if path.is_dir() and path.name != "cache")
    data, failed = read_bags(bags, config, folder / "cache")
    assert not failed
    return prepare(data, config, options, SHORT, share, validation=validation)


@pytest.fixture(scope="module")
def annotated(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("annotated")
    write_bags(folder, 12, recording(cameras=2))
    return prepared(folder, recording(cameras=2))


def test_what_the_robot_is_comes_from_the_configuration(annotated: Prepared) -> None:
    design, batch = annotated.design, annotated.training.build([0], [1.0], [np.array([0, 3])])
    assert design.action_names == ACTIONS
    assert batch.images.shape == (1, 2, 2, 3, 16, 16)
    assert batch.raw_state.shape == (1, 2, 6)
    assert build.action_channels(design) == [4, 3, 5, -1]
    np.testing.assert_array_equal(batch.reads.state[..., :3], 0.0)


def test_a_base_that_moves_is_part_of_the_state(tmp_path: Path) -> None:
    write_bags(tmp_path, 2, recording(base=True))
    plan = prepared(tmp_path, recording(base=True), share=0.5)
    speeds = {float(episode.demo.state[5, 0]) for episode in plan.training.data.episodes}
    assert speeds == {0.0, 0.1}
    assert plan.state.active[0]


def test_no_scene_is_on_both_sides(annotated: Prepared) -> None:
    sides = [{episode.demo.scene for episode in b.data.episodes} for b in annotated.data if b is not None]
    assert [len(side) for side in sides] == [8, 1, 3]
    assert len(set.union(*sides)) == 12


def test_batches_are_balanced_though_labels_are_not(annotated: Prepared) -> None:
    data = annotated.training.data
    assert isinstance(data, UnpairedSet)
    lefts = [e for e in data.episodes if e.demo.answers == (0,)]
    rights = [e for e in data.episodes if e.demo.answers == (1,)]
    rare = UnpairedSet([*lefts, *rights[:2]])
    drawn = [rare.episodes[i].demo.answers for i in rare.draw(np.random.default_rng(0), 4)]
    assert drawn.count((0,)) == drawn.count((1,)) == 4


def test_a_decision_is_judged_by_what_others_did(annotated: Prepared) -> None:
    held = annotated.held_out

    def expert(batch: EpisodeBatch) -> torch.Tensor:
        return held.statistics.normalise_actions(batch.actions)

    def mirrored(batch: EpisodeBatch) -> torch.Tensor:
        elbow = 2.0 * batch.raw_state[..., None, 4:5] - batch.actions[..., :1]
        return held.statistics.normalise_actions(torch.cat([elbow, batch.actions[..., 1:]], dim=-1))

    assert branch_accuracy(expert, held) == Accuracy({(0, 0): (3, 3), (0, 1): (3, 3)})
    assert branch_accuracy(mirrored, held) == Accuracy({(0, 0): (0, 3), (0, 1): (0, 3)})
    assert chunk_error(expert, held) == pytest.approx(0.0, abs=1e-6)
    assert chunk_error(mirrored, held) > 0.0


@pytest.mark.parametrize(
    ("name", "value", "remedy"), [("cameras", ["nobody"], "the recording's"), ("chunk", 3, r"policy\.chunk instead")]
)
def test_a_policys_option_that_the_training_decides_is_refused(
    annotated: Prepared, name: str, value: object, remedy: str
) -> None:
    asked = replace(annotated.design, policy_options={**annotated.design.policy_options, name: value})
    with pytest.raises(ConfigError, match=rf"policy\.options\.{name} = .*, this training has .*{remedy}"):
        build.build_agent(asked, annotated.training)


def test_the_memory_carries_the_cue_of_episodes_without_twins(annotated: Prepared) -> None:
    torch.manual_seed(0)
    agent = build.build_agent(annotated.design, annotated.training)
    lines: list[Progress] = []
    model = learn_memory(agent, annotated.training, annotated.data.validation, annotated.recipe, 0, lines.append)
    assert lines[-1].clock_factor == 1.0
    assert lines[-1].validation_chunk_error is not None
    found = branch_accuracy(model.eval(), annotated.held_out)
    assert found is not None and found.value >= 0.8


def test_the_simplest_memory_that_holds_the_cue_is_taken(annotated: Prepared) -> None:
    first = replace(SHORT.memory_first, stage_steps=100, delay_factors=(4.0,))
    recipe = replace(annotated.recipe, memory_first=first)

    def trial(candidate: Candidate) -> Trial:
        design = replace(annotated.design, memory=candidate.memory, options={})
        return learn_alone(Planned(design, recipe, annotated.data), annotated.held_out, 0, longer=True).trial

    # The cue is in the first pictures, and gone at the decision.
    selection = select([Candidate(name) for name in ("none", "first_frame", "gru")], trial)
    assert selection.chosen == Candidate("first_frame") and [one.memory for one in selection.tried] == [
        "none",
        "first_frame",
    ]
    nothing, first_look = (found.decided for found in selection.tried.values())
    assert nothing is not None and nothing.value <= 0.75
    assert first_look is not None and (first_look.right, first_look.count) == (12, 12)


def test_what_a_split_says_is_found_once_for_all_memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = recording(annotated=False)
    write_bags(tmp_path / "bags", 3, config)
    data, _ = read_bags(recordings_under([tmp_path / "bags"]), config, tmp_path / "cache")
    searched: list[int] = []

    def find(sides: Sequence[Sequence[Demonstration]], *_: object) -> Decisions:
        searched.append(len(sides[0]))
        return without_decisions(sides)

    monkeypatch.setattr("trace_memory_ros.learning.bags.training.find_decisions", find)
    plans = Plans(data, config, RunConfig(), {}, tmp_path / "features")
    for chosen in (Split([0, 1, 2, 3], [], [4, 5]), Split([2, 3, 4, 5], [], [0])):
        plain, strong = (plans.of(memory, chosen, noise) for memory, noise in (("gru", 1.0), ("trace", 10.0)))
        assert plain.told is strong.told and (plain.design.depth, strong.design.depth) == (0, 2)
        noises = [plan.recipe.augmentation.signature_noise for plan in (plain, strong)]
        assert noises[1] == pytest.approx(10.0 * noises[0])
    assert searched == [4, 4]


def test_trials_are_of_what_the_episodes_hold_and_of_what_is_seen(tmp_path: Path) -> None:
    config = recording()
    write_bags(tmp_path / "bags", 3, config)

    def learned_from(given: RecordingConfig) -> dict[str, object]:
        data, _ = read_bags(recordings_under([tmp_path / "bags"]), given, tmp_path / "cache")
        return Plans(data, given, RunConfig(), {}, tmp_path / "features").learned_from([0, 1, 4])

    before = learned_from(config)
    assert learned_from(config) == before and before["episodes"] == ["00_0#0", "00_1#0", "02_0#0"]
    turned = replace(config, observation=replace(config.observation, state=config.observation.state[::-1]))
    changed = learned_from(turned)
    assert changed["numbers"] != before["numbers"] and changed["observation"] != before["observation"]
    write_bag(tmp_path / "bags" / "02_0", 17, 0, config)
    changed = learned_from(config)
    assert changed["episodes"] == before["episodes"] and changed["numbers"] != before["numbers"]


def test_ticks_without_joints_are_neither_written_nor_read(tmp_path: Path) -> None:
    config = recording()
    write_bags(tmp_path, 3, config)
    write_bag(tmp_path / "lossy", 7, 0, config, lost=(8, 9, 10, 11, 12))
    plan = prepared(tmp_path, config, replace(OPTIONS, clock=EveryTicks(1)), share=0.25)
    (lossy,) = [e for b in (plan.training, plan.held_out) for e in b.data.episodes if e.demo.usable is not None]
    assert lossy.demo.usable is not None
    gone = np.flatnonzero(~lossy.demo.usable)
    assert gone.tolist() == [10, 11, 12]  # before, the sample of tick 7 is fresh enough
    assert not lossy.write_mask(UpdateClock(EveryTicks(1)))[gone].any()
    assert not set(gone) & set(lossy.readable)
    np.testing.assert_array_equal(lossy.state[10], lossy.state[9])


def test_without_annotation_reads_lie_anywhere_and_the_branch_is_not_judged(tmp_path: Path) -> None:
    config = recording(annotated=False)
    write_bags(tmp_path, 4, config)
    plan = prepared(tmp_path, config)
    assert plan.recipe.memory_first.stage_steps < SHORT.memory_first.stage_steps
    torch.manual_seed(0)
    agent = build.build_agent(plan.design, plan.training)
    assert branch_accuracy(agent, plan.held_out) is None
    last = Trainer(agent, plan.training, plan.held_out, plan.recipe, 0).run(lambda _: None, every=2)
    assert last.train_branch_accuracy is None
    assert last.validation_chunk_error is not None and last.validation_chunk_error > 0.0


def test_a_signature_memory_trains_on_another_robot(annotated: Prepared, tmp_path: Path) -> None:
    config = recording()
    write_bags(tmp_path, 3, config)
    plan = prepared(tmp_path, config, BagOptions("trace", 2, chunk=4), share=0.34)
    assert isinstance(plan.design.clock, PathLength)
    agent = build.build_agent(plan.design, plan.training)
    assert agent.memory.dims.signature == 6 + 36
    losses = agent.losses(plan.training.build([0, 1], [1.0, 1.0], [np.array([3, BRANCH_TICK])] * 2))
    assert all(torch.isfinite(value) for value in losses.values())


def demo(name: str, scene: str, answer: int) -> Demonstration:
    none = np.zeros((TICKS, 0), np.float32)
    return Demonstration(name, scene, np.arange(TICKS), {}, none.astype(float), none, (1,), (answer,))


def test_the_split_keeps_labels_apart_in_proportion_and_follows_its_seed() -> None:
    demos = [demo(str(i), str(i), int(i < 6)) for i in range(24)]
    found = split(demos, 1 / 3, 1 / 6, seed=0)
    assert [sum(demos[i].answers == (1,) for i in side) for side in found] == [3, 1, 2]
    assert [len(side) for side in found] == [12, 4, 8]
    assert split(demos, 1 / 3, 1 / 6, seed=0) == found
    assert split(demos, 1 / 3, 0.0, seed=0).held_out == found.held_out
    assert split(demos, 1 / 3, 1 / 6, seed=1).held_out != found.held_out


def test_one_scene_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="at least two scenes"):
        split([demo("a", "same", 0), demo("b", "same", 1)], 0.5, 0.1, 0)


def test_the_clock_writes_about_as_often_as_asked_for_and_not_for_a_standing_arm() -> None:
    rng = np.random.default_rng(0)
    states = [np.cumsum(rng.normal(0, 0.2, (300, 5)), axis=0).astype(np.float32) for _ in range(9)]
    rule = choose_clock(states, writes=30)
    writes = [UpdateClock(rule).write_mask(state).sum() for state in states]
    assert 27 <= np.median(writes) <= 33
    assert UpdateClock(rule).write_mask(rng.normal(0, 0.01, (300, 5)).astype(np.float32)).sum() == 1
    with pytest.raises(ValueError, match="never changes"):
        choose_clock([np.zeros((10, 5), np.float32)])


def test_clock_rules_are_read_from_text() -> None:
    assert parse_clock("path:0.5") == PathLength(0.5, 0.5)
    assert parse_clock("path:0.5:0.1") == PathLength(0.5, 0.1)
    assert parse_clock("every:3") == EveryTicks(3)
    with pytest.raises(ValueError, match="clock 'every:0': .* at least 1"):
        parse_clock("every:0")
    for wrong in ("every:2.5", "path:x", "often"):
        with pytest.raises(ValueError, match=f"clock '{wrong}': use path:LENGTH"):
            parse_clock(wrong)


def test_groups_part_where_they_differ_beyond_their_spread() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(0, 0.1, (2, 8, 20, 3)).astype(np.float32)
    other[:, 12:, 1] += 1.0
    assert np.flatnonzero(divergent_ticks([one, other], np.full(3, 0.2, np.float32)))[0] == 12


def test_the_usual_sizes_learn_the_cue_from_bags(tmp_path: Path) -> None:
    config = recording()
    write_bags(tmp_path, 24, config)
    plan = prepared(tmp_path, config, BagOptions(chunk=4), share=0.3, validation=0.0)
    # Without augmentation TRACE learns by heart which episode it is in.
    first = replace(plan.recipe.memory_first, delay_factors=(), partners=0)
    recipe = replace(plan.recipe, memory_first=first, augmentation=Augmentation(shift_px=0))
    torch.manual_seed(0)
    agent = build.build_agent(plan.design, plan.training)
    lines: list[Progress] = []
    model = learn_memory(agent, plan.training, plan.data.validation, recipe, 0, lines.append)
    found = branch_accuracy(model.eval(), plan.held_out)
    assert found is not None and found.value >= 0.8
