"""Three splits: no scene and no seed in two of them, answers in proportion, held-out episodes looked at last."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning.synthetic import design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.bags.data import split
from trace_memory_ros.learning.data.batches import Data
from trace_memory_ros.learning.data.dataset import Episode, TrainingSet
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import JOINT, Judged, Progress, Reporter

SHORT = Recipe(
    memory_first=MemoryFirst(clock_factors=(2.0,), stage_steps=4, check_steps=2, settle_steps=0, attempts=2, least=1.0),
    steps=3,
    reads=3,
    batch_pairs=2,
)


def demo(name: int, scene: int, answer: int) -> Demonstration:
    none = np.zeros((3, 0), np.float32)
    return Demonstration(str(name), str(scene), np.arange(3), {}, none.astype(float), none, (1,), (answer,))


@settings(max_examples=60, deadline=None)
@given(
    scenes=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2)), min_size=2, max_size=60),
    held_out=st.floats(0.01, 0.5),
    validation=st.floats(0.0, 0.49),
    seed=st.integers(0, 99),
)
def test_every_episode_is_on_one_side_and_every_scene_too(
    scenes: Sequence[tuple[int, int]], held_out: float, validation: float, seed: int
) -> None:
    demos = [demo(i, scene, answer) for i, (scene, answer) in enumerate(scenes)]
    if len({d.scene for d in demos}) < 2:
        with pytest.raises(ValueError, match="at least two scenes"):
            split(demos, held_out, validation, seed)
        return
    found = split(demos, held_out, validation, seed)
    assert sorted([*found.training, *found.validation, *found.held_out]) == list(range(len(demos)))
    sides = [{demos[i].scene for i in side} for side in found]
    assert sum(map(len, sides)) == len(set.union(*sides))
    assert found.training and found.held_out


@settings(max_examples=40, deadline=None)
@given(counts=st.tuples(st.integers(2, 40), st.integers(2, 40)), seed=st.integers(0, 9))
def test_answers_are_in_proportion(counts: tuple[int, int], seed: int) -> None:
    demos = [demo(i, i, int(i < counts[0])) for i in range(sum(counts))]
    found = split(demos, 0.25, 0.1, seed)
    for share, side in ((0.25, found.held_out), (0.1, found.validation)):
        for answer, count in ((1, counts[0]), (0, counts[1])):
            held = sum(demos[i].answers == (answer,) for i in side)
            # At least one scene is held out, however few there are; where both answers are rare the shares are of all.
            rare = share * max(counts) <= 0.5 and abs(len(side) - share * sum(counts)) <= 0.5
            assert abs(held - share * count) <= 0.5 or rare or (share == 0.25 and sum(counts) <= 4 and held == 1)


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(1, 6), min_size=30, max_size=90), seed=st.integers(0, 9))
def test_sequences_of_answers_that_hardly_occur_twice_are_held_out_in_proportion(lengths: list[int], seed: int) -> None:
    rng = np.random.default_rng(len(lengths))
    answers = [tuple(rng.integers(2, size=length).tolist()) for length in lengths]
    demos = [replace(demo(i, i, 0), decision_ticks=several, answers=several) for i, several in enumerate(answers)]
    found = split(demos, 1 / 6, 1 / 10, seed)
    kinds = len({several for several in answers if answers.count(several) > 3})
    for share, side in ((1 / 6, found.held_out), (1 / 10, found.validation)):
        assert abs(len(side) - share * len(demos)) <= 1 + kinds / 2
    # The other sides are drawn: three scenes of thirty may have the same answer.
    assert {answer for i in found.training for answer in demos[i].answers} == {0, 1}


@pytest.mark.parametrize(("held_out", "validation", "said"), [(0.9, 0.0, "leave none"), (0.5, 0.5, "validation share")])
def test_shares_that_leave_nothing_are_refused(held_out: float, validation: float, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        split([demo(0, 0, 0), demo(1, 1, 0)], held_out, validation, 0)


def test_no_seed_of_the_arm_is_in_two_splits() -> None:
    recipe = Recipe()
    assert len(set(recipe.all_seeds)) == len(recipe.all_seeds) == 60 + 12 + 12
    assert [list(side) for side in recipe.by_split(recipe.all_seeds)] == [
        recipe.training_seeds,
        recipe.validation_seeds,
        recipe.held_out_seeds,
    ]
    assert max(recipe.all_seeds) < 200_000
    with pytest.raises(ValueError, match="no seed may be in two splits"):
        Recipe(pairs=60_000)


class Sealed(TrainingSet):
    """A set that fails whoever looks at it before it is opened."""

    def __init__(self, episodes: list[Episode]) -> None:
        self.opened = True
        super().__init__(episodes)

    @property
    def episodes(self) -> list[Episode]:
        assert self.opened, "somebody looked at held-out episodes before the end"
        return self._episodes

    @episodes.setter
    def episodes(self, episodes: list[Episode]) -> None:
        self._episodes = episodes


class Opens(Reporter):
    """Opens the set at the end of the joint phase."""

    def __init__(self, data: Sealed, steps: int) -> None:
        self.data, self.steps, self.found = data, steps, Judged(None, None)

    def progress(self, line: Progress) -> None:
        self.data.opened = line.phase == JOINT and line.step == self.steps

    def held_out(self, found: Judged) -> None:
        self.found = found


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_nothing_looks_at_held_out_episodes_before_the_end(memory: str) -> None:
    plan = design(memory)
    data = build.prepare(plan, [pair(i) for i in range(3)], [pair(50)], [pair(100), pair(101)])
    assert data.held_out is not None
    sealed = Sealed(data.held_out.data.episodes)
    sealed.opened = False
    log = Opens(sealed, SHORT.steps)
    fitted = fit(plan, Data(data.training, data.validation, replace(data.held_out, data=sealed)), SHORT, 0, report=log)
    assert log.found == fitted.held_out
    assert fitted.held_out.accuracy is not None and fitted.held_out.accuracy.count == 4
    assert fitted.last.validation_branch_accuracy is not None
    assert fitted.figures()["held_out_branch_accuracy"]["claimed"] is False
