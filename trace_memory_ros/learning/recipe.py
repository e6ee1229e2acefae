"""Everything a training run is decided by, apart from the task and the memory's name."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Stage:
    """One stage of the delay curriculum: write every `clock_factor` times the final update interval, for `steps` steps.

    A coarser clock shortens the delay in updates between cue and branch without changing the episode.
    """

    clock_factor: float
    steps: int

    def __post_init__(self) -> None:
        if self.clock_factor < 1.0 or self.steps < 1:
            raise ValueError(f"{self}: clock_factor must be at least 1 and steps at least 1")


@dataclass(frozen=True)
class Augmentation:
    """Strengths of the episode-consistent augmentation; signature and state noise are in standard deviations."""

    brightness: float = 0.15
    colour_gain: float = 0.10
    pixel_noise: float = 0.01
    shift_px: int = 2
    state_offset: float = 0.05
    state_noise: float = 0.02
    signature_offset: float = 0.10
    signature_noise: float = 0.05
    clock_jitter: float = 0.25


@dataclass(frozen=True)
class Recipe:
    """Data, curriculum and optimiser of one run."""

    pairs: int = 120
    held_out_pairs: int = 16
    first_held_out_seed: int = 100_000
    stages: tuple[Stage, ...] = (Stage(8.0, 200), Stage(4.0, 200), Stage(2.0, 300), Stage(1.0, 900))
    batch_pairs: int = 6
    reads: int = 8
    reads_near_branch: float = 0.5
    learning_rate: float = 1e-3
    weight_decay: float = 1e-3
    warm_up_steps: int = 50
    gradient_clip: float = 1.0
    balance_weight: float = 0.01
    entropy_weight: float = 0.001
    consistency_weight: float = 0.01
    kl_weight: float = 1e-3
    augmentation: Augmentation = field(default_factory=Augmentation)

    def __post_init__(self) -> None:
        for name in ("pairs", "held_out_pairs", "batch_pairs", "reads"):
            if getattr(self, name) < 1:
                raise ValueError(f"Recipe.{name} = {getattr(self, name)}: must be at least 1")
        if not self.stages:
            raise ValueError("Recipe.stages is empty: at least one curriculum stage is needed")

    @property
    def steps(self) -> int:
        return sum(stage.steps for stage in self.stages)

    def stage_at(self, step: int) -> Stage:
        """The stage that `step` (from 0) belongs to; the last one from its end on."""
        for stage in self.stages:
            if step < stage.steps:
                return stage
            step -= stage.steps
        return self.stages[-1]

    def to_dict(self) -> dict[str, object]:
        out = asdict(self)
        out["stages"] = [asdict(stage) for stage in self.stages]
        return out
