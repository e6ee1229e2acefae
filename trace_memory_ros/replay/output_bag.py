"""What a replay remembers, as a bag beside the one it was made of: the topics and stamps of a live run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import chain, islice
from pathlib import Path
from types import TracebackType

from trace_memory_ros.bags.layout import REPLAY
from trace_memory_ros.bags.messages import CONDITION, DIAGNOSTICS, condition_to_message, report_to_message
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.replay.bag_replay import Replay, ReplayedTick
from trace_memory_ros.replay.parity import Parity, compare
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, RECORD_TOPIC, TickReport


class ReplayBag:
    """Writes replayed ticks to a new bag; a context manager.

    A message's log time is that of the input that completed its tick, so that both bags lie on one time axis in any
    viewer. Raises ValueError where `folder` is something else than a replay's bag.
    """

    def __init__(self, folder: Path, recording: RecordingConfig) -> None:
        self._condition, self._record = recording.topic(CONDITION_TOPIC), recording.topic(RECORD_TOPIC)
        self._writer = BagFileWriter(folder, {self._condition: CONDITION, self._record: DIAGNOSTICS}, command=REPLAY)
        self._streams = [stream.name for stream in recording.observation.inputs]
        self._unknown = {name: StreamCounters() for name in self._streams}
        self._faults: dict[str, None] = {}

    def __enter__(self) -> ReplayBag:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def write(self, tick: ReplayedTick) -> None:
        """Append a tick's condition and diagnostics."""
        if not tick.condition.tick:
            self._faults.clear()
        self._faults.update(dict.fromkeys(tick.observation.faults.values()))
        counters = tick.counters or self._unknown
        message = condition_to_message(tick.condition, self._streams)
        self._writer.write(self._condition, message, tick.log_ns)
        report = TickReport(tick.condition, tick.record, tick.observation, tick.record.stage_ms)
        message = report_to_message(report, self._streams, counters, list(self._faults))
        self._writer.write(self._record, message, tick.log_ns)


def replay_to_bag(
    replay: Replay, folder: Path | None, on_tick: Callable[[ReplayedTick], None] | None = None
) -> Parity | None:
    """Run a replay to its end, writing to `folder` if one is given; `replay.report` then holds how it went.

    Returns how far the live run in the bag is from it; None where the bag has none of the same model.
    """
    conditions: list[Condition] = []
    ticks = iter(replay)

    def run(seen: Iterable[ReplayedTick], bag: ReplayBag | None) -> None:
        for tick in seen:
            conditions.append(tick.condition)
            if bag is not None:
                begun = time.perf_counter()
                bag.write(tick)
                replay.report.stage_s["write"] += time.perf_counter() - begun
            if on_tick is not None:
                on_tick(tick)

    if folder is None:
        run(ticks, None)
    else:
        if folder.resolve() == replay.bag.resolve():
            raise ValueError(f"{folder} is the bag that is replayed: write to another folder")
        # A bag that is refused must not cost the replay that lies there.
        first = list(islice(ticks, 1))
        begun = time.perf_counter()
        with ReplayBag(folder, replay.recording) as bag:
            replay.report.stage_s["write"] += time.perf_counter() - begun
            run(chain(first, ticks), bag)
    same_model = bool(replay.live) and {c.model_id for c in replay.live} == {c.model_id for c in conditions}
    return compare(replay.live, conditions) if same_model else None
