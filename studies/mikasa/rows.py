"""The rows of MIKASA's table: one policy, one recipe, and only the memory changes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from studies.mikasa.names import ACTIONS, COUNTED, PX, RATE_HZ, SHORT, STEP_BY_STEP
from studies.mikasa.robot import robot
from trace_memory_ros.learning.bags.design import EVERY_MS, small_memory
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.eyes import BackboneSection, EyesSection, with_eyes
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, ReadShares, Recipe
from trace_memory_ros.learning.sizes import SLOTS, WIDTH, memory_options
from trace_memory_ros.observation.periods import ticks_in
from trace_memory_ros.runtime.clock import EveryTicks
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.vision.config import POLICY

ROWS = {
    "none": "none",
    "first_frame": "first_frame",
    "last_k": "last_k",
    "gru": "gru",
    "gru+cache": "gru+cache",
    "gru+gate": "gru+gate",
    "trace": "trace",
    "trace+window": "trace",
    "aura": "aura",
    "vla": "vla",
    "elmur": "elmur",
    "prism": "prism",
}
"""Row -> registry name of its mechanism."""
WINDOWED = ("trace+window",)
GATED: dict[str, dict[str, float | None]] = {"aura": {"rho": 0.5}, "gru+gate": {"rho": 0.5, "writes_per_s": None}}
"""A gate may write at half of an episode's three updates: the usual targets, 0.15 or 0.5 a second, are not one."""
DEPTH = 2
CLOCK = EveryTicks(ticks_in(EVERY_MS, 1000 // RATE_HZ))
"""As from bags of a robot that stands while it is shown something: while this one is held still, no path writes."""
EVERY_TICK = EveryTicks(1)
"""Where something is shown for a few ticks, or a single one."""
CHUNK = 8
"""Ticks, 0.4 s: the hand is at its target 0.6 s after the choices are shown."""
ENSEMBLE_DECAY = -1.0
"""The newest chunk counts most: those from before the choices were shown know nothing of them."""
FIRST = MemoryFirst(clock_factors=(1.0,), delay_factors=(), stage_steps=1200, attempts=1)
"""No curriculum on the delay: it is two to ten writes long, shorter than what the usual one begins with."""
FOUND_AGAIN = replace(FIRST, batch_pairs=24, reads=3, shares=ReadShares(near_branch=0.6), state_noise_times=20.0)
"""For eyes by which what was shown is found among the choices. Some reads are late: the memory goes on writing while
the hand is on its way. Noise of one standard deviation over states: where the hand stands before it moves is each
recording's own."""
RECIPE = Recipe(memory_first=FIRST, shares=ReadShares(near_branch=0.4, apart=0.2, start=0.1), branch_reach=15)
"""The product's, but for what follows from episodes of 25 ticks."""


@dataclass(frozen=True)
class Sight:
    """What memory and policy look through, alike, and how that is trained.

    px: of the pictures that they get. memory_reach: ticks after the choices are shown at which the memory's own phase
    reads; None for the recipe's.
    """

    px: int
    pooling: str
    backbone: BackboneSection
    recipe: Recipe
    memory_reach: int | None = None

    def of_memory(self, recipe: Recipe) -> Recipe:
        """The recipe of the memory's own phase."""
        return recipe if self.memory_reach is None else replace(recipe, branch_reach=self.memory_reach)


SIGHTS = {
    # A token for 16 of the 128 pixels; a cube is 4 wide in one camera, 8 in the other.
    "tokens": Sight(
        PX,
        "attention",
        BackboneSection("efficientnet_lite0", options={"stride": 16}),
        replace(RECIPE, future_weight=1.0, augmentation=Augmentation(feature_noise=1.0)),
    ),
    # Colours of 4 of the 128 pixels. Which is which is not learned: hues are turned, and it has to be found again.
    "colours": Sight(
        PX // 4,
        "salience",
        BackboneSection("cells", options={"cell_px": 1}),
        replace(
            RECIPE,
            memory_first=FOUND_AGAIN,
            answer_weight=3.0,
            memory_rate=0.1,
            augmentation=Augmentation(hue=1.0, shift_px=0),
        ),
        memory_reach=2,
    ),
    # Of all 128 pixels what lies there, thing by thing: colour and outline.
    "things": Sight(
        PX,
        "attention",
        BackboneSection("things"),
        replace(
            RECIPE,
            # Things are told apart better and better long after 19 of 20 training decisions are right.
            memory_first=replace(FOUND_AGAIN, check_steps=125, check_pairs=40, enough=0.98),
            answer_weight=3.0,
            recognition_weight=1.0,
            memory_rate=0.1,
            augmentation=Augmentation(hue=1.0, shift_px=0, feature_noise=0.1),
        ),
        memory_reach=2,
    ),
}


def clock_of(task: str) -> EveryTicks:
    """How often a task has the memory written."""
    return EVERY_TICK if task in STEP_BY_STEP else CLOCK


def suited(recipe: Recipe, task: str) -> Recipe:
    """A recipe as a task needs it: where what is next is decided several times, fewer episodes with more reads each,
    and less noise, since how much was done is told by where the hand has been.

    A lamp that blinks is neither to be found again among others nor told by its likeness: there hues are as they are.
    """
    if task not in STEP_BY_STEP:
        return recipe
    noise = min(recipe.memory_first.state_noise_times, 5.0)
    first = replace(recipe.memory_first, batch_pairs=16, reads=6, state_noise_times=noise)
    if task in COUNTED:
        recipe = replace(recipe, recognition_weight=0.0, augmentation=replace(recipe.augmentation, hue=0.0))
    return replace(recipe, memory_first=first)


def seen_by(sight: Sight, task: str) -> BackboneSection:
    """The eyes that a task needs: no picture of cubes and buttons has more than a dozen things."""
    few = task in STEP_BY_STEP and sight.backbone.name == "things"
    return replace(sight.backbone, options={**sight.backbone.options, "most_things": 12}) if few else sight.backbone


def design_of(row: str, sight: Sight, task: str = SHORT[0]) -> Design:
    """The design behind a row's name, with these eyes, for a task."""
    memory = ROWS[row]
    options = memory_options(memory) | GATED.get(row, {})
    addressed = small_memory(memory, options).uses_signature
    design = Design(
        memory=memory,
        options=options,
        observation=robot(sight.px),
        action_names=ACTIONS,
        clock=clock_of(task),
        depth=DEPTH if addressed else 0,
        window=PathWindow() if row in WINDOWED else None,
        slots=SLOTS,
        width=WIDTH,
        chunk=CHUNK,
        policy_options={"ensemble_decay": ENSEMBLE_DECAY, "image_px": sight.px, "places": True},
    )
    return with_eyes(design, EyesSection(POLICY, pooling=sight.pooling), seen_by(sight, task))


def plain(row: str, sight: Sight, task: str = SHORT[0]) -> dict[str, Any]:
    """A row's design for a task as a summary says it."""
    design = design_of(row, sight, task)
    return {
        "memory": design.memory,
        "options": design.options,
        "depth": design.depth,
        "window": None if design.window is None else asdict(design.window),
        "slots": design.slots,
        "width": design.width,
        "chunk": design.chunk,
        "policy": design.policy,
        "policy_options": {**design.policy_options, "backbone": design.seen_by.to_dict()},
        "backbone": design.backbone.to_dict(),
        "pooling": design.pooling,
        "observation": design.observation.to_dict(),
        "clock": design.clock.to_dict(),
    }
