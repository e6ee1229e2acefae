"""What a memory goes on from, and what it does not; without ROS."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures import tiny_checkpoint

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.memory import snapshot_writer
from trace_memory_ros.nodes.memory.continuity import Continuity, Keeping
from trace_memory_ros.nodes.memory.remembering import Remembering, Ticked
from trace_memory_ros.nodes.memory.snapshot_file import SnapshotHead, read_snapshot, write_snapshot
from trace_memory_ros.nodes.memory.snapshot_writer import SnapshotWriter
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.content import JointPositions, Live, Pixels
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.snapshot import SnapshotError

SECOND_NS = 1_000_000_000
CONFIG = default_arm()
JOINTS = [one.output for one in CONFIG.streams[0].selected]
HEAD = SnapshotHead(next_tick=7, stamp_ns=5 * SECOND_NS, written_ns=1_000 * SECOND_NS)
WALL_NS = HEAD.written_ns + 2 * SECOND_NS


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    tiny_checkpoint(folder / "own", policy=False)
    tiny_checkpoint(folder / "foreign", seed=1, policy=False)
    return {name: folder / name for name in ("own", "foreign")}


@pytest.fixture
def runtime(checkpoints: dict[str, Path]) -> MemoryRuntime:
    return MemoryRuntime.from_checkpoint(checkpoints["own"])


@pytest.fixture
def kept(tmp_path: Path, runtime: MemoryRuntime) -> Iterator[Continuity]:
    continuity = Continuity(Keeping(tmp_path), "/robot/memory_node", runtime)
    yield continuity
    continuity.close()


def snapshot_in(folder: Path) -> Path:
    return folder / "robot.memory_node.safetensors"


def test_a_young_snapshot_is_gone_on_from_with_its_gap(
    tmp_path: Path, runtime: MemoryRuntime, kept: Continuity
) -> None:
    write_snapshot(snapshot_in(tmp_path), runtime.snapshot(), HEAD)
    kept.recover(WALL_NS)
    assert kept.restored
    period_ns = CONFIG.period_ns
    assert kept.first_tick(HEAD.stamp_ns + 4 * period_ns + period_ns // 3) == 10
    assert kept.gap_ticks == 3
    assert kept.lost
    assert "2.0 s old; 3 control ticks" in kept.story
    assert kept.first_tick(HEAD.stamp_ns + 5 * period_ns) is None


@pytest.mark.parametrize(
    ("later_ticks", "why"), [(4000, "3999 control ticks lie between"), (-5, "-6 control ticks lie")]
)
def test_a_gap_too_wide_or_backwards_begins_an_episode(
    tmp_path: Path, runtime: MemoryRuntime, kept: Continuity, later_ticks: int, why: str
) -> None:
    write_snapshot(snapshot_in(tmp_path), runtime.snapshot(), HEAD)
    kept.recover(WALL_NS)
    assert kept.first_tick(HEAD.stamp_ns + later_ticks * CONFIG.period_ns) == 0
    assert (kept.restored, kept.gap_ticks, kept.lost) == (False, 0, True)
    assert why in kept.story


def test_what_cannot_be_gone_on_from_is_named_and_set_aside(
    tmp_path: Path, runtime: MemoryRuntime, kept: Continuity, checkpoints: dict[str, Path]
) -> None:
    path, aside = snapshot_in(tmp_path), tmp_path / "robot.memory_node.refused.safetensors"
    foreign = MemoryRuntime.from_checkpoint(checkpoints["foreign"])
    before = runtime.snapshot()
    write_snapshot(path, foreign.snapshot(), HEAD)
    whole = bytearray(path.read_bytes())
    flipped = whole.copy()
    flipped[-3] ^= 1
    for content, word in (
        (whole, f"is of model {foreign.model_id}"),
        (flipped, "another checksum"),
        (b"", "not a safe"),
    ):
        path.write_bytes(content)
        kept.recover(WALL_NS)
        assert word in kept.story
        assert f"set aside as {aside}" in kept.story
        assert kept.lost
        assert not kept.restored
        assert aside.read_bytes() == bytes(content)
        assert not path.exists()
    for name, array in runtime.snapshot().items():
        np.testing.assert_array_equal(array, before[name])


@pytest.mark.parametrize("age_s", [31.0, -60.0])
def test_an_old_snapshot_and_one_of_another_clock_are_left(
    tmp_path: Path, runtime: MemoryRuntime, kept: Continuity, age_s: float
) -> None:
    write_snapshot(snapshot_in(tmp_path), runtime.snapshot(), HEAD)
    kept.recover(HEAD.written_ns + round(age_s * SECOND_NS))
    assert not kept.restored
    assert f"is {age_s} s old, restore_max_age_s = 30" in kept.story


def test_damaged_bytes_never_restore_and_never_raise_anything_else(tmp_path: Path, runtime: MemoryRuntime) -> None:
    path = tmp_path / "one.safetensors"
    write_snapshot(path, runtime.snapshot(), HEAD)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    for k in range(400):
        broken = bytearray(whole)
        for at in rng.integers(0, len(whole) if k % 2 else 900, 1 + k % 3):
            broken[at] ^= int(rng.integers(1, 256))
        path.write_bytes(broken[: int(rng.integers(0, len(whole)))] if k % 7 == 0 else broken)
        with pytest.raises(SnapshotError):
            read_snapshot(path, runtime)
    path.write_bytes(whole + bytes(3_000_000))
    with pytest.raises(SnapshotError, match="at most"):
        read_snapshot(path, runtime)


def test_an_episode_that_ended_in_order_leaves_nothing_behind(
    tmp_path: Path, runtime: MemoryRuntime, kept: Continuity
) -> None:
    kept.begin()
    kept.keep(1, SECOND_NS, WALL_NS, 10**18)
    kept.forget()
    kept.recover(WALL_NS)
    assert (kept.story, kept.lost) == ("began empty", False)
    assert not snapshot_in(tmp_path).exists()


def test_one_folder_is_for_one_node(tmp_path: Path, runtime: MemoryRuntime, kept: Continuity) -> None:
    with pytest.raises(ConfigError, match="another memory_node of this name"):
        Continuity(Keeping(tmp_path), "/robot/memory_node", runtime)
    Continuity(Keeping(tmp_path), "/other/memory_node", runtime).close()
    with pytest.raises(ConfigError, match="cannot be written"):
        Continuity(Keeping(Path("/proc/nowhere")), "/robot/memory_node", runtime)


def test_of_waiting_snapshots_the_newest_is_written_and_a_full_disk_is_named(
    tmp_path: Path, runtime: MemoryRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    disk, failures = threading.Event(), [OSError(errno.ENOSPC, "No space left on device")]

    def slow(path: Path, arrays: dict[str, np.ndarray], head: SnapshotHead) -> None:
        disk.wait(30)
        written.append(head.next_tick)
        if failures and len(written) == 2:
            raise failures.pop()
        write_snapshot(path, arrays, head)

    monkeypatch.setattr(snapshot_writer, "write_snapshot", slow)
    writer = SnapshotWriter(tmp_path / "one.safetensors")
    arrays = runtime.snapshot()
    for tick in range(50):
        writer.offer(arrays, replace(HEAD, next_tick=tick))
    disk.set()
    writer.write(tmp_path / "other.safetensors", arrays, HEAD).result(30)
    assert len(written) <= 3
    assert written[-2 if written[-1] == HEAD.next_tick else -1] == 49
    assert "No space left on device" in writer.fault
    writer.offer(arrays, replace(HEAD, next_tick=60))
    writer.write(tmp_path / "other.safetensors", arrays, HEAD).result(30)
    assert writer.fault == ""
    assert read_snapshot(tmp_path / "one.safetensors", runtime).next_tick == 60
    writer.close()


class Played:
    """A memory fed tick by tick, without ROS; `wall_ns` is its monotonic clock."""

    def __init__(self, runtime: MemoryRuntime, continuity: Continuity, on_clock_jump: str = "stop") -> None:
        self.faults: list[str] = []
        self.wall_ns = SECOND_NS
        self.stamp_ns = 100_000 * SECOND_NS
        note = lambda _, text: self.faults.append(text)  # noqa: E731
        self.remembering = Remembering(runtime, Observer(CONFIG), continuity, 5, on_clock_jump, note)
        self.remembering.begin()

    def tick(self, stamps_ms: int = 100, wall_ms: int = 100) -> list[Ticked]:
        self.stamp_ns += stamps_ms * 1_000_000
        self.wall_ns += wall_ms * 1_000_000
        observer = self.remembering.observer
        for camera in CONFIG.camera_names:
            observer.push(camera, self.stamp_ns, self.wall_ns, Pixels(np.zeros((8, 8, 3), np.uint8)))
        observer.push("joint_states", self.stamp_ns, self.wall_ns, Live(JointPositions(JOINTS, [0.1] * len(JOINTS))))
        return list(self.remembering.ticks(0))


@pytest.fixture
def loose(runtime: MemoryRuntime) -> Continuity:
    return Continuity(Keeping(), "/memory_node", runtime)


@pytest.mark.parametrize("jump_s", [3600, -3600])
def test_a_clock_jump_stops_the_episode_until_the_next(runtime: MemoryRuntime, loose: Continuity, jump_s: int) -> None:
    played = Played(runtime, loose)
    assert [len(played.tick()) for _ in range(5)] == [1] * 5
    played.tick(1000 * jump_s + 100)
    assert not any(played.tick() for _ in range(20))
    way = "ahead" if jump_s > 0 else "back"
    assert f"jumped {way} by 3600.0 s" in played.remembering.stopped
    assert len([text for text in played.faults if "jumped" in text]) == 1
    played.remembering.begin()
    ticks = [ticked.condition.tick for _ in range(3) for ticked in played.tick()]
    assert ticks == [0, 1, 2]


def test_a_clock_jump_begins_an_episode_where_asked(runtime: MemoryRuntime, loose: Continuity) -> None:
    played = Played(runtime, loose, "new_episode")
    (first,) = played.tick()
    played.tick(3_600_000)
    after = [ticked.condition for _ in range(20) for ticked in played.tick()]
    assert [condition.tick for condition in after] == list(range(len(after)))
    assert len(after) >= 10
    assert {condition.episode for condition in after} == {first.condition.episode + 1}
    assert any("a new episode began" in text for text in played.faults)
    assert not played.remembering.stopped


def test_after_a_silence_the_episode_goes_on_with_a_gap(runtime: MemoryRuntime, loose: Continuity) -> None:
    played = Played(runtime, loose)
    before = [ticked.condition for _ in range(5) for ticked in played.tick()]
    played.tick(8_000, 8_000)
    after = [ticked.condition for _ in range(20) for ticked in played.tick()]
    missed = round((after[0].stamp_ns - before[-1].stamp_ns) / CONFIG.period_ns) - 1
    assert missed > 80
    assert (after[0].tick, after[0].gap_ticks) == (before[-1].tick + 1 + missed, missed)
    assert {condition.episode for condition in after} == {before[0].episode}
    assert not any(condition.restored for condition in after)


@pytest.mark.parametrize("waiting", [1, 20])
def test_after_a_sleep_the_episode_goes_on_with_a_gap(runtime: MemoryRuntime, loose: Continuity, waiting: int) -> None:
    played = Played(runtime, loose)
    before = [ticked.condition for _ in range(5) for ticked in played.tick()]
    # What came before the sleep, and was not yet taken, is taken at once after it.
    before += [t.condition for k in range(waiting) for t in played.tick(100, 1 if k else 100 * waiting + 8_000)]
    assert len(before) == 5 + waiting
    played.tick(8_000, 1)
    after = [ticked.condition for _ in range(20) for ticked in played.tick()]
    missed = round((after[0].stamp_ns - before[-1].stamp_ns) / CONFIG.period_ns) - 1
    assert missed > 80 and not played.remembering.stopped
    assert (after[0].tick, after[0].gap_ticks) == (before[-1].tick + 1 + missed, missed)
    assert {condition.episode for condition in after} == {before[0].episode}
    assert any("this process slept" in text for text in played.faults)


def test_one_stream_on_another_clock_ends_nothing(runtime: MemoryRuntime, loose: Continuity) -> None:
    played = Played(runtime, loose)
    played.tick()
    observer = played.remembering.observer
    for _ in range(20):
        played.stamp_ns += 100_000_000
        played.wall_ns += 100_000_000
        late = played.stamp_ns + 3600 * SECOND_NS
        for camera in CONFIG.camera_names:
            observer.push(camera, late, played.wall_ns, Pixels(np.zeros((8, 8, 3), np.uint8)))
        joints = Live(JointPositions(JOINTS, [0.1] * len(JOINTS)))
        observer.push("joint_states", played.stamp_ns, played.wall_ns, joints)
        list(played.remembering.ticks(played.wall_ns + SECOND_NS))
    assert not played.remembering.stopped
    assert played.remembering.next_tick > 15
