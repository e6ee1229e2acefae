"""Replay does what live did: bit for bit by stamps alone, and, where it was the clock's doing, by following it."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fixtures import tiny_checkpoint
from replay.simulated_live import SECONDS, SimulatedLive
from rosbags.rosbag2 import Reader, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from studies.parity.disturbed_streams import START_NS
from trace_memory_ros.bags.messages import CONDITION, DIAGNOSTICS, condition_to_message
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.types import of_another_version, typestore
from trace_memory_ros.bags.writer import STORAGES, BagFileWriter
from trace_memory_ros.cli.main import main
from trace_memory_ros.cli.replay import default_out, print_report
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.replay.bag_replay import STAGES_TIMED, Replay, ReplayError
from trace_memory_ros.replay.live_run import HeldSamples, RecordedTicks, live_conditions
from trace_memory_ros.replay.output_bag import replay_to_bag
from trace_memory_ros.replay.parity import Parity, compare
from trace_memory_ros.replay.recorded_conditions import earlier_definition
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.streams.cdr import header_stamp_ns


def replayed(bag: Path, checkpoint: Path, **how: bool) -> tuple[Replay, Parity]:
    replay = Replay(bag, MemoryRuntime.from_checkpoint(checkpoint), **how)
    parity = replay_to_bag(replay, None)
    assert parity is not None
    return replay, parity


@pytest.mark.parametrize("as_recorded", [False, True])
def test_replay_is_bit_identical_to_live(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, as_recorded: bool
) -> None:
    bag, conditions = recorded
    replay, parity = replayed(bag, checkpoint, as_recorded=as_recorded)
    assert parity.identical, parity
    assert parity.largest == 0.0
    assert (parity.compared, parity.beyond) == (len(conditions), 0)
    assert len(conditions) > 85
    statuses = replay.report.statuses
    assert statuses["OK"] > 60
    assert statuses["STALE"] > 5
    assert [c.tokens.tobytes() for c in replay.live] == [c.tokens.tobytes() for c in conditions]


@pytest.mark.parametrize("how", ["as_recorded", "reset_per_episode"])
def test_a_runtime_that_was_used_begins_an_episode_with_an_empty_memory(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, how: str
) -> None:
    runtime = MemoryRuntime.from_checkpoint(checkpoint)
    rule = RecordingConfig(runtime.config.observation)
    chosen = {"as_recorded": how == "as_recorded", "reset_per_episode": how == "reset_per_episode"}
    replays = [Replay(recorded[0], runtime, rule, **chosen) for _ in range(2)]
    first, again = ([tick.condition.tokens.tobytes() for tick in replay] for replay in replays)
    assert first == again


def test_ticks_that_a_deadline_fired_are_followed(tmp_path: Path, checkpoint: Path) -> None:
    live = SimulatedLive(tmp_path / "bag", checkpoint, deadline_ms=150)
    streams = live.episode(SECONDS, late_every_s=3.0, late_s=0.6, burst_every_s=0.0)
    live.writer.close()
    assert streams.counts["late"] > 10
    _, followed = replayed(tmp_path / "bag", checkpoint, as_recorded=True)
    assert followed.identical, followed
    _, alone = replayed(tmp_path / "bag", checkpoint)
    assert alone.compared >= followed.compared - 2
    assert alone.differ["input_stamps_ns"] > 0
    assert alone.largest > 0.0
    assert alone.first_differing_tick is not None


def test_a_sleep_of_the_node_leaves_a_gap_that_is_followed(tmp_path: Path, checkpoint: Path) -> None:
    live = SimulatedLive(tmp_path / "bag", checkpoint)
    live.asleep = range(START_NS + 3 * 10**9, START_NS + 11 * 10**9)
    live.episode(16.0, burst_every_s=0.0)
    live.writer.close()
    gaps = [c.gap_ticks for c in live.conditions]
    assert gaps[0] == 0 and 60 < gaps[-1] < 90
    assert live.conditions[-1].tick + 1 == len(gaps) + gaps[-1]
    assert not any("jumped" in text for text in live.faults)
    followed, parity = replayed(tmp_path / "bag", checkpoint, as_recorded=True)
    assert parity.identical and parity.compared == len(gaps), parity
    assert followed.report.missed == 0
    assert replayed(tmp_path / "bag", checkpoint)[0].report.ticks > len(gaps) + 60


def test_stamps_of_zero_are_refused_as_live_and_named(
    tmp_path: Path, recorded: tuple[Path, list[Condition]], checkpoint: Path
) -> None:
    lacking, zero, followed = (rewritten(recorded[0], tmp_path / name, name) for name in ("lacking", "zero", "live"))
    expected, got, again = (
        Replay(bag, MemoryRuntime.from_checkpoint(checkpoint), as_recorded=bag == followed)
        for bag in (lacking, zero, followed)
    )
    wanted, ticks = list(expected), list(got)
    assert [tick.condition.vector.tobytes() for tick in ticks] == [tick.condition.vector.tobytes() for tick in wanted]
    more, fewer = (found[-1].counters["joint_states"] for found in (ticks, wanted))
    assert more.rejected - fewer.rejected == more.received - fewer.received > 20
    text = "joint_states: a sample with a stamp of zero was refused: let the driver fill header.stamp"
    assert not any("stamp of zero" in fault for fault in expected.report.faults)
    assert sum(fault.startswith(text) for fault in got.report.faults) == 1
    assert len(list(again)) == len(recorded[1])
    assert sum(fault.startswith(text) for fault in again.report.faults) == 1


def rewritten(bag: Path, copy: Path, how: str) -> Path:
    """The bag without every fifth joint state, or with these stamped zero; without conditions unless `live`."""
    with BagReader(bag) as reader:
        topics = {name: info.type_names[0] for name, info in reader.topics.items()}
        writer = BagFileWriter(copy, topics)
        joints = 0
        for raw in reader.messages():
            data = bytes(raw.data)
            if raw.topic == "/joint_states":
                joints += 1
                if joints % 5 == 0:
                    data = data[:4] + bytes(8) + data[12:]
            if (how == "live" or raw.topic != "/memory/condition") and (how != "lacking" or any(data[4:12])):
                writer.write_raw(raw.topic, data, raw.log_ns)
        writer.close()
    return copy


def test_what_only_the_recorder_received_is_not_followed(tmp_path: Path, checkpoint: Path) -> None:
    live = SimulatedLive(tmp_path / "bag", checkpoint)
    live.episode(SECONDS, recorder_only=0.05)
    live.writer.close()
    _, followed = replayed(tmp_path / "bag", checkpoint, as_recorded=True)
    assert followed.identical, followed
    assert not replayed(tmp_path / "bag", checkpoint)[1].identical


def test_what_the_recorder_missed_is_counted_and_named(tmp_path: Path, checkpoint: Path) -> None:
    live = SimulatedLive(tmp_path / "bag", checkpoint)
    live.episode(SECONDS, node_only=0.05, damaged=0.0)
    live.writer.close()
    replay = Replay(tmp_path / "bag", MemoryRuntime.from_checkpoint(checkpoint), as_recorded=True)
    reasons = [tick.condition.reason for tick in replay]
    assert len(reasons) == len(live.conditions)
    assert replay.report.missed > 0
    lost = [reason for reason in reasons if "is not in the bag: the recorder missed it" in reason]
    assert 0 < len(lost) <= replay.report.missed


def test_what_the_recorder_missed_of_an_episode_costs_the_next_one_nothing(tmp_path: Path, checkpoint: Path) -> None:
    live = SimulatedLive(tmp_path / "bag", checkpoint)
    live.episode(SECONDS, damaged=0.0)
    live.episode(SECONDS, seed=1, damaged=0.0, after_s=0.5)
    live.writer.close()
    (last,) = [c for c, after in pairwise(live.conditions) if after.episode != c.episode]
    with BagReader(tmp_path / "bag") as reader:
        writer = BagFileWriter(tmp_path / "copy", {name: info.type_names[0] for name, info in reader.topics.items()})
        for raw in reader.messages():
            missed = raw.topic == "/joint_states" and header_stamp_ns(raw.data) == last.input_stamps_ns["joint_states"]
            if not missed:
                writer.write_raw(raw.topic, bytes(raw.data), raw.log_ns)
        writer.close()
    replay = Replay(tmp_path / "copy", MemoryRuntime.from_checkpoint(checkpoint), as_recorded=True)
    ticks = [(tick.condition.episode, tick.condition.tick, tick.condition.reason) for tick in replay]
    assert [(one[0], one[1]) for one in ticks] == [(c.episode, c.tick) for c in live.conditions]
    lost = [(episode, tick) for episode, tick, reason in ticks if "is not in the bag" in reason]
    assert lost == [(last.episode, last.tick)] and replay.report.missed == 1


def test_episodes_begin_with_an_empty_memory(tmp_path: Path, checkpoint: Path) -> None:
    live = SimulatedLive(tmp_path / "bag", checkpoint)
    for seed in (0, 1):
        live.episode(5.0, seed, mark=True, burst_every_s=0.0)
    live.writer.close()
    followed, parity = replayed(tmp_path / "bag", checkpoint, as_recorded=True)
    assert parity.identical, parity
    assert followed.report.episodes == 2
    reset, parity = replayed(tmp_path / "bag", checkpoint, reset_per_episode=True)
    assert parity.identical, parity
    assert reset.report.episodes == 2
    assert followed.report.stream_s == pytest.approx(reset.report.stream_s) == pytest.approx(10.0, abs=0.5)
    on = Replay(tmp_path / "bag", MemoryRuntime.from_checkpoint(checkpoint))
    assert {tick.condition.episode for tick in on} == {0}
    assert on.report.episodes == 1


def test_the_new_bag_holds_what_live_would_have_published(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, tmp_path: Path
) -> None:
    bag, conditions = recorded
    replay = Replay(bag, MemoryRuntime.from_checkpoint(checkpoint))
    replay_to_bag(replay, tmp_path / "out")
    with BagReader(tmp_path / "out") as reader, BagReader(bag) as old:
        assert set(reader.topics) == {"/memory/condition", "/memory/diagnostics"}
        assert compare(conditions, live_conditions(reader, replay.recording)).identical
        assert old.begin_ns <= reader.begin_ns < reader.end_ns <= old.end_ns
    # Read by somebody else's reader, too.
    with Reader(tmp_path / "out") as other:
        types = {connection.topic: connection.msgtype for connection in other.connections}
        assert types == {"/memory/condition": CONDITION, "/memory/diagnostics": DIAGNOSTICS}
        found = [(c.topic, typestore().deserialize_cdr(data, c.msgtype)) for c, _, data in other.messages()]
    records = [message for topic, message in found if topic == "/memory/diagnostics"]
    assert [record.tick for record in records] == [condition.tick for condition in conditions]
    last = records[-1]
    assert list(last.stage_names) == ["encode", "signature", "memory"]
    assert last.input_received.min() > 50
    assert last.ticks_stale + last.ticks_invalid == sum(condition.status != 0 for condition in conditions)
    assert any("is older than" in fault for fault in last.faults)
    assert np.isnan(last.latency_ms)


def test_the_report_adds_up(recorded: tuple[Path, list[Condition]], checkpoint: Path, tmp_path: Path) -> None:
    bag, conditions = recorded
    replay = Replay(bag, MemoryRuntime.from_checkpoint(checkpoint))
    replay_to_bag(replay, tmp_path / "out")
    report = replay.report
    assert report.ticks == len(conditions) == sum(report.statuses.values())
    assert report.stream_s == pytest.approx(len(conditions) * 0.1)
    assert set(report.stage_s) == set(STAGES_TIMED)
    assert all(seconds > 0 for seconds in report.stage_s.values())
    assert sum(report.stage_s.values()) == pytest.approx(report.wall_s)
    assert report.times_real == pytest.approx(report.stream_s / report.wall_s)
    with BagReader(bag) as reader:
        assert report.messages == sum(info.messages for name, info in reader.topics.items() if name != "/episode")
    assert report.figures()["ticks"] == report.ticks


def test_what_is_beyond_training_is_counted_by_name(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = MemoryRuntime.from_checkpoint(checkpoint)
    assert Replay(recorded[0], runtime).report.cut_off == {}
    names, state = runtime.config.observation.state, runtime.model.state
    runtime.model.state = replace(state, mean=state.mean + 1000.0 * (np.arange(state.width) == 4))
    replay = Replay(recorded[0], runtime)
    for _ in replay:
        pass
    assert replay.report.cut_off == {names[4]: replay.report.statuses["OK"]}
    assert replay.report.figures()["cut_off_ticks"] == dict(replay.report.cut_off)
    print_report(replay.report, None, live=False)
    assert f"{names[4]} is far beyond what training showed" in capsys.readouterr().out


def test_nothing_is_kept_of_what_was_used(recorded: tuple[Path, list[Condition]], checkpoint: Path) -> None:
    bag, conditions = recorded
    config = MemoryRuntime.from_checkpoint(checkpoint).config.observation
    with BagReader(bag) as reader:
        most = 0
        ticks = RecordedTicks(reader, RecordingConfig(config), conditions)
        original = HeldSamples._push

        def push(self: HeldSamples, *arguments: object) -> object:
            nonlocal most
            verdict = original(self, *arguments)  # type: ignore[arg-type]
            most = max(most, len(self._kept))
            return verdict

        HeldSamples._push = push  # type: ignore[method-assign,assignment]
        try:
            assert len(list(ticks)) == len(conditions)
        finally:
            HeldSamples._push = original  # type: ignore[method-assign]
    assert 0 < most < 60
    assert ticks.missed == 0


def test_a_recording_that_begins_too_late_is_told(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, tmp_path: Path
) -> None:
    bag, conditions = recorded
    live = SimulatedLive(tmp_path / "late", checkpoint)
    begin = conditions[20].stamp_ns
    with BagReader(bag) as reader:
        for raw in reader.messages(begin_ns=begin):
            live.writer.write_raw(raw.topic.lstrip("/"), raw.data, raw.log_ns)
    live.writer.close()
    replay, parity = replayed(tmp_path / "late", checkpoint, as_recorded=True)
    assert any("begins at tick" in fault for fault in replay.report.faults)
    assert not parity.identical


def test_another_checkpoint_is_not_compared(recorded: tuple[Path, list[Condition]], tmp_path: Path) -> None:
    tiny_checkpoint(tmp_path, seed=5, observation=default_arm(base_masked=False), policy=False)
    replay = Replay(recorded[0], MemoryRuntime.from_checkpoint(tmp_path))
    assert replay_to_bag(replay, None) is None
    assert replay.live


def test_refusals_say_why(recorded: tuple[Path, list[Condition]], checkpoint: Path, tmp_path: Path) -> None:
    bag, _ = recorded
    runtime = MemoryRuntime.from_checkpoint(checkpoint)
    with pytest.raises(ValueError, match="write to another folder"):
        replay_to_bag(Replay(bag, runtime), bag)
    empty = SimulatedLive(tmp_path / "bare", checkpoint, streams=False)
    empty.writer.write_raw("episode", b"\x00\x01\x00\x00" + bytes(60), 1)
    empty.writer.close()
    with pytest.raises(ReplayError, match=r"topic /camera/overhead/image_raw \(overhead\): is not in the bag"):
        list(Replay(tmp_path / "bare", runtime))
    seen = default_arm(base_masked=False)
    first, *rest = seen.cameras
    for what, changes in {
        "tick_period_ms": {"tick_period_ms": 50},
        f"crop of {first.name}": {"cameras": (replace(first, crop=(0.1, 0.1, 0.9, 0.9)), *rest)},
        f"image_px of {first.name}": {"cameras": (replace(first, image_px=seen.image_px + 8), *rest)},
    }.items():
        with pytest.raises(ReplayError, match=f"differs from the checkpoint's in {what}"):
            Replay(bag, runtime, RecordingConfig(replace(seen, **changes)))
    same = replace(first, image_px=seen.image_px)
    Replay(bag, runtime, RecordingConfig(replace(seen, cameras=(same, *rest))))


def test_a_bag_that_is_refused_does_not_cost_an_earlier_replay(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, tmp_path: Path
) -> None:
    runtime, out = MemoryRuntime.from_checkpoint(checkpoint), tmp_path / "out"
    replay_to_bag(Replay(recorded[0], runtime), out)
    kept = {path: path.read_bytes() for path in out.iterdir()}
    for missing in (out, tmp_path / "new"):
        with pytest.raises(ValueError, match="does not exist"):
            replay_to_bag(Replay(tmp_path / "nothing", runtime), missing)
    assert {path: path.read_bytes() for path in out.iterdir()} == kept
    assert not (tmp_path / "new").exists()


def test_following_needs_a_live_run(checkpoint: Path, tmp_path: Path) -> None:
    live = SimulatedLive(tmp_path / "bag", checkpoint)
    live.episode(1.0)
    live.writer.close()
    only_inputs = tmp_path / "inputs"
    plain = SimulatedLive(only_inputs, checkpoint)
    with BagReader(tmp_path / "bag") as reader:
        for raw in reader.messages():
            if raw.topic != "/memory/condition":
                plain.writer.write_raw(raw.topic.lstrip("/"), raw.data, raw.log_ns)
    plain.writer.close()
    runtime = MemoryRuntime.from_checkpoint(checkpoint)
    with pytest.raises(ReplayError, match="no conditions of a live run"):
        list(Replay(only_inputs, runtime, as_recorded=True))
    replay = Replay(only_inputs, runtime)
    assert replay_to_bag(replay, None) is None
    assert replay.report.ticks > 5


def test_the_command(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bag, _ = recorded
    out, summary = tmp_path / "out", tmp_path / "summary"
    command = ["replay", str(bag), "--checkpoint", str(checkpoint), "--out", str(out), "--summary", str(summary)]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert "x real time" in printed
    assert "max |live - replay| = 0, bit-identical" in printed
    assert (out / "metadata.yaml").exists()
    assert (summary / "summary.json").exists()
    assert main(["replay", str(tmp_path / "nothing"), "--checkpoint", str(checkpoint), "--no-bag"]) == 1
    assert "does not exist" in capsys.readouterr().err
    assert default_out(Path("/x/run.mcap")) == Path("/x/run_replay")


def test_a_bag_of_today_is_of_this_version(recorded: tuple[Path, list[Condition]]) -> None:
    with BagReader(recorded[0]) as reader:
        topics = reader.topics.values()
        assert not any(of_another_version(info.type_name, info.definition) for info in topics)
        assert all(info.definition for info in topics)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_conditions_of_before_instances_are_read(
    recorded: tuple[Path, list[Condition]], tmp_path: Path, storage: str
) -> None:
    """With their definition in the bag, and without any, as rosbag2 wrote sqlite before Jazzy."""
    _, conditions = recorded
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(earlier_definition(), CONDITION))
    kind = store.types[CONDITION]
    with Writer(tmp_path / "bag", version=9, storage_plugin=STORAGES[storage]) as bag:
        connection = bag.add_connection("memory/condition", CONDITION, typestore=store)
        for condition in conditions[:5]:
            message = condition_to_message(condition, list(condition.input_stamps_ns))
            values = {name: getattr(message, name) for name in kind.__dataclass_fields__ if name != "__msgtype__"}
            bag.write(connection, condition.stamp_ns, store.serialize_cdr(kind(**values), CONDITION))
    if storage == "sqlite3":
        with sqlite3.connect(next((tmp_path / "bag").glob("*.db3"))) as file:
            file.execute("DELETE FROM message_definitions")
    with BagReader(tmp_path / "bag") as reader:
        # Its bytes are no messages of today's type: they must not be played as such.
        definition = reader.topics["/memory/condition"].definition
        assert of_another_version(CONDITION, definition) == bool(definition)
        found = live_conditions(reader, RecordingConfig(default_arm()))
    assert [(c.instance, c.episode, c.tick) for c in found] == [(0, c.episode, c.tick) for c in conditions[:5]]
    np.testing.assert_array_equal(found[4].tokens, conditions[4].tokens)
