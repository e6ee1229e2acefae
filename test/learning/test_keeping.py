"""Both phases go on as if they had not been stopped; stopping, NaN and too little memory are told in words."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from learning.synthetic import design, pair

from trace_memory_ros.learning import build, memory_first
from trace_memory_ros.learning.data.batches import Data, EpisodeBatch
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.engine.keeping import Keeper, Stopped
from trace_memory_ros.learning.fit import Fitted, fit
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import JOINT, MEMORY, Progress, Reporter
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.vision.config import BackboneConfig

FIRST = MemoryFirst(
    clock_factors=(2.0, 1.0),
    stage_steps=4,
    check_steps=2,
    settle_steps=0,
    attempts=2,
    least=1.1,
    batch_pairs=2,
    reads=3,
)
SHORT = Recipe(memory_first=FIRST, steps=4, reads=3, batch_pairs=2)
NOISY = ("aura", {"gate": "gumbel"})
"""A mechanism that draws numbers as it goes, and keeps a running scale."""


@pytest.fixture(scope="module", params=[("gru", {}), NOISY], ids=["gru", "aura"])
def course(request: pytest.FixtureRequest) -> tuple[Any, Data]:
    memory, options = request.param
    plan = replace(design(memory), options=options)
    return plan, build.prepare(plan, [pair(i) for i in range(3)], [pair(100)])


class Log(Reporter):
    """Keeps the lines; at one of them, gives the signal of a Ctrl-C or of a service's end."""

    def __init__(self, at: tuple[str, int, int] | None = None, number: int = signal.SIGINT) -> None:
        self.lines: list[Progress] = []
        self.at, self.number = at, number

    def progress(self, line: Progress) -> None:
        self.lines.append(line)
        if self.at == (line.phase, line.attempt, line.step):
            os.kill(os.getpid(), self.number)


def told(lines: list[Progress]) -> list[tuple[Any, ...]]:
    """What lines say, but for how fast it went."""
    return [(line.phase, line.attempt, line.step, line.losses, line.train_branch_accuracy) for line in lines]


def same(one: Fitted, other: Fitted) -> bool:
    ours, theirs = one.agent.state_dict(), other.agent.state_dict()
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_a_training_that_was_stopped_twice_is_the_training(course: tuple[Any, Data], tmp_path: Path) -> None:
    plan, data = course
    whole = Log()
    uninterrupted = fit(plan, data, SHORT, 0, report=whole)
    file = tmp_path / "training.safetensors"
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    first = Log((MEMORY, 2, 6))
    with pytest.raises(Stopped, match=r"stopped at step 6 of the memory phase.*--resume"):
        fit(plan, data, SHORT, 0, report=first, save_to=file)
    second = Log((MEMORY, 2, 8), signal.SIGTERM)
    with pytest.raises(Stopped):
        fit(plan, data, SHORT, 0, report=second, save_to=file, resume=True, hardware=replace(CPU, loaders=2))
    last = Log()
    resumed = fit(plan, data, SHORT, 0, report=last, save_to=file, resume=True)
    assert same(uninterrupted, resumed)
    assert told([*first.lines, *second.lines, *last.lines]) == told(whole.lines)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_that_a_stage_was_mastered_is_known_after_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = memory_first._Attempt._check
    # The first stage alone, without which the attempt would be given up after the second.
    monkeypatch.setattr(memory_first._Attempt, "_check", lambda run, *given: checked(run, *given) or run.stage == 0)
    plan = design("gru")
    data = build.prepare(plan, [pair(i) for i in range(3)], [pair(100)])
    first = replace(FIRST, clock_factors=(3.0, 2.0, 1.0), delay_factors=(), enough=1.1)
    recipe, file = replace(SHORT, memory_first=first), tmp_path / "training.safetensors"
    whole, stopped, last = Log(), Log((MEMORY, 1, 4)), Log()
    fit(plan, data, recipe, 0, report=whole)
    with pytest.raises(Stopped):
        fit(plan, data, recipe, 0, report=stopped, save_to=file)
    fit(plan, data, recipe, 0, report=last, save_to=file, resume=True)
    assert [line.clock_factor for line in whole.lines if line.attempt == 1 and line.phase == MEMORY][-1] == 1.0
    assert told([*stopped.lines, *last.lines]) == told(whole.lines)


