"""What is built and trained for the robot that a recording configuration describes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.dataset import fit_state, state_mask
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.spread import check_spread, least_spread
from trace_memory_ros.learning.data.unexplained import Shows
from trace_memory_ros.learning.eyes import BackboneSection, EyesSection, with_eyes
from trace_memory_ros.learning.lerobot.source import folder_of
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import BagsSection, RunConfig, chosen
from trace_memory_ros.learning.sizes import AUTO, SLOTS, WIDTH, memory_options
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryDims
from trace_memory_ros.observation.periods import ticks_in
from trace_memory_ros.policies import families
from trace_memory_ros.runtime.clock import ClockRule, EveryTicks, PathLength, UpdateClock
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.config import SMALL

CHUNK_MS = 2_000
"""How far ahead an action chunk reaches."""
NEAR_MS = 500
"""How long after a branch the robot's own motion does not yet show which way it goes."""
START_SHARE = 0.2
"""Of the joint phase's reads: where twins part is not always known, and most robots pick something up first."""
STAGE_STEPS_WITHOUT_BRANCHES = 150
WRITES = 30
"""Writes per episode at which the delays of the arm tasks are learned."""
FINEST, LEAST_WRITTEN = 4.0, 0.75
"""How much finer a clock of motion may be, and the share of what is shown that it must then write."""
EVERY_MS = 500
"""Between two writes of a robot that stands while something is shown to it."""
MEMORY_SHIFT = 1 / 16
"""Of what the memory sees by `small`, which knows a thing by its place too: few demonstrations show it in few."""
_ROUNDS = 40
_PROBE_DIMS = MemoryDims(content=96, signature=12, width=64, slots=4)


@dataclass(frozen=True)
class BagOptions:
    """What can be chosen. memory_options: None for a robot's usual ones, see `sizes`.

    depth: of signatures; clock: None to choose one from the data; chunk: in ticks, None for `CHUNK_MS`; policy_options:
    over those that follow from the tick period; spread: least spread by unit, over what is usual. Raises ValueError
    naming the value.
    """

    memory: str = "trace"
    depth: int = 2
    window: PathWindow | None = None
    clock: ClockRule | None = None
    chunk: int | None = None
    spread: Mapping[str, float] = field(default_factory=dict)
    policy: str = "act"
    memory_options: Mapping[str, Any] | None = None
    policy_options: Mapping[str, Any] = field(default_factory=dict)
    policy_backbone: BackboneSection = field(default_factory=BackboneSection)
    eyes: EyesSection = field(default_factory=EyesSection)
    width: int = WIDTH
    slots: int = SLOTS

    def __post_init__(self) -> None:
        if not 1 <= self.depth <= 4:
            raise ValueError(f"signature depth is {self.depth}: use 1 to 4")
        if self.chunk is not None and self.chunk < 1:
            raise ValueError(f"chunk is {self.chunk}: must be positive")
        check_spread(self.spread, "least spread")


class Motion(NamedTuple):
    """What training episodes say, whatever memory is trained on them.

    state: statistics of it. shows: what pictures show besides the robot's motion; None where nothing can be said.
    """

    state: Standardiser
    clock: ClockRule
    shows: Shows | None


def motion_of(options: BagOptions, recording: RecordingConfig, training: Sequence[Demonstration]) -> Motion:
    """Statistics, the update clock that they ask for unless one is given, and what is shown."""
    seen = recording.observation
    state = fit_state(training, state_mask(seen), least_spread(seen.state_units, options.spread))
    shows = Shows.fit(training, state, seen.tick_period_ms)
    clock = options.clock or usual_clock(training, [seen.path_of(state.apply(demo.state)) for demo in training], shows)
    return Motion(state, clock, shows)


def bag_design(
    options: BagOptions, recording: RecordingConfig, action_names: Sequence[str], clock: ClockRule
) -> Design:
    """The design for the recorded robot."""
    given, period_ms = options.memory_options, recording.observation.tick_period_ms
    chosen = memory_options(options.memory) if given is None else dict(given)
    addressed = small_memory(options.memory, chosen).uses_signature
    design = Design(
        memory=options.memory,
        options=chosen,
        observation=recording.observation,
        action_names=tuple(action_names),
        clock=clock,
        depth=options.depth if addressed else 0,
        window=options.window if addressed else None,
        chunk=options.chunk or chunk_ticks(period_ms),
        policy=options.policy,
        policy_options={**_at_period(options.policy, period_ms), **options.policy_options},
        width=options.width,
        slots=options.slots,
        spread=options.spread,
        actions=recording.actions,
    )
    return with_eyes(design, options.eyes, options.policy_backbone)


def small_memory(name: str, options: Mapping[str, Any]) -> Memory:
    """A memory by its registry name, to ask what it needs."""
    return registry.build(name, _PROBE_DIMS, options)


def chunk_ticks(period_ms: int) -> int:
    """An even number of ticks, which a diffusion policy's U-Net can halve."""
    return 2 * ticks_in(CHUNK_MS / 2, period_ms)


