"""What pictures show besides the robot's own motion, and the clocks that must not pass over it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from trace_memory_ros.learning.bags.design import usual_clock
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.unexplained import AROUND_MS, Shows
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.runtime.clock import EveryTicks, PathLength, UpdateClock
from trace_memory_ros.signature.normalise import Standardiser

PERIOD_MS, TICKS, LIT = 50, 200, 16
STATE = Standardiser(np.zeros(2), np.full(2, 0.6), np.ones(2, dtype=bool))


def _episode(number: int, stands: bool = False, lamp: bool = True) -> tuple[Demonstration, NDArray[np.bool_]]:
    """A bright gripper goes where two joints say; a lamp is lit for `LIT` ticks. stands: meanwhile nothing moves."""
    rng = np.random.default_rng(number)
    begin = int(rng.integers(20, TICKS - 2 * LIT))
    lit = np.zeros(TICKS, dtype=bool)
    lit[begin : begin + LIT] = lamp
    time = np.arange(TICKS, dtype=float)
    if stands:
        time = np.where(time < begin, time, np.maximum(begin, time - LIT - 4))
    state = np.stack([np.sin(time / 30 + number), np.cos(time / 40 + 0.5 * number)], axis=1)
    row, column = (7.5 + 5.5 * state.T)[..., None]
    reach = np.arange(16)
    gripper = np.exp(-((reach - row) ** 2)[:, :, None] / 4 - ((reach - column) ** 2)[:, None, :] / 4)
    picture = 0.2 + 0.6 * gripper + rng.normal(0, 0.01, gripper.shape)
    images = np.repeat(picture[..., None], 3, axis=-1)
    images[lit, 1:3, 12:14, 0] = 0.9
    pixels = (np.clip(images, 0, 1) * 255).astype(np.uint8)
    stamps_ns = np.arange(TICKS) * PERIOD_MS * 1_000_000
    demo = Demonstration(str(number), str(number), stamps_ns, {"top": Frames.of(pixels)}, state, np.zeros((TICKS, 2)))
    return demo, lit


def _fit(demos: list[Demonstration]) -> Shows:
    shows = Shows.fit(demos, STATE, PERIOD_MS)
    assert shows is not None
    return shows


def test_a_lamp_is_told_from_the_robots_own_motion() -> None:
    told = [_episode(number) for number in range(20)]
    shows = _fit([demo for demo, _ in told[:14]])
    lit = np.concatenate([lamp for _, lamp in told[14:]])
    high = np.concatenate([shows.scores(demo, np.arange(TICKS)) > shows.level for demo, _ in told[14:]])
    assert high[lit].mean() > 0.9
    assert high[~lit].mean() < 0.15


def test_it_reaches_a_little_around_what_is_shown_and_runs_are_where_it_is() -> None:
    told = [_episode(number) for number in range(20)]
    shows = _fit([demo for demo, _ in told])
    around = AROUND_MS // PERIOD_MS
    for demo, lit in told[:5]:
        begin, end = np.flatnonzero(lit)[[0, -1]]
        assert shows.of(demo)[begin - around : end + 1 + around].all()
        assert any(abs(first - begin) <= 2 and abs(last - end - 1) <= 2 for first, last in shows.runs(demo))


def test_unusable_ticks_are_not_learned_from() -> None:
    demos = [_episode(number)[0] for number in range(4)]
    dead = np.ones(TICKS, dtype=bool)
    dead[50:] = False
    broken = [replace(demo, usable=dead, state=np.where(dead[:, None], demo.state, np.nan)) for demo in demos]
    assert np.isfinite(_fit(broken).weights).all()


def test_without_cameras_nothing_is_said() -> None:
    blind = [replace(_episode(0)[0], images={})]
    assert Shows.fit(blind, STATE, PERIOD_MS) is None


@pytest.mark.parametrize(("stands", "kind"), [(True, EveryTicks), (False, PathLength)])
def test_a_robot_that_stands_while_it_is_shown_something_is_written_by_time(stands: bool, kind: type) -> None:
    told = [_episode(number, stands=stands) for number in range(12)]
    demos = [demo for demo, _ in told]
    paths = [STATE.apply(demo.state) for demo in demos]
    rule = usual_clock(demos, paths, _fit(demos))
    assert isinstance(rule, kind)
    masks = [UpdateClock(rule).write_mask(path) for path in paths]
    written = [bool(mask[lit].any()) for mask, (_, lit) in zip(masks, told, strict=True)]
    assert np.mean(written) > 0.9


def test_a_pause_in_which_nothing_is_shown_leaves_the_clock_to_motion() -> None:
    demos = [_episode(number, stands=True, lamp=False)[0] for number in range(12)]
    rule = usual_clock(demos, [STATE.apply(demo.state) for demo in demos], _fit(demos))
    assert isinstance(rule, PathLength)