def test_the_random_state_of_the_gpu_that_is_trained_on_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second, file, module = torch.device("cuda:1"), tmp_path / "training.safetensors", torch.nn.Linear(2, 3)
    keeper, optimiser = Keeper(0, SHORT, file), torch.optim.AdamW(module.parameters())
    states, put_back = {second: torch.tensor([7], dtype=torch.uint8)}, {}
    monkeypatch.setattr("trace_memory_ros.learning.engine.keeping._gpu_of", lambda _: second)
    monkeypatch.setattr(torch.cuda, "get_rng_state", states.__getitem__)
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: put_back.update({device: state}))
    keeper.write(JOINT, {}, {"agent": module}, optimiser)
    kept = keeper.read()
    assert kept is not None
    kept.into({"agent": module}, optimiser)
    assert put_back == states


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_training_on_a_gpu_goes_on_where_it_was_stopped(course: tuple[Any, Data], tmp_path: Path) -> None:
    plan, data = course
    gpu, file = Hardware.chosen("cuda", "float32"), tmp_path / "training.safetensors"
    whole, first, last = Log(), Log((MEMORY, 2, 6)), Log()
    fit(plan, data, SHORT, 0, report=whole, hardware=gpu)
    with pytest.raises(Stopped):
        fit(plan, data, SHORT, 0, report=first, save_to=file, hardware=gpu)
    fit(plan, data, SHORT, 0, report=last, save_to=file, resume=True, hardware=gpu)
    lines = [*first.lines, *last.lines]
    assert [line.step for line in lines] == [line.step for line in whole.lines]
    for line, expected in zip(lines, whole.lines, strict=True):
        assert line.losses == pytest.approx(expected.losses, rel=1e-3, abs=1e-5)


def test_the_joint_phase_is_stopped_between_two_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = design("gru")
    data = build.prepare(plan, [pair(i) for i in range(3)], [pair(100)])
    recipe = replace(SHORT, memory_first=replace(FIRST, attempts=1))
    whole, file = Log(), tmp_path / "training.safetensors"
    uninterrupted = fit(plan, data, recipe, 0, report=whole)
    losses, seen = type(uninterrupted.agent).losses, [0]

    def counted(agent: Any, batch: EpisodeBatch) -> Any:
        seen[0] += 1
        if seen[0] == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return losses(agent, batch)

    with monkeypatch.context() as patch:
        patch.setattr(type(uninterrupted.agent), "losses", counted)
        with pytest.raises(Stopped, match="step 3 of 4"):
            fit(plan, data, recipe, 0, save_to=file)
    again = Log()
    assert same(uninterrupted, fit(plan, data, recipe, 0, save_to=file, resume=True, report=again))
    assert told(again.lines) == told(whole.lines)[-1:]
    assert again.lines[0].phase == JOINT


def test_a_memory_phase_of_another_recipe_is_refused(course: tuple[Any, Data], tmp_path: Path) -> None:
    plan, data = course
    file = tmp_path / "training.safetensors"
    with pytest.raises(Stopped):
        fit(plan, data, SHORT, 0, report=Log((MEMORY, 1, 2)), save_to=file)
    with pytest.raises(ValueError, match="written by another run"):
        fit(plan, data, SHORT, 1, save_to=file, resume=True)


def test_what_was_kept_of_other_episodes_or_sizes_is_refused(tmp_path: Path) -> None:
    file, plan, scenes = tmp_path / "training.safetensors", design("gru"), [pair(i) for i in range(4)]
    recipe = replace(SHORT, memory_first=replace(FIRST, attempts=1, stage_steps=1), steps=1)
    fit(plan, build.prepare(plan, scenes[:3], [], scenes[3:]), recipe, 0, save_to=file)

    def refused(said: str, plan: Any = plan, learned: slice = slice(3), held: slice = slice(3, 4)) -> None:
        data = build.prepare(plan, scenes[learned], [], scenes[held])
        with pytest.raises(ValueError, match=rf"written by another run \({said}.*: resume with the same arguments"):
            fit(plan, data, recipe, 0, save_to=file, resume=True)

    refused("episodes.training: 6 of SHA-256", learned=slice(1, 4), held=slice(1))
    refused("episodes.training: 6 of SHA-256", learned=slice(2), held=slice(2, 4))
    refused("memory.width: 16 in the file, 8 here", replace(plan, width=8))
    refused("memory.name: gru in the file, lru here", replace(design("lru")))
    refused("policy.chunk: 4 in the file, 6 here", replace(plan, chunk=6))
    seen = {"backbone": BackboneConfig("small", options={"layout": "vector"})}
    refused("policy.options.backbone.options.layout: None in the file", replace(plan, policy_options=seen))
    refused("least_spread.rad: None in the file, 0.5 here", replace(plan, spread={"rad": 0.5}))


