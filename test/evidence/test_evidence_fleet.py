"""Fleets of bags: the same evidence whoever evaluates, interrupted runs go on, one bad bag costs itself alone."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from fixtures import tiny_checkpoint
from fleet_jobs import killed_over
from learning.tiny_bags import recording, write_bags

import trace_memory_ros
from trace_memory_ros.bags.recording import BranchConfig
from trace_memory_ros.evidence.evaluator import EvidenceSettings
from trace_memory_ros.evidence.fleet import (
    SOURCE_ROOMS,
    FleetPlan,
    evaluate_bags,
    frames_of,
    remedy_for,
    source_digest,
    unique_names,
)
from trace_memory_ros.evidence.results import EpisodeEvidence, Evaluation
from trace_memory_ros.measure.fleet import Executor, Step, executor
from trace_memory_ros.measure.workers import do_all
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.none import NoneConfig


def here(work: Callable[[Any], Any], jobs: Sequence[Any], report: Callable[[Any], None], /) -> list[Any]:
    """An executor that needs no process."""
    for job in jobs:
        report(work(job))
    return []


class LastPhase:
    """What a run said of each bag in its last phase. reasons: in all of them, of bags with one."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}

    def begin(self, phase: str, total: int) -> None:
        self.phase, self.total, self.how = phase, total, dict[str, str]()

    def step(self, step: Step[Path]) -> None:
        self.how[step.job.name] = step.how
        if step.reason:
            self.reasons[step.job.name] = step.reason


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four sound bags, and one that is none."""
    folder = tmp_path_factory.mktemp("recorded")
    write_bags(folder, 2, recording())
    (folder / "broken").mkdir()
    (folder / "broken" / "broken_0.mcap").write_bytes(b"not a bag")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    tiny_checkpoint(folder, observation=recording().observation)
    return folder


@pytest.fixture(scope="module")
def expected(bags: list[Path], model: Path, tmp_path_factory: pytest.TempPathFactory) -> Evaluation:
    return evaluate_bags(bags, FleetPlan(model, recording(), tmp_path_factory.mktemp("cache")), here)


def timeless(episodes: Sequence[EpisodeEvidence]) -> list[EpisodeEvidence]:
    """All but how long it took."""
    return [replace(episode, latency_ms={}) for episode in episodes]


def test_every_episode_is_evaluated_and_the_broken_bag_is_listed(bags: list[Path], expected: Evaluation) -> None:
    assert len(expected.episodes) == 4
    assert [e.bag for e in expected.episodes] == [str(bag) for bag in bags if bag.name != "broken"]
    assert [Path(fault.bag).name for fault in expected.failed] == ["broken"]
    assert expected.failed[0].remedy
    assert expected.figures["episodes"] == {"origin": 4}
    assert all(len(e.stability) == 6 for e in expected.episodes)


@pytest.mark.timeout(600)  # Every worker imports everything anew, beside whatever else runs.
def test_a_killed_worker_costs_its_bag_and_the_next_run_goes_on(
    bags: list[Path], model: Path, expected: Evaluation, tmp_path: Path
) -> None:
    plan, victim, phase = FleetPlan(model, recording(), tmp_path), bags[2].name, LastPhase()

    def deadly(work: Callable[[Any], Any], jobs: Sequence[Any], report: Callable[[Any], None], /) -> Any:
        decoding = isinstance(jobs[0], Path)
        return here(work, jobs, report) if decoding else do_all(partial(killed_over, victim, work), jobs, 2, report)

    first = evaluate_bags(bags, plan, deadly, phase)
    assert phase.phase == "evaluated" and phase.how.pop(victim) == "failed"
    assert set(phase.how.values()) == {"done"} and len(phase.how) == 3
    assert {Path(fault.bag).name: fault.what for fault in first.failed}[victim] == "the process that did it died"
    left = [e for e in expected.episodes if Path(e.bag).name != victim]
    assert timeless(first.episodes) == timeless(left)
    second = evaluate_bags(bags, plan, here, phase)
    assert phase.how.pop(victim) == "done"
    assert set(phase.how.values()) == {"cached"}
    assert timeless(second.episodes) == timeless(expected.episodes)
    assert second.failed == expected.failed
    assert second.figures == expected.figures


def test_ray_finds_the_same(bags: list[Path], model: Path, expected: Evaluation, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is an optional extra: pip install 'trace_memory_ros[ray]'")
    execute: Executor = executor(ray_address="local")
    found = evaluate_bags(bags, FleetPlan(model, recording(), tmp_path), execute)
    assert timeless(found.episodes) == timeless(expected.episodes)
    assert found.failed == expected.failed


def test_kept_results_are_of_the_same_content_settings_and_model(bags: list[Path], model: Path, tmp_path: Path) -> None:
    sound = [bag for bag in bags if bag.name != "broken"][:2]
    plan, phase = FleetPlan(model, recording(), tmp_path / "cache"), LastPhase()
    evaluate_bags(sound, plan, here, phase)
    moved = [Path(shutil.copytree(bag, tmp_path / "moved" / bag.name)) for bag in sound]
    found = evaluate_bags(moved, plan, here, phase)
    assert set(phase.how.values()) == {"cached"}
    assert [e.bag for e in found.episodes] == [str(bag) for bag in moved]
    evaluate_bags(sound, replace(plan, settings=EvidenceSettings(seed=1)), here, phase)
    assert set(phase.how.values()) == {"done"}
    other = tmp_path / "other"
    tiny_checkpoint(other, "gru", observation=recording().observation)
    evaluate_bags(sound, replace(plan, checkpoint=other), here, phase)
    assert set(phase.how.values()) == {"done"}


def test_what_a_bag_that_is_evaluated_lost_is_told(bags: list[Path], model: Path, tmp_path: Path) -> None:
    whole, lacking = (Path(shutil.copytree(bag, tmp_path / bag.name)) for bag in bags if bag.name.endswith("0"))
    (whole / "branches.yaml").write_text("branches: [{tick: 16, label: left}]", encoding="utf-8")
    annotated, phase = replace(recording(), branches=BranchConfig(file="branches.yaml")), LastPhase()
    found = evaluate_bags([whole, lacking], FleetPlan(model, annotated, tmp_path / "cache"), here, phase)
    assert [len(episode.branches) for episode in found.episodes] == [1, 0]
    assert list(phase.reasons) == [lacking.name]
    assert "branches.yaml: cannot be read (No such file or directory); write it" in phase.reasons[lacking.name]
    assert phase.reasons[lacking.name] in found.episodes[1].faults
    assert not found.failed


def test_an_error_is_not_put_down_to_a_lack_of_memory() -> None:
    assert "memory" in remedy_for("the process that did it died")
    assert "report" in remedy_for("KeyError: 'odd'")


def test_kept_results_are_of_the_source_that_made_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    root = tmp_path / "trace_memory_ros"
    shutil.copytree(Path(trace_memory_ros.__file__).parent, root, ignore=shutil.ignore_patterns("__pycache__", "msg"))
    monkeypatch.setattr(trace_memory_ros, "__file__", str(root / "__init__.py"))
    before = source_digest.__wrapped__()
    for room in (*SOURCE_ROOMS, "arm"):
        file = min((root / room).rglob("*.py"))
        file.write_text(file.read_text(encoding="utf-8") + "# changed", encoding="utf-8")
        after = source_digest.__wrapped__()
        assert (after != before) == (room in SOURCE_ROOMS), room
        before = after


def test_kept_results_are_of_the_source_of_a_memory_that_another_package_brings(
    bags: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "odd_memory" / "parts" / "mean.py"
    file.parent.mkdir(parents=True)
    file.write_text("from trace_memory_ros.memory.none import NoneMemory\n\nclass Odd(NoneMemory):\n    name = 'odd'\n")
    monkeypatch.syspath_prepend(tmp_path)
    made = import_module("odd_memory.parts.mean").Odd
    monkeypatch.setitem(registry._MECHANISMS, "odd", registry.Mechanism(NoneConfig, made))
    sound = [bag for bag in bags if bag.name != "broken"][:2]
    tiny_checkpoint(tmp_path / "model", "odd", observation=recording().observation)
    plan, phase = FleetPlan(tmp_path / "model", recording(), tmp_path / "cache"), LastPhase()
    for changed, how in (("", "done"), ("", "cached"), ("# changed", "done")):
        file.write_text(file.read_text(encoding="utf-8") + changed, encoding="utf-8")
        evaluate_bags(sound, plan, here, phase)
        assert set(phase.how.values()) == {how}


def test_all_rooms_that_figures_come_from_count_as_their_source() -> None:
    root = Path(trace_memory_ros.__file__).parent
    sources = [file.read_text(encoding="utf-8") for room in SOURCE_ROOMS for file in (root / room).rglob("*.py")]
    imports = re.compile(r"^\s*from trace_memory_ros\.(\w+)", re.MULTILINE)
    imported = {room for text in sources for room in imports.findall(text)}
    assert imported <= set(SOURCE_ROOMS)


def test_films_come_from_the_cache_of_decoded_bags(
    bags: list[Path], expected: Evaluation, model: Path, tmp_path: Path
) -> None:
    plan = FleetPlan(model, recording(), tmp_path)
    frames = frames_of(plan, expected.episodes[0])
    assert frames is not None
    assert tuple(frames) == ("eye_0",)
    assert len(next(iter(frames.values()))) == expected.episodes[0].ticks
    assert frames_of(plan, replace(expected.episodes[0], bag=str(bags[0].parent / "broken"))) is None


def test_bags_of_one_name_are_told_apart_by_their_folders() -> None:
    episodes = [(Path("/x/a/run/0"), "0"), (Path("/x/b/run/0"), "0"), (Path("/x/b/run/1"), "1")]
    assert unique_names(episodes) == ["a/run/0", "b/run/0", "1"]
    assert unique_names([]) == []
