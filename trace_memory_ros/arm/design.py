"""What memories of the arm tasks are built like, whoever trains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from trace_memory_ros.arm.sim.names import ACTION_NAMES, WATCHED_TASKS
from trace_memory_ros.arm.sizes import ARM_DIMS, MATCHED, POLICY_OPTIONS
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.eyes import with_eyes
from trace_memory_ros.learning.recipe import MemoryFirst, ReadShares, Recipe
from trace_memory_ros.learning.run_config import RunConfig, chosen
from trace_memory_ros.learning.sizes import AUTO
from trace_memory_ros.memory import registry
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.policies import families
from trace_memory_ros.runtime.clock import PathLength
from trace_memory_ros.runtime.window import PathWindow

CLOCK = PathLength(threshold=1.0, deadband=1.0)
"""A write per standard deviation of motion: about thirty in a 24 s episode, none while the arm stands or shivers."""


# What is shown is shown once a scene, and tells at a decision alone: many scenes a step, few reads of each.
_WATCHED = Recipe(memory_first=MemoryFirst(check_pairs=30, batch_pairs=16, reads=6, shares=ReadShares(near_branch=0.9)))
RECIPES: dict[str, dict[str, Recipe]] = {
    "act": {**dict.fromkeys(WATCHED_TASKS, _WATCHED), "cups": replace(_WATCHED, pairs=325)},
    "diffusion": {
        "origin": Recipe(steps=1500, shares=ReadShares(near_branch=0.1, apart=0.25, pauses=0.1, start=0.2)),
        "colour": Recipe(steps=1500, shares=ReadShares(near_branch=0.1, apart=0.2, pauses=0.1, start=0.3)),
    },
}
"""What a policy family is trained by from scratch, and its memory first, where it is not the usual recipe."""


def arm_recipe(task: str, policy: str) -> Recipe:
    """How a policy family is trained on a task."""
    return RECIPES.get(policy, {}).get(task, Recipe())


def checkpoint_name(task: str, memory: str, policy: str = "act") -> str:
    """Folder name that a trained checkpoint is shipped and found under."""
    return f"{task}_{memory}" if policy == "act" else f"{task}_{memory}_{policy}"


def arm_design(
    memory: str,
    depth: int,
    options: Mapping[str, Any] | None = None,
    window: PathWindow | None = None,
    policy: str = "act",
) -> Design:
    """The design of a mechanism by its registry name, with its matched options unless others are given.

    policy: family of the policy. Mechanisms that read no signature are given none, whatever `depth` and `window` say.
    Raises ValueError for an unknown name of either.
    """
    families.family(policy)
    chosen = dict(MATCHED.get(memory, {}) if options is None else options)
    addressed = registry.build(memory, ARM_DIMS, chosen).uses_signature
    return Design(
        memory=memory,
        options=chosen,
        observation=default_arm(),
        action_names=ACTION_NAMES,
        clock=CLOCK,
        depth=depth if addressed else 0,
        window=window if addressed else None,
        policy=policy,
        policy_options=POLICY_OPTIONS.get(policy, {}),
    )


def arm_defaults(task: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A run's configuration for an arm task, with what belongs to the memory and policy family that are asked for."""
    memory, family = chosen(given, "memory", AUTO), chosen(given, "policy", "act")
    return {
        "task": task,
        "memory": {
            "name": memory,
            "options": MATCHED.get(memory, {}),
            "width": ARM_DIMS.width,
            "slots": ARM_DIMS.slots,
        },
        "clock": CLOCK.to_dict(),
        "policy": {"family": family, "options": POLICY_OPTIONS.get(family, {}), "chunk": Design.chunk},
        "recipe": asdict(arm_recipe(task, family)),
    }


def of_memory(config: RunConfig, name: str) -> RunConfig:
    """The configuration with a memory that it did not name, with its matched options."""
    return config.with_memory(name, MATCHED.get(name, {}))


def design_of(config: RunConfig) -> Design:
    """The design that a run's configuration asks for. Raises ConfigError where it has `bags` or no clock."""
    if config.bags is not None or config.rule is None:
        raise ConfigError(
            "a simulated task's demonstrations are neither split nor looked at for a clock: leave `bags` out and give "
            "`clock`; recipe.pairs and recipe.held_out_pairs say how many there are"
        )
    memory, policy, address = config.memory, config.policy, config.address
    design = arm_design(memory.name, address.depth, memory.options, address.window, policy.family)
    px = policy.options.get("image_px", design.observation.image_px)
    asked = replace(
        design,
        # The simulator renders what is asked for; a memory that sees more does not enlarge the policy's images.
        observation=replace(design.observation, image_px=max(px, config.eyes.px or 0)),
        clock=config.rule,
        width=memory.width,
        slots=memory.slots,
        chunk=policy.chunk or design.chunk,
        policy_options={**policy.options, "image_px": px} if config.eyes.px else policy.options,
    )
    return with_eyes(asked, config.eyes, policy.backbone)
