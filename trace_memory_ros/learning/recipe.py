"""Everything a training run is decided by, apart from the task and the memory's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeVar

Pair = TypeVar("Pair")


@dataclass(frozen=True)
class Augmentation:
    """Strengths of the episode-consistent augmentation; signature and state noise are in standard deviations.

    hue: colours of an episode are turned about their mean by up to so many half circles; at 1 half of the episodes'
    are mirrored as well. Something is then known again by being alike, not by the colour that it had in training;
    where a colour has a meaning of its own this takes it away.

    memory_shift: by what share of their side the pictures that the memory sees are moved at most, all of an episode
    alike; `shift_px` is of the policy's. What few episodes show in some places only is then known in others.

    For kept features of a frozen backbone, whose images can no longer be perturbed: feature_offset, feature_noise, in
    standard deviations of the features; views: how many perturbed copies of each image are kept to draw from.
    """

    brightness: float = 0.15
    colour_gain: float = 0.10
    hue: float = 0.0
    pixel_noise: float = 0.01
    shift_px: int = 2
    state_offset: float = 0.05
    state_noise: float = 0.02
    signature_offset: float = 0.10
    signature_noise: float = 0.05
    clock_jitter: float = 0.25
    feature_offset: float = 0.0
    feature_noise: float = 0.0
    views: int = 0
    memory_shift: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.memory_shift <= 0.5:
            raise ValueError(f"Augmentation.memory_shift = {self.memory_shift}: must be from 0 to 0.5 of a side")

    def stronger(self, signature: float, state: float = 1.0) -> Augmentation:
        """The noise over signatures and states so many times as strong."""
        return replace(
            self,
            state_offset=state * self.state_offset,
            state_noise=state * self.state_noise,
            signature_offset=signature * self.signature_offset,
            signature_noise=signature * self.signature_noise,
        )


@dataclass(frozen=True)
class ReadShares:
    """Shares of the read ticks: just around the branch, where twins part, at pauses, at the start; rest: anywhere."""

    near_branch: float
    apart: float = 0.0
    pauses: float = 0.0
    start: float = 0.0

    def __post_init__(self) -> None:
        shares = (self.near_branch, self.apart, self.pauses, self.start)
        if min(shares) < 0 or sum(shares) > 1:
            raise ValueError(f"{self}: shares must not be negative and sum to at most 1")


@dataclass(frozen=True)
class MemoryFirst:
    """The first phase: encoder and memory learn to predict the expert's chunk through an auxiliary head,
    without images.

    clock_factors: the delay curriculum; each stage writes that many times more rarely than the final clock, so that the
    delay in updates grows without changing the episode. delay_factors: further stages at the final clock, with delays
    of up to so many times the demonstrated one (`data/delay.py`). A stage ends when the branch accuracy on training
    episodes reaches `enough`, looked at every `check_steps`, or after `stage_steps`; the last then settles, for up to
    `settle_steps` in which the learning rate falls to nothing. reads: per episode and step.
    state_noise_times: how many times as strong the noise over states is as in the joint phase, which has to steer:
    where a robot stands before it moves is each episode's own, and learned by heart where little else tells the answer.
    window_state_noise: that many times at least for a memory that looks back over single writes (`Memory.reach`), which
    knows each episode by the states in them. Nor does it learn delays that are beyond its reach.
    partners: others whose sights each way without twins is also learned with, by memories with an address
    (`data/exchange.py`); 0 for none.
    attempts: how often, at most, a memory that in the end gets less than `least` of the validation decisions right is
    trained from other initial weights; the last of several is without partners, and the second where the way tells.
    """

    clock_factors: tuple[float, ...] = (16.0, 8.0, 4.0, 2.0, 1.0)
    delay_factors: tuple[float, ...] = (4.0, 16.0)
    stage_steps: int = 600
    settle_steps: int = 100
    check_steps: int = 25
    check_pairs: int = 10
    enough: float = 0.99
    batch_pairs: int = 8
    reads: int = 16
    shares: ReadShares = ReadShares(near_branch=0.75)
    learning_rate: float = 2e-3
    state_noise_times: float = 1.0
    window_state_noise: float = 10.0
    partners: int = 4
    attempts: int = 3
    least: float = 0.75

    def __post_init__(self) -> None:
        for name in ("attempts", "check_steps", "check_pairs", "batch_pairs", "reads"):
            if getattr(self, name) < 1:
                raise ValueError(f"MemoryFirst.{name} = {getattr(self, name)}: must be at least 1")
        for name in ("state_noise_times", "window_state_noise", "partners"):
            if getattr(self, name) < 0:
                raise ValueError(f"MemoryFirst.{name} = {getattr(self, name)}: must not be negative")
        if not self.clock_factors or min(self.clock_factors) < 1.0:
            raise ValueError(f"MemoryFirst.clock_factors = {self.clock_factors}: at least one, each at least 1")
        if min(self.delay_factors, default=1.0) < 1.0:
            raise ValueError(f"MemoryFirst.delay_factors = {self.delay_factors}: each at least 1")

    @property
    def stages(self) -> int:
        """How many the curriculum on the delay has, where something is decided."""
        return len(self.clock_factors) + len(self.delay_factors)

    @property
    def delays(self) -> tuple[float, ...]:
        """Times the demonstrated delay; the joint phase is up to the last."""
        return 1.0, *self.delay_factors


@dataclass(frozen=True)
class Recipe:
    """Data, phases and optimiser of one run; `steps` is the length of the joint phase.

    branch_reach: ticks after the branch that count as near it; beyond, the robot's own motion gives the branch away.
    memory_rate: learning rate in the joint phase of what the first one learned, as a share of the policy's.
    frozen_trunk: keep the policy's image trunk as it is, which needs a policy that was trained before. future_weight:
    of the error of the pictures to come, in the first phase; 0 where they are not to be predicted. answer_weight: of
    naming the answer near a decision, in the first phase, where a chunk says little of it; 0 where that is not to be
    learned. pointed_answers: of how many decisions, the present one and those after it, the answer is named by pointing
    at a place in the picture; 0 where it may be anything. recognition_weight: of telling what was seen from what was
    seen in other episodes, in the first phase, by eyes that attend to places; 0 where that is not to be learned.
    """

    pairs: int = 60
    held_out_pairs: int = 12
    first_held_out_seed: int = 100_000
    validation_pairs: int = 12
    first_validation_seed: int = 50_000
    memory_first: MemoryFirst = field(default_factory=MemoryFirst)
    steps: int = 1200
    batch_pairs: int = 6
    reads: int = 8
    shares: ReadShares = ReadShares(near_branch=0.2, apart=0.2, pauses=0.2)
    branch_reach: int = 5
    learning_rate: float = 1e-3
    memory_rate: float = 0.3
    frozen_trunk: bool = False
    weight_decay: float = 1e-3
    warm_up_steps: int = 50
    gradient_clip: float = 1.0
    balance_weight: float = 0.01
    entropy_weight: float = 0.001
    consistency_weight: float = 0.01
    kl_weight: float = 1e-3
    future_weight: float = 0.0
    answer_weight: float = 0.0
    pointed_answers: int = 0
    recognition_weight: float = 0.0
    augmentation: Augmentation = field(default_factory=Augmentation)

    def __post_init__(self) -> None:
        for name in ("pairs", "held_out_pairs", "validation_pairs", "batch_pairs", "reads", "steps", "branch_reach"):
            if getattr(self, name) < 1:
                raise ValueError(f"Recipe.{name} = {getattr(self, name)}: must be at least 1")
        if not self.gradient_clip > 0:
            raise ValueError(
                f"Recipe.gradient_clip = {self.gradient_clip}: must be above 0, where nothing is left of a gradient; a "
                "large number clips none"
            )
        if self.pointed_answers < 0 or (self.pointed_answers and not self.answer_weight):
            raise ValueError(
                f"Recipe.pointed_answers = {self.pointed_answers}: must not be negative, and asks for an answer_weight "
                "above 0"
            )
        if self.pairs > self.first_validation_seed or self.validation_seeds[-1] >= self.first_held_out_seed:
            raise ValueError(
                f"{self.pairs} training seeds from 0, {self.validation_pairs} validation seeds from "
                f"{self.first_validation_seed} and held-out seeds from {self.first_held_out_seed}: no seed may be in "
                "two splits, choose fewer pairs or other first seeds"
            )

    @property
    def training_seeds(self) -> list[int]:
        """Scenario seeds of the training pairs."""
        return list(range(self.pairs))

    @property
    def validation_seeds(self) -> list[int]:
        """Scenario seeds of the pairs that attempts are chosen by."""
        return list(range(self.first_validation_seed, self.first_validation_seed + self.validation_pairs))

    @property
    def held_out_seeds(self) -> list[int]:
        """Scenario seeds of the held-out pairs, which nothing is chosen by."""
        return list(range(self.first_held_out_seed, self.first_held_out_seed + self.held_out_pairs))

    @property
    def all_seeds(self) -> list[int]:
        """Seeds of the training, validation and held-out splits; none is there twice."""
        return self.training_seeds + self.validation_seeds + self.held_out_seeds

    def by_split(self, pairs: Sequence[Pair]) -> list[Sequence[Pair]]:
        """Pairs of `all_seeds`, in their order, by split."""
        first, second = self.pairs, self.pairs + self.validation_pairs
        return [pairs[:first], pairs[first:second], pairs[second:]]

    def weight_of(self, loss: str) -> float:
        """Weight of a named loss in the sum (TRACE eq. 38); 1 for the policy's own."""
        weights = {
            "kl": self.kl_weight,
            "future": self.future_weight,
            "answer": self.answer_weight,
            "recognition": self.recognition_weight,
            "balance": self.balance_weight,
            "entropy": self.entropy_weight,
            "consistency": self.consistency_weight,
        }
        return weights.get(loss, 1.0)

    def to_dict(self) -> dict[str, object]:
        """Plain mapping for checkpoints and summaries."""
        return asdict(self)
