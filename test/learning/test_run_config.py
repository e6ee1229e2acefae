"""The configuration of a run: layers, choices, what is refused, and that the arm's defaults are what they were."""

from dataclasses import asdict
from pathlib import Path

import pytest

from trace_memory_ros.arm.design import arm_defaults, arm_design, arm_recipe, design_of
from trace_memory_ros.arm.sim.names import TASK_NAMES
from trace_memory_ros.cli import demonstrate, evaluate, train
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.learning.bags.design import MEMORY_SHIFT, bag_defaults, bag_recipe
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import FILE, RunConfig, assignment, merged, read_file, resolve
from trace_memory_ros.learning.sizes import LADDER, memory_options
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.runtime.clock import EveryTicks
from trace_memory_ros.runtime.window import PathWindow

ROOT = Path(__file__).parents[2]


def test_later_layers_win_value_by_value() -> None:
    layers = [{"recipe": {"steps": 9, "reads": 3}}, assignment("recipe.steps=5"), assignment("memory.slots=2")]
    config = resolve({"recipe": {"pairs": 7}}, merged(layers))
    assert (config.recipe.steps, config.recipe.reads, config.recipe.pairs, config.memory.slots) == (5, 3, 7, 2)


@pytest.mark.parametrize("shares", ["recipe.shares", "recipe.memory_first.shares"])
def test_one_share_leaves_the_others_as_they_are(shares: str) -> None:
    usual = plain_values(Recipe(), shares)
    for name, value in (("near_branch", 0.1), ("pauses", 0.1)):
        config = resolve({}, assignment(f"{shares}.{name}={value}"))
        assert plain_values(config.recipe, shares) == {**usual, name: value}


def plain_values(recipe: Recipe, shares: str) -> dict[str, float]:
    return asdict(recipe.shares if shares == "recipe.shares" else recipe.memory_first.shares)


def test_shares_that_leave_less_than_the_start_asks_for_are_taken() -> None:
    shares = {"near_branch": 0.5, "apart": 0.2, "pauses": 0.2}
    recipe = resolve({}, {"recipe": {"shares": shares}}).recipe
    assert bag_recipe(recipe, 100, []).shares.start == pytest.approx(0.1)
    assert bag_recipe(Recipe(), 100, []).shares.start == 0.2


def test_another_memory_does_not_inherit_options() -> None:
    trace = {"memory": {"name": "trace", "options": {"read_norm": True}, "slots": 3}}
    assert merged([trace, {"memory": {"name": "gru"}}]) == {"memory": {"name": "gru", "slots": 3}}
    both = merged([trace, {"memory": {"options": {"hidden": 8}}}])
    assert both["memory"]["options"] == {"read_norm": True, "hidden": 8}
    assert trace["memory"]["options"] == {"read_norm": True}


def test_another_clock_is_taken_whole() -> None:
    clock = merged([{"clock": {"kind": "path_length", "threshold": 1.0}}, {"clock": {"kind": "every", "n": 2}}])
    assert resolve({}, clock).rule == EveryTicks(2)


@pytest.mark.parametrize(("text", "value"), [("1e-3", 1e-3), ("3", 3), ("null", None), ("[8, 4]", [8, 4]), ("a", "a")])
def test_assignments_are_yaml(text: str, value: object) -> None:
    assert assignment(f"a.b={text}") == {"a": {"b": value}}


