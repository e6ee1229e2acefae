"""The first training phase: the memory learns what to keep, under a curriculum on the delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.build import reinitialise
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import Episode, TrainingSet, UnpairedSet
from trace_memory_ros.learning.data.exchange import way_tells, with_exchanges
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, judge
from trace_memory_ros.learning.engine.keeping import Keeper, Kept
from trace_memory_ros.learning.engine.optimise import Built, Feed, Sampling, Together, descend
from trace_memory_ros.learning.engine.out_of_memory import naming_the_setting
from trace_memory_ros.learning.engine.read_ahead import read_ahead
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import MEMORY, Progress
from trace_memory_ros.learning.report.readings import readings
from trace_memory_ros.memory.base import Memory

ATTEMPT_SEEDS = 1_000_003
"""Between the seeds of two attempts: further than training seeds lie apart."""
LESSON_EPISODES, LESSON_GROWTH = 8, 1.5
"""Episodes of the first lesson at least, and how many times as many each next one has."""


@dataclass(frozen=True)
class Stage:
    """What is learned from, at how coarse a clock, for how many steps at most, at what share of the learning rate."""

    training: BatchBuilder
    validation: BatchBuilder | None
    clock_factor: float
    steps: int
    rate: float = 1.0


def delay_stages(training: BatchBuilder, validation: BatchBuilder | None, first: MemoryFirst) -> list[Stage]:
    """The curriculum on the delay alone: all episodes at each clock factor in turn, then at delays beyond their own.

    There are none of these where nothing is decided.
    """
    factors = first.delay_factors if _decides(training) else ()
    return [Stage(training, validation, factor, first.stage_steps) for factor in first.clock_factors] + [
        Stage(training.delayed(factor), validation and validation.delayed(factor), 1.0, first.stage_steps)
        for factor in factors
    ]


def usual_stages(training: BatchBuilder, validation: BatchBuilder | None, first: MemoryFirst) -> list[Stage]:
    """`delay_stages`; before them, at the coarsest clock, episodes with few decisions or short shows, where enough are.

    Several cues at once are not discovered; one is, and with it known the next. So it is with what happens to a cue.
    """
    coarsest, steps = first.clock_factors[0], first.stage_steps
    lessons = (Stage(fewer, _up_to(validation, most), coarsest, steps) for most, fewer in _few_decisions(training))
    shows = (Stage(shorter, validation, coarsest, steps) for shorter in _short_shows(training))
    before = [
        replace(lesson, training=with_exchanges(lesson.training, first.partners))
        for lesson in (*_growing(lessons), *_growing(shows))
    ]
    return [*before, *delay_stages(with_exchanges(training, first.partners), validation, first)]


def only_stage(training: BatchBuilder, validation: BatchBuilder | None, first: MemoryFirst) -> Stage:
    """All that a memory needs to which delays do not matter, at the final clock: as long as two stages of others.

    Not longer than all that others have; where nothing is decided and nothing mastered, as long as that.
    """
    stages = min(2, first.stages) if _decides(training) else len(first.clock_factors)
    return Stage(training, validation, 1.0, stages * first.stage_steps)


def _decides(training: BatchBuilder) -> bool:
    return any(episode.demo.decision_ticks for episode in training.data.episodes)


def _growing(lessons: Iterable[Stage]) -> Iterator[Stage]:
    """Those of ever larger lessons that have episodes enough: half as many again as the one before."""
    least = LESSON_EPISODES
    for lesson in lessons:
        if (found := len(lesson.training.data.episodes)) >= least:
            yield lesson
            least = math.ceil(LESSON_GROWTH * found)


def _few_decisions(training: BatchBuilder) -> Iterator[tuple[int, BatchBuilder]]:
    """How many decisions an episode has at most, and those that have no more."""
    counts = sorted({len(one.demo.decision_ticks) for one in training.data.episodes} - {0})
    for most in counts[:-1]:
        fewer = _up_to(training, most)
        if fewer is not None:
            yield most, fewer


def _short_shows(training: BatchBuilder) -> Iterator[BatchBuilder]:
    """Scenes of twins whose show is at most 1.5, 2.25, ... times as long as the shortest."""
    data = training.data
    if not isinstance(data, TrainingSet):
        return
    lengths = [max(_shown_ticks(data.episodes[i]) for i in data.scene(number)) for number in range(data.pairs)]
    longest = LESSON_GROWTH * min(lengths)
    while 0 < longest < max(lengths):
        yield replace(training, data=data.scenes([k for k, ticks in enumerate(lengths) if ticks <= longest]))
        longest *= LESSON_GROWTH


def _shown_ticks(episode: Episode) -> int:
    shown = episode.demo.shown
    return 0 if shown is None else int(shown.sum())


def _up_to(builder: BatchBuilder | None, decisions: int) -> BatchBuilder | None:
    if builder is None or not isinstance(builder.data, UnpairedSet):
        return None
    fewer = builder.data.up_to(decisions)
    return replace(builder, data=UnpairedSet(fewer, builder.data.path)) if fewer else None


def learn_memory(
    agent: Agent,
    training: BatchBuilder,
    validation: BatchBuilder | None,
    recipe: Recipe,
    seed: int,
    report: Callable[[Progress], None],
    stages: Sequence[Stage] = (),
    head: Callable[[Agent], AuxiliaryHead] = AuxiliaryHead,
    feed: Feed | None = None,
    keeper: Keeper | None = None,
    kept: Kept | None = None,
) -> AuxiliaryHead:
    """Train encoder and memory in place until the last stage is mastered, or its steps are spent.

    stages: by default `usual_stages`, or `only_stage`. kept: where this phase was when the keeper kept it, to go on
    there. Returns encoder and memory under the `head` they were trained with. Raises as `Trainer.run` does.

    A full-length delay is not discovered from scratch: the cue's gradient has to survive every write between. At a
    coarse clock few writes lie between, and what was learned there carries over to the next finer one. Some trainings
    never discover the cue, or learn episodes by heart; validation decisions show it, and they start again from
    other initial weights. Without a validation split training decisions show the first of these. What finds nothing in
    half of the stages is not taken through the others, whose delays are longer, while there is another attempt.
    """
    feed, keeper = feed or Feed(), keeper or Keeper(seed, recipe)
    first, reach = _suited(recipe.memory_first, agent.memory), agent.memory.reach
    recipe = replace(recipe, augmentation=recipe.augmentation.stronger(1.0, first.state_noise_times))
    begun = int(kept.place["attempt"]) if kept else 1
    for attempt in range(begun, recipe.memory_first.attempts + 1):
        drawn = seed + ATTEMPT_SEEDS * (attempt - 1)
        torch.manual_seed(drawn)
        if attempt > 1:
            reinitialise(agent, training)
        model = _with_losses(head(agent), training, recipe)
        alone = () if agent.memory.delay_matters else [only_stage(training, validation, first)]
        planned = [
            # What is beyond a memory's reach can be learned by heart alone.
            stage
            for stage in stages or alone or _stages_of(attempt, training, validation, first)
            if stage.training.within(reach)
        ]
        run = _Attempt(model, recipe, drawn, report, planned, attempt, feed, keeper)
        if kept is not None and attempt == begun:
            run.restore(kept)
        last = attempt == recipe.memory_first.attempts
        while run.stage < len(planned) and (last or not run.hopeless):
            run.learn()
        if run.learned:
            break
    return run.model


def _suited(first: MemoryFirst, memory: Memory) -> MemoryFirst:
    """Noise over states, and exchanged sights, as suit a memory."""
    if memory.reach is not None:
        first = replace(first, state_noise_times=max(first.state_noise_times, first.window_state_noise))
    # What has no address knows no way by heart, and learned less from exchanged sights.
    return first if memory.uses_signature else replace(first, partners=0)


def _with_losses(model: AuxiliaryHead, training: BatchBuilder, recipe: Recipe) -> AuxiliaryHead:
    """The head with what the recipe has weights for: pictures to come, sights known again, answers named."""
    if recipe.future_weight:
        model.foresee(training, recipe.future_weight)
    if recipe.recognition_weight:
        model.recognise()
    if recipe.answer_weight and _decides(training):
        model.name_answers(training, recipe.pointed_answers)
    return model


def _stages_of(
    attempt: int, training: BatchBuilder, validation: BatchBuilder | None, first: MemoryFirst
) -> list[Stage]:
    """`usual_stages`. Later attempts are without partners where the way tells the answers, and so is the last: what
    nothing but the way tells is lost with them.
    """
    if first.partners and attempt > 1 and (attempt == first.attempts or way_tells(training)):
        first = replace(first, partners=0)
    return usual_stages(training, validation, first)


class _Attempt:
    """Training from one set of initial weights. total: steps so far, of all stages.

    stage, step: where it is. mastered_at: the step at which the stage was mastered; mastered: whether any was.
    learned: whether enough validation decisions are right, or training decisions where there are no others.
    """

    def __init__(
        self,
        model: AuxiliaryHead,
        recipe: Recipe,
        seed: int,
        report: Callable[[Progress], None],
        stages: Sequence[Stage],
        attempt: int,
        feed: Feed,
        keeper: Keeper,
    ) -> None:
        self.model, self.recipe, self.seed, self.report = model, recipe, seed, report
        self.stages, self.attempt, self.feed, self.keeper = stages, attempt, feed, keeper
        self.total = self.stage = self.step = 0
        self.mastered_at: int | None = None
        self.mastered = False
        self.learned = True
        self.learner = Together(model, feed.group)
        agent, first = model.agent, recipe.memory_first
        parameters = [*agent.encoder.parameters(), *agent.memory.parameters(), *model.head.parameters()]
        self.optimiser = torch.optim.AdamW(parameters, lr=first.learning_rate, weight_decay=recipe.weight_decay)

    @property
    def hopeless(self) -> bool:
        """Whether half of the stages are over and taught nothing."""
        return 2 * self.stage >= len(self.stages) and not (self.mastered or self.learned)

    def learn(self) -> None:
        """The rest of a stage, until it is mastered or its steps are spent; the last settles for some steps more.

        What settles learns ever more slowly: at the full rate each step undoes some of what others taught.
        """
        first, stage, number = self.recipe.memory_first, self.stages[self.stage], self.stage
        settle = min(first.settle_steps, stage.steps) if number == len(self.stages) - 1 else 0
        sizes = (first.batch_pairs, first.reads, first.shares)
        sampling = Sampling(
            stage.training,
            self.recipe,
            stage.clock_factor,
            *sizes,
            pictures=False,
            future=self.recipe.future_weight > 0,
            answers=self.model.answers,
        )

        def make(step: int) -> Built:
            return self.feed.built(sampling, (self.seed, 1, number, step))

        steps = range(self.step + 1, stage.steps + 1)
        with naming_the_setting(self.recipe, MEMORY), read_ahead(make, steps, self.feed.hardware.loaders) as batches:
            for step in steps:
                built = self.feed.next(batches)
                for group in self.optimiser.param_groups:
                    group["lr"] = first.learning_rate * stage.rate * self._settling(step, settle)
                losses = self._descend(sampling, built, step)
                self.step = step
                if step % first.check_steps == 0:
                    mastered = self._check(stage, losses, built)
                    self.mastered_at = self.mastered_at or (step if mastered else None)
                    if step >= self._end(settle):
                        break
                    if self.keeper.due:
                        self.save()
                self.keeper.stop_if_asked(
                    self.feed.hardware.device, self.save, f"step {self.total} of the memory phase"
                )
        self.mastered |= self.mastered_at is not None
        self.stage, self.step, self.mastered_at = number + 1, 0, None

    def _settling(self, step: int, settle: int) -> float:
        """Share of the stage's learning rate at a step: all of it, and falling to nothing in the steps that settle."""
        return min(settle, max(1, self._end(settle) + 1 - step)) / settle if settle else 1.0

    def _end(self, settle: int) -> int:
        """Step with which the stage is over, as far as is known."""
        steps = self.stages[self.stage].steps
        return steps if self.mastered_at is None else min(steps, self.mastered_at + settle)

    def _descend(self, sampling: Sampling, built: Built, step: int) -> dict[str, float]:
        self.model.agent.memory.anneal((self.stage + step / self.stages[self.stage].steps) / len(self.stages))
        batch = self.feed.given(sampling, built)
        losses = descend(self.learner, self.optimiser, batch, self.recipe, self.total, built.episodes, self.feed)
        self.total += 1
        self.feed.times.stepped(built.ticks)
        return losses

    def _check(self, stage: Stage, losses: dict[str, float], built: Built) -> bool:
        """Whether the stage is mastered, as the first of several processes finds it."""
        mastered = False
        if self.feed.group.writes:
            progress = self._progress(stage, losses, built)
            train = progress.train_branch_accuracy
            mastered = train is not None and train.value >= self.recipe.memory_first.enough
            self.report(progress)
        found = self.feed.group.of_first([float(mastered), float(self.learned)], self.feed.hardware.device)
        self.learned = bool(found[1])
        return bool(found[0])

    def _progress(self, stage: Stage, losses: dict[str, float], built: Built) -> Progress:
        model, factor, first = self.model, stage.clock_factor, self.recipe.memory_first
        model.eval()
        train = branch_accuracy(model, stage.training, factor, first.check_pairs)
        found = judge(model, stage.validation, factor, first.check_pairs)
        figures = self.feed.figures(self.optimiser) | readings(model.agent, built.batch)
        model.train()
        decided = found.accuracy or train
        self.learned = decided is None or decided.value >= first.least
        return Progress(MEMORY, self.total, factor, losses, train, *found, self.attempt, stage.training.delay, figures)

    def save(self) -> None:
        """Keep all that the rest of the phase depends on."""
        names = ("attempt", "stage", "step", "total", "mastered_at", "mastered", "learned")
        place = {name: getattr(self, name) for name in names}
        self.keeper.write(MEMORY, place, self._modules, self.optimiser)

    def restore(self, kept: Kept) -> None:
        """Go on where it was kept."""
        kept.into(self._modules, self.optimiser)
        for name, value in kept.place.items():
            setattr(self, name, value)

    @property
    def _modules(self) -> dict[str, nn.Module]:
        return {"encoder": self.model.agent.encoder, "memory": self.model.agent.memory, "head": self.model.head}
