"""One fit: what it keeps of the memory, where it goes on, what it says of itself."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning.synthetic import design, pair
from safetensors.torch import load_file

from trace_memory_ros.learning import build
from trace_memory_ros.learning.data.batches import Data, EpisodeBatch
from trace_memory_ros.learning.engine import optimise
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import JOINT, MEMORY, Progress, Reporter
from trace_memory_ros.learning.run_config import resolve
from trace_memory_ros.learning.selection import Planned, memory_file, select_memory
from trace_memory_ros.learning.sizes import AUTO
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.vision.config import POLICY, BackboneConfig

SHORT = Recipe(
    memory_first=MemoryFirst(
        clock_factors=(2.0,), delay_factors=(), stage_steps=4, check_steps=2, settle_steps=0, attempts=1
    ),
    steps=3,
    reads=3,
    batch_pairs=2,
)


@pytest.fixture(scope="module")
def data() -> Data:
    return build.prepare(design("gru"), [pair(i) for i in range(3)], [pair(50)], [pair(100)])


class Log(Reporter):
    def __init__(self) -> None:
        self.lines: list[Progress] = []
        self.resumed_at: list[tuple[str, int, int | None]] = []

    def progress(self, line: Progress) -> None:
        self.lines.append(line)

    def resumed(self, phase: str, step: int, steps: int | None) -> None:
        self.resumed_at.append((phase, step, steps))


def test_the_memory_comes_first_and_is_reported(data: Data, tmp_path: Path) -> None:
    log = Log()
    fitted = fit(design("gru"), data, SHORT, 0, report=log)
    assert [line.phase for line in log.lines] == [MEMORY, MEMORY, JOINT]
    assert (fitted.memory_steps, fitted.attempts, fitted.last) == (4, 1, log.lines[-1])
    figures = fitted.figures()
    assert figures["held_out_episodes"] == 2 and figures["parameters"]["memory"] > 0
    model_id = fitted.save(tmp_path, "synthetic", figures, command="made up")
    assert load(tmp_path).model_id == model_id
    said = load(tmp_path).config.training
    assert (said["command"], said["seed"], said["figures"]["memory_steps"]) == ("made up", 0, 4)


def test_noise_over_states_is_stronger_while_the_memory_is_by_itself(
    data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[bool, float]] = []
    augment = optimise.augment

    def noted(batch: EpisodeBatch, *rest: Any) -> EpisodeBatch:
        noisy = augment(batch, *rest)
        moved = (noisy.writes.state - batch.writes.state)[batch.mask]
        given.append((batch.images.shape[2] > 0, float(moved.std())))
        return noisy

    monkeypatch.setattr(optimise, "augment", noted)
    first = replace(SHORT.memory_first, state_noise_times=20.0)
    fit(design("gru"), data, replace(SHORT, memory_first=first), 0)
    alone, together = ([moved for pictures, moved in given if pictures is joint] for joint in (False, True))
    assert (len(alone), len(together)) == (first.stage_steps, SHORT.steps)
    assert min(alone) > 10.0 * max(together) > 0.1
    with pytest.raises(ValueError, match=r"state_noise_times = -1\.0"):
        replace(first, state_noise_times=-1.0)


@pytest.mark.parametrize(("enough", "settle", "shares"), [(2.0, 9, [1.0, 0.75, 0.5, 0.25]), (0.0, 2, [1.0, 1.0, 0.5])])
def test_what_settles_learns_ever_more_slowly(data: Data, enough: float, settle: int, shares: list[float]) -> None:
    first = replace(SHORT.memory_first, check_steps=1, enough=enough, settle_steps=settle)
    log = Log()
    fit(design("gru"), data, replace(SHORT, memory_first=first), 0, report=log)
    rates = [line.figures["learning_rate"] for line in log.lines if line.phase == MEMORY]
    assert rates == pytest.approx([share * first.learning_rate for share in shares])


def test_a_memory_that_was_kept_is_taken_and_gives_the_same_agent(data: Data, tmp_path: Path) -> None:
    file = tmp_path / "memories" / "kept.safetensors"
    first = fit(design("gru"), data, SHORT, 0, memory_file=file)
    log = Log()
    again = fit(design("gru"), data, SHORT, 0, memory_file=file, report=log)
    assert [line.phase for line in log.lines] == [JOINT] and again.memory_steps == 0
    for name, value in first.agent.state_dict().items():
        assert torch.equal(value, again.agent.state_dict()[name]), name


def test_a_run_goes_on_where_it_was_saved_and_no_other_does(data: Data, tmp_path: Path) -> None:
    file = tmp_path / "training.safetensors"
    first = fit(design("gru"), data, SHORT, 0, save_to=file)
    log = Log()
    again = fit(design("gru"), data, SHORT, 0, save_to=file, resume=True, report=log)
    assert log.resumed_at == [(JOINT, 3, 3)] and log.lines == []
    for name, value in first.agent.state_dict().items():
        assert torch.equal(value, again.agent.state_dict()[name]), name
    with pytest.raises(ValueError, match="written by another run"):
        fit(design("gru"), data, replace(SHORT, steps=5), 0, save_to=file, resume=True)


def test_without_weights_there_is_no_memory_phase(data: Data) -> None:
    fitted = fit(design("none"), data, SHORT, 0)
    assert fitted.memory is None and (fitted.memory_steps, fitted.attempts) == (0, 0)


def test_a_policy_is_adopted(data: Data, tmp_path: Path) -> None:
    fitted = fit(design("none"), data, SHORT, 0)
    fitted.save(tmp_path, "synthetic", {})
    start = load(tmp_path)
    frozen = replace(SHORT, frozen_trunk=True)
    adopted = fit(design("gru"), data, frozen, 0, start=start).agent.policy.state_dict()
    trunk = {k: v for k, v in start.tensors_of("policy.").items() if k.startswith("image_tokens.")}
    assert trunk
    for name, value in trunk.items():
        assert torch.equal(value, adopted[name]), name


def test_a_memory_is_tried_with_the_eyes_of_the_policy_that_is_started_from(data: Data, tmp_path: Path) -> None:
    plan = design("gru")
    seen = replace(plan.observation, thumbnail_px=plan.observation.image_px)
    plan = replace(plan, observation=seen, backbone=BackboneConfig(POLICY))
    shared = build.prepare(plan, [pair(i) for i in range(3)], [pair(100)])
    fit(plan, shared, SHORT, 1).save(tmp_path / "first", "synthetic", {})
    still = replace(SHORT, memory_first=replace(SHORT.memory_first, learning_rate=1e-12, attempts=1))
    values = {"memory": {"name": AUTO, "among": ["gru"]}, "policy": {"start": str(tmp_path / "first")}}
    select_memory(resolve({}, values), {}, lambda _: Planned(plan, still, shared), lambda _: None, tmp_path, False)
    kept, theirs = load_file(memory_file(tmp_path, "gru")), load(tmp_path / "first").tensors_of("policy.")
    eyes = {name: value for name, value in kept.items() if name.startswith("encoder.vision.")}
    assert eyes
    for name, value in eyes.items():
        theirs_too = theirs[name.replace("encoder.vision.", "image_tokens.stages.")]
        torch.testing.assert_close(value, theirs_too, atol=1e-6, rtol=0.0)
