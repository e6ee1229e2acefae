"""What `bench detail` compares: image sizes, eyes, memories and ways to augment, on tasks with small cues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from studies.grid import Plan, Run
from trace_memory_ros.arm.design import arm_design
from trace_memory_ros.arm.sim.names import DETAIL_TASKS
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, ReadShares, Recipe
from trace_memory_ros.observation.config import ObservationConfig, default_arm
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.vision import weights
from trace_memory_ros.vision.config import BackboneConfig

TASKS = (*DETAIL_TASKS, "match")
SCHEMA = 1
IMAGE_PX = 224
FRAME_S = 0.8
"""Between two pictures, which makes thirty an episode: every one that a memory might need passes its eyes once."""
PAIRS, CHOOSING, TESTED = 60, 16, 20
"""Scenes, each with all its twins, that are learned from, that restarts look at, and that are reported."""
CHOOSING_SEED, TESTED_SEED = 100_000, 120_000
DEPTH = 2
WINDOWS = {"trace": PathWindow()}
FROZEN = "efficientnet_lite0"


@dataclass(frozen=True)
class Eyes:
    """What the memory looks through. px: side of its pictures; pooling: how a picture's features become one vector.

    name: as `--eyes` has it. label: as the table has it.
    augmented: on `pixels`, by `noise` on kept features, by kept `views`, or not at all (`none`). crop: of the picture,
    as shares, before it is brought to px; None for all of it.
    """

    name: str
    label: str
    backbone: str
    px: int
    pooling: str = "mean"
    options: Mapping[str, Any] = field(default_factory=dict)
    augmented: str = "pixels"
    crop: tuple[float, float, float, float] | None = None

    @property
    def frozen(self) -> bool:
        """Whether its weights come from a file and stay as they are."""
        return self.backbone == FROZEN

    @property
    def kept(self) -> bool:
        """Whether features are kept on disk."""
        return self.frozen and self.augmented != "pixels"


def _frozen(name: str, px: int, stride: int, pooling: str, augmented: str = "none", note: str = "") -> Eyes:
    label = f"{FROZEN}, stride {stride}, {pooling}{note}, {px} px"
    return Eyes(name, label, FROZEN, px, pooling, {"stride": stride}, augmented)


SMALL = tuple(Eyes(f"small_{px}", f"small, {px} px", "small", px) for px in (16, 48, 96))
TOKENS = tuple(_frozen(f"tokens_{px}", px, 16, "attention") for px in (16, 48, 96, 224))
POOLED = _frozen("pooled_224", 224, 32, "mean")
CROP = (0.32, 0.0, 0.68, 0.36)
"""Left, top, right, bottom: the part of the picture in which the cue may lie."""
CROPPED = (
    Eyes("small_48_crop", "small, 48 px of a crop", "small", 48, crop=CROP),
    replace(
        _frozen("tokens_96_crop", 96, 16, "attention"),
        label=f"{FROZEN}, stride 16, attention, 96 px of a crop",
        crop=CROP,
    ),
)
AUGMENTED = (
    _frozen("tokens_96_pixels", 96, 16, "attention", "pixels", ", augmented on pixels"),
    _frozen("tokens_96_noise", 96, 16, "attention", "noise", ", noise on features"),
    _frozen("tokens_96_views", 96, 16, "attention", "views", ", 4 kept views"),
)
"""Beside `TOKENS` at this size, which is not augmented."""
EYES = {eyes.label: eyes for eyes in (*SMALL, *TOKENS, POOLED, *CROPPED, *AUGMENTED)}
MEMORIES = ("gru", "trace", "first_frame")
BESIDE = (SMALL[0].label, TOKENS[-1].label)
"""Eyes that must fail and must not: trained first, and with the other memories too."""
ONE_SEED = tuple(eyes.label for eyes in AUGMENTED if not eyes.kept)
"""Eyes that are too dear for more than the first seed of the first task: whose features are computed anew."""


def _eyes(run: Run) -> str:
    return parts_of(run.row)[0].label


def _urgency(run: Run) -> tuple[bool, ...]:
    eyes, memory = parts_of(run.row)
    return eyes.label in ONE_SEED, memory != MEMORIES[0], eyes.label not in BESIDE, eyes.label == BESIDE[0]


def rows() -> tuple[str, ...]:
    """Rows of the table, what must be shown first."""
    first = [row_of(label, MEMORIES[0]) for label in EYES]
    others = [row_of(label, memory) for memory in MEMORIES[1:] for label in BESIDE]
    return (*first, *others)


def row_of(eyes: str, memory: str) -> str:
    """The row of eyes with a memory."""
    return f"{eyes}; {memory}"


def parts_of(row: str) -> tuple[Eyes, str]:
    """Eyes and memory of a row."""
    eyes, _, memory = row.partition("; ")
    return EYES[eyes], memory


RECIPE = Recipe(
    pairs=PAIRS,
    validation_pairs=CHOOSING,
    memory_first=MemoryFirst(
        clock_factors=(16.0, 4.0, 1.0),
        # The coarsest clock is cheap, and small shapes are found there after 300 to 800 steps.
        stage_steps=1000,
        settle_steps=25,
        check_pairs=CHOOSING,
        # Few reads and many scenes: what is seen costs, and a scene shows its cue once.
        batch_pairs=12,
        reads=4,
        shares=ReadShares(near_branch=0.9),
        attempts=1,
        # What is asked is whether the cue is seen, at the delay that was demonstrated.
        delay_factors=(),
    ),
)
STRENGTHS = {
    # Kept features are the images' as they are.
    "none": Augmentation(),
    "pixels": Augmentation(),
    "noise": Augmentation(feature_offset=0.1, feature_noise=0.1),
    "views": Augmentation(views=4),
}


@dataclass(frozen=True, kw_only=True)
class DetailPlan(Plan):
    """The grid. features: cache of frozen features."""

    recipe: Recipe
    features: Path

    def runs(self) -> list[Run]:
        """All trainings, what must be shown first; eyes that are too dear once."""
        once = (self.seeds[0], self.tasks[0])
        wanted = [run for run in super().runs() if _eyes(run) not in ONE_SEED or (run.seed, run.task) == once]
        return sorted(wanted, key=_urgency)

    def recipe_of(self, eyes: Eyes) -> Recipe:
        """How a row is trained."""
        return replace(self.recipe, augmentation=STRENGTHS[eyes.augmented])

    def trained_by(self, run: Run) -> object:
        """Design, eyes and recipe."""
        eyes, memory = parts_of(run.row)
        design = design_of(eyes, memory)
        seen = [eyes.px, eyes.crop, eyes.augmented, design.backbone.to_dict(), design.pooling]
        return [SCHEMA, seen, dict(design.options), self.recipe_of(eyes).to_dict(), self.pairs]


def observation_of(eyes: Eyes) -> ObservationConfig:
    """The overhead camera alone, which is the one that sees the cue, as these eyes look at it."""
    return replace(recorded(eyes.crop), thumbnail_px=eyes.px)


def recorded(crop: tuple[float, float, float, float] | None = None) -> ObservationConfig:
    """What is recorded."""
    arm = default_arm()
    return replace(arm, cameras=(replace(arm.cameras[0], crop=crop),), image_px=IMAGE_PX)


@cache
def _backbone(label: str) -> BackboneConfig:
    """Of eyes by their label; finding and hashing its weights takes half a second."""
    eyes = EYES[label]
    return weights.choose(eyes.backbone, eyes.frozen, eyes.options, px=eyes.px)


def design_of(eyes: Eyes, memory: str) -> Design:
    """A memory as the arm's tables have it, with these eyes."""
    design = arm_design(memory, DEPTH, window=WINDOWS.get(memory))
    return replace(
        design,
        observation=observation_of(eyes),
        backbone=_backbone(eyes.label),
        pooling=eyes.pooling,
        # The policy is built, and never asked in this phase.
        policy_options={"image_px": 16},
    )


def quick_plan(plan: DetailPlan) -> DetailPlan:
    """A first look: one seed, the sizes that must fail and must not, few episodes and steps."""
    short = replace(plan.recipe.memory_first, stage_steps=25, clock_factors=(4.0, 1.0), attempts=1, check_pairs=2)
    recipe = replace(plan.recipe, pairs=4, validation_pairs=2, memory_first=short)
    shown = tuple(row_of(label, MEMORIES[0]) for label in BESIDE)
    kept = tuple(row for row in plan.rows if row in shown) or plan.rows[:1]
    return replace(plan, seeds=plan.seeds[:1], rows=kept, pairs=2, recipe=recipe)