def _at_period(policy: str, period_ms: int) -> Mapping[str, Any]:
    """What a policy family counts in ticks, at the robot's own rate. Raises UnknownFamily."""
    at_period = families.family(policy).at_period
    return {} if at_period is None else at_period(period_ms)


def bag_defaults(source: str | Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """A run's configuration for a robot's bags, with what belongs to the memory that is asked for."""
    memory = chosen(given, "memory", AUTO)
    shift = MEMORY_SHIFT if chosen(given, "eyes", SMALL) == SMALL else 0.0
    return {
        "task": folder_of(source).resolve().name,
        "memory": {"name": memory, "options": memory_options(memory)},
        "recipe": {"augmentation": {"memory_shift": shift}},
        "bags": {},
    }


def of_memory(config: RunConfig, name: str) -> RunConfig:
    """The configuration with a memory that it did not name, with what is usual for that one."""
    if name == config.memory.name:
        return config
    return config.with_memory(name, memory_options(name))


def options_of(config: RunConfig) -> BagOptions:
    """What a run's configuration chooses."""
    memory, policy, bags = config.memory, config.policy, config.bags or BagsSection()
    return BagOptions(
        memory=memory.name,
        depth=config.address.depth,
        window=config.address.window,
        clock=config.rule,
        chunk=policy.chunk,
        spread=bags.least_spread,
        policy=policy.family,
        memory_options=memory.options,
        policy_options=policy.options,
        policy_backbone=policy.backbone,
        eyes=config.eyes,
        width=memory.width,
        slots=memory.slots,
    )


def bag_recipe(recipe: Recipe, tick_period_ms: int, training: Sequence[Demonstration]) -> Recipe:
    """The recipe without what needs a simulator, at the robot's own tick period.

    Where no two episodes differ in a branch's label, no accuracy shows when a stage of the curriculum is mastered: each
    takes a fixed number of steps.
    """
    shares = recipe.shares
    shares = replace(shares, start=min(START_SHARE, 1.0 - (shares.near_branch + shares.apart + shares.pauses)))
    recipe = replace(recipe, branch_reach=ticks_in(NEAR_MS, tick_period_ms, 2), shares=shares)
    if len({demo.answers[0] for demo in training if demo.answers}) > 1:
        return recipe
    first = recipe.memory_first
    steps = min(first.stage_steps, STAGE_STEPS_WITHOUT_BRANCHES)
    return replace(recipe, memory_first=replace(first, stage_steps=steps))


def usual_clock(
    training: Sequence[Demonstration], paths: Sequence[NDArray[np.float32]], shows: Shows | None
) -> ClockRule:
    """`choose_clock` by standardised paths `(T, d_p)`, or time where what cameras see happens while the robot stands.

    A clock of motion then writes little of it however fine it is, and what was never written cannot be remembered.
    """
    usable = [path[demo.usable_mask] for demo, path in zip(training, paths, strict=True)]
    rule = choose_clock(usable)
    if shows is None:
        return rule
    finest, every = rule.threshold / FINEST, EveryTicks(ticks_in(EVERY_MS, shows.period_ms))

    def written(tried: ClockRule) -> float:
        return shows.written(training, (UpdateClock(tried).write_mask(path) for path in paths)) or 0.0

    standing = written(PathLength(finest, finest)) < LEAST_WRITTEN <= written(every)
    return every if standing else rule


def choose_clock(states: Sequence[NDArray[np.float32]], writes: int = WRITES) -> PathLength:
    """The path length at which the median of standardised episodes `(T, d_s)` writes about `writes` times.

    The dead band is as long, so that an arm that stands or shivers writes nothing. Raises ValueError where nothing
    moves.
    """
    reach = max(float(np.ptp(state, axis=0).max()) for state in states)
    if not reach:
        raise ValueError("the state never changes in any episode: check the joint topics, or give --clock every:N")
    low, high = math.log(reach * 1e-4), math.log(reach * 10.0)
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        clock = UpdateClock(PathLength(math.exp(middle), math.exp(middle)))
        if float(np.median([clock.write_mask(state).sum() for state in states])) > writes:
            low = middle
        else:
            high = middle
    threshold = float(f"{math.exp(high):.3g}")
    return PathLength(threshold, threshold)


def parse_clock(text: str) -> ClockRule:
    """`path:LENGTH`, `path:LENGTH:DEADBAND` or `every:TICKS` as a rule. Raises ValueError naming the text."""
    kind, *numbers = text.split(":")
    try:
        if kind == "path" and len(numbers) in (1, 2):
            return PathLength(float(numbers[0]), float(numbers[-1]))
        if kind == "every" and len(numbers) == 1:
            return EveryTicks(int(numbers[0]))
    except ConfigError as error:
        raise ValueError(f"clock {text!r}: {error}") from error
    except ValueError:
        pass  # A word where a number belongs: what Python says of it tells no remedy.
    raise ValueError(
        f"clock {text!r}: use path:LENGTH, path:LENGTH:DEADBAND or every:TICKS, such as path:0.5 or every:5"
    )
