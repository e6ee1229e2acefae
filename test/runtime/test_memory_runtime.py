"""The tick is deterministic, restorable, and says the same as a training scan."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryInput, Readout
from trace_memory_ros.observation.images import shrunk
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.checkpoint import CheckpointError, load, save
from trace_memory_ros.runtime.clock import EveryTicks, PathLength, UpdateClock
from trace_memory_ros.runtime.condition import Condition, ConditionStatus
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.runtime.snapshot import MODEL_KEY, VERSION_KEY, SnapshotError
from trace_memory_ros.signature.batch import batch_signature

MECHANISMS = (*registry.names(), "gru+cache", "trace+gate")
RARELY = ("none", "first_frame")
"""Mechanisms that do not write whenever they may."""
ARRAYS = ("tokens", "vector", "read_weights", "address")
Make = Callable[..., MemoryModel]
Record = Callable[..., list[Observation]]


def run(runtime: MemoryRuntime, episode: list[Observation]) -> list[Condition]:
    return [runtime.tick(observation)[0] for observation in episode]


def assert_identical(ours: list[Condition], theirs: list[Condition]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
        scalars = ("episode", "tick", "stamp_ns", "status", "reason", "wrote", "model_id")
        assert [getattr(one, name) for name in scalars] == [getattr(other, name) for name in scalars]


def broken(observation: Observation) -> Observation:
    return replace(observation, faults={"overhead": "overhead: broken"})


def training_scan(model: MemoryModel, episode: list[Observation], clock: UpdateClock) -> tuple[Readout, np.ndarray]:
    """A whole episode as a trainer does it: write ticks scanned at once, then a read at every tick."""
    config_order = list(episode[0].images)
    images = np.stack([[o.images[name] for name in config_order] for o in episode])
    small = torch.from_numpy(shrunk(images, 16)).movedim(-1, -3).float() / 255
    state = model.state.apply(np.stack([o.state for o in episode]))
    mask = clock.write_mask(state)
    writes = np.flatnonzero(mask)
    ticks = len(episode)
    if model.uses_signature:
        xi = batch_signature(torch.from_numpy(state)[None].double(), 2)[0].numpy()
        before = np.maximum(np.searchsorted(writes, np.arange(ticks), side="left") - 1, 0)
        address = model.xi.apply(xi), model.delta.apply(xi - xi[writes[before]])
    else:
        address = np.zeros((ticks, 0), np.float32), np.zeros((ticks, 0), np.float32)
    content = model.encoder(small[None], torch.from_numpy(state)[None])
    xs = MemoryInput(content, *(torch.from_numpy(a)[None] for a in address), content[:, :1].expand_as(content))
    memory = model.memory
    stacked, _, _ = memory.scan(
        MemoryInput(*(None if f is None else f[:, writes] for f in xs)),
        memory.initial_state(1),
        torch.ones(1, len(writes), dtype=torch.bool),
    )
    last = np.cumsum(mask) - 1
    flat = MemoryInput(*(None if f is None else f[0] for f in xs))
    return memory.read(flat, tuple(part[0, last] for part in stacked)), mask


@pytest.mark.parametrize("rule", [PathLength(1.0, 0.02), EveryTicks(3)])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_training_scan_equals_ticks(
    mechanism: str, rule: PathLength | EveryTicks, tmp_path: Path, make_checkpoint: Make, make_episode: Record
) -> None:
    model, episode = make_checkpoint(tmp_path, mechanism, rule), make_episode()
    runtime = MemoryRuntime.from_checkpoint(tmp_path)
    ticks = [runtime.tick(observation) for observation in episode]
    with torch.no_grad():
        readout, mask = training_scan(model, episode, UpdateClock(rule))
    assert 3 <= mask.sum() < len(episode) - 10
    for name in ARRAYS:
        live = np.stack([getattr(condition, name) for condition, _ in ticks])
        np.testing.assert_allclose(live, getattr(readout, name).numpy(), atol=1e-5, rtol=0)
    if mechanism not in RARELY:
        assert [condition.wrote for condition, _ in ticks] == mask.tolist()
        assert np.ptp([condition.vector for condition, _ in ticks], axis=0).max() > 0.01


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_instances_and_episodes_are_bit_identical(
    mechanism: str, tmp_path: Path, make_checkpoint: Make, make_episode: Record
) -> None:
    make_checkpoint(tmp_path, mechanism)
    episode = make_episode(30)
    one, other = (MemoryRuntime.from_checkpoint(tmp_path) for _ in range(2))
    other.warm_up()
    first = run(one, episode)
    assert_identical(first, run(other, episode))
    run(one, make_episode(seed=9)[:7])
    one.reset()
    again = run(one, episode)
    assert {condition.episode for condition in again} == {1}
    assert_identical(first, [replace(condition, episode=0) for condition in again])


DIGEST = """
import sys, hashlib
sys.path.insert(0, sys.argv[2])
from conftest import random_episode
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
runtime = MemoryRuntime.from_checkpoint(sys.argv[1])
digest = hashlib.sha256()
for observation in random_episode():
    condition, _ = runtime.tick(observation)
    for array in (condition.tokens, condition.vector, condition.read_weights, condition.address):
        digest.update(array.tobytes())
