"""Tasks whose cue is small in the image: how small, for whom to see, and that nothing else tells."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

import numpy as np
import pytest

from trace_memory_ros.arm.sim import glyphs
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import CAMERA_NAMES, DETAIL_TASKS
from trace_memory_ros.arm.sim.rollout import demonstrate
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.detail import offset_m
from trace_memory_ros.arm.simulator import camera_px, simulator
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, default_arm
from trace_memory_ros.observation.images import shrunk

PX = 224
SEEDS = range(12)


@pytest.fixture(scope="module")
def envs() -> Iterator[dict[str, ArmEnv]]:
    made = {task: ArmEnv(task, PX) for task in DETAIL_TASKS}
    yield made
    for env in made.values():
        env.close()


def pictures(env: ArmEnv, scenario: Scenario) -> dict[str, np.ndarray]:
    env.reset(scenario)
    return env.observe().images


def differing(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.abs(one.astype(int) - other).max(axis=-1) > 20


def test_panel_is_a_fortieth_of_the_width_of_the_only_camera_that_sees_it(envs: dict[str, ArmEnv]) -> None:
    sizes = []
    for seed in SEEDS:
        one, other = (pictures(envs["small_colour"], Scenario("small_colour", seed, cue)) for cue in (0, 1))
        sizes.append(differing(one["overhead"], other["overhead"]).sum())
        assert all(np.array_equal(one[name], other[name]) for name in CAMERA_NAMES[1:])
    # A square's side, finer than its edges fall on pixels.
    assert PX / 44 < np.sqrt(np.mean(sizes)) < PX / 36


def test_shapes_are_alike_but_for_their_form(envs: dict[str, ArmEnv]) -> None:
    env = envs["glyph"]
    env.reset(Scenario("glyph", 0, 0))
    blank = {name: env.model.geom(name).id for name in glyphs.colours("panel", None)}
    drawn = {}
    for shape in glyphs.SHAPES:
        for name, colour in glyphs.colours("panel", shape).items():
            env.model.geom_rgba[blank[name]] = colour or (0.0, 0.0, 0.0, 0.0)
        drawn[shape] = env.render("overhead", 896)
    dark = {shape: (image[:320].min(axis=-1) < 60).sum() for shape, image in drawn.items()}
    ink = {shape: count - min(dark.values()) for shape, count in dark.items()}
    card = (4 * PX / 1.276 * 2 * glyphs.CARD_HALF[0]) ** 2
    assert max(ink.values()) < 0.03 * card, ink
    thumbnails = np.stack([shrunk(image, 16) for image in drawn.values()]).astype(int)
    assert np.ptp(thumbnails, axis=0).max() < 20
    fine = np.stack([shrunk(image, PX) for image in drawn.values()]).astype(int)
    assert all(differing(fine[i], fine[j]).sum() > 10 for i in range(5) for j in range(i))


def test_every_shape_says_its_side(envs: dict[str, ArmEnv]) -> None:
    said = {side: {glyphs.shapes_of("glyph", seed)[side] for seed in range(60)} for side in (0, 1)}
    assert said == {side: set(shapes) for side, shapes in enumerate(glyphs.SIDES)}
    one, other = (pictures(envs["glyph"], Scenario("glyph", 3, cue))["overhead"] for cue in (0, 1))
    assert differing(one, other).any()


@pytest.mark.parametrize("task", DETAIL_TASKS)
def test_pairs_are_identical_once_the_cue_is_gone(envs: dict[str, ArmEnv], task: str) -> None:
    env, seen = envs[task], []
    for cue in (0, 1):
        for step in demonstrate(env, Scenario(task, 2, cue, decoys=2), render=False):
            if step.decides:
                seen.append((env.observe().images, step.sample.joint_positions))
                break
    (one, joints), (other, joints_other) = seen
    assert joints == joints_other
    assert all(np.array_equal(one[name], other[name]) for name in CAMERA_NAMES)


@pytest.mark.parametrize("task", DETAIL_TASKS)
def test_decoys_look_like_cues_of_a_side(envs: dict[str, ArmEnv], task: str) -> None:
    env, shown = envs[task], {}
    for step in demonstrate(env, Scenario(task, 1, 0, decoys=4), render=False):
        decoy = env.decoy
        if decoy is not None and decoy.side not in shown:
            shown[decoy.side] = env.model.geom_rgba.copy()
        if step.decides:
            break
    assert set(shown) == {0, 1}
    assert not np.array_equal(shown[0], shown[1])


def test_cue_lies_elsewhere_in_each_scene() -> None:
    offsets = np.array([offset_m("glyph", seed) for seed in SEEDS])
    assert np.ptp(offsets, axis=0).min() > 0.05


def watched(kept_px: int, **camera: object) -> ObservationConfig:
    arm = default_arm()
    overhead = CameraConfig("overhead", "image", 250, **camera)  # type: ignore[arg-type]
    return ObservationConfig((overhead,), arm.streams, image_px=kept_px)


def test_simulator_renders_as_fine_as_is_kept() -> None:
    assert camera_px(default_arm()) == 96
    assert camera_px(watched(224)) == 224
    assert camera_px(watched(48, image_px=512)) == 512
    assert camera_px(watched(224, crop=(0.25, 0.0, 0.75, 0.5))) == 448
    with pytest.raises(ConfigError, match="at most 960"):
        camera_px(watched(512, crop=(0.0, 0.0, 0.5, 0.5)))
    elsewhere = ObservationConfig((CameraConfig("gantry", "image", 250),), default_arm().streams)
    with pytest.raises(ConfigError, match="gantry"):
        simulator("glyph", elsewhere)


def test_slow_cameras_hold_a_picture() -> None:
    env = simulator("colour", watched(48), frame_s=0.4)
    try:
        steps = islice(demonstrate(env, Scenario("colour", 0, 0)), 9)
        seen = [step.sample.images["overhead"] for step in steps]
    finally:
        env.close()
    changes = [not np.array_equal(one, other) for one, other in pairwise(seen)]
    assert changes == [False] * 3 + [True] + [False] * 3 + [True]