def test_a_file_is_taken_back(tmp_path: Path) -> None:
    window = {"length": 0.5, "stretches": 4, "deadband": 0.1}
    given = {"address": {"window": window}, "recipe": {"memory_first": {"clock_factors": [4, 1]}}, "bags": {}}
    config = resolve({}, given)
    assert config.address.window == PathWindow(0.5, 4, 0.1)
    config.write(tmp_path)
    assert resolve({}, read_file(tmp_path / FILE)) == config


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"memmory": {}}, "unknown key 'memmory'; did you mean 'memory'"),
        ({"recipe": {"memory_first": {"stages": 3}}}, r"recipe.memory_first has the unknown key 'stages'"),
        ({"recipe": {"learning_rate": "fast"}}, "recipe.learning_rate = 'fast': must be a number"),
        ({"recipe": {"frozen_trunk": 1}}, "recipe.frozen_trunk = 1: must be a truth value"),
        ({"seed": True}, "seed = True: must be an integer"),
        ({"memory": {"options": 3}}, "memory.options = 3: must be a mapping"),
        ({"memory": {"slots": 0}}, "memory.slots = 0: must be an integer, at least 1"),
        ({"clock": {"kind": "sometimes"}}, "clock.kind"),
        ({"address": {"depth": 9}}, "address.depth = 9"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        resolve({}, given)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("recipe.gradient_clip=0", r"Recipe\.gradient_clip = 0: must be above 0.* a large number clips none"),
        ("recipe.gradient_clip=-1.0", r"Recipe\.gradient_clip = -1\.0"),
        ("recipe.memory_first.check_steps=0", r"MemoryFirst\.check_steps = 0: must be at least 1"),
        ("recipe.memory_first.check_pairs=0", r"MemoryFirst\.check_pairs = 0"),
        ("recipe.memory_first.batch_pairs=0", r"MemoryFirst\.batch_pairs = 0"),
        ("recipe.memory_first.reads=0", r"MemoryFirst\.reads = 0"),
    ],
)
def test_a_recipe_by_which_nothing_would_be_learned_is_refused(words: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        resolve({}, assignment(words))


@pytest.mark.parametrize("memory", ["trace", "gru", "none"])
def test_an_arm_task_is_trained_as_ever_where_nothing_is_asked_for(memory: str) -> None:
    given = {"memory": {"name": memory}, "policy": {"family": "diffusion"}}
    config = resolve(arm_defaults("colour", given), given)
    assert design_of(config) == arm_design(memory, 2, policy="diffusion")
    assert config.recipe == arm_recipe("colour", "diffusion")


def test_the_arm_s_cameras_are_as_fine_as_its_eyes_ask_for() -> None:
    def sizes(**given: object) -> tuple[int, int, int]:
        asked = {"memory": {"name": "gru"}, **given}
        design = design_of(resolve(arm_defaults("glyph", asked), asked))
        return design.observation.image_px, design.observation.thumbnail_px, design.policy_px

    assert sizes() == (48, 16, 48)
    assert sizes(eyes={"px": 224}) == (224, 224, 48)
    assert sizes(eyes={"px": 96}, policy={"options": {"image_px": 128}}) == (128, 96, 128)


def test_the_tasks_of_the_command_line_are_the_arm_s() -> None:
    # The usual recipe does not learn sequences.
    assert set(train.TASKS) == set(evaluate.TASKS) == set(TASK_NAMES) - {"sequence"}
    assert set(demonstrate.TASKS) == set(TASK_NAMES)


def test_without_a_memory_s_name_training_chooses_one() -> None:
    assert resolve(arm_defaults("glyph", {}), {}).memory.candidates == LADDER
    config = resolve(bag_defaults("bags", {}), {})
    assert config.memory.candidates == LADDER and config.address.window is None
    assert config.bags is not None
    docs = (ROOT / "docs/how-to/training.md").read_text(encoding="utf-8")
    (memory, address, split, folds) = (
        next(line for line in docs.splitlines() if line.startswith(f"| `{key}"))
        for key in ("memory.name", "address.depth", "bags.held_out", "bags.cross_validation")
    )
    assert f"| `{config.memory.name}`" in memory
    assert f"| {config.address.depth}, null |" in address
    shares = (1 / config.bags.held_out, 1 / config.bags.validation)
    assert "| 1/{:.0f}, 1/{:.0f}, {}, all".format(*shares, config.bags.split_seed) in split
    assert f"| true, [{', '.join(f'{noise:g}' for noise in config.bags.noise)}] |" in folds
    assert config.bags.cross_validation is True


def test_bags_show_a_thing_in_few_places_and_the_arm_s_tasks_in_all() -> None:
    assert resolve(bag_defaults("bags", {}), {}).recipe.augmentation.memory_shift == MEMORY_SHIFT
    assert resolve(arm_defaults("colour", {}), {}).recipe.augmentation.memory_shift == 0.0
    things = {"eyes": {"name": "things"}}
    assert resolve(bag_defaults("bags", things), things).recipe.augmentation.memory_shift == 0.0
    own = {"recipe": {"augmentation": {"memory_shift": 0.125}}}
    assert resolve(bag_defaults("bags", own), own).recipe.augmentation.memory_shift == 0.125
    docs = (ROOT / "docs/how-to/training.md").read_text(encoding="utf-8")
    assert f"`augmentation.memory_shift` 1/{1 / MEMORY_SHIFT:.0f}" in docs


def test_a_path_may_be_taken_from_a_window() -> None:
    config = resolve(bag_defaults("bags", {}), {"address": {"window": PathWindow().to_dict()}, "bags": {"noise": [1]}})
    assert config.address.window == PathWindow() and config.bags is not None and config.bags.noise == (1,)
    with pytest.raises(ConfigError, match="bags.noise"):
        resolve({}, {"bags": {"noise": []}})


def test_an_arm_task_has_no_bags() -> None:
    with pytest.raises(ConfigError, match="leave `bags` out"):
        design_of(resolve(arm_defaults("colour", {}), {"bags": {"held_out": 0.5}}))


@pytest.mark.parametrize("name", [*registry.names(), "gru+cache", "gru+gate", "trace+gate"])
def test_a_robots_sizes_build_every_mechanism(name: str) -> None:
    config = RunConfig()
    memory = registry.build(name, MemoryDims(96, 42, config.memory.width, config.memory.slots), memory_options(name))
    assert sum(p.numel() for p in memory.parameters()) < 200_000