print(digest.hexdigest())
"""


def test_processes_are_bit_identical(tmp_path: Path, make_checkpoint: Make, make_episode: Record) -> None:
    make_checkpoint(tmp_path, "trace")
    digest = hashlib.sha256()
    for condition in run(MemoryRuntime.from_checkpoint(tmp_path), make_episode()):
        for name in ARRAYS:
            digest.update(getattr(condition, name).tobytes())
    command = [sys.executable, "-c", DIGEST, str(tmp_path), str(Path(__file__).parent)]
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    other = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)
    assert other.stdout.strip() == digest.hexdigest(), other.stderr


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_restore_goes_on_bit_for_bit(
    mechanism: str, tmp_path: Path, make_checkpoint: Make, make_episode: Record
) -> None:
    make_checkpoint(tmp_path, mechanism)
    episode, after = make_episode(), 20
    runtime = MemoryRuntime.from_checkpoint(tmp_path)
    for cut in (0, 1, 25):
        runtime.reset()
        run(runtime, episode[:cut])
        saved = runtime.snapshot()
        save_file(saved, tmp_path / "snapshot.safetensors")
        expected = [runtime.tick(observation) for observation in episode[cut : cut + after]]
        fresh = MemoryRuntime.from_checkpoint(tmp_path)
        run(fresh, make_episode(seed=5)[:4])
        fresh.restore(load_file(tmp_path / "snapshot.safetensors"))
        assert any(condition.wrote for condition, _ in expected) or mechanism in RARELY
        restored = [fresh.tick(observation) for observation in episode[cut : cut + after]]
        assert_identical([c for c, _ in expected], [c for c, _ in restored])
        for (_, one), (_, other) in zip(expected, restored, strict=True):
            for name, value in vars(one).items():
                if name != "stage_ms":
                    np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


def test_snapshots_that_do_not_fit_are_named_and_change_nothing(
    tmp_path: Path, make_checkpoint: Make, make_episode: Record
) -> None:
    make_checkpoint(tmp_path / "a", "trace")
    make_checkpoint(tmp_path / "b", "trace", seed=1)
    runtime, foreign = (MemoryRuntime.from_checkpoint(tmp_path / name) for name in "ab")
    run(runtime, make_episode()[:5])
    good = runtime.snapshot()
    spoilt = {name: np.full_like(good[name], np.nan) for name in ("memory.0", "address.at_write", "address.signature")}
    half = good["address.last_state"].copy()
    half[-1] = np.nan
    fixed = ("writes.counts", "ticks.ok", "clock.path", "address.at_write", "last.gate")
    wrong: list[tuple[dict[str, np.ndarray], str]] = [
        (foreign.snapshot(), f"of model {foreign.model_id}, this is model {runtime.model_id}"),
        ({**good, VERSION_KEY: np.array([7])}, r"version is \[7\]"),
        ({k: v for k, v in good.items() if k != MODEL_KEY}, "has no snapshot.model_id"),
        ({k: v for k, v in good.items() if k != "memory.0"}, r"lacks \['memory.0'\]"),
        ({**good, "memory.9": good["memory.0"]}, r"unknown \['memory.9'\]"),
        ({**good, "memory.0": good["memory.0"][:, :1]}, r"memory.0 is float32 \(1, 1, 16\), this model has"),
        ({**good, "address.signature": good["address.signature"].astype(np.float32)}, "address.signature is float32"),
        *(({**good, name: values}, f"{name} has values that are not finite") for name, values in spoilt.items()),
        *(({**good, name: good[name][:0]}, rf"{name} is \w+ \(0,\), this model has") for name in fixed),
        ({**good, "address.last_state": half}, "address: signature snapshot holds non-finite values"),
    ]
    for arrays, message in wrong:
        with pytest.raises(SnapshotError, match=message):
            runtime.restore(arrays)
    after = runtime.snapshot()
    assert all(np.array_equal(after[name], good[name], equal_nan=good[name].dtype.kind == "f") for name in good)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_unusable_observations_leave_the_memory_untouched(
    mechanism: str, tmp_path: Path, make_checkpoint: Make, make_episode: Record
) -> None:
    make_checkpoint(tmp_path, mechanism)
    episode = make_episode(30)
    plain, disturbed = (MemoryRuntime.from_checkpoint(tmp_path) for _ in range(2))
    expected = run(plain, episode)
    condition, record = disturbed.tick(broken(episode[0]))
    assert condition.status is ConditionStatus.INVALID
    assert condition.reason == "overhead: broken"
    assert all(getattr(condition, name).size == 0 for name in ARRAYS)
    assert (record.ticks_invalid, record.ticks_stale, record.write_count) == (1, 0, 0)
    kept = []
    for k, observation in enumerate(episode):
        good, _ = disturbed.tick(observation)
        kept.append(good)
        for _ in range(k % 3):
            stale, record = disturbed.tick(broken(observation))
            assert stale.status is ConditionStatus.STALE
            assert not stale.wrote
            for name in ARRAYS:
                np.testing.assert_array_equal(getattr(stale, name), getattr(good, name))
    assert_identical(expected, kept)
    assert record.ticks_stale == sum(k % 3 for k in range(len(episode)))


def test_observations_of_another_config_are_named(tmp_path: Path, make_checkpoint: Make, make_episode: Record) -> None:
    make_checkpoint(tmp_path, "trace")
    runtime = MemoryRuntime.from_checkpoint(tmp_path)
    good = make_episode()[0]
    state = good.state.copy()
    state[5] = np.nan
    images = {name: image for name, image in good.images.items() if name != "overhead"}
    bad = {
        "left_joint_3 is not finite": replace(good, state=state),
        r"state is (16,), the model needs (17,)": replace(good, state=good.state[1:]),
        "state is None": replace(good, state=None),
        "image of overhead is None": replace(good, images=images),
        "(96, 96, 3)": replace(good, images={**images, "overhead": np.zeros((96, 96, 3), np.uint8)}),
    }
    for message, observation in bad.items():
        condition, _ = runtime.tick(observation)
        assert condition.status is ConditionStatus.INVALID
        assert message in condition.reason


def test_a_standing_arm_writes_nothing(tmp_path: Path, make_checkpoint: Make, make_episode: Record) -> None:
    make_checkpoint(tmp_path, "trace", PathLength(1.0, 0.02))
    runtime = MemoryRuntime.from_checkpoint(tmp_path)
    start, rng = make_episode()[0], np.random.default_rng(0)
    conditions = []
    for k in range(600):
        noise = rng.normal(0, 1e-3, 17)
        observation = replace(start, tick=k, stamp_ns=start.stamp_ns + k * 10**8, state=start.state + noise)
        condition, record = runtime.tick(observation)
        conditions.append(condition)
    assert [c.wrote for c in conditions] == [True] + [False] * 599
    assert record.write_count == 1
    assert record.write_rate_hz == pytest.approx(1 / 60)
    assert record.path_length == 0.0


def test_records_describe_the_writes(tmp_path: Path, make_checkpoint: Make, make_episode: Record) -> None:
    make_checkpoint(tmp_path, "trace", EveryTicks(2))
    runtime = MemoryRuntime.from_checkpoint(tmp_path)
    routes, mains = [], []
    for k, observation in enumerate(make_episode()):
        condition, record = runtime.tick(observation)
        assert condition.wrote == (k % 2 == 0)
        if condition.wrote:
            routes.append(record.route)
            mains.append(int(record.route.argmax()))
        np.testing.assert_array_equal(record.route, routes[-1])
        assert record.route.sum() == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(record.slot_norms, np.sqrt((condition.tokens**2).mean(1)), rtol=1e-6)
        assert record.write_count == record.due_count == len(routes)
        assert (record.slot_kind, record.due) == ("slot", condition.wrote)
        entropy = -(routes[-1] * np.log(routes[-1])).sum() / np.log(3)
        assert record.write_entropy == pytest.approx(entropy, abs=1e-5)
        assert record.slot_occupancy == pytest.approx(len(set(mains)) / 3)
        changes = sum(a != b for a, b in pairwise(mains))
        assert record.slot_churn == pytest.approx(changes / max(1, len(mains) - 1))
        assert record.state_bytes == 3 * 16 * 4
        assert set(record.stage_ms) == {"encode", "signature", "memory"}


@pytest.mark.parametrize("later_s", [86_400, -86_400])
def test_the_write_rate_does_not_count_the_time_that_a_snapshot_lay(
    later_s: int, tmp_path: Path, make_checkpoint: Make, make_episode: Record
) -> None:
    make_checkpoint(tmp_path, "trace", EveryTicks(2))
    runtime, episode = MemoryRuntime.from_checkpoint(tmp_path), make_episode()
    run(runtime, episode[:10])
    saved = runtime.snapshot()
    runtime.restore(saved)
    _, unbroken = runtime.tick(episode[10])
    assert unbroken.write_rate_hz == pytest.approx(6 / (11 * 1e-9 * runtime.config.observation.period_ns))
    runtime.restore(saved)
    _, later = runtime.tick(replace(episode[10], stamp_ns=episode[10].stamp_ns + later_s * 10**9))
    assert later.write_rate_hz == unbroken.write_rate_hz


def test_checkpoints_that_do_not_fit_are_named(tmp_path: Path, make_checkpoint: Make) -> None:
    model = make_checkpoint(tmp_path, "trace")
    config = load(tmp_path).config
    tensors = model.tensors()
    wrong = [
        ({k: v for k, v in tensors.items() if k != "normaliser.xi.mean"}, r"normaliser\.xi\.mean"),
        (
            {**tensors, **model.state.to_tensors("normaliser.xi.")},
            "xi has 17 channels, the config needs 306",
        ),
        ({k: v for k, v in tensors.items() if k != "memory.w_q.weight"}, "memory.w_q.weight is missing"),
        ({**tensors, "normaliser.state.std": torch.zeros(17, dtype=torch.float64)}, "must be at least"),
    ]
    for changed, message in wrong:
        save(tmp_path, config, changed)
        with pytest.raises(CheckpointError, match=rf"model\.safetensors.*{message}"):
            MemoryRuntime.from_checkpoint(tmp_path)
    memory = replace(config.memory, name="tarce")
    save(tmp_path, replace(config, memory=memory), tensors)
    with pytest.raises(CheckpointError, match=r"'tarce' is unknown.*'trace'"):
        MemoryRuntime.from_checkpoint(tmp_path)


def test_records_tell_what_is_beyond_training(tmp_path: Path, make_checkpoint: Make, make_episode: Record) -> None:
    make_checkpoint(tmp_path, "trace", EveryTicks(2))
    runtime = MemoryRuntime.from_checkpoint(tmp_path)
    first, second, third, *_ = make_episode()
    assert first.state is not None and second.state is not None
    _, record = runtime.tick(first)
    assert (record.clipped_share, record.clipped_state) == (0.0, ())
    far = second.state.copy()
    far[[5, 7]] += [-400.0, 300.0]
    names = runtime.config.observation.state
    _, record = runtime.tick(replace(second, state=far))
    assert record.clipped_state == (names[5], names[7])
    # Of the state 2 of 14 that are used, and of signature and increment what these two moved.
    assert 0.0 < record.clipped_share < 0.5
    _, record = runtime.tick(replace(third, state=None))
    assert (record.clipped_share, record.clipped_state) == (0.0, ())