def test_what_was_kept_of_other_eyes_or_another_start_is_refused(tmp_path: Path) -> None:
    """Weights of the same sizes do not tell them apart."""
    cells = replace(design("gru"), backbone=BackboneConfig("cells", options={"cell_px": 4}))
    scenes, recipe = [pair(i) for i in range(3)], replace(SHORT, memory_first=replace(FIRST, attempts=1, stage_steps=1))
    recipe, file = replace(recipe, steps=1), tmp_path / "training.safetensors"
    data = build.prepare(cells, scenes)
    fitted = fit(cells, data, recipe, 0, save_to=file)
    finer = replace(cells, backbone=BackboneConfig("cells", options={"cell_px": 2}))
    with pytest.raises(ValueError, match="eyes.options.cell_px: 4 in the file, 2 here"):
        fit(finer, data, recipe, 0, save_to=file, resume=True)
    fitted.save(tmp_path / "first", "task", {})
    with pytest.raises(ValueError, match="start: None in the file, "):
        fit(cells, data, recipe, 0, start=load(tmp_path / "first"), save_to=file, resume=True)


def test_a_file_that_does_not_tell_its_sizes_is_refused_where_they_do_not_fit(tmp_path: Path) -> None:
    file, module = tmp_path / "training.safetensors", torch.nn.Linear(2, 3)
    keeper = Keeper(0, SHORT, file)
    keeper.write(JOINT, {}, {"agent": module}, torch.optim.AdamW(module.parameters()))
    kept = replace(keeper, about={"memory": {"width": 4}}).read()
    assert kept is not None
    other = torch.nn.Linear(2, 4)
    with pytest.raises(ValueError, match="kept of agent has other sizes than what is trained: resume"):
        kept.into({"agent": other}, torch.optim.AdamW(other.parameters()))


def test_the_episodes_of_a_batch_that_gives_no_number_are_named() -> None:
    plan = design("gru")
    data = build.prepare(plan, [pair(0), pair(1)], [pair(100)])
    data.training.data.episodes[2].state[3:] = float("nan")
    with pytest.raises(FloatingPointError, match=r"loss is nan at step \d+ .*episodes .*1 0") as raised:
        fit(plan, data, SHORT, 0)
    assert "in these demonstrations" in str(raised.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), "out of GPU memory in the memory phase"),
        (MemoryError(), "out of memory in the memory phase"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
            "out of memory in the memory phase",
        ),
    ],
)
def test_too_little_memory_says_what_halves_it(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = design("gru")
    data = build.prepare(plan, [pair(0), pair(1)], [pair(100)])

    def full(*_: Any) -> Any:
        raise error

    monkeypatch.setattr("trace_memory_ros.learning.auxiliary.head.AuxiliaryHead.losses", full)
    with pytest.raises(MemoryError, match=f"{said}.*--set recipe.memory_first.batch_pairs=1 halves"):
        fit(plan, data, SHORT, 0)
    with pytest.raises(MemoryError, match="--set recipe.memory_first.reads=8"):
        fit(plan, data, Recipe(memory_first=MemoryFirst(batch_pairs=1)), 0)


def test_another_fault_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = design("gru")
    data = build.prepare(plan, [pair(0), pair(1)], [pair(100)])

    def odd(*_: Any) -> Any:
        raise RuntimeError("something else")

    monkeypatch.setattr("trace_memory_ros.learning.auxiliary.head.AuxiliaryHead.losses", odd)
    with pytest.raises(RuntimeError, match="something else"):
        fit(plan, data, SHORT, 0)
